// The frame sizes, frame counts and colors that the bitstreams inside an HEIC or AVIF file announce. Private to
// CCodecs.

#pragma once

#include "../color/profile.h"

/// The meaning of samples, from an `nclx` property or a bitstream.
typedef struct heif_color {
  bool is_known;
  bool has_full_range;
  ccodecs_color_codes codes;
} heif_color;

/// The chroma samples of a bitstream, in ascending order of their number.
typedef enum heif_chroma_share {
  HEIF_CHROMA_QUARTER, ///< 4:2:0, or none.
  HEIF_CHROMA_HALF,    ///< 4:2:2.
  HEIF_CHROMA_FULL,    ///< 4:4:4.
} heif_chroma_share;

typedef struct ccodecs_heif_frames {
  uint64_t max_pixels;      ///< Width x height of the largest frame that a sequence header allows; 0 without one.
  uint32_t max_side;        ///< The largest width or height that a sequence header allows.
  uint64_t count;           ///< Frames that start in the bitstream, displayed or not.
  heif_color color;         ///< From AV1's last sequence header; not read from HEVC.
  heif_chroma_share chroma; ///< The most of all sequence headers.
  bool has_chroma;          ///< A sequence header has chroma.
  bool is_deep;             ///< A sequence header has samples of more than eight bits.
  bool has_dependent;       ///< A slice of HEVC may depend on the one before it.
} ccodecs_heif_frames;

/// Adds what AV1's open bitstream units announce to `frames`.
void ccodecs_heif_read_av1(const uint8_t *bytes, size_t count, ccodecs_heif_frames *frames);

/// Adds what HEVC's units announce to `frames`. Each unit follows its length of 2 or 4 bytes.
void ccodecs_heif_read_hevc(const uint8_t *bytes, size_t count, size_t length_bytes, ccodecs_heif_frames *frames);

/// Adds what the units in the body of an `hvcC` box announce to `frames`.
void ccodecs_heif_read_hevc_configuration(const uint8_t *bytes, size_t count, ccodecs_heif_frames *frames);
