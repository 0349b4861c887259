// The versions of the linked libraries, so that an operator can find a vulnerable one.

#include <stdio.h> // jpeglib.h needs FILE
#include <webp/decode.h>
#include <zlib.h>

#include <jpeglib.h>

#include "ccodecs.h"

#ifdef CCODECS_DAV1D
#include <dav1d/dav1d.h>
#endif
#ifdef CCODECS_HEIF
#include <libheif/heif.h>
#endif
#ifdef CCODECS_ISAL
#include <isa-l.h>
#endif
#ifdef CCODECS_JXL
#include <jxl/decode.h>
#endif
#ifdef CCODECS_LCMS
#include <lcms2.h>
#endif
#ifdef CCODECS_TIFF
#include <tiffio.h>
#endif

#define TEXT(value) #value
#define EXPANDED_TEXT(macro) TEXT(macro)

/// Reads a version from a text: the first number in it, and up to two more that follow after dots.
static ccodecs_library parsed(const char *name, const char *text) {
  ccodecs_library library = {.name = name};
  uint32_t *parts[] = {&library.major, &library.minor, &library.patch};
  while (*text && (*text < '0' || *text > '9'))
    text++;
  for (size_t part = 0; part < 3; part++) {
    while (*text >= '0' && *text <= '9')
      *parts[part] = *parts[part] * 10 + (uint32_t)(*text++ - '0');
    if (*text++ != '.')
      break;
  }
  return library;
}

static ccodecs_library of_jpeg(void) {
  // There is no function for it. The library's own interface changes with its major version.
  return parsed("libjpeg-turbo", EXPANDED_TEXT(LIBJPEG_TURBO_VERSION));
}

static ccodecs_library of_zlib(void) {
  return parsed("zlib", zlibVersion());
}

#ifdef CCODECS_ISAL
static ccodecs_library of_isal(void) {
  return (ccodecs_library){"isa-l", ISAL_MAJOR_VERSION, ISAL_MINOR_VERSION, ISAL_PATCH_VERSION};
}
#endif

static ccodecs_library of_webp(void) {
  const uint32_t version = (uint32_t)WebPGetDecoderVersion();
  return (ccodecs_library){"libwebp", version >> 16, version >> 8 & 0xff, version & 0xff};
}

#ifdef CCODECS_LCMS
static ccodecs_library of_lcms(void) {
  // As in 2140 for 2.14.
  const uint32_t version = (uint32_t)cmsGetEncodedCMMversion();
  return (ccodecs_library){"lcms2", version / 1000, version % 1000 / 10, version % 10};
}
#endif

#ifdef CCODECS_DAV1D
static ccodecs_library of_dav1d(void) {
  return parsed("dav1d", dav1d_version());
}
#endif

#ifdef CCODECS_HEIF
static ccodecs_library of_heif(void) {
  return parsed("libheif", heif_get_version());
}
#endif

#ifdef CCODECS_JXL
static ccodecs_library of_jxl(void) {
  const uint32_t version = JxlDecoderVersion();
  return (ccodecs_library){"libjxl", version / 1000000, version / 1000 % 1000, version % 1000};
}
#endif

#ifdef CCODECS_TIFF
static ccodecs_library of_tiff(void) {
  return parsed("libtiff", TIFFGetVersion());
}
#endif

bool ccodecs_linked_library(size_t index, ccodecs_library *library) {
  static ccodecs_library (*const libraries[])(void) = {
      of_jpeg,  of_zlib, of_webp,
#ifdef CCODECS_DAV1D
      of_dav1d,
#endif
#ifdef CCODECS_HEIF
      of_heif,
#endif
#ifdef CCODECS_ISAL
      of_isal,
#endif
#ifdef CCODECS_JXL
      of_jxl,
#endif
#ifdef CCODECS_LCMS
      of_lcms,
#endif
#ifdef CCODECS_TIFF
      of_tiff,
#endif
  };
  if (index >= sizeof libraries / sizeof *libraries)
    return false;
  *library = libraries[index]();
  return true;
}
