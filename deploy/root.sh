#!/usr/bin/env bash
# Writes the root of a container image: the program of an unpacked release, the libraries that it loads with their licenses,
# fonts, certificates, and a user. No shell and no package manager; the packages are listed where scanners look for them.
#
# Use: root.sh RELEASE ROOT, on the Debian that the release was built on, with the packages of its README installed.
set -euo pipefail
release=$1 root=$2
mkdir -p "$root"
[[ -z "$(ls -A "$root")" ]] || { echo "error: $root is not empty" >&2; exit 1; }
mkdir -p "$root"/{etc/ssl/certs,proc,usr/local/bin,usr/local/share,usr/share/doc,var/lib/dpkg/status.d}
# As Debian has them, so that libraries are found at both of their paths.
for folder in bin lib lib64 sbin; do
  mkdir -p "$root/usr/$folder"
  ln -s "usr/$folder" "$root/$folder"
done
install -d -m 1777 "$root/tmp" "$root/var/tmp"
install "$release/bin/image-worker" "$root/usr/local/bin/image-worker"
cp -r "$release/share/licenses" "$root/usr/local/share/licenses"
cp "$release/LICENSE" "$release/share/image-worker.cdx.json" "$root/usr/local/share"

# Whoever owns a library, by any of its paths.
owner() { { dpkg -S "$1" || dpkg -S "${1#/usr}" || dpkg -S "$(realpath "$1")"; } 2>/dev/null | head -1 | cut -d: -f1; }
mapfile -t libraries < <(ldd "$release/bin/image-worker" | sed -nE 's|^[^/]*(/[^ ]+) \(0x.*|\1|p' | sort -u)
for library in "${libraries[@]}"; do
  # Under its own name; links of versions are for linkers.
  install -D -m 755 "$library" "$root/${library#/}"
  owner "$library"
done | sort -u > "$root/var/lib/dpkg/packages"
# DejaVu for texts, and how fonts are found; operators mount more in /usr/share/fonts.
if [[ " ${libraries[*]} " == *"/libfontconfig.so"* ]]; then
  mkdir -p "$root/etc" "$root/usr/share/fonts/truetype"
  cp -rL /etc/fonts "$root/etc/fonts"
  cp -r /usr/share/fonts/truetype/dejavu "$root/usr/share/fonts/truetype/dejavu"
  printf 'fontconfig-config\nfonts-dejavu-core\n' >> "$root/var/lib/dpkg/packages"
fi
while read -r package; do
  dpkg-query -s "$package" > "$root/var/lib/dpkg/status.d/$package"
  install -D -m 644 "$(realpath "/usr/share/doc/$package/copyright")" "$root/usr/share/doc/$package/copyright"
done < "$root/var/lib/dpkg/packages"
rm "$root/var/lib/dpkg/packages"

cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
cp /etc/os-release "$root/etc/os-release"
echo 'hosts: files dns' > "$root/etc/nsswitch.conf"
printf 'root:x:0:0::/:/nonexistent\nimage-worker:x:10001:10001::/:/nonexistent\n' > "$root/etc/passwd"
printf 'root:x:0:\nimage-worker:x:10001:\n' > "$root/etc/group"
# Times are those of the release, so that the same release gives the same files.
find "$root" -exec touch --no-dereference --reference="$release/bin/image-worker" {} +
du -sk "$root" | awk '{printf "The root has %.1f MB.\n", $1 * 1.024 / 1000}'
