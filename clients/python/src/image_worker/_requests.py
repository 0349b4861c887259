"""Requests from Python values: field names as in the contract, short names for enumerations, dictionaries for messages."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Union

from google.protobuf.message import Message

from ._deadline import Deadline
from ._generated import image_worker_pb2 as wire
from ._threads import in_thread


def configuration(fields: Mapping[str, object]) -> wire.ProcessingConfiguration | None:
    """Creates a configuration, or returns `None` if no field is set. A field that is `None` is not set.

    Raises `TypeError` for an unknown field or a value of the wrong type, and `ValueError` for an unknown name. The worker
    checks ranges.
    """
    message = wire.ProcessingConfiguration()
    _fill(message, fields, "")
    return message if message.ListFields() else None


def renditions(named: Mapping[str, Mapping[str, object]]) -> list[wire.Rendition]:
    """Creates renditions from their names, each with its preset and fields."""
    if not named:
        raise ValueError("renditions is empty")
    return [_rendition(name, fields) for name, fields in named.items()]


def _rendition(name: str, fields: Mapping[str, object]) -> wire.Rendition:
    if not isinstance(name, str):
        raise TypeError(f"the name of a rendition is a str, not {type(name).__name__}")
    message = wire.Rendition(rendition_id=name, preset=str(fields.get("preset") or ""))
    own = wire.ProcessingConfiguration()
    _fill(own, {key: value for key, value in fields.items() if key != "preset"}, f"renditions[{name!r}].")
    if own.ListFields():
        message.configuration.CopyFrom(own)
    return message


#: An image that overlays name: its bytes, or the path of its file.
Overlay = Union[bytes, bytearray, memoryview, str, "os.PathLike[str]"]


async def auxiliary_images(named: Mapping[str, Overlay], deadline: Deadline) -> list[wire.AuxiliaryImage]:
    """Reads the images that overlays name. Raises `OSError` for a file that cannot be read, and `DeadlineError`."""
    return await deadline.limit(in_thread, _read, named) if named else []


def _read(named: Mapping[str, Overlay]) -> list[wire.AuxiliaryImage]:
    return [wire.AuxiliaryImage(name=name, image=_contents(name, image)) for name, image in named.items()]


def _contents(name: str, image: Overlay) -> bytes:
    if isinstance(image, (bytes, bytearray, memoryview)):
        return bytes(image)
    if not isinstance(image, (str, os.PathLike)):
        raise TypeError(f"auxiliary_images[{name!r}] must be bytes or a path, not {type(image).__name__}")
    with open(image, "rb") as file:
        return file.read()


def _fill(message: Message, values: Mapping[str, object], path: str) -> None:
    descriptor: Any = message.DESCRIPTOR
    if isinstance(message, wire.Filter):
        message.intensity = 1  # as on the command line and in files of presets
    for name, value in values.items():
        field = descriptor.fields_by_name.get(name)
        if field is None:
            raise TypeError(f"{path}{name} is not a field; the fields are {_names(descriptor)}")
        if value is None:
            continue
        try:
            _set(message, field, value, path + name)
        except (TypeError, ValueError, OverflowError) as error:
            text = str(error)
            raise type(error)(text if text.startswith(path + name) else f"{path}{name}: {text}") from None


def _set(message: Message, field: Any, value: Any, path: str) -> None:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        getattr(message, field.name).update(value)
    elif field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED:
        if hasattr(value, "tolist"):  # an array of NumPy
            value = value.tolist()
        if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Sequence):
            raise TypeError(f"{path} must be a list")
        if field.message_type is None:
            getattr(message, field.name).extend(value)
            return
        for index, element in enumerate(value):
            _fill_or_copy(getattr(message, field.name).add(), element, f"{path}[{index}]")
    elif field.message_type is not None:
        target = getattr(message, field.name)
        target.SetInParent()
        _fill_or_copy(target, value, path)
    elif field.enum_type is not None and isinstance(value, str):
        setattr(message, field.name, _enum_value(field, value, path))
    else:
        setattr(message, field.name, value)


def _fill_or_copy(target: Message, value: Any, path: str) -> None:
    if isinstance(value, Message):
        target.CopyFrom(value)
    elif isinstance(value, Mapping):
        _fill(target, value, path + ".")
    else:
        raise TypeError(f"{path} must be a dictionary with the keys {_names(target.DESCRIPTOR)}")


def _enum_value(field: Any, name: str, path: str) -> int:
    values = field.enum_type.values
    prefix = values[0].name.removesuffix("UNSPECIFIED")
    by_name: dict[str, int] = {value.name.removeprefix(prefix).lower(): value.number for value in values[1:]}
    if name.lower() not in by_name:
        raise ValueError(f"{path} is {name!r}; it must be one of {', '.join(by_name)}")
    return by_name[name.lower()]


def _names(descriptor: Any) -> str:
    return ", ".join(field.name for field in descriptor.fields)
