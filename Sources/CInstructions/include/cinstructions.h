// The widest instructions that the kernels of CPixels and CCodecs may use.
//
// Results do not depend on them. The environment variable IMAGE_WORKER_INSTRUCTION_SET limits them, so that tests can
// compare results and benchmarks can measure what a processor with fewer instructions would do.

#ifndef CINSTRUCTIONS_H
#define CINSTRUCTIONS_H

#include <stdbool.h>

typedef enum cinstructions_set {
  CINSTRUCTIONS_SCALAR = 0,  ///< What every processor of this architecture has; no vectors of our own, and no BMI2.
  CINSTRUCTIONS_VECTORS = 1, ///< AVX2, FMA and BMI2, or NEON.
  CINSTRUCTIONS_AVX512 = 2,
} cinstructions_set;

/// The name of the variable: IMAGE_WORKER_INSTRUCTION_SET.
extern const char *const cinstructions_variable;

/// Sets *set to the instructions that the text names: "scalar", "avx2", "neon" or "avx512". Returns false if it names
/// none.
bool cinstructions_parse(const char *text, cinstructions_set *set);

/// Returns whether `set` may be used if the processor has it. The variable is read once; without it, or if its value is
/// not valid, everything may be used.
bool cinstructions_allow(cinstructions_set set);

#endif
