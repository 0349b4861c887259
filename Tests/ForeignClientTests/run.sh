#!/usr/bin/env bash
# Runs the tests of a foreign client (Python's gRPC, and buf) against the worker whose path is the first argument.
set -euo pipefail
worker=$(realpath "$1")
cd "$(dirname "$0")/../.."

venv=.build/foreign-client/venv
if ! cmp -s Tests/ForeignClientTests/requirements.txt "$venv/requirements.txt"; then
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check -r Tests/ForeignClientTests/requirements.txt
  cp Tests/ForeignClientTests/requirements.txt "$venv/requirements.txt"
fi
tools=$PWD/.build/foreign-client/tools
Tests/ForeignClientTests/promtool.sh "$tools"
IMAGE_WORKER=$worker PATH="$PWD/$venv/bin:$tools:$PATH" "$venv/bin/python" -m pytest -q -p no:cacheprovider \
  Tests/ForeignClientTests
