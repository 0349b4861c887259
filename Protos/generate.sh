#!/usr/bin/env bash
# Regenerates Sources/WorkerProtocol/Generated from the protos: messages, service stubs, client stubs of what the worker
# calls, and the descriptor set that reflection serves; and the messages of the Python client. With --check it changes
# nothing, and fails when what is committed differs.
set -euo pipefail
cd "$(dirname "$0")/.."

generated=Sources/WorkerProtocol/Generated
work=.build/protos
venv=$work/venv

# `swift build` would need the generated code; the plugins are built by name.
deploy/swift.sh build -c release --product protoc-gen-swift
deploy/swift.sh build -c release --product protoc-gen-grpc-swift-2
bin=$(deploy/swift.sh build -c release --show-bin-path)

if ! cmp -s Protos/requirements.txt "$venv/requirements.txt"; then
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check -r Protos/requirements.txt
  cp Protos/requirements.txt "$venv/requirements.txt"
fi

out=$work/generated
rm -rf "$out"
mkdir -p "$out"
"$venv/bin/python" Protos/descriptors.py "$out/descriptor_set.binpb" "$work/plain.binpb" "$work/called.binpb"

# $1: the descriptor set. $2: further options of the stubs. Others: the files to generate code for.
generate() {
  local set=$1 stubs=$2
  shift 2
  # Called this way protoc has no search path, and takes the files from the descriptor set alone.
  "$venv/bin/python" -c 'import sys; from grpc_tools import protoc; sys.exit(protoc.main(sys.argv))' \
    --descriptor_set_in="$set" \
    --plugin="protoc-gen-swift=$bin/protoc-gen-swift" \
    --swift_out="$out" --swift_opt=Visibility=Public,FileNaming=PathToUnderscores,UseAccessLevelOnImports=true \
    --plugin="protoc-gen-grpc-swift=$bin/protoc-gen-grpc-swift-2" \
    --grpc-swift_out="$out" \
    --grpc-swift_opt="Visibility=Public,FileNaming=PathToUnderscores,UseAccessLevelOnImports=true$stubs" "$@"
}

generate "$work/plain.binpb" "" imageworker/v1/image_worker.proto inference/open_inference.proto google/rpc/status.proto \
  grpc/health/v1/health.proto grpc/reflection/v1/reflection.proto
otlp=opentelemetry/proto
called=()
for subject in common resource trace metrics logs; do called+=("$otlp/$subject/v1/$subject.proto"); done
for subject in trace metrics logs; do called+=("$otlp/collector/$subject/v1/${subject}_service.proto"); done
generate "$work/called.binpb" ,Server=false "${called[@]}"
cat > "$out/descriptor_set.swift" <<'SWIFT'
/// The `google.protobuf.FileDescriptorSet` of everything that is served, as reflection gives it out.
public enum DescriptorSet {
  /// The serialized set; each file comes after those it imports.
  public static var serialized: [UInt8] { PackageResources.descriptor_set_binpb }
}
SWIFT
# A file without services gives an empty stub.
grep -LE '^(public|internal|extension|@available)' "$out"/*.grpc.swift | xargs -r rm

if [[ "${1:-}" == --check ]]; then
  diff -r "$generated" "$out" || { echo "error: run 'make generate' and commit the result" >&2; exit 1; }
else
  rm -rf "$generated"
  cp -r "$out" "$generated"
fi

clients/python/generate.sh "$@"
