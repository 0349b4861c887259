#!/usr/bin/env bash
# Runs the end-to-end tests, which use independent clients (Python's gRPC, and buf), against the worker whose path is
# the first argument. Most of them wait most of the time, so that files of them run next to each other. Tests that fail run
# once more by themselves; what fails twice fails the run.
set -euo pipefail
worker=$(realpath "$1")
cd "$(dirname "$0")/../.."

venv=.build/end-to-end/venv
Tests/EndToEnd/venv.sh "$venv"
tools=$PWD/.build/end-to-end/tools
Tests/EndToEnd/promtool.sh "$tools"
export IMAGE_WORKER=$worker PATH="$PWD/$venv/bin:$tools:$PATH"
failed=$PWD/.build/end-to-end/failed again=$PWD/.build/end-to-end/again
rm -f "$failed"

cores=$(getconf _NPROCESSORS_ONLN)
at_once=$((cores < 8 ? cores + 1 : 8))
status=0
FAILED_TESTS=$failed "$venv/bin/python" -m pytest -q -rs -p no:cacheprovider -n "$at_once" --dist loadfile \
  --max-worker-restart 0 Tests/EndToEnd || status=$?
# Any other status than 1 is that of a run that did not reach its end.
if ((status != 1)) || [[ ! -s $failed ]]; then exit "$status"; fi
sort -u "$failed" >"$again"
printf '\nWhat failed, or was not reached, runs once more, by itself:\n'
cat "$again"
# So many failures are no accident.
TESTS_TO_TRY_AGAIN=$again exec "$venv/bin/python" -m pytest -q --maxfail=10 -p no:cacheprovider "@$again"
