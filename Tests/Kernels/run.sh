#!/usr/bin/env bash
# Compares the kernels for vectors with their scalar versions: those of this machine, and in QEMU those for NEON, if a
# compiler for AArch64 and QEMU are installed. Takes some seconds.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
sources=$here/../../Sources
out=$here/../../.build/kernels
mkdir -p "$out"

strip=-Wl,--gc-sections
[[ "$(uname)" != Darwin ]] || strip=-Wl,-dead_strip

# build PROGRAM [FLAG...]
build() {
  clang -std=gnu11 -O2 -Wall -Wextra -Werror -ffunction-sections -fdata-sections "$strip" -I"$sources/CCodecs" \
    -I"$sources/CCodecs/include" -I"$sources/CInstructions/include" -I"$sources/CPixels/include" -I"$sources/CPixels" \
    "$sources"/CInstructions/*.c "$sources"/CPixels/*.c "$sources"/CCodecs/jpeg/jpeg_idct*.c \
    "$sources"/CCodecs/jpeg/jpeg_encode*.c "$sources"/CCodecs/png/png_*filter*.c "$sources"/CCodecs/core/encoder.c \
    "$sources"/CCodecs/raw/raw_rows*.c "$sources"/CCodecs/palette/*.c \
    "$sources"/CCodecs/memory/*.c "$here"/*.c "${@:2}" -lm -o "$1" 2> >(grep -v 'gold: warning' >&2)
}

build "$out/native"
"$out/native"
qemu=$(command -v qemu-aarch64-static || command -v qemu-aarch64 || true)
if [[ "$(uname -m)" == x86_64 && -n "$qemu" ]] && command -v aarch64-linux-gnu-gcc >/dev/null; then
  build "$out/neon" --target=aarch64-linux-gnu -static -fuse-ld=lld
  "$qemu" "$out/neon"
elif [[ "$(uname -m)" == x86_64 ]]; then
  echo "The kernels for NEON are not tested: this needs gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and qemu-user-static."
fi
