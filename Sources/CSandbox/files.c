#if defined(__linux__)
#ifndef _GNU_SOURCE
#define _GNU_SOURCE // O_TMPFILE
#endif

#include "csandbox.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int csandbox_file_create(const char *directory) {
  return open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

bool csandbox_file_name(int file, const char *path) {
  char descriptor[64];
  snprintf(descriptor, sizeof descriptor, "/proc/self/fd/%d", file);
  return linkat(AT_FDCWD, descriptor, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0;
}
#endif
