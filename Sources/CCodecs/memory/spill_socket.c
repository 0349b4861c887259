#ifndef _GNU_SOURCE
#define _GNU_SOURCE // MSG_CMSG_CLOEXEC
#endif

#include "spill.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#if !defined(MSG_CMSG_CLOEXEC)
#define MSG_CMSG_CLOEXEC 0
#endif
#if !defined(MSG_NOSIGNAL)
#define MSG_NOSIGNAL 0
#endif

int ccodecs_spill_receive_file(int socket, uint64_t byte_count) {
  struct iovec content = {.iov_base = &byte_count, .iov_len = sizeof byte_count};
  struct msghdr message = {.msg_iov = &content, .msg_iovlen = 1};
  if (sendmsg(socket, &message, MSG_NOSIGNAL) != (ssize_t)sizeof byte_count) {
    return -1;
  }
  uint8_t byte;
  content = (struct iovec){.iov_base = &byte, .iov_len = 1};
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
  } space;
  memset(&space, 0, sizeof space);
  message.msg_control = space.bytes;
  message.msg_controllen = sizeof space.bytes;
  ssize_t count;
  do {
    count = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (count < 0 && errno == EINTR);
  const struct cmsghdr *header = count == 1 ? CMSG_FIRSTHDR(&message) : NULL;
  if (header == NULL || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) {
    return -1;
  }
  int file;
  memcpy(&file, CMSG_DATA(header), sizeof file);
  return file;
}
