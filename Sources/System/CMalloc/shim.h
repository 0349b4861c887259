// glibc's extensions of malloc, which Swift's module Glibc leaves out. Empty where the C library is another.
#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
