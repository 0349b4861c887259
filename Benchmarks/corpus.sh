#!/usr/bin/env bash
# Prints what becomes of every picture of the shared corpus, for the worker whose path is the first argument; the rest
# goes to corpus.py. What that needs is what the tests of a foreign client need.
set -euo pipefail
worker=$(realpath "$1")
shift
cd "$(dirname "$0")/.."
venv=.build/foreign-client/venv
Tests/ForeignClientTests/venv.sh "$venv"
exec "$venv/bin/python" Benchmarks/corpus.py "$worker" "$@"
