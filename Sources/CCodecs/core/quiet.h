// Keeps libraries from printing. Private to CCodecs.
//
// libjxl and libdav1d tell of damage by lines on standard error, between those of whoever logs there, and have no
// switch.

#ifndef CCODECS_QUIET_H
#define CCODECS_QUIET_H

/// What this thread writes to the stream `stderr` until the matching end is dropped. Pairs may be nested.
void ccodecs_quiet_begin(void);
void ccodecs_quiet_end(void);

#endif
