"""Writes three descriptor sets, each file with its imports: our protos and the third-party ones that the worker serves,
with the comments of ours; the same without comments, to generate code from; and those that the worker calls
(OpenTelemetry's collector).

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
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

PROTOS = Path(__file__).parent


def compiled(include: Path) -> descriptor_pb2.FileDescriptorSet:
    with tempfile.NamedTemporaryFile() as out:
        subprocess.run(
            [sys.executable, "-m", "grpc_tools.protoc", f"-I{PROTOS}", f"-I{include}", "--include_imports", "--include_source_info",
             f"--descriptor_set_out={out.name}", "imageworker/v1/image_worker.proto", "inference/open_inference.proto",
             # The details of errors: imported by no other file, but clients such as grpcurl show them by reflection.
             "google/rpc/error_details.proto"], check=True)
        return descriptor_pb2.FileDescriptorSet.FromString(Path(out.name).read_bytes())


def keep_comments(file: descriptor_pb2.FileDescriptorProto) -> None:
    """Keeps the comments before declarations of our contract, and nothing else of what is known of the files' sources."""
    kept = [place for place in file.source_code_info.location if place.leading_comments and file.package == "imageworker.v1"]
    file.ClearField("source_code_info")
    for place in kept:
        place.ClearField("leading_detached_comments")
        file.source_code_info.location.append(place)


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


def with_imports(*modules) -> list[descriptor_pb2.FileDescriptorProto]:
    files = {}

    def visit(file) -> None:
        if file.name in files:
            return
        for imported in file.dependencies:
            visit(imported)
        files[file.name] = descriptor_pb2.FileDescriptorProto.FromString(file.serialized_pb)
        files[file.name].ClearField("options")

    for module in modules:
        visit(module.DESCRIPTOR)
    return list(files.values())


def write(path: str, files: list[descriptor_pb2.FileDescriptorProto]) -> None:
    Path(path).write_bytes(descriptor_pb2.FileDescriptorSet(file=files).SerializeToString(deterministic=True))


def main() -> None:
    import google.rpc
    include = Path(next(iter(google.rpc.__path__))).parent.parent
    files = list(compiled(include).file)
    alpha = described(reflection_pb2, "grpc/reflection/v1alpha/reflection.proto")
    files += [described(health_pb2, "grpc/health/v1/health.proto"), renamed(alpha, "grpc.reflection.v1alpha", "grpc.reflection.v1"), alpha]
    for file in files:
        keep_comments(file)
    write(sys.argv[1], files)
    for file in files:
        file.ClearField("source_code_info")
    write(sys.argv[2], files)
    write(sys.argv[3], with_imports(trace_service_pb2, metrics_service_pb2, logs_service_pb2))


main()
