// The sections before a PSD's image: file header, palette, resources and number of layers, which indicates
// transparency. Source: Adobe Photoshop File Formats Specification (2019).

#include "../color/profile.h"
#include "../memory/bytes.h"
#include "psd_decoder.h"

enum { FILE_HEADER_BYTES = 26, MAX_CHANNELS = 56, MAX_COPYRIGHT_BYTES = 65536 };
enum { BLOCK_HEADER_BYTES = 12 };
enum { RESOURCE_PROFILE = 1039, RESOURCE_EXIF = 1058 };

ccodecs_status ccodecs_psd_corrupt(psd_decoder *d, const char *reason) {
  return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "PSD data: %s", reason);
}

ccodecs_status ccodecs_psd_unsupported(psd_decoder *d, const char *kind) {
  return ccodecs_decoder_fail(&d->base, CCODECS_UNSUPPORTED, "PSD data: %s are not supported", kind);
}

// MARK: Kinds

static ccodecs_status check_kind(psd_decoder *d) {
  switch (d->mode) {
  case PSD_MODE_BITMAP:
    d->colors = 1;
    return d->bits == 1 ? CCODECS_OK : ccodecs_psd_corrupt(d, "a bitmap does not have 1 bit per pixel");
  case PSD_MODE_INDEXED:
    d->colors = 1;
    return d->bits == 8 ? CCODECS_OK : ccodecs_psd_corrupt(d, "an image with a palette does not have 8 bits per pixel");
  case PSD_MODE_GRAY:
  case PSD_MODE_DUOTONE:
    d->colors = 1;
    break;
  case PSD_MODE_RGB:
    d->colors = 3;
    break;
  case PSD_MODE_CMYK:
    d->colors = 4;
    break;
  default:
    return ccodecs_psd_unsupported(d, "images of this color mode");
  }
  if (d->bits == 32) {
    return ccodecs_psd_unsupported(d, "32-bit samples");
  }
  return d->bits == 8 || d->bits == 16 ? CCODECS_OK
                                       : ccodecs_psd_corrupt(d, "the number of bits per sample is invalid");
}

static ccodecs_status read_file_header(psd_decoder *d) {
  const uint8_t *p = d->token;
  ccodecs_header *header = &d->base.header;
  const uint32_t version = ccodecs_be16(p + 4);
  if (memcmp(p, "8BPS", 4) != 0 || version < 1 || version > 2) {
    return ccodecs_psd_corrupt(d, "the header's version is unknown");
  }
  d->is_large = version == 2;
  d->channel_count = ccodecs_be16(p + 12);
  header->height = ccodecs_be32(p + 14);
  header->width = ccodecs_be32(p + 18);
  d->bits = ccodecs_be16(p + 22);
  d->mode = ccodecs_be16(p + 24);
  const uint32_t maximum = d->is_large ? 300000 : 30000;
  if (header->width == 0 || header->height == 0 || header->width > maximum || header->height > maximum) {
    return ccodecs_psd_corrupt(d, "the width or height is zero or too large");
  }
  CCODECS_TRY(check_kind(d));
  if (d->channel_count < d->colors || d->channel_count > MAX_CHANNELS) {
    return ccodecs_psd_corrupt(d, "the number of channels is invalid");
  }
  d->state = PSD_STATE_PALETTE;
  return CCODECS_OK;
}

// MARK: Sections

static ccodecs_status read_palette(psd_decoder *d) {
  const uint32_t count = ccodecs_be32(d->token);
  if (d->mode != PSD_MODE_INDEXED) {
    d->skip_left = count;
    return CCODECS_OK;
  }
  if (count < CCODECS_PSD_PALETTE_BYTES) {
    return ccodecs_psd_corrupt(d, "the palette is missing");
  }
  for (uint32_t i = 0; i < CCODECS_PSD_PALETTE_BYTES; i++) {
    d->palette[i % 256][i / 256] = d->token[4 + i];
  }
  d->skip_left = count - CCODECS_PSD_PALETTE_BYTES;
  return CCODECS_OK;
}

