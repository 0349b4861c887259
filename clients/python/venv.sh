#!/usr/bin/env bash
# Creates the environment of the tools that generate, build and check the package, in the directory in the first
# argument, unless it exists.
set -euo pipefail
venv=$1
requirements=$(dirname "$0")/requirements.txt
cmp -s "$requirements" "$venv/requirements.txt" && exit
rm -rf "$venv"
python3 -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check -r "$requirements"
cp "$requirements" "$venv/requirements.txt"
