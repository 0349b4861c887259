#!/usr/bin/env bash
# Runs `swift` with the arguments, so that its cache of manifests knows which libraries are installed.
#
# Package.swift asks which formats can be built in, and Swift keeps the answer under a key of the manifest's contents and
# the environment. The variable makes the names of pkg-config's files a part of that key.
set -euo pipefail
shopt -s nullglob
files=({/usr,/usr/local,/opt/homebrew}/{lib,lib64,share,lib/*}/pkgconfig/*.pc)
IFS=: read -ra custom <<<"${PKG_CONFIG_PATH:-}"
for directory in "${custom[@]}"; do files+=("$directory"/*.pc); done
IMAGE_WORKER_LIBRARIES=$(printf '%s\n' "${files[@]}" | cksum)
export IMAGE_WORKER_LIBRARIES
# Swift passes the traits to its compilers in the order of a set, which is another one in each process: without this, a new file, or
# anything else that makes it plan a build again, compiles every module again.
export SWIFT_DETERMINISTIC_HASHING=1
# Tests are built with the worker; a release that is given away is built without what they need.
export IMAGE_WORKER_TESTED=${IMAGE_WORKER_TESTED-1}
exec swift "$@"
