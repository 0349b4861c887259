#!/usr/bin/env bash
# Has dialogues with hostile helpers, which answer requests in any way: COUNT of them, with the seeds from SEED.
#
#   Tests/Fuzz/dialogues.sh COUNT [SEED]
#
# The worker must survive each, return all memory, and give others the same results as before, also meanwhile. After a
# round it may have neither more threads nor much more memory than at its beginning. The tests have the first few seeds; a
# seed that fails here belongs there. Prints the use of memory and the seeds of each round, and stops at the first that
# fails. To add load, run `make bench` at the same time.
set -euo pipefail
cd "$(dirname "$0")/../.."

count=${1:?"usage: Tests/Fuzz/dialogues.sh COUNT [SEED]"}
seed=${2:-1000}
round=250
deploy/swift.sh build -c release --product image-workerPackageTests
for ((first = seed; first < seed + count; first += round)); do
  DIALOGUE_SEED=$first DIALOGUE_COUNT=$round deploy/swift.sh test -c release --skip-build --filter 'HostileHelperTests/randomActs'
  echo "seeds $first to $((first + round - 1)) passed"
done
