#!/usr/bin/env bash
# Tries a release archive on a Debian 12 that has no Swift, only what the archive's README says to install: versions, a server
# and a call, a batch here and there, the playground, and every format. Prints "The release works." at the end.
#
# Use: try_release.sh ARCHIVE [BASE]
#
# BASE is a folder for the plain Debian, which debootstrap fills if it is empty (220 MB); it is not changed later. Needs root,
# debootstrap, curl, and Debian's mirror. All mounts are in a mount namespace of the script's own.
set -euo pipefail
if [[ "${1:-}" != --inside ]]; then
  [[ $(id -u) -eq 0 && -f "${1:-}" ]] || { sed -n '2,8s/^# \?//p' "$0"; exit 64; }
  archive=$(realpath "$1") base=${2:-}
  work=$(mktemp -d)
  base=${base:-$work/base}
  mkdir -p "$base"
  [[ -e "$base/bin/sh" ]] || debootstrap --variant=minbase --include=ca-certificates bookworm "$base"
  status=0
  unshare --mount --propagation private --pid --fork --kill-child "$0" --inside "$archive" "$(realpath "$base")" "$work" || status=$?
  # The mounts went with their namespace: nothing of this machine is below.
  rm -rf --one-file-system "$work"
  exit "$status"
fi

archive=$2 base=$3 work=$4
cd "$(dirname "$0")/.."
root=$work/root
step() { printf '\n== %s\n' "$*"; }
fail() { echo "error: $*" >&2; exit 1; }
# As nobody, who may write to /trial only.
inside() { chroot --userspec=65534:65534 "$root" "$@"; }

step "A Debian $(cat "$base/etc/debian_version") without Swift"
cp -a "$base" "$root"
mount -t proc proc "$root/proc"
mount -t tmpfs -o size=1m tmpfs "$root/dev"
for device in null zero full random urandom; do
  touch "$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
mount -o remount,ro "$root/dev"
cp /etc/resolv.conf "$root/etc/resolv.conf"
[[ -z $(find "$root" -xdev \( -name swift -o -name 'libswift*' -o -name 'libFoundation*' \)) ]] || fail "the base has Swift"

step "What the README says to install"
mkdir "$root/release"
tar -xf "$archive" -C "$root/release" --strip-components=1
command=$(sed -n 's/^ *\(apt-get install .*\)/\1/p' "$root/release/README")
echo "$command"
before=$(du -sxk "$root" | cut -f1)
chroot "$root" sh -c "apt-get update -qq && DEBIAN_FRONTEND=noninteractive ${command/install/install -y -qq} >/dev/null 2>&1"
chroot "$root" apt-get clean
echo "$((($(du -sxk "$root" | cut -f1) - before) / 1024)) MiB, package lists included"
[[ -z $(find "$root" -xdev -not -path '*/release/*' -name 'libswift*') ]] || fail "a package brought Swift"

step "Versions"
inside /release/bin/image-worker --version --verbose

step "Every format"
install -d -o 65534 -g 65534 "$root/trial"
cp -r Tests/TestSupport/Fixtures "$root/trial/images"
images=(photo-420.jpg alpha.png lossless.webp interlaced.gif lzw.tiff gray.heic photo.avif alpha-lossless.jxl fields-alpha.bmp)
for format in jpeg png webp avif jxl; do
  inside sh -c "cd /trial/images && /release/bin/image-worker process ${images[*]} --preset thumbnail --format $format --out /trial/$format" | tail -2
  [[ $(find "$root/trial/$format" -type f | wc -l) -eq ${#images[@]} ]] || fail "results are missing"
done

serve() { # ARGUMENTS...: sets `server` and `address`
  # Not by `inside`: the process must be the worker itself, for signals and its status.
  chroot --userspec=65534:65534 "$root" /release/bin/image-worker "$@" 2> "$work/log" &
  server=$!
  for _ in {1..100}; do
    address=$(grep -oEm1 '127\.0\.0\.1:[1-9][0-9]*' "$work/log" || true)
    [[ -z "$address" ]] || return 0
    kill -0 "$server" || break
    sleep 0.1
  done
  cat "$work/log" >&2
  fail "the worker does not serve"
}
stop() { kill "$server"; wait "$server" || fail "the worker ended with $?"; }

for isolation in none process; do
  step "A server with --isolation $isolation, a call and a batch"
  serve serve --port 0 --isolation "$isolation"
  IMAGE_WORKER=$address Tests/EndToEnd/python.sh Examples/python/process.py \
    Tests/TestSupport/Fixtures/photo-420.jpg "$work/called-$isolation.jpg" thumbnail > "$work/report"
  head -1 "$work/report"
  inside /release/bin/image-worker batch /trial/images --preset thumbnail --out "/trial/batch-$isolation" --to "$address" | tail -2 || true
  grep VmHWM "$root/proc/$server/status"
  stop
done
cmp "$work/called-none.jpg" "$work/called-process.jpg"

step "The same batch without a server"
inside /release/bin/image-worker batch /trial/images --preset thumbnail --out /trial/batch-local | tail -2 || true
results=$(find "$root/trial/batch-local" -type f -not -path '*/.image-worker/*' | wc -l)
[[ "$results" -gt 50 ]] || fail "the batch has $results results"
for isolation in none process; do
  diff -r --exclude=.image-worker "$root/trial/batch-local" "$root/trial/batch-$isolation"
done
echo "$results results, the same bytes"

step "The playground"
serve playground --port 0 --playground-port 0
page=$(grep -oEm1 'http://127\.0\.0\.1:[1-9][0-9]*' "$work/log")
curl -fsS "$page/" | grep -o '<title>.*</title>'
stop

step "The manual"
gunzip -c "$root/release/share/man/man1/image-worker.1.gz" | head -4
printf '\nThe release works.\n'
