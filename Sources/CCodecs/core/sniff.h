// Detection of formats that have no fixed signature at the start of the file. Private to CCodecs.

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Each function takes the first CCODECS_SNIFF_BYTES bytes of a file, or the whole file if it is shorter.
bool ccodecs_is_webp(const uint8_t *bytes, size_t count);
bool ccodecs_is_avif(const uint8_t *bytes, size_t count);
bool ccodecs_is_heic(const uint8_t *bytes, size_t count);
/// Returns whether this is an ISO base media file of any brand.
bool ccodecs_is_base_media(const uint8_t *bytes, size_t count);
bool ccodecs_is_pnm(const uint8_t *bytes, size_t count);
bool ccodecs_is_ico(const uint8_t *bytes, size_t count);
/// Targa has no signature and can resemble any other format, so it is checked last.
bool ccodecs_is_tga(const uint8_t *bytes, size_t count);
