#!/usr/bin/env python3
"""Processes one image. Usage: process.py INPUT OUTPUT [PRESET]

Needs `pip install grpcio grpcio-reflection`. The message types come from the server's reflection, so no code is generated.
"""

import os
import sys

import grpc
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

SERVICE = "imageworker.v1.ImageWorkerService"


def main(input_path: str, output_path: str, preset: str = "preview") -> None:
    with open(input_path, "rb") as file:
        image = file.read()
    channel = grpc.insecure_channel(os.environ.get("IMAGE_WORKER", "127.0.0.1:50051"))
    pool = DescriptorPool(ProtoReflectionDescriptorDatabase(channel))
    request_type, response_type = (
        GetMessageClass(pool.FindMessageTypeByName(f"imageworker.v1.ProcessImage{name}"))
        for name in ("Request", "Response"))
    process = channel.unary_stream(
        f"/{SERVICE}/ProcessImage", request_type.SerializeToString, response_type.FromString)

    request = request_type(image=image, preset=preset)
    chunks = []
    for response in process(request, timeout=60):
        match response.WhichOneof("part"):
            case "header":
                print(f"result: {response.header.format} {response.header.width}x{response.header.height}")
            case "chunk":
                chunks.append(response.chunk)
            case "report":
                print(response.report)
    # A call that fails leaves what is there.
    with open(output_path, "wb") as file:
        file.writelines(chunks)


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit("usage: process.py INPUT OUTPUT [PRESET]")
    try:
        main(*sys.argv[1:])
    except OSError as error:
        sys.exit(f"{error.filename}: {error.strerror}")
    except grpc.RpcError as error:
        sys.exit(f"{error.code().name}: {error.details()}")
