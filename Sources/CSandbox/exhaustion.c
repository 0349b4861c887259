// Distinguishes a helper that ran out of memory from one that crashed.

#if defined(__linux__)
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "csandbox.h"
#include "sandbox.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/// The size of an allocation that succeeds unless the helper has reached its memory limit.
static const size_t PROBE_BYTES = (size_t)8 << 20;

/// Ends a helper that has crashed. Programs crash on purpose if an allocation fails, so that is checked first.
static void on_crash(int number) {
  void *probe = mmap(NULL, PROBE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (probe == MAP_FAILED) {
    _exit(CSANDBOX_EXIT_NO_MEMORY);
  }
  munmap(probe, PROBE_BYTES);
  // The default action, which SA_RESETHAND has restored, ends the process as soon as this function returns.
  syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number);
}

void csandbox_watch_exhaustion(void) {
  const int crashes[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP};
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_crash;
  action.sa_flags = SA_RESETHAND;
  for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++) {
    sigaction(crashes[i], &action, NULL);
  }
}
#endif
