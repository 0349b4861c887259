#!/usr/bin/env python3
"""Processes many images on one stream, in chunks. Usage: batch.py FOLDER INPUT...

Writes each result to the folder, which is created if missing, under its input's name; inputs that differ in their extension only
keep it. Needs `pip install grpcio grpcio-reflection`.
"""

import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import grpc
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

CHUNK_BYTES = 256 * 1024
# A format that a server names becomes a part of a path, so only known ones are accepted.
EXTENSIONS = {"jpeg": ".jpg", "png": ".png", "webp": ".webp", "avif": ".avif"}


def requests(request_type: type, paths: list[str]) -> Iterator:
    """The parts of all uploads; the worker reads them as fast as it has memory for them."""
    for path in paths:
        yield request_type(item_id=path, start={"preset": "preview"})
        with open(path, "rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                yield request_type(item_id=path, chunk=chunk)
        yield request_type(item_id=path, end={})


def main(folder: Path, paths: list[str]) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    channel = grpc.insecure_channel(os.environ.get("IMAGE_WORKER", "127.0.0.1:50051"))
    pool = DescriptorPool(ProtoReflectionDescriptorDatabase(channel))
    request_type, response_type = (
        GetMessageClass(pool.FindMessageTypeByName(f"imageworker.v1.BatchProcess{name}"))
        for name in ("Request", "Response"))
    process = channel.stream_stream(
        "/imageworker.v1.ImageWorkerService/BatchProcess", request_type.SerializeToString, response_type.FromString)

    names, stems = Counter(Path(path).name for path in paths), Counter(Path(path).stem for path in paths)
    if repeated := [name for name, count in names.items() if count > 1]:
        sys.exit(f"{repeated[0]}: several inputs have this name")
    files, failed = {}, 0
    for response in process(requests(request_type, paths)):
        item = response.item_id
        match response.WhichOneof("part"):
            case "header":
                path = Path(item)
                name = path.stem if stems[path.stem] == 1 else path.name
                files[item] = open(folder / (name + EXTENSIONS[response.header.format]), "wb")
            case "chunk":
                files[item].write(response.chunk)
            case "report":
                files.pop(item).close()
                print(f"{item}: {response.report.input_bytes} -> {response.report.output_bytes} bytes")
            case "error":
                # An item that fails does not end the stream; what it has written so far is incomplete.
                if item in files:
                    file = files.pop(item)
                    file.close()
                    os.remove(file.name)
                print(f"{item}: {response.error.message}", file=sys.stderr)
                failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("usage: batch.py FOLDER INPUT...")
    missing = [path for path in sys.argv[2:] if not os.path.isfile(path)]
    if missing:
        sys.exit(f"{missing[0]}: not a file")
    try:
        sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
    except OSError as error:
        sys.exit(f"{error.filename}: {error.strerror}")
    except grpc.RpcError as error:
        sys.exit(f"{error.code().name}: {error.details()}")
