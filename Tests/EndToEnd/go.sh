#!/usr/bin/env bash
# Builds Examples/go with Debian's Go and libraries, extracted into the folder in the first argument without installing
# them: FOLDER/image-worker-example. Does nothing if it is already there.
set -euo pipefail
folder=$1
example=$(realpath "$(dirname "$0")/../../Examples/go")
if [[ "$folder/image-worker-example" -nt "$example/main.go" && "$folder/image-worker-example" -nt "$example/generate.sh" ]]; then
  exit 0
fi
command -v apt-get >/dev/null || { echo "error: Debian's packages of Go are missing" >&2; exit 1; }
packages=(
  golang-1.19-go golang-1.19-src golang-github-golang-protobuf-1-5-dev golang-golang-x-net-dev golang-golang-x-sys-dev
  golang-golang-x-text-dev golang-google-genproto-dev golang-google-grpc-dev golang-google-protobuf-dev libprotobuf32 libprotoc32
  protobuf-compiler protoc-gen-go protoc-gen-go-grpc
)
mkdir -p "$folder"
folder=$(realpath "$folder")
if [[ ! -e "$folder/usr/lib/go-1.19/bin/go" ]]; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  (
    cd "$work"
    chmod 777 .
    apt-get download -q "${packages[@]}" || { apt-get update -qq && apt-get download -q "${packages[@]}"; }
    for package in *.deb; do dpkg-deb -x "$package" "$folder"; done
  ) >&2
fi

# The folders of Debian, before modules.
sources=$folder/own/src
rm -rf "$folder/own"
mkdir -p "$sources/example.com"
cp -r "$example" "$sources/example.com/image-worker-example"
ln -s "$example/../../Sources" "$sources/Sources"
PATH=$folder/usr/bin:$PATH LD_LIBRARY_PATH=$(echo "$folder"/usr/lib/*-linux-gnu) \
  "$sources/example.com/image-worker-example/generate.sh"
# grpc-go 1.33 of Debian lacks this package, which came later: credentials of connections that are not encrypted.
insecure=$sources/google.golang.org/grpc/credentials/insecure
mkdir -p "$insecure"
cat > "$insecure/insecure.go" <<'GO'
package insecure

import (
	"context"
	"net"

	"google.golang.org/grpc/credentials"
)

type plaintext struct{}

func NewCredentials() credentials.TransportCredentials { return plaintext{} }

func (plaintext) ClientHandshake(_ context.Context, _ string, connection net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return connection, nil, nil
}

func (plaintext) ServerHandshake(connection net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return connection, nil, nil
}

func (plaintext) Info() credentials.ProtocolInfo          { return credentials.ProtocolInfo{} }
func (plaintext) Clone() credentials.TransportCredentials { return plaintext{} }
func (plaintext) OverrideServerName(string) error         { return nil }
GO

cd "$sources/example.com/image-worker-example"
export GOROOT=$folder/usr/lib/go-1.19 GOPATH=$folder/usr/share/gocode:$folder/own GO111MODULE=off GOCACHE=$folder/cache CGO_ENABLED=0
"$GOROOT/bin/go" vet .
"$GOROOT/bin/go" build -o "$folder/image-worker-example" .
