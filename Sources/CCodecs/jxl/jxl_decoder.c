// JPEG XL decoding with libjxl: the first displayed frame, decoded as its bytes arrive and buffered as a whole.
//
// The headers of frames up to that one are parsed before libjxl sees them (jxl_frames.c). The memory that libjxl will
// need is charged by the frames' sizes before decoding starts, together with the output rows. Version 0.7 asks its
// memory manager for small blocks only, not for samples; a later version gets no more from it than was charged. libjxl
// receives bytes in slices, between which the caller may cancel. As version 0.7 fails for some files that arrive in
// pieces, the file is kept up to a size, and one that fails is decoded once more as a whole.

#include "../core/decoder.h"
#include "../core/quiet.h"
#include "../formats.h"
#include "../memory/bytes.h"

#ifdef CCODECS_JXL

#include "jxl_colors.h"
#include "jxl_frames.h"

#include <jxl/decode.h>
#include <jxl/version.h>
#include <stddef.h>
#include <stdlib.h>

/// Bytes of libjxl's tables and the state of one thread's groups.
static const size_t library_bytes = (size_t)8 << 20;
/// Bytes that libjxl allocates per sample of a pixel. Measured: 0.5 for lossless images, 1.1 for lossy ones,
/// progressive or not, 6.9 for lossy modular ones, which are transformed as a whole.
static const size_t library_bytes_per_sample = 7;
/// Bytes per sample of a pixel up to which the file is kept, to be decoded again as a whole.
static const size_t kept_bytes_per_sample = 1;
/// Compressed bytes that libjxl may leave unread until more arrive.
static const size_t waiting_bytes = 256 * 1024;
/// Bytes that libjxl receives at a time, which bounds the work of one call.
static const size_t slice_bytes = 4096;
/// The same for an image with layers, or while that is unknown: each layer costs as much as an image.
static const size_t layer_slice_bytes = 256;
/// Number of frames kept for reference by others.
static const uint64_t max_kept_frames = 4;
/// Maximum total pixels of an image's frames: this multiple of the image's, or the limit for a buffered image if that
/// is larger.
static const uint64_t frames_multiple = 8;

/// Maximum size of a box with metadata that is read.
static const size_t max_metadata = 65536;
/// Where the kind of a box with JUMBF begins: behind the head of its description.
enum { JUMBF_UUID = 8 };

/// How libjxl receives the file.
typedef enum jxl_feed {
  FEED_KEPT,   ///< In slices; `file` has all bytes that arrived.
  FEED_SLICES, ///< In slices; `file` has only the bytes that libjxl did not read, as the file is large.
  FEED_WHOLE,  ///< At once, after slices failed.
} jxl_feed;

typedef struct jxl_decoder {
  ccodecs_decoder base;
  ccodecs_bytes file; ///< The codestream, as far as it arrived.
  jxl_feed feed;
  size_t read; ///< Bytes of `file` that libjxl has read.
  size_t left; ///< Bytes after these that it has seen and left unread.
  ccodecs_jxl_boxes boxes;
  ccodecs_bytes metadata; ///< Of the box `metadata_box`, as far as it arrived; at most one byte more than is read.
  uint32_t metadata_box;
  bool has_exif;            ///< A box with EXIF was read.
  bool has_codestream;      ///< The codestream has begun.
  ccodecs_bytes codestream; ///< From the start of the codestream, until the displayed frame is found.
  ccodecs_jxl_image image;
  ccodecs_jxl_frames frames;
  bool has_colors;
  size_t library_used; ///< Part of the charge that libjxl allocated from its memory manager.
  JxlDecoder *library;
  JxlPixelFormat format;
  uint32_t samples; ///< Samples per pixel, including extra channels.
  bool is_described;
  bool has_own_colors; ///< Colors are stored in the space of the image's profile; otherwise libjxl converts them.
  size_t row_bytes;
  uint8_t *bitmap;
  bool is_decoded;
} jxl_decoder;

