#!/usr/bin/env bash
# Prints the tables of measurements for the worker whose path is the first argument; the rest goes to bench.py.
# Pictures are those of ../shared/corpus unless some are given.
set -euo pipefail
worker=$(realpath "$1")
shift
cd "$(dirname "$0")/.."

venv=.build/benchmarks/venv
if ! cmp -s Benchmarks/requirements.txt "$venv/requirements.txt"; then
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check -r Benchmarks/requirements.txt
  cp Benchmarks/requirements.txt "$venv/requirements.txt"
fi
if [[ $# -eq 0 ]]; then
  photos=../shared/corpus/12-photos
  set -- "$photos/mei--Issue_525.jpg" "$photos/dji--DJI_0025.JPG" "$photos/mei--Issue_266.jpg" \
    "$photos/mei--Leica_T_(Typ_701).jpg" "$photos/avif--dog_exif_extended_xmp_icc.jpg"
fi
"$venv/bin/python" Benchmarks/bench.py "$worker" "$@"
