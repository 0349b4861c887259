#!/usr/bin/env bash
# Extracts promtool from Debian's or Ubuntu's package into the folder in the first argument, without installing the
# server in that package. Does nothing if promtool is already there.
set -euo pipefail
folder=$1
if command -v promtool >/dev/null || [[ -x "$folder/promtool" ]]; then exit 0; fi
command -v apt-get >/dev/null || { echo "error: promtool is missing; install Prometheus" >&2; exit 1; }
mkdir -p "$folder"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(
  cd "$work"
  chmod 755 .
  apt-get download -q prometheus || { apt-get update -qq && apt-get download -q prometheus; }
  dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x --strip-components=3 ./usr/bin/promtool
)
mv "$work/promtool" "$folder/promtool"
