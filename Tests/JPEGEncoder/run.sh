#!/usr/bin/env bash
# Builds the check of the JPEG encoder, under the address and undefined-behavior sanitizers, and runs it:
#
#   Tests/JPEGEncoder/run.sh COUNT [SEED [DIRECTORY]]
#
# `make codec-test` reads 2000 images. A million take half an hour of CPU:
#
#   nice -n 19 Tests/JPEGEncoder/run.sh 1000000
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
codecs=$here/../../Sources/CCodecs
instructions=$here/../../Sources/CInstructions
out=$here/../../.build/jpeg-encoder
mkdir -p "$out"
program=$out/check
if [[ ! -e "$program" || -n $(find "$codecs" "$instructions" "$here" -newer "$program" -name '*.[ch]') ]]; then
  clang -std=gnu11 -Wall -Wextra -Werror -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -I"$codecs" \
    -I"$codecs/include" -I"$instructions/include" "$instructions"/*.c "$codecs"/memory/*.c "$codecs"/core/encoder.c "$codecs"/jpeg/jpeg_encode*.c "$codecs"/jpeg/jpeg_metadata.c \
    "$here"/check.c $(pkg-config --cflags --libs libjpeg) -lm -o "$program" 2> >(grep -v 'gold: warning' >&2)
fi
exec "$program" "$@"
