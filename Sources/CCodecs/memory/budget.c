#include "ccodecs.h"

#include <stdlib.h>

/// Precedes each block and stores the number of bytes to refund. Its size equals the alignment.
typedef union block_header {
  size_t byte_count;
  uint8_t padding[64];
} block_header;

bool ccodecs_budget_charge(ccodecs_budget *budget, size_t byte_count) {
  if (budget->used > budget->limit || byte_count > budget->limit - budget->used) {
    if (__builtin_add_overflow(budget->used, byte_count, &budget->wanted)) {
      budget->wanted = SIZE_MAX;
    }
    return false;
  }
  budget->used += byte_count;
  if (budget->used > budget->peak) {
    budget->peak = budget->used;
  }
  return true;
}

void ccodecs_budget_refund(ccodecs_budget *budget, size_t byte_count) {
  budget->used -= byte_count;
}

void *ccodecs_allocate(ccodecs_budget *budget, size_t byte_count) {
  size_t total;
  if (__builtin_add_overflow(byte_count, sizeof(block_header) + 63, &total)) {
    return NULL;
  }
  total &= ~(size_t)63; // aligned_alloc requires a multiple of the alignment
  if (!ccodecs_budget_charge(budget, total)) {
    return NULL;
  }
  block_header *header = aligned_alloc(sizeof(block_header), total);
  if (header == NULL) {
    budget->has_machine_failed = true;
    ccodecs_budget_refund(budget, total);
    return NULL;
  }
  header->byte_count = total;
  return header + 1;
}

void ccodecs_free(ccodecs_budget *budget, void *block) {
  if (block == NULL) {
    return;
  }
  block_header *header = (block_header *)block - 1;
  ccodecs_budget_refund(budget, header->byte_count);
  free(header);
}