/// See ccodecs_jxl_fail_slice.
static _Thread_local uint32_t failing_slice;

static ccodecs_status corrupt(jxl_decoder *d) {
  return ccodecs_decoder_fail(&d->base, CCODECS_CORRUPT, "the JPEG XL codestream is corrupt");
}

// MARK: Memory manager

/// The head of each block that libjxl allocates. It has the maximum alignment that malloc guarantees.
typedef union block_head {
  size_t byte_count;
  max_align_t alignment;
} block_head;

static void *on_allocate(void *context, size_t byte_count) {
  jxl_decoder *d = context;
  if (byte_count > d->base.charged - d->library_used) {
    return NULL;
  }
  block_head *head = malloc(sizeof *head + byte_count);
  if (head == NULL) {
    d->base.budget->has_machine_failed = true;
    return NULL;
  }
  head->byte_count = byte_count;
  d->library_used += byte_count;
  return head + 1;
}

static void on_free(void *context, void *block) {
  jxl_decoder *d = context;
  if (block != NULL) {
    block_head *head = (block_head *)block - 1;
    d->library_used -= head->byte_count;
    free(head);
  }
}

// MARK: Header

/// Returns whether an extra channel has fewer samples than the colors.
static bool has_reduced_channels(const jxl_decoder *d, uint32_t count) {
  bool is_reduced = false;
  for (uint32_t i = 0; i < count && !is_reduced; i++) {
    JxlExtraChannelInfo info;
    is_reduced = JxlDecoderGetExtraChannelInfo(d->library, i, &info) != JXL_DEC_SUCCESS || info.dim_shift > 0;
  }
  return is_reduced;
}

static ccodecs_status describe(jxl_decoder *d) {
  JxlBasicInfo info;
  if (JxlDecoderGetBasicInfo(d->library, &info) != JXL_DEC_SUCCESS) {
    return corrupt(d);
  }
  ccodecs_header *header = &d->base.header;
  header->width = info.xsize;
  header->height = info.ysize;
  header->orientation = info.orientation >= 1 && info.orientation <= 8 ? (uint8_t)info.orientation : 1;
  header->bit_depth = info.bits_per_sample <= 32 ? (uint8_t)info.bits_per_sample : 8;
  header->is_16bit = info.bits_per_sample > 8;
  header->has_alpha = info.alpha_bits > 0;
  header->buffers_bitmap = true;
  const bool is_gray = info.num_color_channels == 1 && !header->has_alpha;
  header->color_space = is_gray ? CCODECS_COLOR_GRAY : CCODECS_COLOR_RGB;
  header->warnings |= info.have_animation ? CCODECS_WARNING_FIRST_FRAME : 0;
  header->frame_count = info.have_animation ? 0 : 1;
  d->image = (ccodecs_jxl_image){
      .width = info.xsize,
      .height = info.ysize,
      .preview_width = info.have_preview ? info.preview.xsize : 0,
      .preview_height = info.have_preview ? info.preview.ysize : 0,
      .extra_channels = info.num_extra_channels,
      .is_xyb = !info.uses_original_profile,
      .has_animation = info.have_animation,
      .has_timecodes = info.have_animation && info.animation.have_timecodes,
      .has_reduced_channels = has_reduced_channels(d, info.num_extra_channels),
  };
  d->has_own_colors = info.uses_original_profile;
  d->is_described = true;
  d->samples = info.num_color_channels + info.num_extra_channels;
  d->format = (JxlPixelFormat){
      .num_channels = header->has_alpha ? 4
                      : is_gray         ? 1
                                        : 3,
      .data_type = header->is_16bit ? JXL_TYPE_UINT16 : JXL_TYPE_UINT8,
      .endianness = JXL_NATIVE_ENDIAN,
  };
  d->row_bytes = (size_t)header->width * d->format.num_channels * (header->is_16bit ? 2 : 1);
  return CCODECS_OK;
}

