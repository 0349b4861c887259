// Fuzzes the reader of networks, and searches a small image with what it accepts.

#include <cpixels.h>

#include <stdlib.h>
#include <string.h>

enum { WIDTH = 40, HEIGHT = 33, MAX_FACES = 8, MAX_WORKSPACE = 1 << 24 };

static void find(const cpixels_network *network, const uint8_t *rgb, cpixels_isa isa) {
  const size_t size = cpixels_network_workspace(network, WIDTH, HEIGHT);
  if (size > MAX_WORKSPACE) { // which the budget of an image refuses, too
    return;
  }
  // Of exactly the size that is asked for, so that the sanitizer sees what lies behind it.
  void *workspace = aligned_alloc(8, (size + 7) / 8 * 8);
  memset(workspace, 0x7f, size);
  cpixels_face faces[MAX_FACES];
  const size_t count = cpixels_network_find(network, rgb, WIDTH, HEIGHT, workspace, isa, faces, MAX_FACES);
  for (size_t i = 0; i < count; i++) {
    const cpixels_face *face = &faces[i];
    // Written so that a number that is none fails.
    if (!(face->x >= 0 && face->y >= 0 && face->width > 0 && face->height > 0 &&
          face->x + face->width <= WIDTH + 0.01F && face->y + face->height <= HEIGHT + 0.01F)) {
      abort();
    }
  }
  free(workspace);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const char *error = NULL;
  cpixels_network *network = cpixels_network_create(data, size, &error);
  if (network == NULL) {
    if (error == NULL) {
      abort();
    }
    return 0;
  }
  uint8_t rgb[3 * WIDTH * HEIGHT];
  for (size_t i = 0; i < sizeof rgb; i++) {
    rgb[i] = (uint8_t)(i * i / 7 + (i % WIDTH > 20 ? 90 : 0));
  }
  find(network, rgb, CPIXELS_ISA_SCALAR);
  find(network, rgb, CPIXELS_ISA_BEST);
  cpixels_network_destroy(network);
  return 0;
}