/// Skips the rest of the resource, or the rest of the section if the size is invalid.
static void end_resource(psd_decoder *d) {
  d->skip_left += d->resource_left < d->section_left ? d->resource_left : d->section_left;
  d->section_left -= d->skip_left;
  d->state = PSD_STATE_SKIP;
}

static void begin_resource(psd_decoder *d) {
  const bool is_resource = memcmp(d->token, "8BIM", 4) == 0;
  d->resource = ccodecs_be16(d->token + 4);
  d->section_left -= 7;
  d->resource_left = d->section_left; // the rest of the section if the signature is wrong
  d->skip_left = 0;
  if (!is_resource) {
    end_resource(d);
    return;
  }
  const uint64_t name = (uint64_t)(d->token[6] | 1u); // name and length byte are padded to an even size
  d->skip_left = name < d->section_left ? name : d->section_left;
  d->section_left -= d->skip_left;
  d->state = PSD_STATE_RESOURCE_NAME;
}

static void size_resource(psd_decoder *d) {
  const uint64_t count = ccodecs_be32(d->token);
  d->section_left -= 4;
  d->resource_left = count + count % 2;
  const bool is_whole = d->resource_left <= d->section_left;
  const bool is_profile = d->resource == RESOURCE_PROFILE && !d->has_profile;
  const bool is_copyright = d->resource == RESOURCE_EXIF && count <= MAX_COPYRIGHT_BYTES;
  if (is_profile && is_whole && count > CCODECS_MAX_PROFILE_BYTES) {
    d->base.header.warnings |= CCODECS_WARNING_BAD_PROFILE;
  } else if (is_whole && (is_profile || is_copyright)) {
    d->section_left -= d->resource_left;
    d->state = PSD_STATE_RESOURCE_KEPT;
    return;
  }
  end_resource(d);
}

/// Buffers a resource, then extracts the profile or the copyright metadata.
static ccodecs_status keep_resource(psd_decoder *d, ccodecs_input *input) {
  const size_t count = input->count < d->resource_left ? input->count : (size_t)d->resource_left;
  ccodecs_bytes *bytes = &d->resource_bytes;
  bool has_room = ccodecs_bytes_append(bytes, input->bytes, count, d->base.budget);
  ccodecs_input_advance(input, has_room ? count : 0);
  d->resource_left -= has_room ? count : 0;
  if (has_room && d->resource_left > 0) {
    return CCODECS_NEEDS_INPUT;
  }
  if (has_room && bytes->count > 0 && d->resource == RESOURCE_PROFILE) {
    d->has_profile = true;
    d->base.profile = *bytes;
    *bytes = (ccodecs_bytes){0};
  } else if (has_room && bytes->count > 0) {
    has_room = ccodecs_exif_keep_copyright(&d->base, ccodecs_bytes_start(bytes), bytes->count);
  }
  ccodecs_bytes_free(bytes, d->base.budget);
  d->state = PSD_STATE_SKIP;
  return has_room ? CCODECS_OK : ccodecs_decoder_fail(&d->base, CCODECS_NO_MEMORY, "no room for the PSD's resources");
}

/// Returns whether the layers decide if the first extra channel of the merged image is alpha, not a saved selection.
static bool may_have_alpha(const psd_decoder *d) {
  return (d->mode == PSD_MODE_GRAY || d->mode == PSD_MODE_RGB) && d->channel_count > d->colors;
}

static ccodecs_status describe(psd_decoder *d) {
  ccodecs_header *header = &d->base.header;
  const bool is_gray = d->colors == 1 && d->mode != PSD_MODE_INDEXED;
  header->bit_depth = (uint8_t)d->bits;
  // CMYK is converted to 8 bits for the conversion with a profile.
  header->is_16bit = d->bits == 16 && !(d->mode == PSD_MODE_CMYK && d->has_profile);
  header->color_space = is_gray                    ? CCODECS_COLOR_GRAY
                        : d->mode == PSD_MODE_CMYK ? CCODECS_COLOR_CMYK
                                                   : CCODECS_COLOR_RGB;
  d->needed = d->colors + (header->has_alpha ? 1 : 0);
  header->buffers_bitmap = d->needed > 1;
  d->channels = header->has_alpha ? 4 : is_gray ? 1 : 3;
  d->channel_row_bytes = ((size_t)header->width * d->bits + 7) / 8;
  d->state = PSD_STATE_READY;
  return CCODECS_OK;
}

