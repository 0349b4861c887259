// Parses frame headers and boxes of JPEG XL. Sources: ISO/IEC 18181-1 (codestream: bundles, frame header, table of
// contents), 18181-2 (boxes).

#include "jxl_frames.h"

#include "../memory/bytes.h"
#include "jxl_bits.h"

enum {
  MAX_FRAMES = 64, ///< Maximum number of frames up to the displayed one.
  MAX_SECTIONS = 65536,
  REGULAR = 0,
  LOW_FREQUENCY = 1,
  REFERENCE_ONLY = 2,
  USES_PATCHES = 2,
  USES_LOW_FREQUENCY_FRAME = 32,
};

typedef struct frame {
  uint32_t type;
  bool is_modular;
  uint64_t flags;
  bool is_ycbcr;
  uint32_t chroma_shift[2];
  uint32_t chroma_modes[3];
  uint32_t upsampling;
  uint32_t group_size_shift;
  uint32_t pass_count;
  uint64_t width;
  uint64_t height;
  bool is_partial;
  bool replaces;
  bool is_last;
  bool has_duration;
  bool is_kept;
  uint32_t slot;            ///< Where it is kept.
  uint32_t channel_sources; ///< Bit i: an extra channel is blended with the frame in slot i.
  bool is_outside;          ///< A part of it lies outside of the image.
  bool is_filtered;
  bool is_kept_early;        ///< It is kept as it is before its colors are converted and blended.
  bool has_reduced_channels; ///< At least one extra channel is not sampled as the colors are.
} frame;

static uint64_t parts(uint64_t count, uint64_t size) {
  return (count + size - 1) / size;
}

// MARK: Bits

static uint64_t read_long_number(jxl_bits *r) {
  switch (jxl_read_bits(r, 2)) {
  case 0:
    return 0;
  case 1:
    return 1 + jxl_read_bits(r, 4);
  case 2:
    return 17 + jxl_read_bits(r, 8);
  default:
    break;
  }
  uint64_t value = jxl_read_bits(r, 12);
  for (uint32_t shift = 12; jxl_read_bool(r); shift += 8) {
    if (shift == 60) {
      return value | (uint64_t)jxl_read_bits(r, 4) << shift;
    }
    value |= (uint64_t)jxl_read_bits(r, 8) << shift;
  }
  return value;
}

static void skip_floats(jxl_bits *r, uint32_t count) {
  r->at += 16 * (uint64_t)count;
}

static void skip_extensions(jxl_bits *r) {
  const uint64_t extensions = read_long_number(r);
  uint64_t total = 0;
  for (int i = 0; i < 64; i++) {
    const uint64_t bits = (extensions >> i & 1) != 0 ? read_long_number(r) : 0;
    total = bits > UINT32_MAX || total > UINT32_MAX ? UINT32_MAX : total + bits;
  }
  r->at += total;
}

// MARK: Header

static const jxl_forms zero_to_three = {{0, 0, 0, 0}, {0, 1, 2, 3}};
static const jxl_forms powers = {{0, 0, 0, 0}, {1, 2, 4, 8}};

static const uint8_t chroma_across[4] = {0, 1, 1, 0};
static const uint8_t chroma_down[4] = {0, 1, 0, 1};

static void read_chroma(jxl_bits *r, frame *f) {
  for (int i = 0; i < 3; i++) {
    const uint32_t mode = jxl_read_bits(r, 2);
    f->chroma_modes[i] = mode;
    f->chroma_shift[0] |= chroma_across[mode];
    f->chroma_shift[1] |= chroma_down[mode];
  }
}

static void read_passes(jxl_bits *r, frame *f) {
  static const jxl_forms passes = {{0, 0, 0, 3}, {1, 2, 3, 4}};
  static const jxl_forms step_counts = {{0, 0, 0, 1}, {0, 1, 2, 3}};
  static const jxl_forms lasts = {{0, 0, 0, 3}, {0, 1, 2, 0}};
  f->pass_count = jxl_read_number(r, &passes);
  if (f->pass_count == 1) {
    return;
  }
  const uint32_t steps = jxl_read_number(r, &step_counts);
  jxl_read_bits(r, 2 * (f->pass_count - 1));
  for (uint32_t i = 0; i < steps; i++) {
    jxl_read_bits(r, 2);
  }
  for (uint32_t i = 0; i < steps; i++) {
    jxl_read_number(r, &lasts);
  }
}

