#if defined(__linux__)
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "csandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static int open_file(void) {
  return open("/etc/passwd", O_RDONLY);
}

static int create_file(void) {
  return open("/tmp/image-worker-attempt", O_WRONLY | O_CREAT, 0600);
}

static int open_inet_socket(void) {
  return socket(AF_INET, SOCK_STREAM, 0);
}

static int open_unix_socket(void) {
  return socket(AF_UNIX, SOCK_STREAM, 0);
}

static int fork_process(void) {
  const pid_t pid = fork();
  if (pid == 0) {
    _exit(0);
  }
  return (int)pid;
}

static int execute(void) {
  char *arguments[] = {"true", NULL};
  return execve("/bin/true", arguments, arguments + 1);
}

static int trace(void) {
  return (int)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
}

static int signal_another(void) {
  return kill(-1, 0);
}

static int read_another(void) {
  char byte;
  struct iovec local = {.iov_base = &byte, .iov_len = 1};
  return (int)process_vm_readv(1, &local, 1, &local, 1, 0);
}

static int map_executable(void) {
  void *map = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return map == MAP_FAILED ? -1 : 0;
}

static int map(int flags) {
  void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? -1 : 0;
}

static int map_shared(void) {
  return map(MAP_SHARED);
}

static int map_growing(void) {
  return map(MAP_PRIVATE | MAP_GROWSDOWN);
}

/// Calls that a helper has no file for fail in any case; only the filter says EPERM.
static int refused(int status) {
  return status < 0 && errno == EPERM ? -1 : 0;
}

static int allocate_file(void) {
  return refused(fallocate(STDOUT_FILENO, 0, 0, 4096));
}

static int resize_file(void) {
  return refused(ftruncate(STDOUT_FILENO, 4096));
}

static int take_namespace(void) {
  return unshare(CLONE_NEWUSER);
}

static int mount_file_system(void) {
  return mount("none", "/tmp", "tmpfs", 0, NULL);
}

static int raise_limit(void) {
  const struct rlimit none = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
  return setrlimit(RLIMIT_CPU, &none);
}

static int handle_signal(void) {
  struct sigaction action = {.sa_handler = SIG_IGN};
  return (int)syscall(SYS_rt_sigaction, SIGXCPU, &action, NULL, 8);
}

static int become_dumpable(void) {
  return prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

static int change_user(void) {
  return (int)syscall(SYS_setuid, 0);
}

static const char *const names[] = {
    "open a file",           "create a file",     "open an internet socket",
    "open a Unix socket",    "fork a process",    "execute a program",
    "trace a process",       "signal a process",  "read the memory of a process",
    "map executable memory", "take a namespace",  "mount a file system",
    "raise a limit",         "handle a signal",   "become dumpable",
    "change the user",       "map shared memory", "map growing memory",
    "allocate a file",       "resize a file",
};

static int (*const attempts[])(void) = {
    open_file,       create_file,  open_inet_socket, open_unix_socket, fork_process,      execute,     trace,
    signal_another,  read_another, map_executable,   take_namespace,   mount_file_system, raise_limit, handle_signal,
    become_dumpable, change_user,  map_shared,       map_growing,      allocate_file,     resize_file,
};

const char *csandbox_attempt_name(size_t index) {
  return index < sizeof names / sizeof *names ? names[index] : NULL;
}

int csandbox_attempt(size_t index) {
  if (index >= sizeof attempts / sizeof *attempts) {
    return EINVAL;
  }
  errno = 0;
  const int status = attempts[index]();
  return status < 0 ? errno : 0;
}
#endif
