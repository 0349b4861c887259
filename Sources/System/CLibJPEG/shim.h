#include <jpeglib.h>
#include <stdio.h>
