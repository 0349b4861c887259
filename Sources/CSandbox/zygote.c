#if defined(__linux__)
#ifndef _GNU_SOURCE
#define _GNU_SOURCE // unshare, ppoll
#endif

#include "csandbox.h"
#include "protocol.h"
#include "sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
  NICENESS = 5,             ///< As that of the server's image threads: its event loops have priority.
  OOM_ADJUSTMENT = 500,     ///< The system ends a helper before the server when memory runs out.
  IDLE_TIMEOUT_SECONDS = 2, ///< The timeout of a helper's socket, after which it returns free memory.
};

typedef struct child {
  uint32_t id;
  pid_t pid; ///< 0 for a free entry.
  bool has_ended;
} child;

typedef struct zygote {
  child children[CSANDBOX_MAX_HELPERS];
  int socket; ///< Ends of the next helper, -1 until they are received.
  int files;
  uint64_t data_bytes;
} zygote;

/// The process that occupies the process namespace of helpers; 0 without such a namespace.
static pid_t namespace_holder; // in a process with one thread; its helpers do not use it

static void write_text(const char *path, const char *text) {
  const int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file >= 0) {
    const ssize_t written = write(file, text, strlen(text));
    (void)written; // best effort: the file system may be read-only
    close(file);
  }
}

/// Lets a crash end the process at once: the handlers of Swift would start a program, and wait for it.
static void forget_crash_handlers(void) {
  const int crashes[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP};
  for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++) {
    signal(crashes[i], SIG_DFL);
  }
}

static void ignore_signals(void) {
  // A supervisor may send these to every process of the service; helpers end with the server.
  const int ignored[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2, SIGALRM, SIGXFSZ, SIGTSTP};
  for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) {
    signal(ignored[i], SIG_IGN);
  }
}

static void close_descriptors(void) {
  const int null = open("/dev/null", O_RDWR);
  for (int descriptor = 0; descriptor <= 2; descriptor++) {
    if (null < 0 || dup2(null, descriptor) < 0) {
      close(descriptor);
    }
  }
#if defined(SYS_close_range)
  if (syscall(SYS_close_range, CSANDBOX_CONTROL + 1, ~0U, 0) == 0) {
    return;
  }
#endif
  for (int descriptor = CSANDBOX_CONTROL + 1; descriptor < 65536; descriptor++) {
    close(descriptor);
  }
}

/// Occupies process 1 of the new process namespace, with whose end the system ends every helper.
static void hold_namespace(void) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  close(CSANDBOX_CONTROL);
  for (;;) {
    pause();
  }
}

static void take_namespaces(void) {
  const int with_processes = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;
  if (unshare(with_processes) != 0) {
    return; // not allowed here; the system call filter does not depend on it
  }
  namespace_holder = fork();
  if (namespace_holder == 0) {
    hold_namespace();
  }
}

bool csandbox_has_namespaces(void) {
  return namespace_holder > 0;
}

void csandbox_zygote_prepare(void) {
  forget_crash_handlers();
  ignore_signals();
  close_descriptors();
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  setpriority(PRIO_PROCESS, 0, NICENESS);
  char adjustment[16];
  snprintf(adjustment, sizeof adjustment, "%d", OOM_ADJUSTMENT);
  write_text("/proc/self/oom_score_adj", adjustment);
  prctl(PR_SET_NAME, "codec-zygote");
  take_namespaces();
}

/// Returns the private writable memory of this process, which RLIMIT_DATA counts.
static uint64_t data_bytes(void) {
  char text[256];
  const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return 0;
  }
  const ssize_t count = read(file, text, sizeof text - 1);
  close(file);
  if (count <= 0) {
    return 0;
  }
  text[count] = 0;
  unsigned long pages = 0;
  if (sscanf(text, "%*u %*u %*u %*u %*u %lu", &pages) != 1) {
    return 0;
  }
  return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void report(uint32_t kind, const child *child, int32_t status, uint64_t data_bytes) {
  const csandbox_event event = {
      .kind = kind,
      .id = child->id,
      .pid = child->pid,
      .status = status,
      .data_bytes = data_bytes,
  };
  // Without waiting: the worker may be about to send a command itself. It copes with a missing event.
  const ssize_t sent = send(CSANDBOX_CONTROL, &event, sizeof event, MSG_NOSIGNAL | MSG_DONTWAIT);
  (void)sent;
}

static child *find(zygote *z, uint32_t id) {
  for (size_t i = 0; i < CSANDBOX_MAX_HELPERS; i++) {
    if (z->children[i].pid > 0 && z->children[i].id == id) {
      return &z->children[i];
    }
  }
  return NULL;
}

static void reap(child *child) {
  while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR) {
  }
  memset(child, 0, sizeof *child);
}

static void discard(child *child) {
  if (!child->has_ended) {
    kill(child->pid, SIGKILL);
  }
  reap(child);
}

