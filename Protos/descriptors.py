"""Writes one descriptor set: our protos, and the third-party ones that the worker serves, each with its imports.

The third-party descriptors come from their published Python packages, so that no foreign .proto file is kept here.
grpc.reflection.v1 is published there only as v1alpha; the two differ in the package name alone.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from google.protobuf import descriptor_pb2
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

PROTOS = Path(__file__).parent


def compiled(include: Path) -> descriptor_pb2.FileDescriptorSet:
    with tempfile.NamedTemporaryFile() as out:
        subprocess.run(
            [sys.executable, "-m", "grpc_tools.protoc", f"-I{PROTOS}", f"-I{include}", "--include_imports",
             f"--descriptor_set_out={out.name}", "imageworker/v1/image_worker.proto"], check=True)
        return descriptor_pb2.FileDescriptorSet.FromString(Path(out.name).read_bytes())


def described(module, name: str) -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)
    file.name = name  # the Python packages were built from a path of their own
    file.ClearField("options")
    return file


def renamed(file: descriptor_pb2.FileDescriptorProto, old: str, new: str) -> descriptor_pb2.FileDescriptorProto:
    copy = descriptor_pb2.FileDescriptorProto.FromString(file.SerializeToString())
    copy.name = copy.name.replace(old.replace(".", "/"), new.replace(".", "/"))
    copy.package = new

    def fields(messages):
        for message in messages:
            yield from message.field
            yield from fields(message.nested_type)

    for field in fields(copy.message_type):
        if field.type_name:
            field.type_name = field.type_name.replace(f".{old}.", f".{new}.")
    for service in copy.service:
        for method in service.method:
            method.input_type = method.input_type.replace(f".{old}.", f".{new}.")
            method.output_type = method.output_type.replace(f".{old}.", f".{new}.")
    return copy


def main() -> None:
    import google.rpc
    include = Path(next(iter(google.rpc.__path__))).parent.parent
    files = list(compiled(include).file)
    alpha = described(reflection_pb2, "grpc/reflection/v1alpha/reflection.proto")
    files += [described(health_pb2, "grpc/health/v1/health.proto"), renamed(alpha, "grpc.reflection.v1alpha", "grpc.reflection.v1"), alpha]
    Path(sys.argv[1]).write_bytes(descriptor_pb2.FileDescriptorSet(file=files).SerializeToString(deterministic=True))


main()