/// Takes bytes of a box with EXIF or XMP, and keeps it when it is complete, or of one with content credentials, which
/// it notes. Compressed boxes are left out. Returns false if the budget is exhausted.
static bool take_metadata(jxl_decoder *d, const uint8_t *bytes, size_t count) {
  ccodecs_bytes *box = &d->metadata;
  if (d->boxes.number != d->metadata_box) {
    ccodecs_bytes_free(box, d->base.budget);
    d->metadata_box = d->boxes.number;
  }
  const bool is_credentials = memcmp(d->boxes.type, "jumb", 4) == 0;
  const size_t max_count = is_credentials ? JUMBF_UUID + 4 : max_metadata + 1;
  const size_t room = max_count - box->count;
  const bool is_compressed = memcmp(d->boxes.type, "brob", 4) == 0;
  if (!is_compressed && !ccodecs_bytes_append(box, bytes, count < room ? count : room, d->base.budget)) {
    return false;
  }
  const uint8_t *start = ccodecs_bytes_start(box);
  if (is_credentials && d->base.limits.keeps_metadata && box->count >= JUMBF_UUID + 4) {
    d->base.header.has_credentials = d->base.header.has_credentials || memcmp(start + JUMBF_UUID, "c2pa", 4) == 0;
  }
  if (d->boxes.left > 0 || is_compressed || is_credentials || box->count > max_metadata) {
    return true;
  }
  if (memcmp(d->boxes.type, "xml ", 4) == 0) {
    return ccodecs_decoder_keep_block(&d->base, &d->base.xmp, start, box->count);
  }
  if (d->has_exif) { // the first one counts
    return true;
  }
  d->has_exif = true;
  // The position of the TIFF header in the rest precedes it.
  const uint64_t first = box->count > 4 ? (uint64_t)ccodecs_be32(start) + 4 : box->count;
  return first >= box->count || ccodecs_exif_keep_copyright(&d->base, start + first, box->count - (size_t)first);
}

/// Buffers the codestream in the input. libjxl does not see the boxes around it, of which version 0.7 cannot read those
/// with a size of 64 bits.
static ccodecs_status take_input(jxl_decoder *d, ccodecs_input *input) {
  bool has_room = true;
  const uint8_t *bytes;
  size_t count;
  const bool keeps_metadata = d->base.limits.keeps_metadata;
  d->boxes.gives_metadata = d->base.state == CCODECS_STATE_HEADER && (keeps_metadata || !d->has_codestream);
  while (has_room && ccodecs_jxl_boxes_next(&d->boxes, input, &bytes, &count)) {
    if (!d->boxes.is_codestream) {
      has_room = take_metadata(d, bytes, count);
      continue;
    }
    // What follows is read only where the header waits for it, so that results do not depend on how bytes arrive.
    d->has_codestream = true;
    d->boxes.gives_metadata = d->boxes.gives_metadata && keeps_metadata;
    has_room = (d->frames.is_complete || ccodecs_bytes_append(&d->codestream, bytes, count, d->base.budget)) &&
               ccodecs_bytes_append(&d->file, bytes, count, d->base.budget);
  }
  // The last box may have no size.
  const bool is_open = d->boxes.gives_metadata && d->boxes.left == UINT64_MAX && d->boxes.number == d->metadata_box;
  if (has_room && input->is_last && is_open && d->metadata.count > 0) {
    d->boxes.left = 0;
    has_room = take_metadata(d, ccodecs_bytes_start(&d->metadata), 0);
  }
  return has_room ? CCODECS_OK
                  : ccodecs_decoder_fail(&d->base, CCODECS_NO_MEMORY, "no room to buffer the JPEG XL data");
}

