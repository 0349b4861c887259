// Writes JPEG XL files with several frames, as seeds for the fuzzer and fixtures for the tests.
//
//   clang Tests/Fuzz/jxl_seeds.c -ljxl -o jxl_seeds && ./jxl_seeds FOLDER
//
// It wrote Tests/TestSupport/Fixtures/layers.jxl, vast-frame.jxl and many-layers.jxl with libjxl 0.7.

#include <jxl/encode.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct image {
  const char *name;
  uint32_t side;       ///< Side of the image in pixels.
  uint32_t frame_side; ///< Side of each frame in pixels; the first of several frames fills the image.
  uint32_t frames;
  uint32_t bits;
  bool has_alpha;
  bool is_lossless;
  bool is_flat;
  bool is_boxed;
  bool has_animation;
  uint32_t duration;
  int option; ///< Setting that gets `value` in each frame; -1 for none.
  int value;
} image;

static void require(bool holds, const char *what) {
  if (!holds) {
    fprintf(stderr, "error: %s\n", what);
    exit(1);
  }
}

static void begin(JxlEncoder *encoder, const image *p) {
  JxlBasicInfo info;
  JxlColorEncoding colors;
  JxlEncoderInitBasicInfo(&info);
  info.xsize = info.ysize = p->side;
  info.bits_per_sample = p->bits;
  info.uses_original_profile = p->is_lossless;
  info.num_extra_channels = p->has_alpha;
  info.alpha_bits = p->has_alpha ? p->bits : 0;
  info.have_animation = p->has_animation;
  info.animation.tps_numerator = 10;
  info.animation.tps_denominator = 1;
  JxlColorEncodingSetToSRGB(&colors, JXL_FALSE);
  require(JxlEncoderUseContainer(encoder, p->is_boxed) == JXL_ENC_SUCCESS, "boxes");
  require(JxlEncoderSetBasicInfo(encoder, &info) == JXL_ENC_SUCCESS, "the image");
  require(JxlEncoderSetColorEncoding(encoder, &colors) == JXL_ENC_SUCCESS, "colors");
}

static void add_frame(JxlEncoder *encoder, const image *p, uint32_t index) {
  JxlEncoderFrameSettings *settings = JxlEncoderFrameSettingsCreate(encoder, NULL);
  JxlEncoderSetFrameLossless(settings, p->is_lossless);
  JxlEncoderFrameSettingsSetOption(settings, JXL_ENC_FRAME_SETTING_EFFORT, p->is_flat ? 3 : 5);
  if (p->option >= 0) {
    JxlEncoderFrameSettingsSetOption(settings, (JxlEncoderFrameSettingId)p->option, p->value);
  }
  const uint32_t side = index == 0 && p->frames > 1 ? p->side : p->frame_side;
  JxlFrameHeader header;
  JxlEncoderInitFrameHeader(&header);
  header.duration = !p->has_animation ? 0 : index + 1 == p->frames ? p->duration + 1 : p->duration;
  header.layer_info.have_crop = side != p->side;
  header.layer_info.xsize = header.layer_info.ysize = side;
  if (p->frames > 1) {
    header.layer_info.blend_info.blendmode = p->has_alpha ? JXL_BLEND_BLEND : JXL_BLEND_ADD;
  }
  if (p->frames > 1 || side != p->side) {
    require(JxlEncoderSetFrameHeader(settings, &header) == JXL_ENC_SUCCESS, "a frame's header");
  }
  const uint32_t channels = p->has_alpha ? 4 : 3;
  const JxlPixelFormat format = {.num_channels = channels, .data_type = JXL_TYPE_UINT8};
  const size_t count = (size_t)side * side * channels;
  uint8_t *pixels = malloc(count);
  require(pixels != NULL, "memory");
  for (size_t i = 0; i < count; i++) {
    const size_t x = i / channels % side;
    const size_t y = i / channels / side;
    pixels[i] = (uint8_t)(p->is_flat ? index * 9 : x * 3 + y * 2 + (x / 7 * 13 + y / 5 * 29) % 31);
    pixels[i] = p->has_alpha && i % 4 == 3 ? 128 : pixels[i];
  }
  require(JxlEncoderAddImageFrame(settings, &format, pixels, count) == JXL_ENC_SUCCESS, "a frame");
  free(pixels);
}

static void write_image(const char *folder, const image *p) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s.jxl", folder, p->name);
  FILE *file = fopen(path, "wb");
  JxlEncoder *encoder = JxlEncoderCreate(NULL);
  require(file != NULL && encoder != NULL, "a file");
  begin(encoder, p);
  for (uint32_t i = 0; i < p->frames; i++) {
    add_frame(encoder, p, i);
  }
  JxlEncoderCloseInput(encoder);
  JxlEncoderStatus status;
  do {
    uint8_t buffer[65536];
    uint8_t *next = buffer;
    size_t left = sizeof buffer;
    status = JxlEncoderProcessOutput(encoder, &next, &left);
    fwrite(buffer, 1, sizeof buffer - left, file);
  } while (status == JXL_ENC_NEED_MORE_OUTPUT);
  require(status == JXL_ENC_SUCCESS, p->name);
  JxlEncoderDestroy(encoder);
  fclose(file);
}

int main(int count, char **arguments) {
  static const image images[] = {
      {"layers", 100, 80, 4, 8, true, false, false, false, true, 0, -1, 0},
      {"vast-frame", 64, 4000, 1, 16, true, true, true, false, false, 0, -1, 0},
      {"many-layers", 400, 400, 60, 8, false, false, true, false, true, 0, -1, 0},
      {"too-many-layers", 16, 16, 70, 8, false, true, true, false, true, 0, -1, 0},
      {"boxed-layers", 90, 70, 3, 8, true, true, false, true, true, 0, -1, 0},
      {"animation", 90, 70, 3, 8, true, true, false, true, true, 2, -1, 0},
      {"low-frequency", 600, 600, 1, 8, false, false, false, false, false, 0, JXL_ENC_FRAME_SETTING_PROGRESSIVE_DC, 1},
      {"progressive", 300, 300, 1, 8, false, false, false, false, false, 0, JXL_ENC_FRAME_SETTING_PROGRESSIVE_AC, 1},
      {"squeezed", 300, 300, 1, 16, true, true, false, false, false, 0, JXL_ENC_FRAME_SETTING_RESPONSIVE, 1},
      {"patches", 300, 300, 1, 8, false, true, false, false, false, 0, JXL_ENC_FRAME_SETTING_PATCHES, 1},
      {"ordered", 600, 600, 2, 8, true, false, false, false, true, 1, JXL_ENC_FRAME_SETTING_GROUP_ORDER, 1},
  };
  require(count == 2, "usage: jxl_seeds FOLDER");
  for (size_t i = 0; i < sizeof images / sizeof *images; i++) {
    write_image(arguments[1], &images[i]);
  }
  return 0;
}