static int64_t signed_number(uint32_t packed) {
  return (packed & 1) != 0 ? -(int64_t)(packed / 2) - 1 : (int64_t)(packed / 2);
}

/// Reads which part of the image the frame covers. The frame's size is that of the image beforehand.
static void read_crop(jxl_bits *r, frame *f, bool is_placed) {
  static const jxl_forms sizes = {{8, 11, 14, 30}, {0, 256, 2304, 18688}};
  if (!jxl_read_bool(r)) {
    return;
  }
  const uint64_t width = f->width;
  const uint64_t height = f->height;
  const int64_t left = is_placed ? signed_number(jxl_read_number(r, &sizes)) : 0;
  const int64_t top = is_placed ? signed_number(jxl_read_number(r, &sizes)) : 0;
  f->width = jxl_read_number(r, &sizes);
  f->height = jxl_read_number(r, &sizes);
  f->is_partial = is_placed && (left > 0 || top > 0 || (int64_t)f->width + left < (int64_t)width ||
                                (int64_t)f->height + top < (int64_t)height);
  f->is_outside = is_placed && (left < 0 || top < 0 || (int64_t)f->width + left > (int64_t)width ||
                                (int64_t)f->height + top > (int64_t)height);
}

/// Returns the blended frame's slot in *sources, as a bit, if there is one.
static void read_blending(jxl_bits *r, const frame *f, uint32_t extra_channels, uint32_t *mode, uint32_t *sources) {
  enum { REPLACE = 0, BLEND = 2, ALPHA_WEIGHTED = 3, MULTIPLY = 4 };
  static const jxl_forms modes = {{0, 0, 0, 2}, {0, 1, 2, 3}};
  static const jxl_forms channels = {{0, 0, 0, 3}, {0, 1, 2, 3}};
  *mode = jxl_read_number(r, &modes);
  const bool uses_alpha = extra_channels > 0 && (*mode == BLEND || *mode == ALPHA_WEIGHTED);
  if (uses_alpha) {
    jxl_read_number(r, &channels);
  }
  if (uses_alpha || *mode == MULTIPLY) {
    jxl_read_bool(r); // clamp
  }
  if (*mode != REPLACE || f->is_partial) {
    *sources |= 1u << jxl_read_number(r, &zero_to_three);
  }
}

/// Reads how a frame is blended with others, and whether it is displayed.
static void read_place_in_time(jxl_bits *r, frame *f, const ccodecs_jxl_image *image) {
  static const jxl_forms durations = {{0, 0, 8, 32}, {0, 1, 0, 0}};
  uint32_t mode;
  uint32_t color_sources = 0; // libjxl checks the size of that frame
  read_blending(r, f, image->extra_channels, &mode, &color_sources);
  f->replaces = mode == 0;
  for (uint32_t i = 0; i < image->extra_channels; i++) {
    read_blending(r, f, image->extra_channels, &mode, &f->channel_sources);
  }
  if (image->has_animation) {
    f->has_duration = jxl_read_number(r, &durations) != 0;
    jxl_read_bits(r, image->has_timecodes ? 32 : 0);
  }
  f->is_last = jxl_read_bool(r);
}

/// Returns whether the frame is filtered.
static bool skip_filter(jxl_bits *r, bool is_modular) {
  if (jxl_read_bool(r)) { // all values are the defaults
    return true;
  }
  const bool is_smoothed = jxl_read_bool(r);
  if (is_smoothed && jxl_read_bool(r)) {
    skip_floats(r, 6);
  }
  const bool keeps_edges = jxl_read_bits(r, 2) > 0;
  if (keeps_edges) {
    if (!is_modular && jxl_read_bool(r)) {
      skip_floats(r, 8);
    }
    if (jxl_read_bool(r)) {
      skip_floats(r, 5);
    }
    if (jxl_read_bool(r)) {
      skip_floats(r, is_modular ? 3 : 4);
    }
    skip_floats(r, is_modular ? 1 : 0);
  }
  skip_extensions(r);
  return is_smoothed || keeps_edges;
}