/// Creates the library's decoder.
static ccodecs_status begin(jxl_decoder *d) {
  const JxlMemoryManager manager = {.opaque = d, .alloc = on_allocate, .free = on_free};
  d->library = JxlDecoderCreate(&manager);
  return d->library != NULL && JxlDecoderSetKeepOrientation(d->library, JXL_TRUE) == JXL_DEC_SUCCESS &&
                 JxlDecoderSetUnpremultiplyAlpha(d->library, JXL_TRUE) == JXL_DEC_SUCCESS &&
                 JxlDecoderSubscribeEvents(
                     d->library, JXL_DEC_BASIC_INFO | JXL_DEC_COLOR_ENCODING | JXL_DEC_FULL_IMAGE) == JXL_DEC_SUCCESS
             ? CCODECS_OK
             : CCODECS_NO_MEMORY;
}

/// Starts again from the first byte after slices failed, if there still is one. *answer is then
/// JXL_DEC_NEED_MORE_INPUT.
static ccodecs_status restart(jxl_decoder *d, JxlDecoderStatus *answer) {
  if (d->feed != FEED_KEPT) {
    return corrupt(d);
  }
  d->feed = FEED_WHOLE;
  d->read = d->left = 0;
  *answer = JXL_DEC_NEED_MORE_INPUT;
  JxlDecoderDestroy(d->library);
  return begin(d);
}

/// Returns whether libjxl can be given more bytes.
static bool has_more(const jxl_decoder *d, bool is_last) {
  return d->feed == FEED_WHOLE ? is_last : d->file.count - d->read > d->left;
}

/// Passes at most `slice` bytes to libjxl that it has not seen, or the whole file, and keeps those that it leaves.
/// *answer is JXL_DEC_NEED_MORE_INPUT when it has read them all.
static ccodecs_status process(jxl_decoder *d, size_t slice, bool is_last, JxlDecoderStatus *answer) {
  *answer = JXL_DEC_NEED_MORE_INPUT;
  if (d->feed == FEED_WHOLE && !is_last) {
    return CCODECS_OK;
  }
  const size_t unread = d->file.count - d->read;
  const bool is_all = d->feed == FEED_WHOLE || unread - d->left <= slice;
  const size_t count = is_all ? unread : d->left + slice;
  // Without bytes there is no block, but libjxl requires an address.
  const uint8_t nothing = 0;
  const uint8_t *bytes = d->file.count > 0 ? ccodecs_bytes_start(&d->file) + d->read : &nothing;
  if (JxlDecoderSetInput(d->library, bytes, count) != JXL_DEC_SUCCESS) {
    return corrupt(d);
  }
  ccodecs_quiet_begin();
  *answer = JxlDecoderProcessInput(d->library);
  ccodecs_quiet_end();
  d->left = JxlDecoderReleaseInput(d->library);
  if (d->feed != FEED_WHOLE && failing_slice > 0 && --failing_slice == 0) {
    *answer = JXL_DEC_ERROR;
  }
  d->read += count - d->left;
  if (d->feed == FEED_SLICES) {
    ccodecs_bytes_take(&d->file, d->read);
    d->read = 0;
  }
  if (*answer == JXL_DEC_NEED_MORE_INPUT && is_last && is_all) {
    return ccodecs_decoder_fail(&d->base, CCODECS_TRUNCATED, "the JPEG XL data ends before the image");
  }
  return *answer == JXL_DEC_ERROR ? restart(d, answer) : CCODECS_OK;
}

// MARK: Frames

/// Finds the start of the first frame: the position at which libjxl stops when it reads only what precedes it.
static ccodecs_status find_first_frame(jxl_decoder *d) {
  JxlDecoder *scout = JxlDecoderCreate(NULL);
  if (scout == NULL) {
    return CCODECS_NO_MEMORY;
  }
  ccodecs_quiet_begin();
  const bool is_found =
      JxlDecoderSubscribeEvents(scout, JXL_DEC_COLOR_ENCODING) == JXL_DEC_SUCCESS &&
      JxlDecoderSetInput(scout, ccodecs_bytes_start(&d->codestream), d->codestream.count) == JXL_DEC_SUCCESS &&
      JxlDecoderProcessInput(scout) == JXL_DEC_COLOR_ENCODING;
  ccodecs_quiet_end();
  d->frames.at = is_found ? d->codestream.count - JxlDecoderReleaseInput(scout) : 0;
  JxlDecoderDestroy(scout);
  d->has_colors = true;
  return is_found ? CCODECS_OK : corrupt(d);
}