/// Reports helpers that have ended, which stay unreaped until they are discarded, and resumes helpers that somebody has
/// stopped: an image would wait for them forever.
static void observe(zygote *z) {
  for (size_t i = 0; i < CSANDBOX_MAX_HELPERS; i++) {
    child *child = &z->children[i];
    if (child->pid <= 0 || child->has_ended) {
      continue;
    }
    siginfo_t info = {.si_pid = 0};
    if (waitid(P_PID, (id_t)child->pid, &info, WSTOPPED | WNOHANG) == 0 && info.si_pid != 0) {
      kill(child->pid, SIGCONT);
    }
    info.si_pid = 0;
    if (waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) {
      continue;
    }
    child->has_ended = true;
    report(CSANDBOX_ENDED, child, info.si_code == CLD_EXITED ? info.si_status << 8 : info.si_status, 0);
  }
}

/// Turns a forked process into a helper. Returns false if the server has gone.
static bool become_helper(const zygote *z, int memory, const sigset_t *mask, csandbox_helper *helper) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  struct pollfd control = {.fd = CSANDBOX_CONTROL};
  if (poll(&control, 1, 0) > 0) { // the zygote may have ended before the line above
    return false;
  }
  close(CSANDBOX_CONTROL);
  prctl(PR_SET_NAME, "codec-helper");
  signal(SIGCHLD, SIG_DFL);
  sigprocmask(SIG_SETMASK, mask, NULL);
  struct stat status;
  if (fstat(memory, &status) != 0) {
    return false;
  }
  void *shared = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  close(memory);
  if (shared == MAP_FAILED) {
    return false;
  }
  const struct timeval timeout = {.tv_sec = IDLE_TIMEOUT_SECONDS};
  setsockopt(z->socket, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  *helper =
      (csandbox_helper){.shared = shared, .byte_count = (size_t)status.st_size, .socket = z->socket, .files = z->files};
  return true;
}

/// Forks a helper. Returns true in the helper.
static bool fork_helper(zygote *z, uint32_t id, int memory, const sigset_t *mask, csandbox_helper *helper) {
  child *child = NULL;
  for (size_t i = 0; child == NULL && i < CSANDBOX_MAX_HELPERS; i++) {
    child = z->children[i].pid <= 0 ? &z->children[i] : NULL;
  }
  const bool is_complete = child != NULL && z->socket >= 0 && z->files >= 0 && memory >= 0;
  errno = 0;
  const pid_t pid = is_complete ? fork() : -1;
  const int error = errno;
  if (pid == 0) {
    if (!become_helper(z, memory, mask, helper)) {
      _exit(1);
    }
    return true;
  }
  struct child none = {.id = id};
  struct child *forked = pid > 0 ? child : &none;
  *forked = (struct child){.id = id, .pid = pid > 0 ? pid : 0};
  const int given[] = {z->socket, z->files, memory};
  for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
    if (given[i] >= 0) {
      close(given[i]);
    }
  }
  z->socket = z->files = -1;
  // Only now: the channel of a helper that has started is closed as soon as it ends.
  if (pid > 0) {
    report(CSANDBOX_STARTED, forked, 0, z->data_bytes);
  } else {
    report(CSANDBOX_NOT_STARTED, forked, error, z->data_bytes);
  }
  return false;
}

/// Ends this process and before it every other one, so that nobody else has to reap them.
static _Noreturn void finish(zygote *z) {
  for (size_t i = 0; i < CSANDBOX_MAX_HELPERS; i++) {
    if (z->children[i].pid > 0) {
      discard(&z->children[i]);
    }
  }
  child holder = {.pid = namespace_holder};
  if (holder.pid > 0) {
    discard(&holder);
  }
  _exit(0);
}

/// Obeys one command. Returns true in a forked helper.
static bool obey(zygote *z, const sigset_t *mask, csandbox_helper *helper) {
  csandbox_command command;
  int descriptor;
  const ssize_t count = csandbox_receive(CSANDBOX_CONTROL, &command, sizeof command, &descriptor, -1);
  if (count != (ssize_t)sizeof command) {
    finish(z); // the server has ended
  }
  switch (command.kind) {
  case CSANDBOX_GIVE_SOCKET:
    z->socket = descriptor;
    return false;
  case CSANDBOX_GIVE_FILES:
    z->files = descriptor;
    return false;
  case CSANDBOX_GIVE_MEMORY_AND_FORK:
    return fork_helper(z, command.id, descriptor, mask, helper);
  case CSANDBOX_DISCARD: {
    child *child = find(z, command.id);
    if (child != NULL) {
      discard(child);
    }
    return false;
  }
  default:
    return false;
  }
}

static void on_child(int signal) {
  (void)signal; // interrupts ppoll
}

void csandbox_zygote_serve(csandbox_helper *helper) {
  static zygote z; // in one process with one thread; its helpers do not use it
  z.socket = z.files = -1;
  z.data_bytes = data_bytes();
  sigset_t blocked;
  sigset_t mask;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGCHLD);
  sigprocmask(SIG_BLOCK, &blocked, &mask);
  struct sigaction action = {.sa_handler = on_child};
  sigaction(SIGCHLD, &action, NULL);
  for (;;) {
    struct pollfd control = {.fd = CSANDBOX_CONTROL, .events = POLLIN};
    const int count = ppoll(&control, 1, NULL, &mask);
    if (count < 0) {
      observe(&z);
    } else if (obey(&z, &mask, helper)) {
      return;
    }
  }
}

_Noreturn void csandbox_exit(int status) {
  _exit(status);
}
#endif
