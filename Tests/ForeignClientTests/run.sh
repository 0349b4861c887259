#!/usr/bin/env bash
# Runs the tests of a foreign client (Python's gRPC, and buf) against the worker whose path is the first argument.
set -euo pipefail
worker=$(realpath "$1")
cd "$(dirname "$0")/../.."

venv=.build/foreign-client/venv
Tests/ForeignClientTests/venv.sh "$venv"
tools=$PWD/.build/foreign-client/tools
Tests/ForeignClientTests/promtool.sh "$tools"
IMAGE_WORKER=$worker PATH="$PWD/$venv/bin:$tools:$PATH" "$venv/bin/python" -m pytest -q -p no:cacheprovider \
  Tests/ForeignClientTests
