// The JPEG decoder's state, shared by the reading of markers (jpeg_markers.c) and of the picture (jpeg.c). Private to
// CCodecs.

#ifndef CCODECS_JPEG_H
#define CCODECS_JPEG_H

#include "../bytes.h"
#include "decoder.h"
#include "jpeg_entropy.h"
#include "jpeg_idct.h"

/// Markers of ITU-T T.81, table B.1.
enum {
  JPEG_SOF0 = 0xC0, JPEG_SOF1 = 0xC1, JPEG_DHT = 0xC4, JPEG_RST0 = 0xD0, JPEG_SOI = 0xD8, JPEG_EOI = 0xD9,
  JPEG_SOS = 0xDA, JPEG_DQT = 0xDB, JPEG_DRI = 0xDD, JPEG_APP0 = 0xE0, JPEG_APP1 = 0xE1, JPEG_APP2 = 0xE2,
  JPEG_APP14 = 0xEE, JPEG_COM = 0xFE,
};

typedef struct jpeg_component {
  uint8_t id;
  uint8_t across;            ///< Blocks in an MCU: sampling factors.
  uint8_t down;
  uint8_t quantization_index;
  const jpeg_huffman *dc;
  const jpeg_huffman *ac;
  int prediction;
  float factors[16];
  size_t stride;             ///< Blocks in a row, padded to whole lanes.
  int16_t *coefficients;     ///< [down][scale * scale][stride]
  uint8_t *samples;          ///< [down * scale][stride * scale]
  ccodecs_plane plane;
  uint32_t rows_left;
} jpeg_component;

typedef struct jpeg_decoder {
  ccodecs_decoder base;
  // Markers.
  ccodecs_bytes markers;     ///< What the decoder of the picture needs of them.
  ccodecs_bytes marker;      ///< The one that is being read, from its 0xFF on.
  uint64_t skip;             ///< Bytes of a marker to pass over.
  bool has_start;
  bool has_exif;
  bool has_jfif;
  int adobe_transform;       ///< -1 without an Adobe marker.
  bool is_baseline;          ///< So far, this decoder can take the picture.
  bool has_frame;
  uint16_t quantization[4][64];
  bool has_quantization[4];
  uint32_t restart_interval;
  jpeg_component components[3];
  uint32_t component_count;
  jpeg_huffman *tables;      ///< DC 0 to 3, AC 0 to 3.
  // The picture, when it is decoded here.
  int scale;
  jpeg_zigzag zigzag;
  uint32_t mcus_across;
  uint32_t mcu_rows;
  uint32_t mcu_x;
  uint32_t mcu_y;
  uint32_t restarts_left;    ///< MCUs until the next restart marker.
  uint8_t next_restart;
  uint8_t *segment;
  size_t segment_count;      ///< Unstuffed bytes.
  size_t segment_used;       ///< Bits of them that were decoded, in whole.
  bool is_ended;             ///< A marker follows the unstuffed bytes.
  bool saw_ff;               ///< The last byte was 0xFF: what follows decides.
  uint8_t end_marker;
  bool is_cut;               ///< The input ended without a marker.
  jpeg_bits bits;
  // The picture, when libjpeg-turbo decodes it.
  ccodecs_decoder *turbo;
} jpeg_decoder;

/// Takes what the window holds of one marker before the picture. CCODECS_OK when the marker is done, *is_scan when it was
/// SOS. What is_baseline says then holds.
ccodecs_status jpeg_read_marker(jpeg_decoder *decoder, ccodecs_input *input, bool *is_scan);

/// The failure of a budget without room.
ccodecs_status jpeg_no_room(jpeg_decoder *decoder);

#endif