static ccodecs_status check_frames(jxl_decoder *d) {
  const ccodecs_jxl_frames *frames = &d->frames;
  d->base.work_pixels = frames->pixels;
  const uint64_t buffered = d->base.limits.max_whole_input_pixels;
  const uint64_t own = (uint64_t)d->image.width * d->image.height;
  const uint64_t limit = own * frames_multiple > buffered ? own * frames_multiple : buffered;
  if (buffered != 0 && frames->max_pixels > buffered) {
    return ccodecs_decoder_exceed(
        &d->base, "pixels in a frame", (ccodecs_excess){"max_buffered_pixels", buffered, frames->max_pixels});
  }
  return buffered == 0 || frames->pixels <= limit
             ? CCODECS_OK
             : ccodecs_decoder_exceed(
                   &d->base, "pixels in all frames", (ccodecs_excess){"max_frame_pixels", limit, frames->pixels});
}

/// Reads the frame headers that are available.
static ccodecs_status read_frames(jxl_decoder *d, bool is_last) {
  const ccodecs_status status =
      ccodecs_jxl_frames_read(&d->frames, &d->image, ccodecs_bytes_start(&d->codestream), d->codestream.count, is_last);
  switch (status) {
  case CCODECS_OK:
    ccodecs_bytes_free(&d->codestream, d->base.budget);
    return check_frames(d);
  case CCODECS_NEEDS_INPUT:
    return is_last
               ? ccodecs_decoder_fail(&d->base, CCODECS_TRUNCATED, "the JPEG XL data ends before the displayed frame")
               : CCODECS_NEEDS_INPUT;
  case CCODECS_LIMIT:
    return ccodecs_decoder_exceed(
        &d->base, "layers", (ccodecs_excess){"max_layers", d->frames.count, d->frames.count + 1});
  case CCODECS_UNSUPPORTED:
    return ccodecs_decoder_fail(
        &d->base, CCODECS_UNSUPPORTED,
        "JPEG XL layers with sections out of order, and frames that libjxl cannot decode safely, are not supported");
  default:
    return corrupt(d);
  }
}

/// Reads everything before the frames.
static ccodecs_status read_image(jxl_decoder *d, bool is_last) {
  if (d->library == NULL) {
    CCODECS_TRY(ccodecs_decoder_charge(&d->base, library_bytes));
    CCODECS_TRY(begin(d));
  }
  // The bytes may already belong to the frames, so the slices start small. They double, because libjxl restarts some
  // parts.
  for (size_t slice = layer_slice_bytes;;) {
    JxlDecoderStatus answer = JXL_DEC_NEED_MORE_INPUT;
    CCODECS_TRY(process(d, slice, is_last, &answer));
    switch (answer) {
    case JXL_DEC_NEED_MORE_INPUT:
      if (!has_more(d, is_last)) {
        return CCODECS_NEEDS_INPUT;
      }
      slice *= 2;
      break;
    case JXL_DEC_BASIC_INFO:
      CCODECS_TRY(describe(d));
      CCODECS_TRY(ccodecs_decoder_check_limits(&d->base));
      break;
    case JXL_DEC_COLOR_ENCODING:
      CCODECS_TRY(
          d->is_described ? ccodecs_jxl_settle_colors(&d->base, d->library, &d->format, d->has_own_colors)
                          : corrupt(d));
      return find_first_frame(d);
    default:
      return corrupt(d);
    }
  }
}

