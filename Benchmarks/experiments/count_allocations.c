// Counts the allocations of a program that is started with LD_PRELOAD set to this library: see call_costs.py.
//
// The counts are in the file that ALLOCATION_COUNTS names, as two numbers of 64 bits: allocations and their bytes. With
// ALLOCATION_STACKS, each stack of at most STACK_FRAMES return addresses, found by frame pointers, is counted as well,
// after these numbers.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { STACK_FRAMES = 24, STACKS = 1 << 14 };

typedef struct stack {
  atomic_uint_fast64_t hash; ///< 0 if the entry is free.
  atomic_uint_fast64_t count;
  uintptr_t frames[STACK_FRAMES];
} stack;

typedef struct counts {
  atomic_uint_fast64_t allocations;
  atomic_uint_fast64_t bytes;
  stack stacks[STACKS];
} counts;

static counts *shared;
static bool has_stacks;
static _Thread_local uintptr_t stack_top;

static void *(*real_malloc)(size_t);
static void *(*real_calloc)(size_t, size_t);
static void *(*real_realloc)(void *, size_t);
static int (*real_posix_memalign)(void **, size_t, size_t);
static void *(*real_aligned_alloc)(size_t, size_t);
static _Alignas(16) uint8_t early[1 << 16]; ///< What dlsym allocates while the functions are being found.
static size_t early_used;

static void find_functions(void) {
  static bool is_finding;
  if (real_malloc != NULL || is_finding) {
    return;
  }
  is_finding = true;
  *(void **)&real_calloc = dlsym(RTLD_NEXT, "calloc");
  *(void **)&real_realloc = dlsym(RTLD_NEXT, "realloc");
  *(void **)&real_posix_memalign = dlsym(RTLD_NEXT, "posix_memalign");
  *(void **)&real_aligned_alloc = dlsym(RTLD_NEXT, "aligned_alloc");
  *(void **)&real_malloc = dlsym(RTLD_NEXT, "malloc");
}

__attribute__((constructor)) static void open_counts(void) {
  const char *path = getenv("ALLOCATION_COUNTS");
  has_stacks = getenv("ALLOCATION_STACKS") != NULL;
  const int file = path == NULL ? -1 : open(path, O_RDWR | O_CREAT, 0600);
  if (file >= 0 && ftruncate(file, sizeof(counts)) == 0) {
    void *block = mmap(NULL, sizeof(counts), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    shared = block == MAP_FAILED ? NULL : block;
  }
}

/// Returns the end of this thread's stack, beyond which no frame is.
static uintptr_t find_stack_top(void) {
  if (stack_top == 0) {
    stack_top = 1; // while this allocates
    pthread_attr_t attributes;
    void *base;
    size_t size;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
      pthread_attr_getstack(&attributes, &base, &size);
      pthread_attr_destroy(&attributes);
      stack_top = (uintptr_t)base + size;
    }
  }
  return stack_top;
}

static __attribute__((noinline)) void count_stack(void) {
  uintptr_t frames[STACK_FRAMES] = {0};
  const uintptr_t top = find_stack_top();
  const uintptr_t *frame = __builtin_frame_address(0);
  uint64_t hash = 1469598103934665603u;
  for (size_t i = 0; i < STACK_FRAMES && (uintptr_t)frame % 8 == 0 && (uintptr_t)(frame + 2) <= top; i++) {
    frames[i] = frame[1];
    hash = (hash ^ frames[i]) * 1099511628211u;
    const uintptr_t *next = (const uintptr_t *)frame[0];
    if (next <= frame) {
      break;
    }
    frame = next;
  }
  for (size_t i = 0; i < STACKS; i++) {
    stack *entry = &shared->stacks[(hash + i) % STACKS];
    uint_fast64_t found = 0;
    if (atomic_compare_exchange_strong(&entry->hash, &found, hash)) {
      memcpy(entry->frames, frames, sizeof frames);
      found = hash;
    }
    if (found == hash) {
      atomic_fetch_add_explicit(&entry->count, 1, memory_order_relaxed);
      return;
    }
  }
}

static inline void count(size_t byte_count) {
  if (shared != NULL) {
    atomic_fetch_add_explicit(&shared->allocations, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&shared->bytes, byte_count, memory_order_relaxed);
    if (has_stacks) {
      count_stack();
    }
  }
}

static void *allocate_early(size_t byte_count) {
  void *block = early + early_used;
  early_used += (byte_count + 15) / 16 * 16;
  return early_used <= sizeof early ? block : NULL;
}

void *malloc(size_t byte_count) {
  find_functions();
  count(byte_count);
  return real_malloc == NULL ? allocate_early(byte_count) : real_malloc(byte_count);
}

void *calloc(size_t number, size_t byte_count) {
  find_functions();
  count(number * byte_count);
  return real_calloc == NULL ? allocate_early(number * byte_count) : real_calloc(number, byte_count);
}

void *realloc(void *block, size_t byte_count) {
  find_functions();
  count(byte_count);
  return real_realloc(block, byte_count);
}

int posix_memalign(void **block, size_t alignment, size_t byte_count) {
  find_functions();
  count(byte_count);
  return real_posix_memalign(block, alignment, byte_count);
}

void *aligned_alloc(size_t alignment, size_t byte_count) {
  find_functions();
  count(byte_count);
  return real_aligned_alloc(alignment, byte_count);
}

void free(void *block) {
  static void (*real_free)(void *);
  if ((uint8_t *)block >= early && (uint8_t *)block < early + sizeof early) {
    return;
  }
  if (real_free == NULL) {
    *(void **)&real_free = dlsym(RTLD_NEXT, "free");
  }
  real_free(block);
}
