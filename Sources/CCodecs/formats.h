// The functions of each format for the table of formats, and those that formats need of one another. Private to
// CCodecs.
//
// Constructors return NULL when the budget has no room. Functions named `options_are_valid` return whether every option
// is in its range.

#pragma once

#include "core/decoder.h"
#include "core/encoder.h"
#include "core/rewriter.h"

ccodecs_decoder *ccodecs_bmp_decoder_create(const ccodecs_limits *limits, ccodecs_budget *budget);
ccodecs_decoder *ccodecs_hdr_decoder_create(const ccodecs_limits *limits, ccodecs_budget *budget);
ccodecs_decoder *ccodecs_ico_decoder_create(const ccodecs_limits *limits, ccodecs_budget *budget);
ccodecs_decoder *ccodecs_pnm_decoder_create(const ccodecs_limits *limits, ccodecs_budget *budget);
ccodecs_decoder *ccodecs_psd_decoder_create(const ccodecs_limits *limits, ccodecs_budget *budget);
ccodecs_decoder *ccodecs_tga_decoder_create(const ccodecs_limits *limits, ccodecs_budget *budget);
ccodecs_decoder *ccodecs_tiff_decoder_create(const ccodecs_limits *limits, ccodecs_budget *budget);

ccodecs_decoder *ccodecs_gif_decoder_create(const ccodecs_limits *limits, ccodecs_budget *budget);
ccodecs_encoder *ccodecs_gif_encoder_create(const ccodecs_encode_options *options, ccodecs_budget *budget);
ccodecs_rewriter *ccodecs_gif_rewriter_create(const ccodecs_limits *limits, ccodecs_budget *budget);
uint64_t ccodecs_gif_encoder_estimate(const ccodecs_encode_options *options);
uint64_t ccodecs_gif_encoder_max_bytes(const ccodecs_encode_options *options);
bool ccodecs_gif_options_are_valid(const ccodecs_gif_options *options);

ccodecs_decoder *ccodecs_heic_decoder_create(const ccodecs_limits *limits, ccodecs_budget *budget);
ccodecs_decoder *ccodecs_avif_decoder_create(const ccodecs_limits *limits, ccodecs_budget *budget);
ccodecs_encoder *ccodecs_avif_encoder_create(const ccodecs_encode_options *options, ccodecs_budget *budget);
uint64_t ccodecs_avif_encoder_estimate(const ccodecs_encode_options *options);

ccodecs_decoder *ccodecs_jpeg_decoder_create(const ccodecs_limits *limits, ccodecs_budget *budget);
ccodecs_encoder *ccodecs_jpeg_encoder_create(const ccodecs_encode_options *options, ccodecs_budget *budget);
ccodecs_rewriter *ccodecs_jpeg_rewriter_create(const ccodecs_limits *limits, ccodecs_budget *budget);
uint64_t ccodecs_jpeg_encoder_estimate(const ccodecs_encode_options *options);

ccodecs_decoder *ccodecs_jxl_decoder_create(const ccodecs_limits *limits, ccodecs_budget *budget);
ccodecs_encoder *ccodecs_jxl_encoder_create(const ccodecs_encode_options *options, ccodecs_budget *budget);
/// Returns the rewriter, which reconstructs JPEGs.
ccodecs_rewriter *ccodecs_jxl_rewriter_create(const ccodecs_limits *limits, ccodecs_budget *budget);
uint64_t ccodecs_jxl_encoder_estimate(const ccodecs_encode_options *options);
uint64_t ccodecs_jxl_encoder_max_bytes(const ccodecs_encode_options *options);
/// Creates the transform of a JPEG to a JPEG XL from which the JPEG can be reconstructed. `sample_count` is that of all
/// components, `effort` is 1 to 9; `interrupt` is borrowed. Returns CCODECS_OK or CCODECS_NO_MEMORY.
ccodecs_status ccodecs_jxl_recompress_create(
    uint64_t pixel_count, uint64_t sample_count, uint8_t effort, ccodecs_interrupt *interrupt, ccodecs_budget *budget,
    ccodecs_turn **turn);
/// Returns an upper bound of the bytes that the transform charges.
uint64_t ccodecs_jxl_recompress_estimate(uint64_t pixel_count, uint64_t sample_count);
/// Returns whether a JPEG XL whose header `decoder` has read consists of the coefficients of one usual JPEG, and their
/// numbers: `sample_count` is that of all components, in whole blocks.
bool ccodecs_jxl_decoder_has_coefficients(
    const ccodecs_decoder *decoder, uint64_t *pixel_count, uint64_t *sample_count);

ccodecs_decoder *ccodecs_png_decoder_create(const ccodecs_limits *limits, ccodecs_budget *budget);
ccodecs_encoder *ccodecs_png_encoder_create(const ccodecs_encode_options *options, ccodecs_budget *budget);
ccodecs_rewriter *ccodecs_png_rewriter_create(const ccodecs_limits *limits, ccodecs_budget *budget);
uint64_t ccodecs_png_encoder_estimate(const ccodecs_encode_options *options);
uint64_t ccodecs_png_encoder_max_bytes(const ccodecs_encode_options *options);
bool ccodecs_png_options_are_valid(const ccodecs_png_options *options);
/// Returns whether the options can be combined: animations are not interlaced, and have a palette only with alpha.
bool ccodecs_png_encoder_takes(const ccodecs_encode_options *options);

ccodecs_encoder *ccodecs_raw_encoder_create(const ccodecs_encode_options *options, ccodecs_budget *budget);
uint64_t ccodecs_raw_encoder_estimate(const ccodecs_encode_options *options);
uint64_t ccodecs_raw_encoder_max_bytes(const ccodecs_encode_options *options);
bool ccodecs_raw_options_are_valid(const ccodecs_raw_options *options);

ccodecs_decoder *ccodecs_webp_decoder_create(const ccodecs_limits *limits, ccodecs_budget *budget);
ccodecs_encoder *ccodecs_webp_encoder_create(const ccodecs_encode_options *options, ccodecs_budget *budget);
ccodecs_rewriter *ccodecs_webp_rewriter_create(const ccodecs_limits *limits, ccodecs_budget *budget);
uint64_t ccodecs_webp_encoder_estimate(const ccodecs_encode_options *options);
uint64_t ccodecs_webp_encoder_max_bytes(const ccodecs_encode_options *options);
bool ccodecs_webp_options_are_valid(const ccodecs_webp_options *options);
