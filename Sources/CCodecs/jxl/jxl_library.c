#include "../core/encoder.h"

#ifdef CCODECS_JXL

#include "jxl_library.h"

JxlParallelRetCode ccodecs_jxl_run(
    void *owner, void *step, JxlParallelRunInit init, JxlParallelRunFunction part, uint32_t first, uint32_t end) {
  jxl_watch *watch = owner;
  const ccodecs_interrupt *interrupt = watch->interrupt;
  const JxlParallelRetCode code = init(step, 1);
  for (uint32_t i = first; code == 0 && i < end; i++) {
    if (interrupt->may_continue != NULL && !interrupt->may_continue(interrupt->owner)) {
      watch->is_interrupted = true;
      return JXL_PARALLEL_RET_RUNNER_ERROR;
    }
    part(step, i, 0);
  }
  return code;
}

bool ccodecs_jxl_library_create(
    jxl_library *library, uint64_t charge, ccodecs_interrupt *interrupt, ccodecs_budget *budget) {
  if (charge > SIZE_MAX || !ccodecs_budget_charge(budget, (size_t)charge)) {
    return false;
  }
  *library =
      (jxl_library){.encoder = JxlEncoderCreate(NULL), .watch = {.interrupt = interrupt}, .charged = (size_t)charge};
  return library->encoder != NULL &&
         JxlEncoderSetParallelRunner(library->encoder, ccodecs_jxl_run, &library->watch) == JXL_ENC_SUCCESS;
}

ccodecs_status ccodecs_jxl_library_failure(const jxl_library *library) {
  return library->watch.is_interrupted                             ? CCODECS_INTERRUPTED
         : JxlEncoderGetError(library->encoder) == JXL_ENC_ERR_OOM ? CCODECS_NO_MEMORY
                                                                   : CCODECS_UNSUPPORTED;
}

ccodecs_status ccodecs_jxl_library_finish(jxl_library *library, ccodecs_bytes *output, ccodecs_budget *budget) {
  enum { STEP_BYTES = 64 << 10 };
  JxlEncoderCloseInput(library->encoder);
  JxlEncoderStatus status = JXL_ENC_NEED_MORE_OUTPUT;
  while (status == JXL_ENC_NEED_MORE_OUTPUT) {
    if (!ccodecs_bytes_reserve(output, STEP_BYTES, budget)) {
      return CCODECS_NO_MEMORY;
    }
    uint8_t *next = ccodecs_bytes_start(output) + output->count;
    size_t room = STEP_BYTES;
    status = JxlEncoderProcessOutput(library->encoder, &next, &room);
    output->count += STEP_BYTES - room;
  }
  return status == JXL_ENC_SUCCESS ? CCODECS_OK : ccodecs_jxl_library_failure(library);
}

void ccodecs_jxl_library_destroy(jxl_library *library, ccodecs_budget *budget) {
  if (library->encoder != NULL) {
    JxlEncoderDestroy(library->encoder);
  }
  library->encoder = NULL;
  ccodecs_budget_refund(budget, library->charged);
  library->charged = 0;
}

#endif
