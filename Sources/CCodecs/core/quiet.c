#define _GNU_SOURCE // fopencookie

#include "quiet.h"

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

// The only global variables of this module: the nesting depth belongs to a thread, and stderr to the process.
static _Thread_local int depth;

#ifdef __GLIBC__

static ssize_t on_write(void *context, const char *bytes, size_t count) {
  (void)context;
  for (size_t done = 0; depth == 0 && done < count;) {
    const ssize_t written = write(STDERR_FILENO, bytes + done, count - done);
    if (written <= 0) {
      return (ssize_t)done;
    }
    done += (size_t)written;
  }
  return (ssize_t)count;
}

/// Replaces `stderr` with a stream that checks the calling thread's depth. The old stream stays open, because other
/// code may still use it.
static void install(void) {
  FILE *stream = fopencookie(NULL, "w", (cookie_io_functions_t){.write = on_write});
  if (stream != NULL) {
    setvbuf(stream, NULL, _IONBF, 0);
    stderr = stream;
  }
}

void ccodecs_quiet_begin(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, install);
  depth++;
}

#else

void ccodecs_quiet_begin(void) {
  depth++;
}

#endif

void ccodecs_quiet_end(void) {
  depth--;
}
