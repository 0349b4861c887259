// Whether texts can be drawn: HarfBuzz has outlines of glyphs since version 4.

#pragma once

#if defined(CTEXT_PANGO)
#include <hb.h>
#if HB_VERSION_ATLEAST(4, 0, 0)
#define CTEXT_IS_AVAILABLE
#endif
#endif
