#!/usr/bin/env bash
# Fuzzes every decoder and rewriter of CCodecs, its palettes, texts, and detectors of faces, for SECONDS each, with the address and undefined-behavior sanitizers:
#
#   Tests/Fuzz/run.sh SECONDS [DECODER...]
#
# The initial corpus consists of the fixtures, earlier crashers, the output of seeds.py and jxl_seeds.c (several frames,
# layers, tiles, items that reference each other) and, if it is next to this checkout, the shared collection. New inputs
# are stored in .build/fuzz. A crash is stored in .build/fuzz/crashes and fails the run. Needs clang with libFuzzer,
# such as the Swift toolchain's (set CLANG to its path), and lld.
set -euo pipefail
cd "$(dirname "$0")/../.."

seconds=${1:?"usage: Tests/Fuzz/run.sh SECONDS [DECODER...]"}
shift
clang=${CLANG:-clang}
work=.build/fuzz
jobs=$(getconf _NPROCESSORS_ONLN)
mkdir -p "$work/objects" "$work/crashes"

# decoder, format, and the extensions of its images
table="jpeg JPEG jpg jpeg mpo
png PNG png
webp WEBP webp
gif GIF gif
bmp BMP bmp
tga TGA tga
psd PSD psd
pnm PNM pbm pgm ppm pnm pam
hdr HDR hdr
ico ICO ico
rewrite-jpeg JPEG jpg jpeg mpo
rewrite-png PNG png
rewrite-webp WEBP webp
rewrite-gif GIF gif
palette UNKNOWN palette
cascade UNKNOWN cascade
network UNKNOWN network"
libraries="lcms2 libisal libjpeg libwebp zlib"
flags="-DCCODECS_ISAL -DCCODECS_LCMS -std=c11 -g -O1 -fno-omit-frame-pointer -ISources/CCodecs -ISources/CCodecs/include -ISources/CInstructions/include -ISources/CPixels/include"
option() { # library, definition, lines of the table
  pkg-config --exists "$1" || return 0
  libraries+=" $1"
  flags+=" -DCCODECS_$2"
  table+=$'\n'"$3"
}
option libtiff-4 TIFF "tiff TIFF tif tiff"
option libheif HEIF $'heic HEIC heic heif\navif AVIF avif'
option libjxl JXL $'jxl JXL jxl\nrewrite-jxl JXL jxl'
if pkg-config --exists libheif dav1d; then
  libraries+=" dav1d"
  flags+=" -DCCODECS_DAV1D"
fi
text="pango cairo harfbuzz fontconfig"
# shellcheck disable=SC2086
if pkg-config --exists $text; then
  libraries+=" $text"
  flags+=" -DCTEXT_PANGO -ISources/CText/include"
  table+=$'\ntext UNKNOWN text'
  mkdir -p "$work/made/text"
  printf 'DejaVu Sans Bold\0\x10\x20\0\0\2\1\2\0Hello, w\xc3\xb6rld\n\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d' >"$work/made/text/lines.text"
  printf 'Serif, Sans Italic\0\x08\x40\1\0\0\0\0\1a\xcc\x81 \xd8\xb4\xef\xb7\xba \xf0\x9f\x98\x80' >"$work/made/text/scripts.text"
fi
# shellcheck disable=SC2086 # lists of flags
flags+=" $(pkg-config --cflags $libraries)"
sanitizers="address,undefined"
# libheif leaks 40 bytes of libdav1d if an image has no data. Every known way to trigger it is refused.
echo "leak:libdav1d" >"$work/leaks"
export LSAN_OPTIONS=suppressions=$PWD/$work/leaks:print_suppressions=0

python3 Tests/Fuzz/seeds.py "$work/made"
if [[ $libraries == *libjxl* ]]; then
  mkdir -p "$work/made/jxl"
  # shellcheck disable=SC2046
  "$clang" -O1 Tests/Fuzz/jxl_seeds.c $(pkg-config --libs libjxl) -o "$work/jxl_seeds"
  "$work/jxl_seeds" "$work/made/jxl"
