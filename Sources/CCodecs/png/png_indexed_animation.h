// Animations with a palette. Private to the PNG encoder.

#pragma once

#include "png_encoder.h"

/// Returns an upper bound of the bytes that a palette of an animation charges.
uint64_t ccodecs_png_indexed_estimate(const ccodecs_encode_options *options);

/// Prepares for counting colors. Returns false if the budget is exhausted.
bool ccodecs_png_begin_counting(png_encoder *e);

/// Counts the colors of a part of the current frame.
void ccodecs_png_count_colors(png_encoder *e, ccodecs_rectangle part);

/// Maps a row of a part at row `y` of the canvas to the palette, and makes it the current row. A pixel that did not
/// change keeps its index.
void ccodecs_png_map_row(png_encoder *e, const uint8_t *row, uint32_t y, ccodecs_rectangle part);

/// Replaces the complete result, which has no palette, by one with the palette of all counted colors.
ccodecs_status ccodecs_png_index_animation(png_encoder *e);
