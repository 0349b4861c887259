/* The files of the playground's page, as part of the program. */
#ifndef CPLAYGROUNDPAGE_H
#define CPLAYGROUNDPAGE_H

#include <stddef.h>

/* A file: the path of its address, its content type, and its bytes, which are never freed. */
typedef struct {
  const char *path;
  const char *content_type;
  const unsigned char *bytes;
  size_t byte_count;
} cplaygroundpage_file;

/* Returns the file at an index, in a fixed order; NULL beyond the last. */
const cplaygroundpage_file *cplaygroundpage_file_at(size_t index);

#endif
