// Shared by the fuzz targets: contract checks, and input that arrives one window at a time.
#pragma once

#include "ccodecs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/// Aborts if the contract is broken, so that the fuzzer stops and keeps the input.
static void check(bool holds, const char *promise) {
  if (!holds) {
    fprintf(stderr, "broken promise: %s\n", promise);
    abort();
  }
}

static uint32_t hash(const uint8_t *bytes, size_t count) {
  uint32_t value = 2166136261u;
  for (size_t i = 0; i < count; i++) {
    value = (value ^ bytes[i]) * 16777619u;
  }
  return value;
}

/// Supplies the bytes one window at a time, each in its own allocation so that a sanitizer detects reads beyond it.
typedef struct feed {
  const uint8_t *bytes;
  size_t left;
  size_t window_bytes;
  uint8_t *block;
  ccodecs_input input;
} feed;

static void next_window(feed *f) {
  free(f->block);
  const size_t count = f->left < f->window_bytes ? f->left : f->window_bytes;
  f->block = malloc(count > 0 ? count : 1);
  check(f->block != NULL, "memory for the window");
  memcpy(f->block, f->bytes, count);
  f->bytes += count;
  f->left -= count;
  f->input = (ccodecs_input){.bytes = f->block, .count = count, .is_last = f->left == 0};
}

/// Supplies the next window after CCODECS_NEEDS_INPUT.
static void feed_more(feed *f) {
  check(!f->input.is_last, "no input is asked for after the last");
  check(f->input.count == 0, "the window is consumed when input is asked for");
  next_window(f);
}
