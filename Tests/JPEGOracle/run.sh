#!/usr/bin/env bash
# Builds the comparison of the native JPEG decoder with libjpeg-turbo and runs it with the given arguments; without
# arguments it prints its usage. Example: Tests/JPEGOracle/run.sh identity ../shared/corpus/04-jpeg/*.jpg
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
codecs=$here/../../Sources/CCodecs
instructions=$here/../../Sources/CInstructions
out=$here/../../.build/jpeg-oracle
program=$out/jpeg_oracle
# Blocks are found ahead wherever that is possible, except where time is measured.
flags=(-O2 -DCCODECS_JPEG_AHEAD_ALWAYS)
strip=-Wl,--gc-sections
[[ "$(uname)" != Darwin ]] || strip=-Wl,-dead_strip
if [[ "${1:-}" == fuzz-sanitized ]]; then
  program=$out/jpeg_oracle_sanitized
  flags=(-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all "${flags[@]:1}")
elif [[ "${1:-}" == time ]]; then
  program=$out/jpeg_oracle_timed
  flags=(-O2)
fi

mkdir -p "$out/defects"
if [[ ! -e "$program" || -n $(find "$codecs" "$instructions" "$here" -newer "$program" -name '*.[ch]') ]]; then
  # Only the native decoder is built; the code that refers to the others is never called, and the linker removes it.
  clang -std=gnu11 -Wall -Wextra -Werror -DNDEBUG "${flags[@]}" -ffunction-sections "$strip" -I"$codecs" \
    -I"$codecs/include" -I"$instructions/include" "$instructions"/*.c "$codecs"/memory/*.c "$codecs"/{core/{attachments,decoder,encoder,exif,inflater,rewriter,tiff_directory},color/{compact,profile_bytes,unmanaged}}.c \
    "$codecs"/jpeg/*.c \
    "$here"/*.c $(pkg-config --cflags --libs libjpeg zlib) -lm -o "$program" 2> >(grep -v 'gold: warning' >&2)
fi
exec "$program" "$out/defects" "$@"
