// Reads and composes transforms. libheif 1.15 cannot mirror samples of more than eight bits, and it transforms the
// whole bitmap. So libheif never sees them: rows are returned as they are coded, and the caller orients its smaller
// result. Source: ISO/IEC 23008-12, 6.5.9 to 6.5.12; libheif 1.15 for the rounding of crops.

#include "heif_transform.h"

#include "../memory/bytes.h"

#include <math.h>

bool heif_transform_read(heif_box box, heif_transform *transform) {
  *transform = (heif_transform){.type = box.type};
  const uint8_t *bytes = box.body.bytes;
  switch (box.type) {
  case HEIF_TYPE('i', 'r', 'o', 't'):
  case HEIF_TYPE('i', 'm', 'i', 'r'):
    transform->code = box.body.count > 0 ? bytes[0] & 3 : 0;
    return box.body.count > 0;
  case HEIF_TYPE('c', 'l', 'a', 'p'):
    if (box.body.count < 32) {
      return false;
    }
    for (int axis = 0; axis < 2; axis++) {
      const uint8_t *size = bytes + 8 * axis;
      const uint8_t *shift = bytes + 16 + 8 * axis;
      if (ccodecs_be32(size + 4) == 0 || ccodecs_be32(shift + 4) == 0) {
        return false;
      }
      transform->size[axis] = (double)ccodecs_be32(size) / ccodecs_be32(size + 4);
      transform->shift[axis] = (double)(int32_t)ccodecs_be32(shift) / ccodecs_be32(shift + 4);
    }
    return true;
  default:
    return false;
  }
}

/// The axes of the image so far: which coded axis each one is, and whether it is reversed.
typedef struct heif_axes {
  int coded[2];
  bool is_reversed[2];
} heif_axes;

static void rotate_left(heif_axes *axes) {
  const heif_axes old = *axes;
  // The new x is the old y, and the new y the reversed old x.
  *axes = (heif_axes){{old.coded[1], old.coded[0]}, {old.is_reversed[1], !old.is_reversed[0]}};
}

/// Crops one axis of the image. `first` and `count` describe the coded axis that it is.
static bool crop(const heif_transform *t, int axis, bool is_reversed, uint32_t *first, uint32_t *count) {
  const double start = t->shift[axis] + (*count - 1) / 2.0 - (t->size[axis] - 1) / 2;
  const double low = trunc(axis == 0 ? start : start + 0.5);
  const double high = trunc(low + t->size[axis] - 1 + 0.5);
  const double from = low < 0 ? 0 : low;
  const double to = high < *count - 1.0 ? high : *count - 1.0;
  if (!(from <= to)) {
    return false;
  }
  *first += is_reversed ? *count - 1 - (uint32_t)to : (uint32_t)from;
  *count = (uint32_t)to - (uint32_t)from + 1;
  return true;
}

static uint8_t orientation_of(const heif_axes *axes) {
  static const uint8_t orientations[2][2][2] = {{{1, 4}, {2, 3}}, {{5, 8}, {6, 7}}};
  return orientations[axes->coded[0]][axes->is_reversed[0]][axes->is_reversed[1]];
}

bool heif_view_compose(
    const heif_transform *transforms, uint32_t count, uint32_t width, uint32_t height, heif_view *view) {
  heif_axes axes = {{0, 1}, {false, false}};
  uint32_t first[2] = {0, 0};
  uint32_t counts[2] = {width, height};
  for (uint32_t i = 0; i < count; i++) {
    const heif_transform *t = &transforms[i];
    if (t->type == HEIF_TYPE('i', 'r', 'o', 't')) {
      for (uint8_t turn = 0; turn < t->code; turn++) {
        rotate_left(&axes);
      }
    } else if (t->type == HEIF_TYPE('i', 'm', 'i', 'r')) {
      const int axis = (t->code & 1) != 0 ? 0 : 1; // 1 exchanges left and right
      axes.is_reversed[axis] = !axes.is_reversed[axis];
    } else {
      for (int axis = 0; axis < 2; axis++) {
        const int coded = axes.coded[axis];
        if (!crop(t, axis, axes.is_reversed[axis], &first[coded], &counts[coded])) {
          return false;
        }
      }
    }
  }
  *view = (heif_view){first[0], first[1], counts[0], counts[1], orientation_of(&axes)};
  return true;
}
