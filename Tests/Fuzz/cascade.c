// Fuzzes the parser of cascades, which are files of the operator, and searches a small image with what it accepts: all
// versions of the search find the same.

#include <cpixels.h>

#include <stdlib.h>
#include <string.h>

enum { WIDTH = 48, HEIGHT = 40, MAX_FACES = 8 };

static size_t find(const cpixels_cascade *cascade, const uint8_t *gray, cpixels_isa isa, cpixels_face *faces) {
  // Of exactly the size that is asked for, so that the sanitizer sees what lies behind it.
  void *workspace = aligned_alloc(64, (cpixels_faces_workspace(WIDTH, HEIGHT) + 63) / 64 * 64);
  const size_t count = cpixels_faces_find(cascade, gray, WIDTH, HEIGHT, workspace, isa, faces, MAX_FACES);
  free(workspace);
  return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const char *error = NULL;
  cpixels_cascade *cascade = cpixels_cascade_create((const char *)data, size, &error);
  if (cascade == NULL) {
    if (error == NULL) {
      abort();
    }
    return 0;
  }
  uint8_t gray[WIDTH * HEIGHT];
  for (size_t i = 0; i < sizeof gray; i++) {
    gray[i] = (uint8_t)(i * i / 7 + (i % WIDTH > 20 ? 90 : 0));
  }
  cpixels_face scalar[MAX_FACES];
  cpixels_face best[MAX_FACES];
  const size_t count = find(cascade, gray, CPIXELS_ISA_SCALAR, scalar);
  if (find(cascade, gray, CPIXELS_ISA_BEST, best) != count || memcmp(scalar, best, count * sizeof *best) != 0) {
    abort();
  }
  cpixels_cascade_destroy(cascade);
  return 0;
}
