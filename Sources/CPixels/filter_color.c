// Color programs, run block by block.

#include "filter_kernels.h"

const cpixels_filter_kernels *cpixels_filter_kernels_of(cpixels_isa isa) {
  return CPIXELS_CHOOSE(cpixels_filter, isa);
}

void cpixels_color_row(
    const cpixels_color_program *program, uint32_t y, uint32_t channels, const uint8_t *source, uint8_t *destination,
    cpixels_isa isa) {
  const cpixels_filter_kernels *kernels = cpixels_filter_kernels_of(isa);
  cpixels_color_block block;
  cpixels_color_place place = {.y = y, .width = program->width, .height = program->height};
  for (; place.x < program->width; place.x += CPIXELS_COLOR_BLOCK) {
    const uint32_t rest = program->width - place.x;
    const size_t count = rest < CPIXELS_COLOR_BLOCK ? rest : CPIXELS_COLOR_BLOCK;
    const size_t offset = (size_t)place.x * channels;
    kernels->load_block(program->table, channels, source + offset, count, &block);
    for (uint32_t s = 0; s < program->step_count; s++) {
      kernels->step(&program->steps[s], &place, count, &block);
    }
    kernels->store_block(&block, channels, count, destination + offset);
  }
}

void cpixels_map_levels(
    const uint8_t table[256], uint32_t channels, const uint8_t *source, uint8_t *destination, size_t pixel_count,
    cpixels_isa isa) {
  cpixels_filter_kernels_of(isa)->map_levels(table, channels, source, destination, pixel_count);
}
