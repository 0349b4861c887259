// The second bytes of JPEG's markers, after 0xFF (T.81, table B.1), and its zigzag order. Private to CCodecs.

#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
  TEM = 0x01,
  SOF0 = 0xC0, ///< Baseline.
  SOF1 = 0xC1, ///< Extended sequential.
  SOF2 = 0xC2, ///< Progressive.
  DHT = 0xC4,
  JPG = 0xC8,
  SOF9 = 0xC9,  ///< Sequential, arithmetic coding.
  SOF10 = 0xCA, ///< Progressive, arithmetic coding.
  DAC = 0xCC,
  SOF15 = 0xCF,
  RST0 = 0xD0,
  RST7 = 0xD7,
  SOI = 0xD8,
  EOI = 0xD9,
  SOS = 0xDA,
  DQT = 0xDB,
  DNL = 0xDC,
  DRI = 0xDD,
  APP0 = 0xE0,
  APP1 = 0xE1,
  APP2 = 0xE2,
  APP11 = 0xEB,
  APP13 = 0xED,
  APP14 = 0xEE,
  APP15 = 0xEF,
  COM = 0xFE,
};

/// Returns whether `code` is a restart marker, which has no body.
static inline bool ccodecs_jpeg_is_restart(uint8_t code) {
  return code >= RST0 && code <= RST7;
}

/// Returns whether `code` is the marker of an application segment.
static inline bool ccodecs_jpeg_is_application(uint8_t code) {
  return code >= APP0 && code <= APP15;
}

/// The natural (row by row) index of each zigzag index.
static const uint8_t ccodecs_jpeg_zigzag[64] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
};
