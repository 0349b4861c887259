#!/usr/bin/env bash
# Runs the end-to-end tests, which use independent clients (Python's gRPC, and buf), against the worker whose path is
# the first argument.
set -euo pipefail
worker=$(realpath "$1")
cd "$(dirname "$0")/../.."

venv=.build/end-to-end/venv
Tests/EndToEnd/venv.sh "$venv"
tools=$PWD/.build/end-to-end/tools
Tests/EndToEnd/promtool.sh "$tools"
IMAGE_WORKER=$worker PATH="$PWD/$venv/bin:$tools:$PATH" "$venv/bin/python" -m pytest -q -rs -p no:cacheprovider \
  Tests/EndToEnd