static ccodecs_status read_header(ccodecs_decoder *base, ccodecs_input *input) {
  jxl_decoder *d = (jxl_decoder *)base;
  CCODECS_TRY(take_input(d, input));
  if (!d->has_colors) {
    CCODECS_TRY(read_image(d, input->is_last));
  }
  if (!d->frames.is_complete) {
    CCODECS_TRY(read_frames(d, input->is_last));
  }
  // Metadata may follow the image.
  base->header.buffers_input = base->limits.keeps_metadata && !d->boxes.is_bare;
  return input->is_last || !base->header.buffers_input ? CCODECS_OK : CCODECS_NEEDS_INPUT;
}

static uint64_t decoding_bytes(const jxl_decoder *d) {
  const uint64_t own = (uint64_t)d->base.header.width * d->base.header.height;
  const uint64_t pixels = d->frames.max_pixels > own ? d->frames.max_pixels : own;
  const uint64_t max_kept = pixels * max_kept_frames;
  const uint64_t kept = d->frames.kept_pixels < max_kept ? d->frames.kept_pixels : max_kept;
  return (pixels * library_bytes_per_sample + kept * sizeof(float)) * d->samples;
}

static uint64_t kept_bytes(const jxl_decoder *d) {
  return (uint64_t)d->base.header.width * d->base.header.height * d->samples * kept_bytes_per_sample;
}

/// Makes room for the file where it is kept, so that its block does not grow.
static bool reserve_file(jxl_decoder *d) {
  const uint64_t capacity = kept_bytes(d);
  return d->feed != FEED_KEPT || d->file.count >= capacity ||
         ccodecs_bytes_reserve(&d->file, (size_t)capacity - d->file.count, d->base.budget);
}

static ccodecs_status estimate(
    const ccodecs_decoder *base, const ccodecs_decode_options *options, uint64_t *byte_count) {
  (void)options;
  const jxl_decoder *d = (const jxl_decoder *)base;
  *byte_count = decoding_bytes(d) + kept_bytes(d) + (uint64_t)d->row_bytes * base->header.height + waiting_bytes;
  return CCODECS_OK;
}

static ccodecs_status start(ccodecs_decoder *base, const ccodecs_decode_options *options, ccodecs_layout *layout) {
  (void)options;
  jxl_decoder *d = (jxl_decoder *)base;
  const uint32_t channels = d->format.num_channels;
  ccodecs_decoder_describe_packed(base, channels, layout);
  if (!reserve_file(d)) { // first, because the old block stays charged meanwhile
    return CCODECS_NO_MEMORY;
  }
  CCODECS_TRY(ccodecs_decoder_charge(&d->base, decoding_bytes(d)));
  d->bitmap = ccodecs_allocate(base->budget, d->row_bytes * base->header.height);
  return d->bitmap == NULL ? CCODECS_NO_MEMORY : CCODECS_OK;
}

// MARK: Rows

/// Stops keeping the file if it outgrows the block that was reserved for it.
static ccodecs_status check_room(jxl_decoder *d, size_t count) {
  if (d->feed == FEED_SLICES || count <= d->file.capacity - d->file.first - d->file.count) {
    return CCODECS_OK;
  }
  if (d->feed == FEED_WHOLE) {
    return corrupt(d);
  }
  d->feed = FEED_SLICES;
  ccodecs_bytes_take(&d->file, d->read);
  d->read = 0;
  return CCODECS_OK;
}

