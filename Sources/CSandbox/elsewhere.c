// Systems without the means of the sandbox.
#if !defined(__linux__)
#include "csandbox.h"

#include <errno.h>
#include <stdlib.h>

const char *csandbox_attempt_name(size_t index) {
  (void)index;
  return NULL;
}

void csandbox_close(int descriptor) {
  (void)descriptor;
}

bool csandbox_send(int socket, const void *bytes, size_t count, int descriptor) {
  (void)socket, (void)bytes, (void)count, (void)descriptor;
  return false;
}

int csandbox_send_now(int socket, const void *bytes, size_t count, int descriptor) {
  (void)socket, (void)bytes, (void)count, (void)descriptor;
  return CSANDBOX_CLOSED;
}

ssize_t csandbox_receive(int socket, void *bytes, size_t capacity, int *descriptor, int timeout_ms) {
  (void)socket, (void)bytes, (void)capacity, (void)descriptor, (void)timeout_ms;
  return CSANDBOX_CLOSED;
}

int csandbox_wait(int first, int second, int timeout_ms) {
  (void)first, (void)second, (void)timeout_ms;
  return 0;
}

bool csandbox_channel_create(size_t byte_count, csandbox_channel *channel) {
  (void)byte_count, (void)channel;
  errno = ENOTSUP;
  return false;
}

int csandbox_file_create(const char *directory) {
  (void)directory;
  return -1;
}

bool csandbox_file_name(int file, const char *path) {
  (void)file, (void)path;
  return false;
}

void csandbox_channel_destroy(csandbox_channel *channel) {
  (void)channel;
}

size_t csandbox_page_size(void) {
  return 65536;
}

void csandbox_discard(uint8_t *bytes, size_t count) {
  (void)bytes, (void)count;
}

void csandbox_flag_set(uint8_t *shared, uint32_t value) {
  *shared = (uint8_t)value;
}

uint32_t csandbox_flag_get(const uint8_t *shared) {
  return *shared;
}

int csandbox_zygote_spawn(const char *path, char *const arguments[], csandbox_zygote *zygote) {
  (void)path, (void)arguments, (void)zygote;
  return ENOTSUP;
}

int csandbox_zygote_state_now(const csandbox_zygote *zygote) {
  (void)zygote;
  return CSANDBOX_HAS_ENDED;
}

void csandbox_zygote_continue(const csandbox_zygote *zygote) {
  (void)zygote;
}

void csandbox_zygote_destroy(csandbox_zygote *zygote) {
  (void)zygote;
}

bool csandbox_zygote_fork(const csandbox_zygote *zygote, uint32_t id, csandbox_channel *channel) {
  (void)zygote, (void)id, (void)channel;
  return false;
}

bool csandbox_zygote_discard(const csandbox_zygote *zygote, uint32_t id) {
  (void)zygote, (void)id;
  return false;
}

int csandbox_zygote_next(const csandbox_zygote *zygote, csandbox_event *event, int timeout_ms) {
  (void)zygote, (void)event, (void)timeout_ms;
  return CSANDBOX_CLOSED;
}

bool csandbox_limit_cpu_time(pid_t pid, uint64_t seconds) {
  (void)pid, (void)seconds;
  return false;
}

bool csandbox_limit_data(pid_t pid, uint64_t byte_count) {
  (void)pid, (void)byte_count;
  return false;
}

bool csandbox_limit_file_size(pid_t pid, uint64_t byte_count) {
  (void)pid, (void)byte_count;
  return false;
}

uint64_t csandbox_cpu_time(pid_t pid) {
  (void)pid;
  return 0;
}

uint64_t csandbox_active_time(pid_t pid) {
  (void)pid;
  return 0;
}

bool csandbox_was_signaled(int32_t status, int *signal) {
  (void)status;
  *signal = 0;
  return false;
}

void csandbox_zygote_prepare(void) {
}

void csandbox_zygote_serve(csandbox_helper *helper) {
  (void)helper;
}

bool csandbox_enter(uint32_t *missing) {
  *missing = CSANDBOX_NAMESPACES | CSANDBOX_LANDLOCK;
  return false;
}

_Noreturn void csandbox_exit(int status) {
  _Exit(status);
}

int csandbox_attempt(size_t index) {
  (void)index;
  return ENOTSUP;
}
#endif
