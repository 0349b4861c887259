#!/usr/bin/env bash
# Builds the container image from a release archive with buildah, without a container engine and without a base image, and runs
# it once. It is what the last stage of the Dockerfile copies.
#
# Use: image.sh ARCHIVE IMAGE.tar, as root, on the Debian that the release was built on, with the packages of its README.
set -euo pipefail
archive=$(realpath "$1") image=$(realpath -m "$2")
cd "$(dirname "$0")"
work=$(mktemp -d)
buildah() { command buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs "$@"; }
trap '[[ -z "${container:-}" ]] || buildah rm "$container" >/dev/null; rm -rf --one-file-system "$work"' EXIT
mkdir "$work/release"
tar -xf "$archive" -C "$work/release" --strip-components=1
./root.sh "$work/release" "$work/root"

container=$(buildah from scratch)
buildah copy --quiet "$container" "$work/root" / >/dev/null
# As the Dockerfile says.
settings=()
while read -r name value; do
  case $name in
    USER) settings+=(--user "$value") ;;
    EXPOSE) settings+=(--port "$value") ;;
    ENV) for variable in $value; do settings+=(--env "$variable"); done ;;
    STOPSIGNAL) settings+=(--stop-signal "$value") ;;
    ENTRYPOINT) settings+=(--entrypoint "$value") ;;
    CMD) settings+=(--cmd "$(tr -d '[]"' <<< "$value")") ;;
  esac
done < <(sed -n '/^FROM scratch/,$p' Dockerfile)
buildah config "${settings[@]}" "$container"
buildah run --isolation chroot "$container" -- /usr/local/bin/image-worker --version --verbose
date=$(stat -c %Y "$work/release/bin/image-worker")
id=$(buildah commit --quiet --timestamp "$date" "$container")
rm -f "$image"
buildah push --quiet "$id" "oci-archive:$image"
echo "The image is $image, $(($(stat -c %s "$image") / 1000000)) MB compressed."
