// Debian's libvips, called from C: peer_vips PICTURE WIDTH HEIGHT SUFFIX-WITH-OPTIONS.
//
// Speaks as peer_python.py does: its version on a line, then for each line of its input, a number of times to process
// the image or "save PATH", a line when it is done.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vips/vips.h>

typedef struct bytes {
  void *start;
  size_t count;
} bytes;

static void fail(void) {
  fprintf(stderr, "%s\n", vips_error_buffer());
  exit(1);
}

static bytes process(bytes file, char **arguments) {
  VipsImage *image = NULL;
  bytes result = {0};
  const int status = vips_thumbnail_buffer(
      file.start, file.count, &image, atoi(arguments[2]), "height", atoi(arguments[3]), "size", VIPS_SIZE_DOWN, NULL);
  if (status != 0 || vips_image_write_to_buffer(image, arguments[4], &result.start, &result.count, NULL) != 0) {
    fail();
  }
  g_object_unref(image);
  return result;
}

static bytes read_file(const char *path) {
  bytes file = {0};
  gchar *contents = NULL;
  gsize count = 0;
  if (!g_file_get_contents(path, &contents, &count, NULL)) {
    fprintf(stderr, "%s can't be read\n", path);
    exit(1);
  }
  file.start = contents;
  file.count = count;
  return file;
}

int main(int argc, char **argv) {
  if (argc != 5 || VIPS_INIT(argv[0]) != 0) {
    fail();
  }
  vips_cache_set_max(0);
  printf("libvips %s\n", vips_version_string());
  fflush(stdout);
  char line[4096];
  bytes image = {0};
  bytes result = {0};
  while (fgets(line, sizeof line, stdin) != NULL) {
    line[strcspn(line, "\n")] = 0;
    if (strncmp(line, "save ", 5) == 0) {
      if (!g_file_set_contents(line + 5, result.start, (gssize)result.count, NULL)) {
        return 1;
      }
    } else {
      if (image.start == NULL) {
        image = read_file(argv[1]);
      }
      for (int left = atoi(line); left > 0; left--) {
        g_free(result.start);
        result = process(image, argv);
      }
    }
    puts("done");
    fflush(stdout);
  }
  return 0;
}
