// libFuzzer target: feeds arbitrary bytes to one decoder, as a caller would, and checks the contract in ccodecs.h.
//
// The format is fixed at compile time (FUZZ_FORMAT). The window size, the scale, the tolerance for truncation and
// damage, and whether buffered data is spilled to a file are derived from a hash of the bytes, so that corpus files are
// plain images.

#include "feed.h"

static const size_t budget_bytes = (size_t)256 << 20;
static const uint64_t most_pixels = (uint64_t)8 << 20;
static const uint32_t most_scans = 60;

static volatile uint8_t sink;

/// Reads every byte of every row and counts the rows.
static void use(const ccodecs_rows *rows, const ccodecs_layout *layout, uint32_t *counts) {
  for (uint32_t plane = 0; plane < layout->plane_count; plane++) {
    const size_t sample_bytes = layout->pixels >= CCODECS_PIXELS_GRAY16 ? 2 : 1;
    const size_t row_bytes = (size_t)layout->planes[plane].width * layout->planes[plane].channels * sample_bytes;
    for (uint32_t row = 0; row < rows->row_counts[plane]; row++) {
      const uint8_t *bytes = rows->planes[plane] + row * rows->row_strides[plane];
      uint8_t sum = 0;
      for (size_t i = 0; i < row_bytes; i++) {
        sum ^= bytes[i];
      }
      sink = sum;
    }
    counts[plane] += rows->row_counts[plane];
  }
}

/// Checks the counts of a frame, and begins those of the next one.
static void check_rows(const ccodecs_layout *layout, uint32_t *counts) {
  for (uint32_t i = 0; i < layout->plane_count; i++) {
    check(counts[i] == layout->planes[i].height, "every row is given, once");
    counts[i] = 0;
  }
}

static void decode_rows(ccodecs_decoder *decoder, feed *f, uint8_t scale, uint32_t tolerance) {
  const ccodecs_decode_options options = {
      .scale_eighths = scale,
      .tolerates_truncation = (tolerance & 1) != 0,
      .tolerates_damage = (tolerance & 2) != 0,
  };
  ccodecs_layout layout;
  if (ccodecs_decoder_start(decoder, &options, &layout) != CCODECS_OK) {
    return;
  }
  uint32_t counts[CCODECS_MAX_PLANES] = {0};
  ccodecs_status status;
  do {
    ccodecs_rows rows;
    status = ccodecs_decoder_read_rows(decoder, &f->input, &rows);
    if (status == CCODECS_ROWS_READY) {
      use(&rows, &layout, counts);
    } else if (status == CCODECS_NEEDS_INPUT) {
      feed_more(f);
    } else if (status == CCODECS_FRAME_DONE) {
      check_rows(&layout, counts);
    }
  } while (status == CCODECS_ROWS_READY || status == CCODECS_NEEDS_INPUT || status == CCODECS_FRAME_DONE);
  // A tolerated end between two frames leaves no row of the next one.
  if (status == CCODECS_DONE && (counts[0] > 0 || layout.planes[0].height == 0)) {
    check_rows(&layout, counts);
  }
  ccodecs_rows rows;
  check(ccodecs_decoder_read_rows(decoder, &f->input, &rows) == status, "an end and a failure are final");
}

/// Returns one of the scales that the decoder supports.
static uint8_t pick_scale(const ccodecs_decoder *decoder, uint32_t seed) {
  const uint8_t scale = (uint8_t)(seed % 8 + 1);
  return (ccodecs_decoder_scales(decoder) >> (scale - 1) & 1) != 0 ? scale : 8;
}

/// Selects all frames of half of the animations, and others of a quarter. A selection that the decoder refuses is a
/// failure, after which start fails, too.
static void select_frames(ccodecs_decoder *decoder, uint32_t seed) {
  const ccodecs_header *header = ccodecs_decoder_header(decoder);
  if ((header->has_frames || header->has_pages) && seed % 4 > 0) {
    const bool is_all = seed % 4 < 3;
    ccodecs_decoder_select_frames(decoder, is_all ? 0 : (int64_t)(seed >> 2 & 3) - 1, is_all ? 0 : 1 + (seed >> 4 & 1));
  }
}

