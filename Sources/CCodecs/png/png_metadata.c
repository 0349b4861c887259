// Sources: PNG specification (third edition), sections 11.3.2.3 (iCCP), 11.3.3.4 (iTXt) and 11.3.4.5 (eXIf); XMP
// Specification part 3, section 1.1.5.

#include "../memory/zlib_memory.h"
#include "png_chunk.h"

enum {
  NAME_BYTES = 4, ///< "ICC" with its terminating zero.
  PREFIX_BYTES = NAME_BYTES + 1,
  // A small window, as profiles are small: 16 KiB for the window, 32 KiB for hashes and pending bytes.
  WINDOW_BITS = 12,
  MEMORY_LEVEL = 6,
  COMPRESSOR_BYTES = 64 << 10,
};

/// Compresses a profile to `body`, whose size is enough for any. Returns the number of bytes; 0 without memory.
static size_t compress_profile(const ccodecs_metadata *metadata, uint8_t *body, size_t size, ccodecs_budget *budget) {
  z_stream z = {.zalloc = ccodecs_zlib_allocate, .zfree = ccodecs_zlib_free, .opaque = budget};
  if (deflateInit2(&z, Z_BEST_COMPRESSION, Z_DEFLATED, WINDOW_BITS, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK) {
    return 0;
  }
  z.next_in = (uint8_t *)(uintptr_t)metadata->icc; // zlib does not write to it
  z.avail_in = (uInt)metadata->icc_count;
  z.next_out = body;
  z.avail_out = (uInt)size;
  const bool is_done = deflate(&z, Z_FINISH) == Z_STREAM_END;
  deflateEnd(&z);
  return is_done ? size - z.avail_out : 0;
}

/// Returns a size that is enough for a compressed profile: deflate's with this window, and a margin.
static size_t max_compressed_bytes(size_t count) {
  return count + count / 8 + 256;
}

/// Appends iCCP.
static bool append_profile(const ccodecs_metadata *metadata, ccodecs_bytes *bytes, ccodecs_budget *budget) {
  static const uint8_t prefix[PREFIX_BYTES] = "ICC\0"; // the name, and deflate as the method
  const size_t size = max_compressed_bytes(metadata->icc_count);
  uint8_t *body = ccodecs_allocate(budget, PREFIX_BYTES + size);
  if (body == NULL) {
    return false;
  }
  memcpy(body, prefix, PREFIX_BYTES);
  const size_t count = compress_profile(metadata, body + PREFIX_BYTES, size, budget);
  const bool has_room = count > 0 && ccodecs_png_append_chunk(bytes, "iCCP", body, PREFIX_BYTES + count, budget);
  ccodecs_free(budget, body);
  return has_room;
}

size_t ccodecs_png_metadata_estimate(const ccodecs_metadata *metadata) {
  // The compressor and its output.
  const size_t profile = metadata->icc_count == 0 ? 0 : COMPRESSOR_BYTES + max_compressed_bytes(metadata->icc_count);
  return profile + (metadata->xmp_count == 0 ? 0 : metadata->xmp_count + 1024);
}

/// Appends XMP as iTXt: its keyword, not compressed, in no language, without a translated keyword.
static bool append_xmp(const ccodecs_metadata *metadata, ccodecs_bytes *bytes, ccodecs_budget *budget) {
  static const uint8_t prefix[22] = "XML:com.adobe.xmp\0\0\0\0";
  uint8_t *body = ccodecs_allocate(budget, sizeof prefix + metadata->xmp_count);
  if (body == NULL) {
    return false;
  }
  memcpy(body, prefix, sizeof prefix);
  memcpy(body + sizeof prefix, metadata->xmp, metadata->xmp_count);
  const bool has_room = ccodecs_png_append_chunk(bytes, "iTXt", body, sizeof prefix + metadata->xmp_count, budget);
  ccodecs_free(budget, body);
  return has_room;
}

/// Appends cICP: RGB of full range.
static bool append_color_codes(const ccodecs_metadata *metadata, ccodecs_bytes *bytes, ccodecs_budget *budget) {
  const uint8_t body[] = {(uint8_t)metadata->color_codes.primaries, (uint8_t)metadata->color_codes.transfer, 0, 1};
  return ccodecs_png_append_chunk(bytes, "cICP", body, sizeof body, budget);
}

bool ccodecs_png_append_metadata(const ccodecs_metadata *metadata, ccodecs_bytes *bytes, ccodecs_budget *budget) {
  return (metadata->color_codes.transfer == 0 || append_color_codes(metadata, bytes, budget)) &&
         (metadata->icc_count == 0 || append_profile(metadata, bytes, budget)) &&
         (metadata->exif_count == 0 ||
          ccodecs_png_append_chunk(bytes, "eXIf", metadata->exif, metadata->exif_count, budget)) &&
         (metadata->xmp_count == 0 || append_xmp(metadata, bytes, budget));
}
