#include "tiff_file.h"

#ifdef CCODECS_TIFF

#include <stdio.h>

static tmsize_t on_read(thandle_t handle, void *destination, tmsize_t count) {
  ccodecs_tiff_file *f = (ccodecs_tiff_file *)handle;
  const size_t left = f->bytes.count - f->position;
  const size_t taken = count < 0 ? 0 : (size_t)count < left ? (size_t)count : left;
  if (taken > 0) {
    memcpy(destination, ccodecs_bytes_start(&f->bytes) + f->position, taken);
  }
  f->position += taken;
  return (tmsize_t)taken;
}

static tmsize_t on_write(thandle_t handle, void *source, tmsize_t count) {
  (void)handle, (void)source, (void)count;
  return -1;
}

static toff_t on_seek(thandle_t handle, toff_t offset, int whence) {
  ccodecs_tiff_file *f = (ccodecs_tiff_file *)handle;
  const toff_t from = whence == SEEK_CUR ? f->position : whence == SEEK_END ? f->bytes.count : 0;
  const toff_t to = from + offset;
  if (to > f->bytes.count) {
    return (toff_t)-1;
  }
  f->position = (size_t)to;
  return to;
}

static int on_close(thandle_t handle) {
  (void)handle;
  return 0;
}

static toff_t on_size(thandle_t handle) {
  return ((ccodecs_tiff_file *)handle)->bytes.count;
}

static int on_map(thandle_t handle, void **base, toff_t *size) {
  ccodecs_tiff_file *f = (ccodecs_tiff_file *)handle;
  *base = ccodecs_bytes_start(&f->bytes);
  *size = f->bytes.count;
  return 1;
}

static void on_unmap(thandle_t handle, void *base, toff_t size) {
  (void)handle, (void)base, (void)size;
}

static int on_error(TIFF *tiff, void *context, const char *module, const char *format, va_list arguments) {
  (void)tiff, (void)module;
  ccodecs_tiff_file *f = context;
  vsnprintf(f->reason, sizeof f->reason, format, arguments);
  return 1;
}

/// libtiff treats palette indices as gray when it cannot read the color map, and only warns.
static int on_warning(TIFF *tiff, void *context, const char *module, const char *format, va_list arguments) {
  (void)tiff, (void)module;
  ccodecs_tiff_file *f = context;
  char text[120];
  vsnprintf(text, sizeof text, format, arguments);
  f->lacks_palette = f->lacks_palette || strstr(text, "\"ColorMap\"") != NULL;
  return 1;
}

bool ccodecs_tiff_file_open(ccodecs_tiff_file *file) {
  TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
  if (options == NULL) {
    return false;
  }
  TIFFOpenOptionsSetMaxSingleMemAlloc(options, CCODECS_TIFF_LARGEST_BLOCK);
  TIFFOpenOptionsSetErrorHandlerExtR(options, on_error, file);
  TIFFOpenOptionsSetWarningHandlerExtR(options, on_warning, file);
  file->tiff =
      TIFFClientOpenExt("", "r", file, on_read, on_write, on_seek, on_close, on_size, on_map, on_unmap, options);
  TIFFOpenOptionsFree(options);
  return true;
}

#endif
