#!/usr/bin/env bash
# Runs a Python program, with its arguments, in the environment of the end-to-end tests.
set -euo pipefail
cd "$(dirname "$0")/../.."
venv=.build/end-to-end/venv
Tests/EndToEnd/venv.sh "$venv"
exec "$venv/bin/python" "$@"
