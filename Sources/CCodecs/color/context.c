// The allocator for littlecms, which charges the image's budget.

#ifdef CCODECS_LCMS

#include "context.h"

#include "profile.h"

#include <lcms2_plugin.h>
#include <stdlib.h>
#include <string.h>

/// Precedes each block. The owner is NULL for blocks that littlecms allocates before the context has its user data.
typedef union block_header {
  struct {
    color_allowance *owner;
    union block_header *next; ///< Of the owner's blocks.
    union block_header *previous;
    size_t byte_count;
    size_t charged_bytes;
  } info;
  uint8_t padding[64];
} block_header;

/// Blocks of this size are never refused: littlecms 2.14 uses its mutexes and its copies of matrices, of at most 72
/// bytes, without a check. Each belongs to a larger block, so that they are few.
enum { MAX_UNCHECKED_BYTES = 128 };

/// Charges a block. Returns false if it is refused.
static bool charge(color_allowance *owner, size_t total) {
  if (owner->is_exhausted || total > owner->left) {
    return false;
  }
  owner->is_exhausted = !ccodecs_budget_charge(owner->budget, total);
  owner->left -= owner->is_exhausted ? 0 : total;
  return !owner->is_exhausted;
}

static void refund(color_allowance *owner, size_t total) {
  ccodecs_budget_refund(owner->budget, total);
  owner->left += total;
}

static void *on_allocate(cmsContext context, cmsUInt32Number byte_count) {
  color_allowance *owner = cmsGetContextUserData(context);
  const size_t total = (size_t)byte_count + sizeof(block_header);
  const size_t charged = owner != NULL && charge(owner, total) ? total : 0;
  if (owner != NULL && charged == 0 && byte_count > MAX_UNCHECKED_BYTES) {
    return NULL;
  }
  block_header *header = malloc(total);
  if (header == NULL) {
    if (owner != NULL) {
      refund(owner, charged);
      owner->is_exhausted = true;
    }
    return NULL;
  }
  header->info.owner = owner;
  header->info.byte_count = byte_count;
  header->info.charged_bytes = charged;
  if (owner != NULL) {
    block_header *next = owner->blocks;
    header->info.next = next;
    header->info.previous = NULL;
    if (next != NULL) {
      next->info.previous = header;
    }
    owner->blocks = header;
  }
  return header + 1;
}

static void on_free(cmsContext context, void *block) {
  (void)context;
  if (block == NULL) {
    return;
  }
  block_header *header = (block_header *)block - 1;
  color_allowance *owner = header->info.owner;
  if (owner != NULL) {
    refund(owner, header->info.charged_bytes);
    if (header->info.next != NULL) {
      header->info.next->info.previous = header->info.previous;
    }
    if (header->info.previous != NULL) {
      header->info.previous->info.next = header->info.next;
    } else {
      owner->blocks = header->info.next;
    }
  }
  free(header);
}

static void *on_reallocate(cmsContext context, void *block, cmsUInt32Number byte_count) {
  void *grown = on_allocate(context, byte_count);
  if (grown != NULL && block != NULL) {
    const size_t old = ((block_header *)block - 1)->info.byte_count;
    memcpy(grown, block, old < byte_count ? old : byte_count);
    on_free(context, block);
  }
  return grown;
}

cmsContext ccodecs_color_context(color_allowance *allowance) {
  static const cmsPluginMemHandler plugin = {
      .base = {.Magic = cmsPluginMagicNumber, .ExpectedVersion = 2000, .Type = cmsPluginMemHandlerSig},
      .MallocPtr = on_allocate,
      .FreePtr = on_free,
      .ReallocPtr = on_reallocate,
  };
  return cmsCreateContext((void *)(uintptr_t)&plugin, allowance); // littlecms only reads it
}

void ccodecs_color_close(cmsContext context, color_allowance *allowance) {
  cmsDeleteContext(context);
  while (allowance->blocks != NULL) {
    on_free(NULL, (block_header *)allowance->blocks + 1);
  }
}

size_t ccodecs_color_allowance(size_t profile_count) {
  return ((size_t)3 << 19) + 8 * profile_count;
}

cmsToneCurve *ccodecs_color_srgb_curve(cmsContext context) {
  static const cmsFloat64Number parameters[5] = {2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045};
  return cmsBuildParametricToneCurve(context, 4, parameters);
}

cmsHPROFILE ccodecs_color_build(cmsContext context, const double *chromaticities, cmsToneCurve *curve) {
  if (chromaticities == NULL) {
    return cmsCreateGrayProfileTHR(context, cmsD50_xyY(), curve);
  }
  const double *c = chromaticities;
  const cmsCIExyY white = {c[0], c[1], 1};
  const cmsCIExyYTRIPLE primaries = {{c[2], c[3], 1}, {c[4], c[5], 1}, {c[6], c[7], 1}};
  cmsToneCurve *const curves[3] = {curve, curve, curve};
  return cmsCreateRGBProfileTHR(context, &white, &primaries, curves);
}

bool ccodecs_color_save(cmsHPROFILE profile, ccodecs_bytes *bytes, ccodecs_budget *budget) {
  cmsUInt32Number count = 0;
  if (profile == NULL || !cmsSaveProfileToMem(profile, NULL, &count) || count > CCODECS_MAX_PROFILE_BYTES) {
    return true;
  }
  if (!ccodecs_bytes_reserve(bytes, count, budget)) {
    return false;
  }
  if (cmsSaveProfileToMem(profile, ccodecs_bytes_start(bytes), &count)) {
    bytes->count = count;
    // The date on which it is made would make equal results differ.
    static const uint8_t date[12] = {0x07, 0xD0, 0, 1, 0, 1};
    memcpy(ccodecs_bytes_start(bytes) + 24, date, sizeof date);
  }
  return true;
}

#endif
