#if defined(__linux__)
#ifndef _GNU_SOURCE
#define _GNU_SOURCE // memfd_create, MSG_CMSG_CLOEXEC
#endif

#include "csandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/// Space for one descriptor in a message.
typedef union descriptor_space {
  struct cmsghdr header;
  char bytes[CMSG_SPACE(sizeof(int))];
} descriptor_space;

static ssize_t send_message(int socket, const void *bytes, size_t count, int descriptor, int flags) {
  struct iovec content = {.iov_base = (void *)bytes, .iov_len = count};
  struct msghdr message = {.msg_iov = &content, .msg_iovlen = 1};
  descriptor_space space;
  if (descriptor >= 0) {
    memset(&space, 0, sizeof space);
    message.msg_control = space.bytes;
    message.msg_controllen = sizeof space.bytes;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof descriptor);
    memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  }
  ssize_t sent;
  do {
    sent = sendmsg(socket, &message, MSG_NOSIGNAL | flags);
  } while (sent < 0 && errno == EINTR);
  return sent;
}

bool csandbox_send(int socket, const void *bytes, size_t count, int descriptor) {
  return send_message(socket, bytes, count, descriptor, 0) == (ssize_t)count;
}

int csandbox_send_now(int socket, const void *bytes, size_t count, int descriptor) {
  const ssize_t sent = send_message(socket, bytes, count, descriptor, MSG_DONTWAIT);
  if (sent == (ssize_t)count) {
    return 0;
  }
  // The system also limits the descriptors that are sent and not received yet.
  return sent < 0 && (errno == EAGAIN || errno == ETOOMANYREFS) ? CSANDBOX_TIMED_OUT : CSANDBOX_CLOSED;
}

/// Returns the descriptor in a received message, or -1. A sender cannot place more than one in the space.
static int received_descriptor(struct msghdr *message) {
  struct cmsghdr *header = CMSG_FIRSTHDR(message);
  if (header == NULL || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) {
    return -1;
  }
  int descriptor;
  memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
  return descriptor;
}

ssize_t csandbox_receive(int socket, void *bytes, size_t capacity, int *descriptor, int timeout_ms) {
  if (timeout_ms >= 0 && csandbox_wait(socket, -1, timeout_ms) == 0) {
    return CSANDBOX_TIMED_OUT;
  }
  struct iovec content = {.iov_base = bytes, .iov_len = capacity};
  struct msghdr message = {.msg_iov = &content, .msg_iovlen = 1};
  descriptor_space space;
  memset(&space, 0, sizeof space);
  if (descriptor != NULL) { // without room for one, the system discards what a sender attaches
    *descriptor = -1;
    message.msg_control = space.bytes;
    message.msg_controllen = sizeof space.bytes;
  }
  ssize_t received;
  do {
    received = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (received < 0 && errno == EINTR);
  if (received < 0 && errno == EAGAIN) {
    return CSANDBOX_TIMED_OUT; // the socket's own timeout
  }
  if (received > 0 && descriptor != NULL) {
    *descriptor = received_descriptor(&message);
  }
  return received > 0 ? received : CSANDBOX_CLOSED;
}

int csandbox_wait(int first, int second, int timeout_ms) {
  struct pollfd sockets[2] = {{.fd = first, .events = POLLIN}, {.fd = second, .events = POLLIN}};
  int count;
  do {
    count = poll(sockets, 2, timeout_ms);
  } while (count < 0 && errno == EINTR);
  if (count <= 0) {
    return 0;
  }
  return (sockets[0].revents != 0 ? 1 : 0) | (sockets[1].revents != 0 ? 2 : 0);
}

void csandbox_close(int descriptor) {
  if (descriptor >= 0) {
    close(descriptor);
  }
}

static void close_descriptor(int *descriptor) {
  csandbox_close(*descriptor);
  *descriptor = -1;
}

static bool create_memory(csandbox_channel *channel) {
  const int memory = memfd_create("image-worker", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  channel->helper_memory = memory;
  // A helper that could shrink the memory could end the server by SIGBUS.
  if (memory < 0 || ftruncate(memory, (off_t)channel->byte_count) != 0 ||
      fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return false;
  }
  void *shared = mmap(NULL, channel->byte_count, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  channel->shared = shared == MAP_FAILED ? NULL : shared;
  return channel->shared != NULL;
}

static bool create_sockets(int *server, int *helper) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return false;
  }
  *server = ends[0];
  *helper = ends[1];
  return true;
}

bool csandbox_channel_create(size_t byte_count, csandbox_channel *channel) {
  *channel = (csandbox_channel){
      .byte_count = byte_count,
      .socket = -1,
      .files = -1,
      .helper_socket = -1,
      .helper_files = -1,
      .helper_memory = -1,
  };
  if (create_memory(channel) && create_sockets(&channel->socket, &channel->helper_socket) &&
      create_sockets(&channel->files, &channel->helper_files)) {
    return true;
  }
  const int error = errno;
  csandbox_channel_destroy(channel);
  errno = error;
  return false;
}

void csandbox_channel_destroy(csandbox_channel *channel) {
  if (channel->shared != NULL) {
    munmap(channel->shared, channel->byte_count);
  }
  channel->shared = NULL;
  close_descriptor(&channel->socket);
  close_descriptor(&channel->files);
  close_descriptor(&channel->helper_socket);
  close_descriptor(&channel->helper_files);
  close_descriptor(&channel->helper_memory);
}

size_t csandbox_page_size(void) {
  const long size = sysconf(_SC_PAGESIZE);
  return size > 0 ? (size_t)size : 65536; // the largest of the systems that this runs on
}

void csandbox_discard(uint8_t *bytes, size_t count) {
  (void)madvise(bytes, count, MADV_REMOVE); // best effort: without it, the memory stays until the channel is destroyed
}

void csandbox_flag_set(uint8_t *shared, uint32_t value) {
  __atomic_store_n((uint32_t *)(void *)shared, value, __ATOMIC_RELEASE);
}

uint32_t csandbox_flag_get(const uint8_t *shared) {
  return __atomic_load_n((const uint32_t *)(const void *)shared, __ATOMIC_ACQUIRE);
}
#endif