/// Reads the layer count. A negative count means that the first extra channel is alpha.
static ccodecs_status read_layer_count(psd_decoder *d) {
  d->section_left -= 2;
  d->base.header.has_alpha = may_have_alpha(d) && (d->token[0] & 0x80) != 0;
  return describe(d);
}

/// Reads the size of the layers. Those of 16-bit documents are in a block of additional information instead.
static ccodecs_status read_layer_bytes(psd_decoder *d) {
  const size_t count = d->is_large ? 8 : 4;
  const uint64_t layer_bytes = d->is_large ? ccodecs_be64(d->token) : ccodecs_be32(d->token);
  d->section_left -= count;
  if (layer_bytes == 0 && d->section_left >= 4 && may_have_alpha(d)) {
    d->state = PSD_STATE_MASK;
    return CCODECS_OK;
  }
  d->state = PSD_STATE_LAYER_COUNT;
  return layer_bytes >= 2 && d->section_left >= 2 ? CCODECS_OK : describe(d);
}

/// Skips `count` bytes of the section to the next block of additional information.
static ccodecs_status skip_to_block(psd_decoder *d, uint64_t count) {
  d->skip_left = count;
  d->state = PSD_STATE_BLOCK;
  if (count > d->section_left || d->section_left - count < BLOCK_HEADER_BYTES + 4) {
    return describe(d);
  }
  d->section_left -= count;
  return CCODECS_OK;
}

static bool is_key(const psd_decoder *d, const char *key) {
  return memcmp(d->token + 4, key, 4) == 0;
}

/// Returns the size of a block's header: in large documents, the lengths of some kinds of blocks have 8 bytes.
static size_t block_header_bytes(const psd_decoder *d) {
  static const char wide[][5] = {"LMsk", "Lr16", "Lr32", "Layr", "Mt16", "Mt32", "Mtrn",
                                 "Alph", "FMsk", "lnk2", "FEid", "FXid", "PxSD"};
  bool is_wide = false;
  for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
    is_wide = is_wide || (d->is_large && is_key(d, wide[i]));
  }
  return BLOCK_HEADER_BYTES + (is_wide ? 4 : 0);
}

/// Reads the header of a block of additional information: the layers, a statement that the image is transparent, or
/// one to skip.
static ccodecs_status read_block(psd_decoder *d, size_t header_bytes) {
  const bool is_wide = header_bytes > BLOCK_HEADER_BYTES;
  const uint64_t count = is_wide ? ccodecs_be64(d->token + 8) : ccodecs_be32(d->token + 8);
  const bool is_block = memcmp(d->token, "8BIM", 4) == 0 || memcmp(d->token, "8B64", 4) == 0;
  d->section_left -= header_bytes;
  if (is_key(d, "Lr16") || is_key(d, "Layr")) {
    d->state = PSD_STATE_LAYER_COUNT;
    return is_block && count >= 2 && d->section_left >= 2 ? CCODECS_OK : describe(d);
  }
  d->base.header.has_alpha = is_block && (is_key(d, "Mt16") || is_key(d, "Mtrn"));
  const bool is_known = d->base.header.has_alpha || !is_block || count > d->section_left;
  return is_known ? describe(d) : skip_to_block(d, (count + 3) / 4 * 4);
}

