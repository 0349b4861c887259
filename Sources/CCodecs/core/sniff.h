// Formats that no signature at the file's beginning tells. Private to CCodecs.

#ifndef CCODECS_SNIFF_H
#define CCODECS_SNIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Each takes CCODECS_SNIFF_BYTES first bytes of a file, or all there are.
bool ccodecs_is_webp(const uint8_t *bytes, size_t count);
bool ccodecs_is_avif(const uint8_t *bytes, size_t count);
bool ccodecs_is_heic(const uint8_t *bytes, size_t count);
/// An ISO base media file, of any brand.
bool ccodecs_is_base_media(const uint8_t *bytes, size_t count);
bool ccodecs_is_pnm(const uint8_t *bytes, size_t count);
bool ccodecs_is_ico(const uint8_t *bytes, size_t count);
/// Targa has no signature, and may look like any of the others: it is asked for last.
bool ccodecs_is_tga(const uint8_t *bytes, size_t count);

#endif
