#!/usr/bin/env bash
# Builds the check of palettes, under the address and undefined-behavior sanitizers, and runs it once per instruction
# set. The results must be the same.
#
#   Tests/Palette/run.sh COUNT [SEED]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
codecs=$here/../../Sources/CCodecs
instructions=$here/../../Sources/CInstructions
out=$here/../../.build/palette
mkdir -p "$out"
program=$out/check
if [[ ! -e "$program" || -n $(find "$codecs/palette" "$codecs/include" "$instructions" "$here" -newer "$program" -name '*.[ch]') ]]; then
  clang -std=c11 -Wall -Wextra -Werror -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -I"$codecs" \
    -I"$codecs/include" -I"$instructions/include" "$instructions"/*.c "$codecs"/memory/budget.c "$codecs"/palette/*.c \
    "$here"/check.c -o "$program" 2> >(grep -v 'gold: warning' >&2)
fi
expected=$("$program" "$@") || { printf '%s\n' "$expected" >&2; exit 1; }
scalar=$(IMAGE_WORKER_INSTRUCTION_SET=scalar "$program" "$@") || { printf '%s\n' "$scalar" >&2; exit 1; }
if [[ $scalar != "$expected" ]]; then
  printf 'error: results differ:\n  %s\n  %s (scalar)\n' "$expected" "$scalar" >&2
  exit 1
fi
printf '%s\n' "$expected"