/// Runs one step of the state machine. Returns CCODECS_NEEDS_INPUT once the window is consumed. The function is long
/// because it contains all states, with a few lines each.
static ccodecs_status step(psd_decoder *d, ccodecs_input *input) {
  switch (d->state) {
  case PSD_STATE_FILE_HEADER:
    return ccodecs_psd_collect(d, input, FILE_HEADER_BYTES) ? read_file_header(d) : CCODECS_NEEDS_INPUT;
  case PSD_STATE_PALETTE:
    if (!ccodecs_psd_collect(d, input, d->mode == PSD_MODE_INDEXED ? 4 + CCODECS_PSD_PALETTE_BYTES : 4)) {
      return CCODECS_NEEDS_INPUT;
    }
    d->state = PSD_STATE_RESOURCES;
    return read_palette(d);
  case PSD_STATE_RESOURCES:
    if (!ccodecs_input_skip(input, &d->skip_left) || !ccodecs_psd_collect(d, input, 4)) {
      return CCODECS_NEEDS_INPUT;
    }
    d->section_left = ccodecs_be32(d->token);
    d->state = PSD_STATE_SKIP;
    return CCODECS_OK;
  case PSD_STATE_SKIP:
    if (!ccodecs_input_skip(input, &d->skip_left)) {
      return CCODECS_NEEDS_INPUT;
    }
    d->state = d->section_left >= 7 ? PSD_STATE_RESOURCE : PSD_STATE_LAYERS;
    d->skip_left = d->state == PSD_STATE_LAYERS ? d->section_left : 0;
    return CCODECS_OK;
  case PSD_STATE_RESOURCE:
    if (!ccodecs_psd_collect(d, input, 7)) {
      return CCODECS_NEEDS_INPUT;
    }
    begin_resource(d);
    return CCODECS_OK;
  case PSD_STATE_RESOURCE_NAME:
    if (!ccodecs_input_skip(input, &d->skip_left)) {
      return CCODECS_NEEDS_INPUT;
    }
    d->state = d->section_left >= 4 ? PSD_STATE_RESOURCE_SIZE : PSD_STATE_SKIP;
    return CCODECS_OK;
  case PSD_STATE_RESOURCE_SIZE:
    if (!ccodecs_psd_collect(d, input, 4)) {
      return CCODECS_NEEDS_INPUT;
    }
    size_resource(d);
    return CCODECS_OK;
  case PSD_STATE_RESOURCE_KEPT:
    return keep_resource(d, input);
  case PSD_STATE_LAYERS: {
    const size_t count = d->is_large ? 8 : 4;
    if (!ccodecs_input_skip(input, &d->skip_left) || !ccodecs_psd_collect(d, input, count)) {
      return CCODECS_NEEDS_INPUT;
    }
    d->section_left = d->is_large ? ccodecs_be64(d->token) : ccodecs_be32(d->token);
    d->state = PSD_STATE_LAYER_BYTES;
    return d->section_left >= count + 2 ? CCODECS_OK : describe(d);
  }
  case PSD_STATE_LAYER_BYTES:
    return ccodecs_psd_collect(d, input, d->is_large ? 8 : 4) ? read_layer_bytes(d) : CCODECS_NEEDS_INPUT;
  case PSD_STATE_LAYER_COUNT:
    return ccodecs_psd_collect(d, input, 2) ? read_layer_count(d) : CCODECS_NEEDS_INPUT;
  case PSD_STATE_MASK:
    if (!ccodecs_psd_collect(d, input, 4)) {
      return CCODECS_NEEDS_INPUT;
    }
    d->section_left -= 4;
    return skip_to_block(d, ccodecs_be32(d->token));
  case PSD_STATE_BLOCK: {
    if (!ccodecs_input_skip(input, &d->skip_left) ||
        !ccodecs_input_collect(input, d->token, &d->token_count, BLOCK_HEADER_BYTES)) {
      return CCODECS_NEEDS_INPUT;
    }
    const size_t count = block_header_bytes(d);
    return ccodecs_psd_collect(d, input, count) ? read_block(d, count) : CCODECS_NEEDS_INPUT;
  }
  default:
    break;
  }
  return CCODECS_OK;
}

ccodecs_status ccodecs_psd_read_header(ccodecs_decoder *base, ccodecs_input *input) {
  psd_decoder *d = (psd_decoder *)base;
  ccodecs_status status = CCODECS_OK;
  while (status == CCODECS_OK && d->state != PSD_STATE_READY) {
    status = step(d, input);
  }
  if (status == CCODECS_NEEDS_INPUT && input->is_last) {
    return ccodecs_decoder_fail(base, CCODECS_TRUNCATED, "the PSD data ends before the image");
  }
  return status;
}
