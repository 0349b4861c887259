// The parts of each format for the table of formats, and the functions that formats need of one another. Private to
// CCodecs.
//
// Functions named `options_are_valid` return whether every option is in its range.

#pragma once

#include "core/decoder.h"
#include "core/encoder.h"
#include "core/rewriter.h"

extern const ccodecs_decoder_methods ccodecs_ico_decoder;
extern const ccodecs_decoder_methods ccodecs_psd_decoder;
extern const ccodecs_decoder_methods ccodecs_tiff_decoder;

extern const ccodecs_decoder_methods ccodecs_gif_decoder;
extern const ccodecs_encoder_methods ccodecs_gif_encoder;
extern const ccodecs_rewriter_methods ccodecs_gif_rewriter;
bool ccodecs_gif_options_are_valid(const ccodecs_gif_options *options);

extern const ccodecs_decoder_methods ccodecs_heif_decoder;
extern const ccodecs_encoder_methods ccodecs_avif_encoder;

extern const ccodecs_decoder_methods ccodecs_jpeg_decoder;
extern const ccodecs_encoder_methods ccodecs_jpeg_encoder;
extern const ccodecs_rewriter_methods ccodecs_jpeg_rewriter;

extern const ccodecs_decoder_methods ccodecs_jxl_decoder;
extern const ccodecs_encoder_methods ccodecs_jxl_encoder;
extern const ccodecs_rewriter_methods ccodecs_jxl_rewriter;
/// Creates the transform of a JPEG to a JPEG XL from which the JPEG can be reconstructed. `sample_count` is that of all
/// components; `interrupt` is borrowed. Returns CCODECS_OK or CCODECS_NO_MEMORY.
ccodecs_status ccodecs_jxl_recompress_create(
    uint64_t pixel_count, uint64_t sample_count, const ccodecs_rewrite_options *options, ccodecs_interrupt *interrupt,
    ccodecs_budget *budget, ccodecs_transform **transform);
/// Returns an upper bound of the bytes that the transform charges.
uint64_t ccodecs_jxl_recompress_estimate(uint64_t pixel_count, uint64_t sample_count);
/// Returns whether a JPEG XL whose header `decoder` has read consists of the coefficients of one usual JPEG, and their
/// numbers: `sample_count` is that of all components, in whole blocks.
bool ccodecs_jxl_decoder_has_coefficients(
    const ccodecs_decoder *decoder, uint64_t *pixel_count, uint64_t *sample_count);

extern const ccodecs_decoder_methods ccodecs_png_decoder;
extern const ccodecs_encoder_methods ccodecs_png_encoder;
extern const ccodecs_rewriter_methods ccodecs_png_rewriter;
bool ccodecs_png_options_are_valid(const ccodecs_png_options *options);

extern const ccodecs_encoder_methods ccodecs_raw_encoder;
bool ccodecs_raw_options_are_valid(const ccodecs_raw_options *options);

extern const ccodecs_decoder_methods ccodecs_webp_decoder;
extern const ccodecs_encoder_methods ccodecs_webp_encoder;
extern const ccodecs_rewriter_methods ccodecs_webp_rewriter;
bool ccodecs_webp_options_are_valid(const ccodecs_webp_options *options);
