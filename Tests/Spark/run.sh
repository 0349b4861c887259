#!/usr/bin/env bash
# Runs the Spark job of deploy/spark on a local cluster of two executors, against the worker whose path is the first argument.
# Needs Java 17 or later. Not part of `make test`, as it downloads 450 MB.
set -euo pipefail
worker=$(realpath "$1")
cd "$(dirname "$0")/../.."
command -v java >/dev/null || { echo "error: there is no java on the PATH; install Java 17 or later" >&2; exit 1; }

venv=.build/spark/venv
requirements=Tests/Spark/requirements.txt
if ! cmp -s "$requirements" "$venv/requirements.txt"; then
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$requirements"
  cp "$requirements" "$venv/requirements.txt"
fi
IMAGE_WORKER=$worker PYTHONPATH=$PWD/clients/python/src:$PWD/Tests/EndToEnd "$venv/bin/python" -m pytest -q -rs \
  -p no:cacheprovider Tests/Spark
