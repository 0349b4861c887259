// Cascades in files, which processes read that can open files.

#define _POSIX_C_SOURCE 200809L // for O_CLOEXEC

#include "cpixels.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/// The maximum size of a file; those of OpenCV have up to 3 MB.
enum { MAX_BYTES = 8 << 20 };

/// Reads all of a file. Returns NULL with the reason in `error`.
static char *read_all(int descriptor, size_t byte_count, const char **error) {
  char *text = malloc(byte_count);
  size_t done = 0;
  while (text != NULL && done < byte_count) {
    const ssize_t count = read(descriptor, text + done, byte_count - done);
    if (count <= 0 && !(count < 0 && errno == EINTR)) {
      *error = "it cannot be read";
      free(text);
      return NULL;
    }
    done += count > 0 ? (size_t)count : 0;
  }
  if (text == NULL) {
    *error = "there is no memory for it";
  }
  return text;
}

cpixels_cascade *cpixels_cascade_load(const char *path, const char **error) {
  // Without waiting for the writer of a pipe.
  const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status;
  cpixels_cascade *cascade = NULL;
  if (descriptor < 0) {
    *error = errno == ENOENT ? "there is no such file" : "it cannot be opened";
    return NULL;
  }
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    *error = "it is no regular file";
  } else if (status.st_size <= 0 || status.st_size > MAX_BYTES) {
    *error = "its size is not 1 to 8388608 bytes";
  } else {
    char *text = read_all(descriptor, (size_t)status.st_size, error);
    if (text != NULL) {
      cascade = cpixels_cascade_create(text, (size_t)status.st_size, error);
      free(text);
    }
  }
  close(descriptor);
  return cascade;
}
