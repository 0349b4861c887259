#include "kernels.h"

#include <cinstructions.h>

bool cpixels_isa_is_available(cpixels_isa isa) {
  switch (isa) {
  case CPIXELS_ISA_BEST:
  case CPIXELS_ISA_SCALAR:
    return true;
#if defined(__x86_64__)
  case CPIXELS_ISA_AVX2:
    return cinstructions_allow(CINSTRUCTIONS_VECTORS) && __builtin_cpu_supports("avx2") &&
           __builtin_cpu_supports("fma");
  case CPIXELS_ISA_AVX512:
    return cinstructions_allow(CINSTRUCTIONS_AVX512) && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vnni");
#elif defined(__aarch64__)
  case CPIXELS_ISA_NEON:
    return cinstructions_allow(CINSTRUCTIONS_VECTORS); // part of the base architecture
#endif
  default:
    return false;
  }
}

cpixels_isa cpixels_isa_resolve(cpixels_isa isa) {
  if (isa != CPIXELS_ISA_BEST) {
    return cpixels_isa_is_available(isa) ? isa : CPIXELS_ISA_BEST;
  }
  const cpixels_isa widest_first[] = {CPIXELS_ISA_AVX512, CPIXELS_ISA_AVX2, CPIXELS_ISA_NEON};
  for (size_t i = 0; i < sizeof widest_first / sizeof *widest_first; i++) {
    if (cpixels_isa_is_available(widest_first[i])) {
      return widest_first[i];
    }
  }
  return CPIXELS_ISA_SCALAR;
}

bool cpixels_isa_has_avx2(cpixels_isa isa) {
  const cpixels_isa resolved = cpixels_isa_resolve(isa);
  return resolved == CPIXELS_ISA_AVX2 || resolved == CPIXELS_ISA_AVX512;
}
