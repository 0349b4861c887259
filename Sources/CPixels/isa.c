#include "kernels.h"

bool cpixels_isa_is_available(cpixels_isa isa) {
  switch (isa) {
  case CPIXELS_ISA_BEST:
  case CPIXELS_ISA_SCALAR:
    return true;
  case CPIXELS_ISA_AVX2:
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
  default:
    return false;
  }
}

cpixels_isa cpixels_isa_resolve(cpixels_isa isa) {
  if (isa == CPIXELS_ISA_BEST) {
    return cpixels_isa_is_available(CPIXELS_ISA_AVX2) ? CPIXELS_ISA_AVX2 : CPIXELS_ISA_SCALAR;
  }
  return cpixels_isa_is_available(isa) ? isa : CPIXELS_ISA_BEST;
}
