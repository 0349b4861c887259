// Systems without the means of the sandbox.
#if !defined(__linux__)
#include "csandbox.h"

#include <errno.h>
#include <stdlib.h>

#pragma clang diagnostic ignored "-Wunused-parameter"

const char *csandbox_attempt_name(size_t index) {
  return NULL;
}

void csandbox_close(int descriptor) {
}

bool csandbox_send(int socket, const void *bytes, size_t count, int descriptor) {
  return false;
}

int csandbox_send_now(int socket, const void *bytes, size_t count, int descriptor) {
  return CSANDBOX_CLOSED;
}

ssize_t csandbox_receive(int socket, void *bytes, size_t capacity, int *descriptor, int timeout_ms) {
  return CSANDBOX_CLOSED;
}

int csandbox_wait(int first, int second, int timeout_ms) {
  return 0;
}

bool csandbox_channel_create(size_t byte_count, csandbox_channel *channel) {
  errno = ENOTSUP;
  return false;
}

int csandbox_file_create(const char *directory) {
  return -1;
}

bool csandbox_file_name(int file, const char *path) {
  return false;
}

void csandbox_channel_destroy(csandbox_channel *channel) {
}

size_t csandbox_page_size(void) {
  return 65536;
}

void csandbox_discard(uint8_t *bytes, size_t count) {
}

void csandbox_flag_set(uint8_t *shared, uint32_t value) {
  *shared = (uint8_t)value;
}

uint32_t csandbox_flag_get(const uint8_t *shared) {
  return *shared;
}

int csandbox_zygote_spawn(const char *path, char *const arguments[], csandbox_zygote *zygote) {
  return ENOTSUP;
}

int csandbox_zygote_state_now(const csandbox_zygote *zygote) {
  return CSANDBOX_HAS_ENDED;
}

void csandbox_zygote_continue(const csandbox_zygote *zygote) {
}

void csandbox_zygote_destroy(csandbox_zygote *zygote) {
}

bool csandbox_zygote_fork(const csandbox_zygote *zygote, uint32_t id, csandbox_channel *channel) {
  return false;
}

bool csandbox_zygote_discard(const csandbox_zygote *zygote, uint32_t id) {
  return false;
}

int csandbox_zygote_next(const csandbox_zygote *zygote, csandbox_event *event, int timeout_ms) {
  return CSANDBOX_CLOSED;
}

bool csandbox_limit_cpu_time(pid_t pid, uint64_t seconds) {
  return false;
}

bool csandbox_limit_data(pid_t pid, uint64_t byte_count) {
  return false;
}

bool csandbox_limit_file_size(pid_t pid, uint64_t byte_count) {
  return false;
}

uint64_t csandbox_cpu_time(pid_t pid) {
  return 0;
}

uint64_t csandbox_active_time(pid_t pid) {
  return 0;
}

bool csandbox_was_signaled(int32_t status, int *signal) {
  *signal = 0;
  return false;
}

void csandbox_zygote_prepare(void) {
}

void csandbox_zygote_serve(csandbox_helper *helper) {
}

bool csandbox_enter(uint32_t *missing) {
  *missing = CSANDBOX_NAMESPACES | CSANDBOX_LANDLOCK;
  return false;
}

_Noreturn void csandbox_exit(int status) {
  _Exit(status);
}

int csandbox_attempt(size_t index) {
  return ENOTSUP;
}
#endif
