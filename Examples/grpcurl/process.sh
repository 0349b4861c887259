#!/usr/bin/env bash
# Processes one image with grpcurl and jq. Usage: process.sh INPUT OUTPUT [PRESET]
set -euo pipefail
if [ $# -lt 2 ]; then
  echo "usage: process.sh INPUT OUTPUT [PRESET]" >&2
  exit 1
fi
input=$1 output=$2 preset=${3:-preview}

responses=$(mktemp)
trap 'rm -f "$responses"' EXIT

base64 -w0 "$input" | jq -R --arg preset "$preset" '{image: ., preset: $preset}' |
  grpcurl -plaintext -max-msg-sz 67108864 -d @ "${IMAGE_WORKER:-127.0.0.1:50051}" \
    imageworker.v1.ImageWorkerService/ProcessImage > "$responses"

# Chunks are base64; each is decoded on its own, because each may end with padding.
jq -r '.chunk // empty' "$responses" | while read -r chunk; do base64 -d <<< "$chunk"; done > "$output"
jq '.report // empty' "$responses"
