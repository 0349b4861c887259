// What the encoder, the recompression of JPEG and its reconstruction share of libjxl. Private to the JPEG XL codec.

#pragma once

#include "../memory/bytes.h"

#include <jxl/encode.h>

/// Stops libjxl between two parts of a step once the caller no longer wants the result.
typedef struct jxl_watch {
  ccodecs_interrupt *interrupt; ///< Borrowed; asked before each part of a step.
  bool is_interrupted;
} jxl_watch;

/// The parallel runner for libjxl: runs the parts of a step one after the other. `watch` is a jxl_watch.
JxlParallelRetCode ccodecs_jxl_run(
    void *watch, void *step, JxlParallelRunInit init, JxlParallelRunFunction part, uint32_t first, uint32_t end);

/// An encoder of libjxl. A zeroed one is valid.
typedef struct jxl_library {
  JxlEncoder *encoder;
  jxl_watch watch;
  size_t charged; ///< For the library's memory.
} jxl_library;

/// Charges what libjxl may allocate and creates its encoder. Returns false if the budget is exhausted.
bool ccodecs_jxl_library_create(
    jxl_library *library, uint64_t charge, ccodecs_interrupt *interrupt, ccodecs_budget *budget);

/// Appends the result to `output`. Returns CCODECS_OK, CCODECS_INTERRUPTED, CCODECS_NO_MEMORY, or CCODECS_UNSUPPORTED
/// if libjxl fails.
ccodecs_status ccodecs_jxl_library_finish(jxl_library *library, ccodecs_bytes *output, ccodecs_budget *budget);

/// Returns the status for a call of libjxl that failed.
ccodecs_status ccodecs_jxl_library_failure(const jxl_library *library);

/// Frees libjxl's encoder and refunds its charge.
void ccodecs_jxl_library_destroy(jxl_library *library, ccodecs_budget *budget);