fi

compile() { # source, object
  # shellcheck disable=SC2086
  "$clang" $flags "-fsanitize=fuzzer-no-link,$sanitizers" -fno-sanitize-recover=all -c "$1" -o "$2"
}

pids=()
for source in Sources/CInstructions/*.c Sources/CCodecs/*.c Sources/CCodecs/*/*.c Sources/CText/*.c \
  Sources/CPixels/{cascade,faces*,isa,network*}.c; do
  object=$work/objects/$(tr / _ <<<"${source#Sources/CCodecs/}").o
  newest=$(find Sources/CCodecs Sources/CText Sources/CPixels "$source" Tests/Fuzz/run.sh \( -name '*.h' -o -path "$source" -o -name run.sh \) -newer "$object" 2>/dev/null || echo all)
  [[ -z $newest ]] && continue
  compile "$source" "$object" &
  pids+=($!)
  if ((${#pids[@]} >= jobs)); then wait "${pids[0]}"; pids=("${pids[@]:1}"); fi
done
for pid in "${pids[@]}"; do wait "$pid"; done

fuzz() { # decoder, format, extensions...
  local name=$1 format=$2 corpus=$work/corpus/$1 program=$work/$1 source=Tests/Fuzz/decode.c
  [[ $name != rewrite-* ]] || source=Tests/Fuzz/rewrite.c
  [[ $name != palette ]] || source=Tests/Fuzz/palette.c
  [[ $name != text ]] || source=Tests/Fuzz/text.c
  [[ $name != cascade ]] || source=Tests/Fuzz/cascade.c
  [[ $name != network ]] || source=Tests/Fuzz/network.c
  shift 2
  # shellcheck disable=SC2046,SC2086
  "$clang" $flags -fsanitize=fuzzer,$sanitizers -fno-sanitize-recover=all -fuse-ld=lld \
    -DFUZZ_FORMAT="CCODECS_FORMAT_$format" "$source" "$work"/objects/*.o \
    $(pkg-config --libs $libraries) -lm -o "$program" || return 1
  mkdir -p "$corpus" "$work/seeds/$name"
  local seeds=("$work/seeds/$name") extension folder
  for extension in "$@"; do
    for folder in Tests/TestSupport/Fixtures Tests/Fuzz/seeds "$work/made" ../shared/corpus; do
      [[ -d $folder ]] || continue
      find "$folder" -iname "*.$extension" -size -64k -exec cp -n -t "$work/seeds/$name" {} + 2>/dev/null || true
    done
  done
  [[ -d Tests/Fuzz/crashers/$name ]] && seeds+=("Tests/Fuzz/crashers/$name")
  if "$program" -max_total_time="$seconds" -timeout=25 -rss_limit_mb=3000 -max_len=65536 -use_value_profile=0 \
    -artifact_prefix="$work/crashes/$name-" -print_final_stats=1 "$corpus" "${seeds[@]}" >"$work/$name.log" 2>&1; then
    echo "$name: $(grep -o 'number_of_executed_units: .*' "$work/$name.log" | tr -dc 0-9) inputs, no crash"
  else
    echo "error: $name: see $work/$name.log" >&2
    tail -n 25 "$work/$name.log" >&2
    return 1
  fi
}

[[ -d ../shared/corpus ]] || echo "there is no ../shared/corpus: the fixtures and old crashers are the only seeds"
wanted=" $* "
failures=0
pids=()
while read -r -a line; do
  [[ $# -eq 0 || $wanted == *" ${line[0]} "* ]] || continue
  fuzz "${line[@]}" &
  pids+=($!)
  if ((${#pids[@]} >= jobs)); then wait "${pids[0]}" || failures=$((failures + 1)); pids=("${pids[@]:1}"); fi
done <<<"$table"
for pid in "${pids[@]}"; do wait "$pid" || failures=$((failures + 1)); done
((failures == 0)) || { echo "error: $failures of them failed" >&2; exit 1; }