static void read_coding(jxl_bits *r, frame *f, const ccodecs_jxl_image *image) {
  f->type = jxl_read_bits(r, 2);
  f->is_modular = jxl_read_bool(r);
  f->flags = read_long_number(r);
  f->is_ycbcr = !image->is_xyb && jxl_read_bool(r);
  if ((f->flags & USES_LOW_FREQUENCY_FRAME) == 0) {
    if (f->is_ycbcr) {
      read_chroma(r, f);
    }
    f->upsampling = jxl_read_number(r, &powers);
    for (uint32_t i = 0; i < image->extra_channels; i++) {
      const bool is_other = 1u << jxl_read_bits(r, 2) != f->upsampling;
      f->has_reduced_channels = f->has_reduced_channels || is_other;
    }
  }
  if (f->is_modular) {
    f->group_size_shift = jxl_read_bits(r, 2);
  } else if (image->is_xyb) {
    jxl_read_bits(r, 6);
  }
  if (f->type != REFERENCE_ONLY) {
    read_passes(r, f);
  }
  if (f->type == LOW_FREQUENCY) {
    const uint64_t scale = (uint64_t)8 << (3 * jxl_read_bits(r, 2));
    f->width = parts(f->width, scale);
    f->height = parts(f->height, scale);
  }
}

/// Reads a frame header up to the table of contents.
static void read_header(jxl_bits *r, frame *f, const ccodecs_jxl_image *image, bool is_preview) {
  static const jxl_forms names = {{0, 4, 5, 10}, {0, 0, 16, 48}};
  *f = (frame){
      .upsampling = 1,
      .group_size_shift = 1,
      .pass_count = 1,
      .width = is_preview ? image->preview_width : image->width,
      .height = is_preview ? image->preview_height : image->height,
      .replaces = true,
  };
  if (jxl_read_bool(r)) { // all values are the defaults
    f->is_last = true;
    return;
  }
  read_coding(r, f, image);
  const bool is_normal = f->type != LOW_FREQUENCY && f->type != REFERENCE_ONLY;
  if (f->type != LOW_FREQUENCY) {
    read_crop(r, f, is_normal);
  }
  if (is_normal) {
    read_place_in_time(r, f, image);
  }
  f->is_last = f->is_last && f->type == REGULAR;
  if (f->type != LOW_FREQUENCY && !f->is_last) {
    f->slot = jxl_read_bits(r, 2);
  }
  f->is_kept = !f->is_last && (f->type == LOW_FREQUENCY || !f->has_duration || f->slot != 0);
  if (f->type == REFERENCE_ONLY || (is_normal && f->is_kept && f->replaces && !f->is_partial)) {
    f->is_kept_early = jxl_read_bool(r);
  }
  r->at += 8 * (uint64_t)jxl_read_number(r, &names);
  f->is_filtered = skip_filter(r, f->is_modular);
  skip_extensions(r);
}

// MARK: Table of contents

static uint64_t section_count(const frame *f) {
  const uint64_t width = parts(f->width, f->upsampling);
  const uint64_t height = parts(f->height, f->upsampling);
  const uint64_t group = (uint64_t)128 << f->group_size_shift;
  const uint64_t groups = parts(width, group) * parts(height, group);
  const uint64_t blocks_across = parts(width, (uint64_t)8 << f->chroma_shift[0]) << f->chroma_shift[0];
  const uint64_t blocks_down = parts(height, (uint64_t)8 << f->chroma_shift[1]) << f->chroma_shift[1];
  const uint64_t low_groups = parts(blocks_across, group) * parts(blocks_down, group);
  return groups == 1 && f->pass_count == 1 ? 1 : 2 + low_groups + groups * f->pass_count;
}

