// The glibc extensions to malloc, which Swift's Glibc module omits. Empty with other C libraries.
#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