/// Reads the header, of some files a second time after it has asked for all of their bytes.
static ccodecs_status read_header(ccodecs_decoder *decoder, feed *f, bool buffers_input) {
  ccodecs_status status;
  while ((status = ccodecs_decoder_read_header(decoder, &f->input)) == CCODECS_NEEDS_INPUT) {
    feed_more(f);
  }
  if (status == CCODECS_OK && buffers_input && ccodecs_decoder_header(decoder)->can_buffer_input) {
    check(ccodecs_decoder_buffer_input(decoder) == CCODECS_OK, "a file can be buffered");
    while ((status = ccodecs_decoder_read_header(decoder, &f->input)) == CCODECS_NEEDS_INPUT) {
      feed_more(f);
    }
  }
  return status;
}

/// Reads every byte of the metadata.
static void use_metadata(const ccodecs_decoder *decoder, bool is_kept) {
  ccodecs_metadata metadata;
  ccodecs_decoder_metadata(decoder, &metadata);
  const uint8_t *blocks[3] = {metadata.exif, metadata.xmp, metadata.iptc};
  const size_t counts[3] = {metadata.exif_count, metadata.xmp_count, metadata.iptc_count};
  uint8_t sum = 0;
  for (int i = 0; i < 3; i++) {
    check(counts[i] == 0 || (is_kept && counts[i] <= 65536), "metadata is kept if asked for, up to a size");
    for (size_t j = 0; j < counts[i]; j++) {
      sum ^= blocks[i][j];
    }
  }
  sink = sum;
}

/// Decodes a gain map, which may be damaged.
static void decode_gain_map(const ccodecs_decoder *decoder, const ccodecs_limits *limits, ccodecs_budget *budget) {
  ccodecs_gain_map map;
  ccodecs_decoder_gain_map(decoder, &map);
  check(map.kind == CCODECS_GAIN_MAP_NONE || limits->keeps_gain_map, "a gain map is kept if asked for");
  check(map.file_count == 0 || (map.width <= 65535 && map.height <= 65535), "a gain map can be as large as stated");
  uint8_t sum = 0;
  for (size_t i = 0; i < map.description_count; i++) {
    sum ^= map.description[i];
  }
  sink = sum;
  ccodecs_limits map_limits = *limits;
  map_limits.keeps_gain_map = false;
  map_limits.is_gain_map = true;
  ccodecs_decoder *maps = NULL;
  if (map.file_count == 0 ||
      ccodecs_decoder_create(ccodecs_sniff(map.file, map.file_count), &map_limits, budget, &maps) != CCODECS_OK) {
    return;
  }
  feed f = {.bytes = map.file, .left = map.file_count, .window_bytes = SIZE_MAX};
  next_window(&f);
  if (read_header(maps, &f, false) == CCODECS_OK) {
    decode_rows(maps, &f, 8, 0);
  }
  ccodecs_decoder_destroy(maps);
  free(f.block);
}

