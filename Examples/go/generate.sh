#!/usr/bin/env bash
# Generates the messages and the client of the worker into this folder. Needs protoc, protoc-gen-go and protoc-gen-go-grpc.
set -euo pipefail
cd "$(dirname "$0")"
mapping=Mimageworker/v1/image_worker.proto=example.com/image-worker-example/imageworkerv1
status=Mgoogle/rpc/status.proto=google.golang.org/genproto/googleapis/rpc/status

# The descriptor set of the worker also has the protos that the contract imports.
protoc --descriptor_set_in=../../Sources/WorkerProtocol/Generated/descriptor_set.binpb \
  --go_out=. --go_opt="module=example.com/image-worker-example,$mapping,$status" \
  --go-grpc_out=. --go-grpc_opt="module=example.com/image-worker-example,$mapping,$status" \
  imageworker/v1/image_worker.proto
