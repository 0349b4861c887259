#!/usr/bin/env bash
# Lints the wire contract, and with --breaking compares it to the one that the branch main has: a change that would
# break a client fails. Needs what generate.sh installs.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=.build/protos/venv
packages=("$venv"/lib/python3*/site-packages)

# $1: the folder of the protos, $2: the image to write.
image() {
  "$venv/bin/python" -m grpc_tools.protoc "-I$1" "-I${packages[0]}" --include_imports --include_source_info \
    "--descriptor_set_out=$2" imageworker/v1/image_worker.proto
}

image Protos .build/protos/contract.binpb
ours=(--config Protos/buf.yaml --path imageworker)
"$venv/bin/buf" lint .build/protos/contract.binpb "${ours[@]}"

if [[ "${1:-}" == --breaking ]]; then
  if ! git cat-file -e main:Protos/imageworker/v1/image_worker.proto 2>/dev/null; then
    echo "main has no contract to compare with"
    exit 0
  fi
  before=.build/protos/before
  rm -rf "$before"
  mkdir -p "$before"
  git archive main Protos | tar -x -C "$before"
  image "$before/Protos" .build/protos/before.binpb
  "$venv/bin/buf" breaking .build/protos/contract.binpb --against .build/protos/before.binpb "${ours[@]}"
fi
