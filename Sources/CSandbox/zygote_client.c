#if defined(__linux__)
#ifndef _GNU_SOURCE
#define _GNU_SOURCE // prlimit, POSIX_SPAWN_SETSID
#endif

#include "csandbox.h"
#include "protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/// The variables that results, or the libraries and fonts that are found, depend on. Others may be secrets of the
/// server.
static const char *const inherited[] = {
    "LD_LIBRARY_PATH",    "IMAGE_WORKER_INSTRUCTION_SET",
    "FONTCONFIG_FILE",    "FONTCONFIG_PATH",
    "FONTCONFIG_SYSROOT", "HOME",
    "XDG_CACHE_HOME",     "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
};
enum { INHERITED_COUNT = sizeof inherited / sizeof *inherited };

/// Returns the variable `name` of this process with its value, or NULL.
static char *find_variable(const char *name) {
  const size_t length = strlen(name);
  for (char **variable = environ; *variable != NULL; variable++) {
    if (strncmp(*variable, name, length) == 0 && (*variable)[length] == '=') {
      return *variable;
    }
  }
  return NULL;
}

/// Starts the program with `control` as descriptor CSANDBOX_CONTROL. Returns 0 or an error number.
static int spawn(const char *path, char *const arguments[], int control, pid_t *pid) {
  char *environment[INHERITED_COUNT + 1] = {NULL};
  for (size_t i = 0, count = 0; i < INHERITED_COUNT; i++) {
    char *variable = find_variable(inherited[i]);
    if (variable != NULL) {
      environment[count++] = variable;
    }
  }
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  if (posix_spawn_file_actions_init(&actions) != 0) {
    return ENOMEM;
  }
  if (posix_spawnattr_init(&attributes) != 0) {
    posix_spawn_file_actions_destroy(&actions);
    return ENOMEM;
  }
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  // A session of its own: signals to the server's process group and its terminal do not reach it.
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
  posix_spawn_file_actions_adddup2(&actions, control, CSANDBOX_CONTROL);
  const int status = posix_spawn(pid, path, &actions, &attributes, arguments, environment);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return status;
}

/// Moves a descriptor away from CSANDBOX_CONTROL, where it would not lose its close-on-exec flag.
static int moved(int descriptor) {
  if (descriptor != CSANDBOX_CONTROL) {
    return descriptor;
  }
  const int copy = fcntl(descriptor, F_DUPFD_CLOEXEC, CSANDBOX_CONTROL + 1);
  close(descriptor);
  return copy;
}

int csandbox_zygote_spawn(const char *path, char *const arguments[], csandbox_zygote *zygote) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return errno;
  }
  ends[1] = moved(ends[1]);
  const int status = ends[1] < 0 ? errno : spawn(path, arguments, ends[1], &zygote->pid);
  if (ends[1] >= 0) {
    close(ends[1]);
  }
  if (status != 0) {
    close(ends[0]);
    return status;
  }
  zygote->control = ends[0];
  return 0;
}

int csandbox_zygote_state_now(const csandbox_zygote *zygote) {
  siginfo_t info = {.si_pid = 0};
  int status = 0;
  do {
    status = waitid(P_PID, (id_t)zygote->pid, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT);
  } while (status != 0 && errno == EINTR);
  if (status != 0) {
    return CSANDBOX_HAS_ENDED;
  }
  if (info.si_pid == 0) {
    return CSANDBOX_RUNS;
  }
  return info.si_code == CLD_STOPPED ? CSANDBOX_IS_STOPPED : CSANDBOX_HAS_ENDED;
}

void csandbox_zygote_continue(const csandbox_zygote *zygote) {
  // Its process id is not used again before it is reaped.
  if (zygote->pid > 0) {
    kill(zygote->pid, SIGCONT);
  }
}

/// Reaps helpers that have outlived a killed zygote, if this process is the one that inherits orphans.
static void reap_orphans(void) {
  const struct timespec pause = {.tv_nsec = 2000000};
  for (int attempt = 0; getpid() == 1 && attempt < 100; attempt++) {
    const pid_t pid = waitpid(-1, NULL, WNOHANG);
    if (pid < 0 && errno == ECHILD) {
      return;
    }
    if (pid == 0) {
      nanosleep(&pause, NULL);
    }
  }
}

