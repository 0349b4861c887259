#!/usr/bin/env bash
# Creates the Python environment of the end-to-end tests in the directory in the first argument, unless it exists.
set -euo pipefail
venv=$1
requirements=$(dirname "$0")/requirements.txt
cmp -s "$requirements" "$venv/requirements.txt" && exit
rm -rf "$venv"
python3 -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check -r "$requirements"
# They work with the Pillow and the protobuf above, and say that they need older ones.
"$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps thumbhash-python==1.0.1 tritonclient==2.73.0
cp "$requirements" "$venv/requirements.txt"
