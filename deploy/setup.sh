#!/usr/bin/env bash
# Installs missing system packages for building and testing; with --benchmarks, also those for the peers of Benchmarks/;
# with --browser, also those for the tests of the playground, of JPEGs in other programs, of other processors and of
# system calls; with --cost-gate, also those for counting instructions; with --neon, also those for running kernels for
# AArch64. It is fast if nothing is missing.
set -euo pipefail

if ! command -v swift >/dev/null; then
  echo "error: there is no swift on the PATH; install a Swift toolchain, version 6.3 or later" >&2
  exit 1
fi

if [[ "$(uname)" == Darwin ]]; then
  wanted=(exiftool isa-l jpeg-turbo jpeg-xl libheif libtiff little-cms2 pkgconf python webp zlib)
  [[ "${1:-}" != --benchmarks ]] || wanted+=(vips)
  [[ "${1:-}" != --browser ]] || wanted+=(jq)
  missing=()
  for formula in "${wanted[@]}"; do
    brew list --versions "$formula" >/dev/null || missing+=("$formula")
  done
  [[ ${#missing[@]} -eq 0 ]] || brew install "${missing[@]}"
  exit 0
fi

wanted=(
  libjpeg62-turbo-dev clang-format-14 fonts-dejavu-core libfaketime libheif-dev libimage-exiftool-perl libisal-dev
  libjxl-dev liblcms2-dev libpango1.0-dev libseccomp-dev libtiff-dev libwebp-dev openssl pkg-config python3 python3-venv
  zlib1g-dev
)
if ! apt-cache show libjpeg62-turbo-dev >/dev/null 2>&1 && grep -qi ubuntu /etc/os-release; then
  wanted[0]=libjpeg-turbo8-dev # Ubuntu's name for it
fi
[[ "${1:-}" != --cost-gate ]] || wanted+=(valgrind)
[[ "${1:-}" != --benchmarks ]] || wanted+=(libvips-dev python3-dev)
[[ "${1:-}" != --neon || "$(uname -m)" != x86_64 ]] ||
  wanted+=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static)
if [[ "${1:-}" == --browser ]]; then
  wanted+=(jq imagemagick qemu-user-static strace)
  # Ubuntu has Chromium as a snap alone, which cannot be driven from here; the tests then say that they are skipped.
  grep -qi ubuntu /etc/os-release || wanted+=(chromium)
fi
missing=()
for package in "${wanted[@]}"; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
[[ ${#missing[@]} -gt 0 ]] || exit 0

sudo=()
[[ $(id -u) -eq 0 ]] || sudo=(sudo)
echo "installing: ${missing[*]}"
"${sudo[@]}" apt-get update -qq
"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