void csandbox_zygote_destroy(csandbox_zygote *zygote) {
  if (zygote->pid <= 0) {
    return;
  }
  close(zygote->control);
  const struct timespec pause = {.tv_nsec = 2000000};
  pid_t reaped = 0;
  for (int attempt = 0; attempt < 500 && reaped == 0; attempt++) {
    reaped = waitpid(zygote->pid, NULL, WNOHANG);
    if (reaped == 0) {
      nanosleep(&pause, NULL);
    }
  }
  if (reaped == 0) {
    kill(zygote->pid, SIGKILL);
    while (waitpid(zygote->pid, NULL, 0) < 0 && errno == EINTR) {
    }
  }
  reap_orphans();
  zygote->pid = -1;
  zygote->control = -1;
}

static bool command(const csandbox_zygote *zygote, uint32_t kind, uint32_t id, int descriptor) {
  const csandbox_command command = {.kind = kind, .id = id};
  return csandbox_send(zygote->control, &command, sizeof command, descriptor);
}

bool csandbox_zygote_fork(const csandbox_zygote *zygote, uint32_t id, csandbox_channel *channel) {
  const bool is_sent = command(zygote, CSANDBOX_GIVE_SOCKET, id, channel->helper_socket) &&
                       command(zygote, CSANDBOX_GIVE_FILES, id, channel->helper_files) &&
                       command(zygote, CSANDBOX_GIVE_MEMORY_AND_FORK, id, channel->helper_memory);
  // Only the helper may have these ends: its death must close them.
  close(channel->helper_socket);
  close(channel->helper_files);
  close(channel->helper_memory);
  channel->helper_socket = channel->helper_files = channel->helper_memory = -1;
  return is_sent;
}

bool csandbox_zygote_discard(const csandbox_zygote *zygote, uint32_t id) {
  return command(zygote, CSANDBOX_DISCARD, id, -1);
}

int csandbox_zygote_next(const csandbox_zygote *zygote, csandbox_event *event, int timeout_ms) {
  const ssize_t count = csandbox_receive(zygote->control, event, sizeof *event, NULL, timeout_ms);
  if (count == CSANDBOX_TIMED_OUT) {
    return 0;
  }
  return count == (ssize_t)sizeof *event ? 1 : CSANDBOX_CLOSED;
}

static bool limit(pid_t pid, int resource, uint64_t value) {
  struct rlimit wanted = {.rlim_cur = value == 0 ? RLIM_INFINITY : value, .rlim_max = RLIM_INFINITY};
  if (prlimit(pid, resource, &wanted, NULL) == 0) {
    return true;
  }
  struct rlimit current; // whose maximum may be lower, and cannot be raised then
  if (errno != EPERM || prlimit(pid, resource, NULL, &current) != 0) {
    return false;
  }
  wanted.rlim_max = current.rlim_max;
  wanted.rlim_cur = wanted.rlim_cur < wanted.rlim_max ? wanted.rlim_cur : wanted.rlim_max;
  return prlimit(pid, resource, &wanted, NULL) == 0;
}

bool csandbox_limit_cpu_time(pid_t pid, uint64_t seconds) {
  return limit(pid, RLIMIT_CPU, seconds);
}

bool csandbox_limit_data(pid_t pid, uint64_t byte_count) {
  return limit(pid, RLIMIT_DATA, byte_count);
}

bool csandbox_limit_file_size(pid_t pid, uint64_t byte_count) {
  return limit(pid, RLIMIT_FSIZE, byte_count);
}

uint64_t csandbox_cpu_time(pid_t pid) {
  // What clock_getcpuclockid returns, which asks the kernel whether the process exists; so does reading the clock.
  const clockid_t clock = (clockid_t)(~(unsigned)pid << 3 | 2);
  struct timespec time;
  if (clock_gettime(clock, &time) != 0) {
    return 0;
  }
  return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

uint64_t csandbox_active_time(pid_t pid) {
  char path[32], text[64];
  snprintf(path, sizeof path, "/proc/%d/schedstat", (int)pid);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t count = file >= 0 ? read(file, text, sizeof text - 1) : -1;
  if (file >= 0) {
    close(file);
  }
  text[count > 0 ? count : 0] = 0;
  char *rest = text;
  (void)strtoull(text, &rest, 10);
  return csandbox_cpu_time(pid) + strtoull(rest, NULL, 10);
}

bool csandbox_was_signaled(int32_t status, int *signal) {
  *signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return WIFSIGNALED(status);
}
#endif
