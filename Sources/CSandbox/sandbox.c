#if defined(__linux__)
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "sandbox.h"
#include "csandbox.h"

#include <linux/capability.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
  MAX_DESCRIPTORS = 64, ///< Including one for each temporary file in use.
  MAX_PROCESSES = 4096, ///< Processes and threads of this user; filters allow a helper threads only.
  LAST_CAPABILITY = 63, ///< Highest capability that a kernel can know.
};

/// The size of a temporary file that no image reaches within the default limits, and to which the server may raise the
/// limit.
static const rlim_t MAX_FILE_BYTES = (rlim_t)64 << 30;

/// The stack of the first thread, which RLIMIT_DATA does not count.
static const rlim_t MAX_STACK_BYTES = (rlim_t)8 << 20;

/// Limits a resource to `value`. Only the server can raise it again, to at most `most`.
static bool limit_below(int resource, rlim_t value, rlim_t maximum) {
  const struct rlimit both = {.rlim_cur = value, .rlim_max = maximum};
  struct rlimit current;
  if (getrlimit(resource, &current) == 0 && current.rlim_max < maximum) {
    return current.rlim_cur <= value || // lower already
           setrlimit(resource, &(struct rlimit){.rlim_cur = value, .rlim_max = current.rlim_max}) == 0;
  }
  return setrlimit(resource, &both) == 0;
}

static bool limit(int resource, rlim_t value) {
  return limit_below(resource, value, value);
}

static bool set_limits(void) {
  return limit(RLIMIT_CORE, 0) && limit(RLIMIT_NOFILE, MAX_DESCRIPTORS) && limit(RLIMIT_STACK, MAX_STACK_BYTES) &&
         limit_below(RLIMIT_FSIZE, CSANDBOX_FILE_BYTES, MAX_FILE_BYTES) && limit(RLIMIT_NPROC, MAX_PROCESSES) &&
         limit(RLIMIT_MEMLOCK, 0);
}

static void drop_capabilities(void) {
  for (unsigned long capability = 0; capability <= LAST_CAPABILITY; capability++) {
    prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
  }
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
  syscall(SYS_capset, &header, none);
}

#if !defined(SYS_landlock_create_ruleset)
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_restrict_self 446
#endif

/// Refuses every access to files, and from the fourth version of Landlock to TCP. Returns false if the kernel does not
/// have or allow it, which leaves the system call filter.
static bool restrict_files(void) {
  const long version = syscall(SYS_landlock_create_ruleset, NULL, 0, 1 /* LANDLOCK_CREATE_RULESET_VERSION */);
  if (version < 1) {
    return false;
  }
  // The rights that each version knows, of which the kernel accepts no others.
  const uint64_t files[] = {0x1fff, 0x3fff, 0x7fff, 0x7fff, 0xffff};
  const size_t last = sizeof files / sizeof *files - 1;
  const struct {
    uint64_t files;
    uint64_t network;
  } rights = {
      .files = files[(size_t)version - 1 < last ? (size_t)version - 1 : last],
      .network = version >= 4 ? 3 : 0,
  };
  const int ruleset =
      (int)syscall(SYS_landlock_create_ruleset, &rights, version >= 4 ? sizeof rights : sizeof rights.files, 0);
  if (ruleset < 0) {
    return false;
  }
  const bool is_restricted = syscall(SYS_landlock_restrict_self, ruleset, 0) == 0;
  close(ruleset);
  return is_restricted;
}

bool csandbox_enter(uint32_t *missing) {
  *missing = csandbox_has_namespaces() ? 0 : CSANDBOX_NAMESPACES;
  if (!set_limits() || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) {
    return false;
  }
  drop_capabilities();
  *missing |= restrict_files() ? 0 : CSANDBOX_LANDLOCK;
  csandbox_watch_exhaustion();
  return csandbox_filter_install();
}
#endif