/// Finds the offset in bytes of the frame's end. Returns CCODECS_NEEDS_INPUT when the table is incomplete.
static ccodecs_status find_end(jxl_bits *r, const frame *f, uint64_t *end) {
  static const jxl_forms sizes = {{10, 14, 22, 30}, {0, 1024, 17408, 4211712}};
  const uint64_t count = section_count(f);
  if (count > MAX_SECTIONS) {
    return CCODECS_CORRUPT;
  }
  if (jxl_read_bool(r)) {
    return r->at > r->count ? CCODECS_NEEDS_INPUT : CCODECS_UNSUPPORTED;
  }
  r->at = parts(r->at, 8) * 8;
  uint64_t total = 0;
  for (uint64_t i = 0; i < count && r->at <= r->count; i++) {
    total += jxl_read_number(r, &sizes);
  }
  *end = parts(r->at, 8) + total;
  return r->at > r->count ? CCODECS_NEEDS_INPUT : CCODECS_OK;
}

/// Returns the samples of all channels for each four pixels, of which chroma may have fewer.
static uint32_t samples_of_four(const frame *f) {
  uint32_t count = 0;
  for (int i = 0; i < 3; i++) {
    const uint32_t across = f->chroma_shift[0] - chroma_across[f->chroma_modes[i]];
    const uint32_t down = f->chroma_shift[1] - chroma_down[f->chroma_modes[i]];
    count += 4u >> (across + down);
  }
  return count;
}

/// Returns whether libjxl 0.7 stays within its planes when it decodes a frame, and writes all of them.
static bool is_safe(const ccodecs_jxl_frames *frames, const frame *f, const ccodecs_jxl_image *image) {
  // It checks the size of the frame below for the colors only, and so reads behind planes of extra channels.
  if ((f->channel_sources & frames->small_slots) != 0) {
    return false;
  }
  // It draws patches in the coordinates of the extra channels, and so writes behind planes of the colors.
  const bool is_reduced = f->has_reduced_channels || image->has_reduced_channels;
  if ((f->flags & USES_PATCHES) != 0 && f->upsampling > 1 && is_reduced) {
    return false;
  }
  // It filters rows of chroma that it has not written, and on ARM leaves its rows. No encoder filters a JPEG's frame.
  const bool is_subsampled = f->chroma_shift[0] > 0 || f->chroma_shift[1] > 0;
  if (is_subsampled && (f->is_filtered || f->upsampling > 1)) {
    return false;
  }
  // It does not write the part outside of the image, from which patches may come (CVE-2025-12474).
  return !(f->is_kept && f->is_kept_early && f->is_outside);
}

/// Notes which of the kept frames are smaller than the image, as those can be that are not blended.
static void note_slot(ccodecs_jxl_frames *frames, const frame *f, const ccodecs_jxl_image *image) {
  if (!f->is_kept || f->type == LOW_FREQUENCY) {
    return;
  }
  const bool is_small = f->width < image->width || f->height < image->height;
  const bool is_blended = f->type != REFERENCE_ONLY && f->is_partial;
  frames->small_slots &= ~(1u << f->slot);
  frames->small_slots |= is_small && !is_blended ? 1u << f->slot : 0;
}

static void note(ccodecs_jxl_frames *frames, const frame *f, const ccodecs_jxl_image *image) {
  const uint64_t pixels = f->width * f->height;
  const bool is_normal = f->type != REFERENCE_ONLY && f->type != LOW_FREQUENCY;
  const uint64_t canvas = is_normal ? (uint64_t)image->width * image->height : 0;
  frames->count++;
  frames->samples_of_four = samples_of_four(f);
  frames->is_ycbcr = f->is_ycbcr;
  frames->has_coefficients = !f->is_modular && f->type == REGULAR && f->upsampling == 1 && f->width == image->width &&
                             f->height == image->height;
  frames->pixels += pixels;
  frames->max_pixels = pixels > frames->max_pixels ? pixels : frames->max_pixels;
  frames->kept_pixels += !f->is_kept ? 0 : pixels > canvas ? pixels : canvas;
}

