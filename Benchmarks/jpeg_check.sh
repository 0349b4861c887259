#!/usr/bin/env bash
# Builds jpeg_check.c over the C sources and runs it with the given arguments; for fuzzing with sanitizers.
# As in: Benchmarks/jpeg_check.sh identity ../shared/corpus/04-jpeg/*.jpg
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
codecs=$here/../Sources/CCodecs
out=$here/../.build/benchmarks
mkdir -p "$out"

flags=(-O2 -DNDEBUG)
[[ "${1:-}" != fuzz ]] || flags=(-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all)
read -ra libraries <<<"$(pkg-config --cflags --libs libjpeg libpng libwebp)"
clang -std=gnu11 "${flags[@]}" -I"$codecs" -I"$codecs/include" "$codecs"/*.c "$codecs"/decode/*.c "$here/jpeg_check.c" \
  "${libraries[@]}" -lm -o "$out/jpeg_check" 2> >(grep -v 'gold: warning' >&2)
"$out/jpeg_check" "$@"
