// Suppresses output of libraries on standard error. Private to CCodecs.
//
// libjxl and libdav1d report damage on standard error, where their lines mix with the log, and have no option to
// disable it.

#pragma once

/// Discards what this thread writes to the stream `stderr` until the matching end. Pairs may be nested.
void ccodecs_quiet_begin(void);
void ccodecs_quiet_end(void);
