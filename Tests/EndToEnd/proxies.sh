#!/usr/bin/env bash
# Extracts HAProxy and nginx from Debian's packages into the folder in the first argument, without installing them as
# services: FOLDER/haproxy and FOLDER/nginx. Does nothing if they are already there.
set -euo pipefail
folder=$1
[[ ! -x "$folder/nginx" ]] || exit 0
command -v apt-get >/dev/null || { echo "error: haproxy and nginx are missing" >&2; exit 1; }
packages=(haproxy liblua5.3-0 libopentracing-c-wrapper0 libopentracing1 nginx)
mkdir -p "$folder"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(
  cd "$work"
  chmod 777 .
  apt-get download -q "${packages[@]}" || { apt-get update -qq && apt-get download -q "${packages[@]}"; }
  for package in *.deb; do dpkg-deb -x "$package" .; done
) >&2
cp -r "$work"/usr/lib/*-linux-gnu "$folder/lib"
for program in haproxy nginx; do
  cp "$work/usr/sbin/$program" "$folder/$program.bin"
  printf '#!/bin/sh\nLD_LIBRARY_PATH=%q exec %q "$@"\n' "$(realpath "$folder")/lib" "$(realpath "$folder")/$program.bin" \
    > "$folder/$program"
  chmod +x "$folder/$program"
done
