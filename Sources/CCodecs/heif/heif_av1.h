// Decodes AV1 for libheif on the calling thread. Private to CCodecs.
//
// libheif's own use of dav1d starts a thread per core. dav1d then keeps the coefficients of the whole frame, which take
// twice the memory of its samples.

#pragma once

/// Makes libheif decode AV1 with this file's decoder, if it was built with dav1d.
void heif_av1_register(void);
