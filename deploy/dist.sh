#!/usr/bin/env bash
# Packs a release as .build/dist/image-worker-VERSION-linux-ARCHITECTURE.tar.gz, with its SHA-256 sum: one stripped program,
# its licenses, a bill of materials, shell completions, manual pages and units of systemd.
#
# The Swift runtime is linked in, and the libraries of which Debian has static ones; the README of the archive lists the
# packages of the others. It runs on Debian 12 without Swift: deploy/try_release.sh. The same commit, toolchain and packages
# give the same archive.
#
# Arguments go to `swift build`, such as `--traits TIFF,JXL,LCMS,ISAL,ISOLATION,TEXT` for a program without libheif.
set -euo pipefail
cd "$(dirname "$0")/.."
# A build folder of its own, as everything is compiled for the static runtime.
scratch=.build/static
out=.build/dist
libraries=$PWD/$out/libraries
rm -rf "$out"
mkdir -p "$libraries" "$out/pkgconfig"

# JBIG-KIT is under the GPL. libtiff needs it for a compression that the worker refuses (tiff_blocks.c), so that functions that
# are never called take its place.
nm "$(clang -print-file-name=libtiff.a)" 2>/dev/null | awk '$1 == "U" && $2 ~ /^jbg_/ {print $2}' | sort -u |
  while read -r name; do echo "void $name(void) { __builtin_trap(); }"; done |
  clang -x c -O1 -ffunction-sections -c - -o "$out/jbig.o"
ar rcsD "$libraries/libjbig.a" "$out/jbig.o"

# The name for pkg-config, the library, and the static libraries that it consists of, if Debian has them. The linker takes a
# library from the first folder that it knows, so that all packages name this one first; a script of archives serves as a library.
while read -r package library parts; do
  description=$(pkg-config --variable=pcfiledir "$package")/$package.pc
  sed "s|^Libs:|Libs: -L$libraries|" "$description" > "$out/pkgconfig/$package.pc"
  paths=()
  # clang returns the bare name of what it does not find.
  for part in $parts; do
    if [[ -e $libraries/lib$part.a ]]; then paths+=("$libraries/lib$part.a"); else paths+=("$(clang -print-file-name="lib$part.a")"); fi
  done
  if [[ ${#paths[@]} -gt 0 && " ${paths[*]}" != *" lib"* ]]; then
    echo "GROUP ( ${paths[*]} )" > "$libraries/lib$library.a"
  fi
done <<'TABLE'
libjpeg     jpeg        jpeg
libwebp     webp        webp
zlib        z           z
libtiff-4   tiff        tiff webp zstd lzma Lerc jbig jpeg deflate z
libisal     isal
lcms2       lcms2
libheif     heif
TABLE

IMAGE_WORKER_TESTED=0 PKG_CONFIG_PATH=$PWD/$out/pkgconfig deploy/swift.sh build -c release --product image-worker \
  --static-swift-stdlib -debug-info-format none --scratch-path "$scratch" -Xlinker --no-export-dynamic -Xlinker "-Map=$PWD/$out/map" "$@"
program=$scratch/release/image-worker
version=$("$program" --version)
name=image-worker-$version-linux-$(uname -m)
tree=$out/$name
mkdir -p "$tree"/{bin,share/man/man1,share/completions,share/licenses}
strip -o "$tree/bin/image-worker" "$program"
if ldd "$program" | grep -E "libswift|Foundation|libdispatch|libjpeg|libtiff|libwebp|not found"; then
  echo "error: the program loads libraries that it should contain" >&2
  exit 1
fi

# The same inputs give the same archive.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || echo 0)
export SOURCE_DATE_EPOCH
for shell in bash zsh fish; do
  "$program" --generate-completion-script "$shell" > "$tree/share/completions/image-worker.$shell"
done
deploy/manual.py "$program" "$tree/share/man/man1"
gzip -n9 "$tree"/share/man/man1/*
cp -r deploy/systemd "$tree/share/systemd"
cp CHANGELOG.md LICENSE SECURITY.md "$tree"

# The archives that the linker took members of, as files of Debian's packages.
mapfile -t archives < <(
  grep -oE '^/\S+\.a\(' "$out/map" | tr -d '(' | sort -u | xargs realpath | grep -v -e /swift_static/ -e "^$PWD" | sort -u)
deploy/sbom.py "$program" "${archives[@]}" > "$tree/share/image-worker.cdx.json"
mapfile -t linked < <(dpkg -S "${archives[@]}" | cut -d: -f1 | sort -u)
if [[ " ${linked[*]} " == *" libjbig-dev "* ]]; then
  echo "error: the program contains JBIG-KIT, which is under the GPL" >&2
  exit 1
fi
for package in "${linked[@]}"; do cp -L "/usr/share/doc/$package/copyright" "$tree/share/licenses/$package"; done
while read -r license; do
  cp "$license" "$tree/share/licenses/$(sed "s|$scratch/checkouts/||; s|/|-|g" <<< "$license")"
done < <(find "$scratch/checkouts" \( -iname 'LICENSE*' -o -iname 'NOTICE*' -o -iname 'COPYING*' \) -type f \
  -not -path '*/Tests/*' -not -path '*/.git/*' -not -name '*.sh' -not -name '*.h' | sort)
toolchain=$(dirname "$(dirname "$(readlink -f "$(command -v swift)")")")
cp "$toolchain/share/swift/LICENSE.txt" "$tree/share/licenses/swift-runtime"

# What it loads by itself; the package manager knows what that needs.
mapfile -t loaded < <(
  for library in $(objdump -p "$program" | awk '$1 == "NEEDED" {print $2}'); do
    ldd "$program" | awk -v name="$library" '$1 == name {print $3}'
  done | while read -r file; do dpkg -S "$file" 2>/dev/null || dpkg -S "$(realpath "$file")"; done | cut -d: -f1 | sort -u)
{
  cat <<TEXT
image-worker $version for Linux on $(uname -m), built on Debian $(cat /etc/debian_version).

Install what it needs:

    apt-get install --no-install-recommends ${loaded[*]}

Try it:

    bin/image-worker --version --verbose
    bin/image-worker serve

Install it:

    install bin/image-worker /usr/local/bin
    install -m 644 share/man/man1/* /usr/local/share/man/man1
    install -m 644 share/completions/image-worker.bash /usr/share/bash-completion/completions/image-worker
    install -m 644 share/systemd/image-worker.* /etc/systemd/system
    install -d /etc/image-worker && touch /etc/image-worker/settings.yaml
    systemctl enable --now image-worker.socket image-worker.service

Debian updates the libraries that it loads:

TEXT
  dpkg-query -W -f '    ${Package} ${Version}\n' "${loaded[@]}"
  printf '\nA new release updates those that are linked in, in addition to the Swift runtime and packages:\n\n'
  dpkg-query -W -f '    ${Package} ${Version}\n' "${linked[@]}"
  printf '\nshare/licenses has their licenses, and share/image-worker.cdx.json all versions.\n'
} > "$tree/README"

find "$tree" -type d -exec chmod 755 {} +
find "$tree" -type f -exec chmod 644 {} +
chmod 755 "$tree/bin/image-worker"
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -C "$out" -c "$name" | gzip -n9 > "$out/$name.tar.gz"
(cd "$out" && sha256sum "$name.tar.gz" > "$name.tar.gz.sha256")
echo "The release is $out/$name.tar.gz, $(($(stat -c %s "$out/$name.tar.gz") / 1048576)) MiB," \
  "of which the program is $(($(stat -c %s "$tree/bin/image-worker") / 1048576)) MiB unpacked."
