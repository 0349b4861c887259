#!/usr/bin/env bash
# Regenerates src/image_worker/_generated from the contract: the messages, their types, and the fields of a configuration
# as typed dictionaries. With --check it changes nothing, and fails when what is committed differs.
#
# The messages are those of an old compiler on purpose: code that it generates works with every later protobuf library.
set -euo pipefail
cd "$(dirname "$0")/../.."

generated=clients/python/src/image_worker/_generated
work=.build/python-client
clients/python/venv.sh "$work/tools"

out=$work/generated
rm -rf "$out"
mkdir -p "$out"
"$work/tools/bin/python" clients/python/generate.py Protos imageworker/v1/image_worker.proto "$out"

if [[ "${1:-}" == --check ]]; then
  diff -r --exclude=__pycache__ "$generated" "$out" || {
    echo "error: run 'make generate' and commit the result" >&2; exit 1; }
else
  rm -rf "$generated"
  cp -r "$out" "$generated"
fi
