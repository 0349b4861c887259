#!/usr/bin/env bash
# Makes trouble for the worker whose path is the first argument; the rest are options of soak.py.
set -euo pipefail
worker=$(realpath "$1")
shift
cd "$(dirname "$0")/../.."
exec Tests/EndToEnd/python.sh Tests/Soak/soak.py "$worker" "$@"
