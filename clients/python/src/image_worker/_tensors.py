"""Images as arrays for models. NumPy is imported when an array is made, not before."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Optional, TypeVar, Union

from ._batch import BatchResult
from ._generated import image_worker_pb2 as wire
from ._iteration import iterate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._results import Result

Value = TypeVar("Value")

#: The type of the elements, as NumPy names it. "bfloat16" needs the package ml_dtypes.
DType = Literal["uint8", "float16", "bfloat16", "float32"]
#: The order of the dimensions.
Layout = Literal["hwc", "chw", "HWC", "CHW"]
#: How an image gets its size: "fill" covers it and crops the rest, "fit" keeps all of the image and pads it (letterbox),
#: "stretch" does not keep the aspect ratio.
Mode = Literal["fill", "fit", "stretch"]
#: A normalization of the contract, or None for its default: "unit" (0 to 1), "none" for uint8.
Normalization = Optional[Literal["none", "unit", "half", "imagenet", "clip"]]
#: The channels and their order.
Channels = Literal["rgb", "bgr", "gray"]
#: The part of an array that shows its image: x, y, width and height.
Box = tuple[int, int, int, int]

_ELEMENTS = {"uint8": "u8", "float16": "f16", "bfloat16": "bf16", "float32": "f32"}
_TYPES: Mapping[int, str] = {wire.TensorElementType.Value(f"TENSOR_ELEMENT_TYPE_{short.upper()}"): name
                             for name, short in _ELEMENTS.items()}
_MODES: Mapping[str, Mapping[str, object]] = {
    "fill": {"resize_mode": "fill"}, "fit": {"resize_mode": "fit", "pad": True}, "stretch": {"resize_mode": "stretch"}}


@dataclass(frozen=True)
class TensorBatch:
    """Arrays of consecutive images in one array, in their order."""

    #: The arrays, stacked along a new first axis: [N, channels, height, width], or with the layout "hwc" [N, height, width,
    #: channels]. The array of an image that failed is zero.
    array: NDArray[Any]
    #: Why the image at this index failed: an `ImageWorkerError`, or the error that reading it raised. `None` if it did not.
    errors: tuple[Exception | None, ...]
    #: The part of each array that shows the image, without the padding of "fit". `None` if it failed.
    contents: tuple[Box | None, ...]
    #: The index of the first image among all of them.
    start: int

    def __len__(self) -> int:
        return len(self.errors)

    def unwrap(self) -> NDArray[Any]:
        """Returns the array, or raises the error of the first image that failed."""
        for error in self.errors:
            if error is not None:
                raise error
        return self.array


def tensor_fields(
    width: int | None, height: int | None, dtype: str, layout: str, channels: str, normalize: str | None, mode: str,
    fields: Mapping[str, object],
) -> dict[str, Any]:
    """Returns the fields of a configuration. Those of the caller replace others; in `tensor`, one by one."""
    if mode not in _MODES:
        raise ValueError(f"mode is {mode!r}; it must be one of {', '.join(_MODES)}")
    if dtype not in _ELEMENTS:
        raise ValueError(f"dtype is {dtype!r}; it must be one of {', '.join(_ELEMENTS)}")
    _dtype(dtype)
    size: dict[str, object] = {}
    if width is not None and height is not None:
        size = {"max_width": width, "max_height": height, "allow_upscale": True, **_MODES[mode]}
    elif width is not None or height is not None:
        raise ValueError("width and height must be set together; without both, the image keeps its size")
    own = fields.get("tensor")
    tensor = {
        "element_type": _ELEMENTS[dtype], "layout": layout.lower(), "channels": channels, "normalization": normalize,
        **(own if isinstance(own, Mapping) else {})}
    return {"preferred_format": "raw", **size, **fields, "tensor": tensor}


def array_of(result: Result) -> NDArray[Any]:
    """Returns the array of a raw result, which shares memory with nothing else."""
    info = result.report.output.tensor
    if not result.report.output.HasField("tensor"):
        raise ValueError(f"the result is {result.format or 'no tensor'}; request preferred_format=\"raw\"")
    return _view(result, info).copy()


def _view(result: Result, info: wire.TensorInfo) -> NDArray[Any]:
    if info.element_type not in _TYPES or len(info.shape) != 3:
        raise ValueError("the worker sent a tensor of an unknown type")
    dtype = _dtype(_TYPES[info.element_type])
    if len(result.data) != math.prod(info.shape) * dtype.itemsize:
        raise ValueError(f"the worker sent {len(result.data)} bytes for a tensor of the shape {tuple(info.shape)}")
    numpy = _numpy()
    array: NDArray[Any] = numpy.frombuffer(result.data, dtype).reshape(tuple(info.shape))
    return array


def _numpy() -> Any:
    try:
        import numpy
    except ImportError:
        raise ImportError("arrays need NumPy: pip install 'image-worker-client[tensors]'") from None
    return numpy


def _dtype(name: str) -> Any:
    numpy = _numpy()
    if name != "bfloat16":
        return numpy.dtype(name).newbyteorder("<")
    try:
        import ml_dtypes
    except ImportError:
        raise ImportError("arrays of bfloat16 need the package ml_dtypes") from None
    return numpy.dtype(ml_dtypes.bfloat16)


class Stack:
    """Puts arrays into batches in the order of their images, whatever the order in which they come.

    At most `ahead` images more than those of the next batch are taken, so that one slow image does not fill the memory.
    """

    def __init__(self, size: int, ahead: int, shape: tuple[int, ...], dtype: str) -> None:
        if size < 1:
            raise ValueError(f"batch_size is {size}; it must be at least 1")
        self._size, self._shape, self._dtype = size, shape, _dtype(dtype)
        self._room = asyncio.Semaphore(size + ahead)
        self._results: dict[int, BatchResult[int]] = {}
        self._start = 0

    async def numbered(self, values: Iterable[Value] | AsyncIterable[Value]) -> AsyncIterator[tuple[int, Value]]:
        """Numbers values as there is room for them."""
        number = 0
        async with aclosing(iterate(values)) as source:
            async for value in source:
                await self._room.acquire()
                yield number, value
                number += 1

    async def batches(self, results: AsyncGenerator[BatchResult[int], None]) -> AsyncGenerator[TensorBatch, None]:
        """Returns batches as all of their results have come."""
        async for result in results:
            self._results[result.key] = result
            while all(self._start + index in self._results for index in range(self._size)):
                yield self._take(self._size)
        while self._results:
            yield self._take(min(self._size, len(self._results)))

    def _take(self, count: int) -> TensorBatch:
        array = _numpy().zeros((count, *self._shape), self._dtype)
        errors: list[Exception | None] = []
        contents: list[Box | None] = []
        for index in range(count):
            outcome = self._results.pop(self._start + index)
            error, content = outcome.error, None
            if outcome.result is not None:
                try:
                    content = self._copy(outcome.result, array[index])
                except ValueError as caught:
                    error = caught
            errors.append(error)
            contents.append(content)
            self._room.release()
        self._start += count
        return TensorBatch(array, tuple(errors), tuple(contents), self._start - count)

    def _copy(self, result: Result, row: Any) -> Box:
        info = result.report.output.tensor
        if tuple(info.shape) != self._shape:
            raise ValueError(f"the worker sent a tensor of the shape {tuple(info.shape)}, not {self._shape}")
        row[...] = _view(result, info)
        return (info.content.x, info.content.y, info.content.width, info.content.height)


def shape_of(width: int, height: int, fields: Mapping[str, Any]) -> tuple[int, ...]:
    """Returns the shape that `tensor_fields` of this size request."""
    count = 1 if fields["tensor"]["channels"] == "gray" else 3
    return (height, width, count) if fields["tensor"]["layout"] == "hwc" else (count, height, width)


