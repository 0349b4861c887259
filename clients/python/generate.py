"""Writes the Python code of the contract. Usage: generate.py PROTO_FOLDER PROTO OUT_FOLDER"""

import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import google.rpc
from google.protobuf.descriptor_pb2 import (
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet)

ROOT = "ProcessingConfiguration"
CLASS = {ROOT: "Fields"}
SCALARS = {
    FieldDescriptorProto.TYPE_BOOL: "bool", FieldDescriptorProto.TYPE_DOUBLE: "float",
    FieldDescriptorProto.TYPE_INT32: "int", FieldDescriptorProto.TYPE_UINT32: "int", FieldDescriptorProto.TYPE_UINT64: "int",
    FieldDescriptorProto.TYPE_STRING: "str"}


def protoc(folder: str, proto: str, *options: str) -> None:
    third_party = Path(next(iter(google.rpc.__path__))).parent.parent
    subprocess.run([sys.executable, "-m", "grpc_tools.protoc", f"-I{folder}", f"-I{third_party}", *options, proto], check=True)


def described(folder: str, proto: str) -> FileDescriptorProto:
    with tempfile.NamedTemporaryFile() as out:
        protoc(folder, proto, "--include_source_info", f"--descriptor_set_out={out.name}")
        return FileDescriptorSet.FromString(Path(out.name).read_bytes()).file[0]


class Fields:
    """Typed dictionaries of the messages that a configuration consists of."""

    def __init__(self, file: FileDescriptorProto):
        self.messages = {message.name: (index, message) for index, message in enumerate(file.message_type)}
        self.enums = {enum.name: enum for enum in file.enum_type}
        self.comments = {tuple(place.path): place.leading_comments.strip() for place in file.source_code_info.location}
        self.written: dict[str, str] = {}

    def text(self) -> str:
        self.message(ROOT)
        return "\n\n\n".join(self.written.values()) + "\n"

    def message(self, name: str) -> str:
        index, message = self.messages[name]
        if name not in self.written:
            lines = [f"class {CLASS.get(name, name)}(TypedDict, total=False):", f'    """{self.sentence((4, index))}"""', ""]
            optional = " | None" if name == ROOT else ""
            for number, field in enumerate(message.field):
                comment = textwrap.wrap(self.sentence((4, index, 2, number)), 114)
                lines += [*(f"    # {line}" for line in comment), f"    {field.name}: {self.type(message, field)}{optional}"]
            self.written[name] = "\n".join(lines)
        return name

    def type(self, message: DescriptorProto, field: FieldDescriptorProto) -> str:
        name = field.type_name.rsplit(".", 1)[-1]
        if entry := next((nested for nested in message.nested_type if nested.name == name), None):
            return f"Mapping[str, {SCALARS[entry.field[1].type]}]"
        if field.type == FieldDescriptorProto.TYPE_ENUM:
            single = self.enum(self.enums[name])
        elif field.type == FieldDescriptorProto.TYPE_MESSAGE:
            single = self.message(name)
        else:
            single = SCALARS[field.type]
        return f"Sequence[{single}]" if field.label == FieldDescriptorProto.LABEL_REPEATED else single

    def enum(self, enum: EnumDescriptorProto) -> str:
        prefix = enum.value[0].name.removesuffix("UNSPECIFIED")
        names = ", ".join(f'"{value.name.removeprefix(prefix).lower()}"' for value in enum.value[1:])
        self.written.setdefault(enum.name, f"{enum.name} = Literal[{names}]")
        return enum.name

    def sentence(self, path: tuple[int, ...]) -> str:
        """The first sentence of a comment."""
        return re.split(r"(?<=\.)\s", " ".join(self.comments[path].split()))[0]


def main(folder: str, proto: str, out: Path) -> None:
    with tempfile.TemporaryDirectory() as work:
        protoc(folder, proto, f"--python_out={work}", f"--pyi_out={work}")
        for file in Path(work).rglob("*.py*"):
            # Under the name by which they can be imported, messages can be pickled.
            (out / file.name).write_text(file.read_text().replace(
                "(DESCRIPTOR, 'imageworker.v1.", "(DESCRIPTOR, 'image_worker._generated."))
    header = (
        f'"""The fields of a configuration, generated from {Path(proto).name}, which documents ranges and defaults."""\n\n'
        "from __future__ import annotations\n\n"
        "from collections.abc import Mapping, Sequence\nfrom typing import Literal, TypedDict\n\n\n")
    (out / "fields.py").write_text(header + Fields(described(folder, proto)).text())
    (out / "__init__.py").write_text('"""Code generated from the contract by generate.sh."""\n')


main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
