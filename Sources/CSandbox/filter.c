#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "csandbox.h"
#include "sandbox.h"

#if defined(__linux__) && defined(CSANDBOX_SECCOMP)
#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

/// System calls that are allowed with any arguments. None of them names a file, a process or an address: files and
/// sockets can only be those that the helper has been given.
static const int allowed[] = {
    // The channel, and temporary files, whose descriptors arrive through it. The server has made them as large as they
    // become, and limits what a helper may append.
    SCMP_SYS(read),
    SCMP_SYS(write),
    SCMP_SYS(pread64),
    SCMP_SYS(pwrite64),
    SCMP_SYS(recvmsg),
    SCMP_SYS(sendmsg),
    SCMP_SYS(poll),
    SCMP_SYS(ppoll),
    SCMP_SYS(close),
    SCMP_SYS(fstat),
    // Memory; see also the rules for mmap and mprotect.
    SCMP_SYS(munmap),
    SCMP_SYS(mremap),
    SCMP_SYS(madvise),
    SCMP_SYS(brk),
    // Threads; see also the rules for clone.
    SCMP_SYS(futex),
    SCMP_SYS(set_robust_list),
    SCMP_SYS(rseq),
    SCMP_SYS(set_tid_address),
    SCMP_SYS(sched_yield),
    SCMP_SYS(sched_getaffinity),
    SCMP_SYS(gettid),
    SCMP_SYS(getpid),
    SCMP_SYS(getcpu),
    SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(sigaltstack),
    SCMP_SYS(restart_syscall),
    SCMP_SYS(exit),
    SCMP_SYS(exit_group),
    // Clocks and random numbers.
    SCMP_SYS(clock_gettime),
    SCMP_SYS(clock_getres),
    SCMP_SYS(clock_nanosleep),
    SCMP_SYS(nanosleep),
    SCMP_SYS(gettimeofday),
    SCMP_SYS(getrandom),
};

/// The flags of clone that share everything with the process, and so create a thread.
static const unsigned long THREAD_FLAGS = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD;
static const unsigned long NAMESPACE_FLAGS =
    CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;

/// The flags of a mapping that change where memory is, but neither its kind nor who counts it.
static const unsigned long HARMLESS_MAP_FLAGS = MAP_FIXED | MAP_NORESERVE | MAP_STACK | MAP_POPULATE;

/// No memory becomes executable, and RLIMIT_DATA counts all memory: it counts neither shared mappings, of which only
/// those of files are allowed, nor those that grow downwards.
static int add_mapping_rules(scmp_filter_ctx filter) {
  const unsigned long kinds[] = {MAP_PRIVATE | MAP_ANONYMOUS, MAP_SHARED};
  int status = seccomp_rule_add(
      filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1, SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC | PROT_GROWSDOWN, 0));
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds && status == 0; i++) {
    status = seccomp_rule_add(
        filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 2, SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0),
        SCMP_A3(SCMP_CMP_MASKED_EQ, ~HARMLESS_MAP_FLAGS, kinds[i]));
  }
  return status;
}

static int add_rules(scmp_filter_ctx filter) {
  int status = 0;
  for (size_t i = 0; i < sizeof allowed / sizeof *allowed && status == 0; i++) {
    status = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
  }
  if (status == 0) {
    status = add_mapping_rules(filter);
  }
  if (status == 0) {
    const unsigned long mask = THREAD_FLAGS | NAMESPACE_FLAGS;
    status =
        seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1, SCMP_A0(SCMP_CMP_MASKED_EQ, mask, THREAD_FLAGS));
  }
  if (status == 0) { // its flags are in memory, where a filter cannot read them; the C library falls back to clone
    status = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
  }
  if (status == 0) { // abort
    status =
        seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1, SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid(), 0));
  }
  if (status == 0) { // names of threads
    status = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(prctl), 1, SCMP_A0(SCMP_CMP_EQ, PR_SET_NAME, 0));
  }
  return status;
}

bool csandbox_filter_install(void) {
  // Other calls fail rather than end the process: libraries probe for files and continue without them.
  scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
  if (filter == NULL) {
    return false;
  }
  const bool is_installed = add_rules(filter) == 0 && seccomp_load(filter) == 0;
  seccomp_release(filter);
  return is_installed;
}

bool csandbox_is_supported(void) {
  return true;
}

bool csandbox_library_version(char *text, size_t capacity) {
  const struct scmp_version *version = seccomp_version();
  if (version == NULL) {
    return false;
  }
  snprintf(text, capacity, "%u.%u.%u", version->major, version->minor, version->micro);
  return true;
}
#else
bool csandbox_filter_install(void) {
  return false;
}

bool csandbox_is_supported(void) {
  return false;
}

bool csandbox_library_version(char *text, size_t capacity) {
  (void)text, (void)capacity;
  return false;
}
#endif
