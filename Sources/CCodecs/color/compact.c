// Profiles of sRGB and Display P3 with only what the format requires, as results contain them.
//
// Sources: ICC.1:2022 (profile format); IEC 61966-2-1 (curve); SMPTE EG 432-1 (primaries of P3). The primaries are
// adapted from D65 to D50 with the Bradford matrix, and rounded such that they add up to white.

#include "profile.h"

enum {
  HEADER_BYTES = 128,
  TAG_COUNT = 10,
  ENTRY_BYTES = 12,
  TEXT_HEAD_BYTES = 28,
  XYZ_BYTES = 20,
  MATRIX_BYTES = 44,
  CURVE_BYTES = 32,
};

static const uint32_t d50[3] = {0x0000F6D6, 0x00010000, 0x0000D32D};

/// From D65 to D50.
static const uint32_t adaptation[9] = {0x00010C42, 0x000005DE, 0xFFFFF325, 0x00000793, 0x0000FD90,
                                       0xFFFFFBA1, 0xFFFFFDA2, 0x000003DC, 0x0000C06E};

/// X, Y and Z of red, green and blue.
static const uint32_t colorants[][3][3] = {
    [CCODECS_TARGET_SRGB] =
        {{0x00006FA0, 0x000038F5, 0x00000390},
         {0x00006297, 0x0000B787, 0x000018D9},
         {0x0000249F, 0x00000F84, 0x0000B6C4}},
    [CCODECS_TARGET_DISPLAY_P3] =
        {{0x000083DF, 0x00003DBF, 0xFFFFFFBB},
         {0x00004ABF, 0x0000B137, 0x00000AB9},
         {0x00002838, 0x0000110A, 0x0000C8B9}},
};

static const char *const names[] = {[CCODECS_TARGET_SRGB] = "sRGB", [CCODECS_TARGET_DISPLAY_P3] = "Display P3"};

/// The profile so far: its tags in the table and their data behind it.
typedef struct writer {
  uint8_t *profile;
  uint32_t tags;
  size_t end;
} writer;

/// Adds a tag for the `count` bytes of data at `offset`.
static void add_tag(writer *w, const char *name, size_t offset, size_t count) {
  uint8_t *entry = w->profile + HEADER_BYTES + 4 + w->tags++ * ENTRY_BYTES;
  memcpy(entry, name, 4);
  ccodecs_put_be32(entry + 4, (uint32_t)offset);
  ccodecs_put_be32(entry + 8, (uint32_t)count);
}

/// Adds a tag with `count` bytes of data, which begin with its type. Returns the data.
static uint8_t *add_data(writer *w, const char *name, const char *type, size_t count) {
  uint8_t *data = w->profile + w->end;
  memcpy(data, type, 4);
  add_tag(w, name, w->end, count);
  w->end += (count + 3) / 4 * 4;
  return data;
}

/// Adds a text in one language, `mluc`.
static void add_text(writer *w, const char *name, const char *text) {
  const size_t length = strlen(text);
  uint8_t *data = add_data(w, name, "mluc", TEXT_HEAD_BYTES + 2 * length);
  ccodecs_put_be32(data + 8, 1);
  ccodecs_put_be32(data + 12, ENTRY_BYTES);
  memcpy(data + 16, "enUS", 4);
  ccodecs_put_be32(data + 20, (uint32_t)(2 * length));
  ccodecs_put_be32(data + 24, TEXT_HEAD_BYTES);
  for (size_t i = 0; i < length; i++) {
    data[TEXT_HEAD_BYTES + 2 * i + 1] = (uint8_t)text[i];
  }
}

static void put_numbers(uint8_t *data, const uint32_t *numbers, size_t count) {
  for (size_t i = 0; i < count; i++) {
    ccodecs_put_be32(data + 4 * i, numbers[i]);
  }
}

/// Adds the sRGB curve once, for all channels.
static void add_curves(writer *w) {
  static const uint32_t parameters[5] = {0x00026666, 0x0000F2A7, 0x00000D59, 0x000013D0, 0x00000A5B};
  const size_t offset = w->end;
  uint8_t *data = add_data(w, "rTRC", "para", CURVE_BYTES);
  data[9] = 3; // the kind of function
  put_numbers(data + 12, parameters, 5);
  add_tag(w, "gTRC", offset, CURVE_BYTES);
  add_tag(w, "bTRC", offset, CURVE_BYTES);
}

size_t ccodecs_compact_profile(ccodecs_color_target space, uint8_t profile[CCODECS_COMPACT_PROFILE_BYTES]) {
  static const char *const colorant_names[3] = {"rXYZ", "gXYZ", "bXYZ"};
  memset(profile, 0, CCODECS_COMPACT_PROFILE_BYTES);
  writer w = {.profile = profile, .end = HEADER_BYTES + 4 + TAG_COUNT * ENTRY_BYTES};
  ccodecs_put_be32(profile + 8, 0x04200000); // the version of the format
  memcpy(profile + 12, "mntrRGB XYZ ", 12);
  static const uint8_t date[] = {0x07, 0xE8, 0, 1, 0, 1};
  memcpy(profile + 24, date, sizeof date);
  memcpy(profile + 36, "acsp", 4);
  put_numbers(profile + 68, d50, 3);
  ccodecs_put_be32(profile + HEADER_BYTES, TAG_COUNT);
  add_text(&w, "desc", names[space]);
  add_text(&w, "cprt", "CC0");
  put_numbers(add_data(&w, "wtpt", "XYZ ", XYZ_BYTES) + 8, d50, 3);
  put_numbers(add_data(&w, "chad", "sf32", MATRIX_BYTES) + 8, adaptation, 9);
  for (int i = 0; i < 3; i++) {
    put_numbers(add_data(&w, colorant_names[i], "XYZ ", XYZ_BYTES) + 8, colorants[space][i], 3);
  }
  add_curves(&w);
  ccodecs_put_be32(profile, (uint32_t)w.end);
  return w.end;
}