/// Converts colors from the image's profile, and one to it.
static void convert_colors(ccodecs_decoder *decoder, ccodecs_budget *budget, uint32_t seed) {
  enum { PIXELS = 16 };
  const ccodecs_color_space space = ccodecs_decoder_header(decoder)->color_space;
  const bool is_deep = (seed & 1) != 0;
  const bool is_cmyk = space == CCODECS_COLOR_CMYK || space == CCODECS_COLOR_YCCK;
  const ccodecs_pixels source = space == CCODECS_COLOR_GRAY ? (is_deep ? CCODECS_PIXELS_GRAY16 : CCODECS_PIXELS_GRAY8)
                                : is_cmyk                   ? CCODECS_PIXELS_CMYK8
                                : is_deep                   ? CCODECS_PIXELS_RGBA16
                                                            : CCODECS_PIXELS_RGB8;
  const uint8_t *profile;
  size_t profile_count;
  ccodecs_decoder_profile(decoder, &profile, &profile_count);
  check((profile_count > 0) == ccodecs_decoder_header(decoder)->has_profile, "a profile is stated");
  uint8_t color[4] = {seed & 255, seed >> 8 & 255, 77, 255};
  if (profile_count > 0) {
    sink = ccodecs_profile_convert(profile, profile_count, color, 1, budget) ? color[0] : 0;
  }
  const size_t used = budget->used;
  const size_t from_srgb = ccodecs_conversion_estimate_from_srgb();
  const size_t from_profile = profile_count > 0 ? ccodecs_conversion_estimate(profile, profile_count) : 0;
  // A profile that is unusable is ignored: the colors are then those of sRGB.
  const size_t most = from_profile > from_srgb ? from_profile : from_srgb;
  const size_t peak = budget->peak;
  budget->peak = used;
  ccodecs_conversion *conversion = NULL;
  const ccodecs_color_target target = (seed & 2) != 0 ? CCODECS_TARGET_DISPLAY_P3 : CCODECS_TARGET_SRGB;
  check(
      ccodecs_decoder_create_conversion(decoder, source, target, false, &conversion) == CCODECS_OK, "there is memory");
  if (conversion != NULL) {
    _Alignas(8) uint8_t from[8 * PIXELS] = {seed & 255, seed >> 8 & 255, seed >> 16 & 255};
    uint8_t to[4 * PIXELS];
    ccodecs_conversion_convert(conversion, from, to, PIXELS);
    sink = to[0];
  }
  check(budget->peak <= used + most, "the estimate of a conversion holds");
  budget->peak = budget->peak > peak ? budget->peak : peak;
  ccodecs_conversion_destroy(conversion);
}

/// Returns a spill directory for one image in four, otherwise -1.
static int spill_directory(uint32_t seed) {
  static int directory = -2;
  if (directory == -2) {
    directory = ccodecs_spill_open("/var/tmp");
  }
  return (seed >> 16 & 3) == 0 ? directory : -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
  const uint32_t seed = hash(bytes, count);
  const size_t windows[8] = {SIZE_MAX, SIZE_MAX, 4096, 1000, 97, 7, 2, 1};
  // Small windows only for small files: some libraries restart the header with each window.
  feed f = {.bytes = bytes, .left = count, .window_bytes = windows[seed % (count < 1024 ? 8 : 4)]};
  const int directory = spill_directory(seed);
  const ccodecs_limits limits = {
      .max_pixels = most_pixels,
      .max_whole_input_pixels = most_pixels,
      .max_scans = most_scans,
      .max_frames = 500,
      .max_frame_pixels = most_pixels,
      .can_spill = directory >= 0,
      .spill_directory = directory,
      .keeps_metadata = (seed >> 27 & 1) != 0,
      .keeps_gain_map = (seed >> 26 & 1) != 0,
      .is_gain_map = (seed >> 25 & 1) != 0,
  };
  const size_t used = directory >= 0 ? CCODECS_SPILL_BYTES : 0; // makes everything that can be spilled go to files
  ccodecs_budget budget = {.limit = budget_bytes, .used = used, .peak = used};
  ccodecs_decoder *decoder = NULL;
  check(
      ccodecs_decoder_create(FUZZ_FORMAT, &limits, &budget, &decoder) == CCODECS_OK,
      "the decoder that is tested exists");
  next_window(&f);
  const ccodecs_status status = read_header(decoder, &f, (seed >> 28 & 1) != 0);
  if (status == CCODECS_OK) {
    const ccodecs_header *header = ccodecs_decoder_header(decoder);
    check(header->width > 0 && header->height > 0, "an image has a size");
    check((uint64_t)header->width * header->height <= most_pixels, "the pixel limit holds");
    check(header->orientation >= 1 && header->orientation <= 8, "an orientation is one of eight");
    use_metadata(decoder, limits.keeps_metadata);
    decode_gain_map(decoder, &limits, &budget);
    convert_colors(decoder, &budget, seed >> 12);
    select_frames(decoder, seed >> 20);
    decode_rows(decoder, &f, pick_scale(decoder, seed >> 8), seed >> 18);
  } else {
    check(ccodecs_decoder_message(decoder)[0] != 0, "a failure has a reason");
  }
  check(budget.peak <= budget.limit, "the budget holds");
  ccodecs_decoder_destroy(decoder);
  check(budget.used == used, "all memory is given back");
  free(f.block);
  return 0;
}
