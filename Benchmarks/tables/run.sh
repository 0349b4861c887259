#!/usr/bin/env bash
# Prints the benchmark tables for the worker whose path is the first argument; passes the other arguments to bench.py.
# Installs the dependencies of the peers into .build/benchmarks.
set -euo pipefail
worker=$(realpath "$1")
shift
cd "$(dirname "$0")/../.."
out=$PWD/.build/benchmarks
mkdir -p "$out"

requirements=(Benchmarks/tables/requirements.txt Tests/EndToEnd/requirements.txt)
if ! cat "${requirements[@]}" | cmp -s - "$out/venv/requirements.txt"; then
  rm -rf "$out/venv"
  python3 -m venv "$out/venv"
  "$out/venv/bin/pip" install --quiet --disable-pip-version-check -r Benchmarks/tables/requirements.txt
  cat "${requirements[@]}" >"$out/venv/requirements.txt"
fi

# pillow-simd replaces Pillow and therefore needs a separate directory; it is built from source, which may fail.
simd=()
if [[ ! -e "$out/venv-simd/tried" ]]; then
  python3 -m venv "$out/venv-simd"
  CC="cc -mavx2" "$out/venv-simd/bin/pip" install --quiet --disable-pip-version-check pillow-simd==12.1.1.post0 \
    >"$out/pillow-simd.log" 2>&1 || echo "pillow-simd does not build: $out/pillow-simd.log tells why"
  touch "$out/venv-simd/tried"
fi
"$out/venv-simd/bin/python" -c 'import PIL' 2>/dev/null && simd=(--simd-python "$out/venv-simd/bin/python")

vips=()
if pkg-config --exists vips; then
  # shellcheck disable=SC2046
  cc -O2 -Wall -Wextra -Werror Benchmarks/tables/peer_vips.c $(pkg-config --cflags --libs vips) -o "$out/peer_vips"
  vips=(--vips "$out/peer_vips")
fi
exec "$out/venv/bin/python" Benchmarks/tables/bench.py "$worker" --python "$out/venv/bin/python" "${simd[@]}" "${vips[@]}" "$@"