/// Decodes a part of the frame into `bitmap`. Returns CCODECS_OK when the frame is complete, CCODECS_ROWS_READY when
/// there is more to decode, CCODECS_NEEDS_INPUT, or the failure.
static ccodecs_status decode(jxl_decoder *d, ccodecs_input *input) {
  CCODECS_TRY(check_room(d, input->count));
  CCODECS_TRY(take_input(d, input));
  const size_t slice = d->frames.count > 1 ? layer_slice_bytes : slice_bytes;
  while (!d->is_decoded) {
    JxlDecoderStatus answer = JXL_DEC_NEED_MORE_INPUT;
    CCODECS_TRY(process(d, slice, input->is_last, &answer));
    size_t needed;
    JxlColorEncoding encoding;
    switch (answer) {
    case JXL_DEC_NEED_MORE_INPUT:
      return has_more(d, input->is_last) ? CCODECS_ROWS_READY : CCODECS_NEEDS_INPUT;
    case JXL_DEC_NEED_IMAGE_OUT_BUFFER:
      if (JxlDecoderImageOutBufferSize(d->library, &d->format, &needed) != JXL_DEC_SUCCESS ||
          needed != d->row_bytes * d->base.header.height ||
          JxlDecoderSetImageOutBuffer(d->library, &d->format, d->bitmap, needed) != JXL_DEC_SUCCESS) {
        return corrupt(d);
      }
      break;
    case JXL_DEC_FULL_IMAGE:
      d->is_decoded = true;
      break;
    case JXL_DEC_BASIC_INFO: // again, after a restart
      break;
    case JXL_DEC_COLOR_ENCODING:
      ccodecs_jxl_request_colors(d->library, &d->format, d->has_own_colors, &encoding);
      break;
    default: // the end of the file, without a frame
      return corrupt(d);
    }
  }
  JxlDecoderDestroy(d->library);
  d->library = NULL;
  ccodecs_bytes_free(&d->file, d->base.budget);
  return CCODECS_OK;
}

static ccodecs_status read_rows(ccodecs_decoder *base, ccodecs_input *input, ccodecs_rows *rows) {
  jxl_decoder *d = (jxl_decoder *)base;
  CCODECS_TRY(d->is_decoded ? CCODECS_OK : decode(d, input));
  return ccodecs_decoder_give_bitmap(base, d->bitmap, d->row_bytes, rows);
}

static void destroy(ccodecs_decoder *base) {
  jxl_decoder *d = (jxl_decoder *)base;
  ccodecs_budget *budget = base->budget;
  if (d->library != NULL) {
    JxlDecoderDestroy(d->library);
  }
  ccodecs_bytes_free(&d->file, budget);
  ccodecs_bytes_free(&d->codestream, budget);
  ccodecs_bytes_free(&d->metadata, budget);
  ccodecs_free(budget, d->bitmap);
}

bool ccodecs_jxl_decoder_has_coefficients(const ccodecs_decoder *base, uint64_t *pixel_count, uint64_t *sample_count) {
  const jxl_decoder *d = (const jxl_decoder *)base;
  const bool is_gray = d->base.header.color_space == CCODECS_COLOR_GRAY;
  const uint64_t samples_of_four = is_gray ? 4 : d->frames.samples_of_four;
  const uint64_t sides = (uint64_t)d->image.width + d->image.height;
  *pixel_count = (uint64_t)d->image.width * d->image.height;
  // A JPEG has whole blocks of up to 16 columns and rows.
  *sample_count = (*pixel_count + sides * 16) * samples_of_four / 4 + 768;
  return d->frames.is_complete && d->frames.count == 1 && d->frames.has_coefficients &&
         (is_gray || d->frames.is_ycbcr) && !d->image.is_xyb && d->image.extra_channels == 0 &&
         !d->image.has_animation && d->image.preview_width == 0;
}

void ccodecs_jxl_fail_slice(uint32_t number) {
  failing_slice = number;
}

const ccodecs_decoder_methods ccodecs_jxl_decoder = {
    .byte_count = sizeof(jxl_decoder),
    .read_header = read_header,
    .estimate = estimate,
    .start = start,
    .read_rows = read_rows,
    .destroy = destroy,
};

#else

void ccodecs_jxl_fail_slice(uint32_t number) {
  (void)number;
}

#endif