ccodecs_status ccodecs_jxl_frames_read(
    ccodecs_jxl_frames *frames, const ccodecs_jxl_image *image, const uint8_t *bytes, size_t count, bool is_last) {
  enum { CHEAP_BYTES = 4096 };
  while (!frames->is_complete) {
    if (frames->count >= MAX_FRAMES) {
      return CCODECS_LIMIT;
    }
    if (frames->at >= count) {
      return CCODECS_NEEDS_INPUT;
    }
    // Sections are read anew with each attempt, of which there are few for long lists.
    if (!is_last && frames->tried_count > CHEAP_BYTES && (count - frames->at) / 2 < frames->tried_count) {
      return CCODECS_NEEDS_INPUT;
    }
    frames->tried_count = count - frames->at;
    jxl_bits r = {.bytes = bytes + frames->at, .count = (uint64_t)(count - frames->at) * 8};
    frame f;
    const bool is_preview = frames->count == 0 && image->preview_width > 0;
    read_header(&r, &f, image, is_preview);
    if (r.at > r.count) {
      return CCODECS_NEEDS_INPUT;
    }
    if (f.width == 0 || f.height == 0 || f.width > UINT32_MAX / 2 || f.height > UINT32_MAX / 2) {
      return CCODECS_CORRUPT;
    }
    if (!is_safe(frames, &f, image)) {
      return CCODECS_UNSUPPORTED;
    }
    if (!is_preview && (f.is_last || f.has_duration)) {
      note(frames, &f, image);
      frames->is_complete = true;
      return CCODECS_OK;
    }
    uint64_t end = 0;
    CCODECS_TRY(find_end(&r, &f, &end));
    note(frames, &f, image);
    note_slot(frames, &f, image);
    frames->tried_count = 0;
    frames->at += end > SIZE_MAX - frames->at ? SIZE_MAX - frames->at : (size_t)end;
  }
  return CCODECS_OK;
}

// MARK: Boxes

static bool is_metadata(const uint8_t *type) {
  static const char types[][5] = {"Exif", "xml ", "brob", "jumb"};
  bool is_one = false;
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    is_one = is_one || memcmp(type, types[i], 4) == 0;
  }
  return is_one;
}

/// Collects a box's header. Returns false when the window ends before it does.
static bool read_box_head(ccodecs_jxl_boxes *b, ccodecs_input *window) {
  if (!ccodecs_input_collect(window, b->head, &b->head_count, 8)) {
    return false;
  }
  uint64_t size = ccodecs_be32(b->head);
  if (size == 1) {
    if (!ccodecs_input_collect(window, b->head, &b->head_count, 16)) {
      return false;
    }
    size = ccodecs_be64(b->head + 8);
  }
  const bool is_part = memcmp(b->head + 4, "jxlp", 4) == 0;
  b->is_codestream = is_part || memcmp(b->head + 4, "jxlc", 4) == 0;
  memcpy(b->type, b->head + 4, sizeof b->type);
  b->number++;
  b->is_returned = b->is_codestream || (b->gives_metadata && is_metadata(b->type));
  b->left = size == 0 ? UINT64_MAX : size < b->head_count ? 0 : size - b->head_count;
  b->head_count = 0;
  b->skip_left = is_part ? 4 : 0; // the part's number
  return true;
}

bool ccodecs_jxl_boxes_next(ccodecs_jxl_boxes *b, ccodecs_input *window, const uint8_t **bytes, size_t *count) {
  while (window->count > 0) {
    if (!b->has_start) {
      b->has_start = true;
      b->is_bare = window->bytes[0] == 0xFF;
    }
    if (b->is_bare) {
      b->is_codestream = true;
      *bytes = window->bytes;
      *count = window->count;
      ccodecs_input_advance(window, window->count);
      return true;
    }
    if (b->left == 0 && !read_box_head(b, window)) {
      return false;
    }
    size_t taken = window->count < b->left ? window->count : (size_t)b->left;
    if (b->skip_left > 0 && taken > b->skip_left) {
      taken = b->skip_left;
    }
    const bool is_given = b->is_returned && b->skip_left == 0 && taken > 0;
    *bytes = window->bytes;
    *count = taken;
    ccodecs_input_advance(window, taken);
    b->left -= b->left == UINT64_MAX ? 0 : taken;
    b->skip_left -= b->skip_left > 0 ? (uint32_t)taken : 0;
    if (is_given) {
      return true;
    }
  }
  return false;
}
