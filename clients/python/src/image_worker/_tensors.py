"""Images as arrays for models. NumPy is imported when an array is made, not before."""

from __future__ import annotations

import asyncio
import itertools
import math
import operator
import os
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Optional, get_args

from ._batch import BatchResult, Item
from ._generated import image_worker_pb2 as wire
from ._generated.fields import Fields
from ._iteration import iterate
from ._requests import Overlay, configuration
from ._shared_memory import Segment, Segments
from ._sources import Source

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray
    from typing_extensions import Required

    from ._results import Result

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
Channels = Literal["rgb", "bgr", "gray", "RGB", "BGR", "GRAY"]
#: What becomes of an image that fails: "mask" leaves its array zero, "skip" leaves it out, "raise" ends everything.
Errors = Literal["mask", "skip", "raise"]
#: The part of an array that shows its image: x, y, width and height.
Box = tuple[int, int, int, int]

_ELEMENTS = {"uint8": "u8", "float16": "f16", "bfloat16": "bf16", "float32": "f32"}
_TYPES: Mapping[int, str] = {wire.TensorElementType.Value(f"TENSOR_ELEMENT_TYPE_{short.upper()}"): name
                             for name, short in _ELEMENTS.items()}
#: The fields of `tensor` that are not those of the contract.
_DEFAULTS = {"element_type": "f32", "layout": "chw"}
#: The fields that say how an image gets its size; some cannot be combined with the mode "fill".
_FRAMING = ("resize_mode", "pad", "extend_aspect_ratio", "min_width", "min_height")
_MODES: Mapping[str, Mapping[str, object]] = {
    "fill": {"resize_mode": "fill"}, "fit": {"resize_mode": "fit", "pad": True}, "stretch": {"resize_mode": "stretch"}}


class _ArrayOptions(Fields, total=False):
    dtype: DType | DTypeLike
    layout: Layout
    normalize: Normalization
    mode: Mode
    channels: Channels
    preset: str
    timeout: float | None
    auxiliary_images: Mapping[str, Overlay]
    shared_memory: bool


class TensorOptions(_ArrayOptions, total=False):
    """The options of `Client.tensor`, among them all fields of a configuration."""

    width: int | None
    height: int | None


class TensorsOptions(_ArrayOptions, total=False):
    """The options of `Client.tensors`, among them all fields of a configuration."""

    width: Required[int]
    height: Required[int]
    batch_size: int
    errors: Errors
    prefetch: int
    streams: int | None
    window: int


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
    #: The key of each image: that of its `Item`, such as a label, or else its index among all images.
    keys: tuple[Any, ...]

    def __len__(self) -> int:
        return len(self.errors)

    @property
    def mask(self) -> NDArray[Any]:
        """Which images did not fail, as an array of booleans."""
        mask: NDArray[Any] = _numpy().array([error is None for error in self.errors], bool)
        return mask

    def unwrap(self) -> NDArray[Any]:
        """Returns the array, or raises the error of the first image that failed."""
        for error in self.errors:
            if error is not None:
                raise error
        return self.array


def preset_of_tensors(presets: Iterable[wire.Preset], name: str) -> wire.ProcessingConfiguration | None:
    """Returns the fields of a preset that makes tensors; `None` for another one."""
    found = (preset.configuration for preset in presets if preset.name == name)
    return next((fields for fields in found if fields.HasField("tensor")), None)


def tensor_fields(
    known: wire.ProcessingConfiguration | None = None, *, width: int | None = None, height: int | None = None,
    dtype: DTypeLike | None = None, layout: str | None = None, channels: str | None = None, normalize: str | None = None,
    mode: str | None = None, **fields: object,
) -> dict[str, Any]:
    """Returns the fields of a configuration. Those of the caller that are set replace others; in `tensor`, one by one.

    Where `known`, the preset, makes tensors, what the caller does not set is up to it.
    """
    if mode is not None and mode not in _MODES:
        raise ValueError(f"mode is {mode!r}; it must be one of {', '.join(_MODES)}")
    _numpy()
    size: dict[str, object] = {}
    if width is not None and height is not None:
        size = {"max_width": width, "max_height": height}
        if known is None or not known.HasField("allow_upscale"):
            size["allow_upscale"] = True
        if known is None or mode is not None or not any(known.HasField(field) for field in _FRAMING):
            size |= _MODES[mode or "fill"]
    elif width is not None or height is not None:
        raise ValueError("width and height must be set together; without both, the image keeps its size")
    own = fields.get("tensor") or {}
    if isinstance(own, wire.TensorOptions):
        own = {field.name: value for field, value in own.ListFields()}
    if not isinstance(own, Mapping):
        raise TypeError(f"tensor must be a dictionary or TensorOptions, not {type(own).__name__}")
    tensor = {
        "element_type": None if dtype is None else _ELEMENTS[_dtype(dtype).name], "layout": layout, "channels": channels,
        "normalization": normalize, **{name: value for name, value in own.items() if value is not None}}
    if known is None:
        tensor = {**tensor, **{name: tensor[name] or value for name, value in _DEFAULTS.items()}}
        return {"preferred_format": "raw", **size, **fields, "tensor": tensor}
    is_set = any(value is not None for value in tensor.values())
    others = {"preferred_format": "raw", **size}
    # A worker may take presets alone, so that nothing is sent that the preset has.
    return {**{name: value for name, value in others.items() if not _has(known, name, value)}, **fields,
            "tensor": tensor if is_set else None}


def _has(known: wire.ProcessingConfiguration, name: str, value: object) -> bool:
    message = configuration({name: value})
    return message is not None and known.HasField(name) and getattr(known, name) == getattr(message, name)


def tensor_fields_beside(known: wire.ProcessingConfiguration, options: TensorsOptions) -> dict[str, Any]:
    """Returns the fields of a configuration that make arrays as those of the preset `known` whatever an item's preset is."""
    tensor = _merged(known, tensor_fields(known, **options))
    names = {"layout": wire.TensorLayout, "channels": wire.TensorChannels}
    chosen = {name: kind.Name(getattr(tensor, name)).rsplit("_", 1)[1].lower() for name, kind in names.items()
              if tensor.HasField(name)}
    others: dict[str, Any] = {"dtype": _TYPES.get(tensor.element_type, "uint8"), "layout": "hwc", **options, **chosen}
    return tensor_fields(None, **others)


def _merged(known: wire.ProcessingConfiguration | None, fields: Mapping[str, Any]) -> wire.TensorOptions:
    tensor = wire.TensorOptions()
    if known is not None:
        tensor.CopyFrom(known.tensor)
    # Names and numbers of enumerations are read as for a request.
    if (own := configuration({"tensor": fields["tensor"]})) is not None:
        tensor.MergeFrom(own.tensor)
    return tensor


def array_of(result: Result) -> NDArray[Any]:
    """Returns the array of a raw result, which shares memory with nothing else."""
    info = result.report.output.tensor
    if not result.report.output.HasField("tensor"):
        raise ValueError(f"the result is {result.format or 'no tensor'}; request preferred_format=\"raw\"")
    source = _view(result, info)
    array = zeros(source.shape, source.dtype)
    array[...] = source
    return array


class Rows:
    """An array whose rows are results."""

    def __init__(self, count: int, shape: tuple[int, ...], dtype: str) -> None:
        #: The rows along a new first axis; zero at first.
        self.array: NDArray[Any] = zeros((count, *shape), _dtype(dtype))

    def place(self, index: int) -> wire.SharedMemory | None:
        """Returns what a request contains for a result that the worker writes into a row; `None` if results are sent."""
        return None

    def fill(self, index: int, result: Result) -> Box:
        """Makes a result a row. Raises `ValueError` if it is another array."""
        info, row = result.report.output.tensor, self.array[index]
        if tuple(info.shape) != row.shape:
            raise ValueError(f"the worker sent a tensor of the shape {tuple(info.shape)}, not {row.shape}; leave out "
                             "fields that change its size, such as zoom and scale_factor")
        self._put(result, info, row)
        return (info.content.x, info.content.y, info.content.width, info.content.height)

    def hide(self) -> None:
        """Ends what other processes can do with the array."""

    def give(self) -> None:
        """Leaves the array, all of which is written, to the caller."""

    def _put(self, result: Result, info: wire.TensorInfo, row: Any) -> None:
        row[...] = _view(result, info)


class SharedRows(Rows):
    """An array in shared memory, whose rows a worker writes."""

    def __init__(self, count: int, shape: tuple[int, ...], dtype: str, segments: Segments) -> None:
        element = _dtype(dtype)
        self._row_bytes = math.prod(shape) * element.itemsize
        self._segments = segments
        self._segment = segments.create(count * self._row_bytes)
        self.array = _numpy().frombuffer(self._segment.memory, element).reshape((count, *shape))

    def place(self, index: int) -> wire.SharedMemory:
        return self._segment.place(index * self._row_bytes, self._row_bytes)

    def hide(self) -> None:
        self._segment.hide()

    def give(self) -> None:
        self._segments.give(self._segment)

    def _put(self, result: Result, info: wire.TensorInfo, row: Any) -> None:
        if result.data:  # of a worker that does not know shared memory
            super()._put(result, info, row)
        elif _TYPES.get(info.element_type) != row.dtype.name or result.report.output_bytes != self._row_bytes:
            raise ValueError(f"the worker wrote {result.report.output_bytes} bytes of another type than {row.dtype.name}")


def zeros(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """Returns a new array. Its address is a multiple of 64, as JAX copies others."""
    numpy = _numpy()
    size = math.prod(shape) * dtype.itemsize
    data = numpy.zeros(size + 64, numpy.uint8)
    start = -data.ctypes.data % 64
    array: NDArray[Any] = data[start:start + size].view(dtype).reshape(shape)
    return array


def no_rows(options: TensorsOptions, known: wire.ProcessingConfiguration | None) -> NDArray[Any]:
    """Returns the array of a batch without images. `known` is its preset, if that makes tensors."""
    shape, dtype = form_of(options, tensor_fields(known, **options), known)
    return zeros((0, *shape), _dtype(dtype))


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
        raise ImportError("arrays need NumPy: pip install numpy") from None
    return numpy


def _dtype(named: DTypeLike) -> Any:
    numpy = _numpy()
    try:
        name = named if isinstance(named, str) and named in _ELEMENTS else numpy.dtype(named).name
    except TypeError:
        name = str(named)
    if name not in _ELEMENTS:
        raise ValueError(f"dtype is {name!r}; it must be one of {', '.join(_ELEMENTS)}")
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

    def __init__(
        self, size: int, ahead: int, shape: tuple[int, ...], dtype: str, policy: Errors = "mask",
        segments: Segments | None = None, others: Mapping[str, object] = {},
    ) -> None:
        if isinstance(size, bool) or not hasattr(size, "__index__") or size < 1:
            raise ValueError(f"batch_size is {size!r}; it must be an integer, at least 1")
        size = operator.index(size)  # of NumPy, too
        if policy not in get_args(Errors):
            raise ValueError(f"errors is {policy!r}; it must be one of {', '.join(get_args(Errors))}")
        if segments is not None and policy == "skip":
            raise ValueError("shared_memory does not work with errors='skip', as the worker writes each image into its place")
        self._size, self._shape, self._dtype, self._policy, self._segments = size, shape, dtype, policy, segments
        # The fields of items that have a preset of their own.
        self._others = others
        self._room = asyncio.Semaphore(size + ahead)
        self._keys: dict[int, Any] = {}
        self._results: dict[int, BatchResult[int]] = {}
        self._next = 0
        # Of the batch that has begun: the number, key, error and content of each image.
        self._rows: list[tuple[int, Any, Exception | None, Box | None]] = []
        # The arrays of that batch and of later ones, some of whose images have been taken.
        self._arrays: dict[int, Rows] = {}
        # Whether a worker may still write into the batch that has begun: for an image that was given up, or sent again.
        self._is_written = False
        self._taken = 0
        # What the iterable of images raised. It follows the images before it.
        self._failure: Exception | None = None

    async def aclose(self) -> None:
        """Hides the arrays of images that are not waited for any more."""
        while self._arrays:
            self._arrays.popitem()[1].hide()

    def _array(self, batch: int) -> Rows:
        if batch not in self._arrays:
            of_batch = self._size, self._shape, self._dtype
            self._arrays[batch] = SharedRows(*of_batch, self._segments) if self._segments else Rows(*of_batch)
        return self._arrays[batch]

    async def numbered(
        self, values: Iterable[Source | Item[Any]] | AsyncIterable[Source | Item[Any]],
    ) -> AsyncIterator[Item[int]]:
        """Numbers images as there is room for them. Raises `TypeError` for one image in place of many."""
        if isinstance(values, (str, bytes, bytearray, memoryview, os.PathLike)):
            raise TypeError(f"images is an iterable of images, not {type(values).__name__}; write [image] for a single one")
        async with aclosing(iterate(values)) as source:
            for number in itertools.count():
                try:
                    value = await anext(source)
                except StopAsyncIteration:
                    return
                except Exception as error:
                    self._failure = error
                    return
                await self._room.acquire()
                self._keys[number] = value.key if isinstance(value, Item) else number
                memory = self._array(number // self._size).place(number % self._size) if self._segments else None
                if isinstance(value, Item) and value.preset is not None:
                    value = replace(value, fields={**self._others, **value.fields})
                yield (
                    replace(value, key=number, memory=memory) if isinstance(value, Item) else Item(number, value, memory=memory))

    async def batches(self, results: AsyncGenerator[BatchResult[int], None]) -> AsyncGenerator[TensorBatch, None]:
        """Returns batches as all of their results have come."""
        async for result in results:
            self._results[result.key] = result
            while self._next in self._results:
                self._add(self._results.pop(self._next))
                if len(self._rows) == self._size:
                    yield self._take()
        if self._rows:
            yield self._take()
        if self._failure:
            raise self._failure

    def _add(self, outcome: BatchResult[int]) -> None:
        """Adds the row of the next image."""
        number, error, content = self._next, outcome.error, None
        self._next += 1
        self._room.release()
        key = self._keys.pop(number)
        if outcome.result is not None:
            try:
                content = self._array(self._taken).fill(len(self._rows), outcome.result)
            except ValueError as caught:
                error = caught
        self._is_written |= self._segments is not None and (error is not None or outcome.attempts > 1)
        if error is not None and self._policy == "raise":
            raise error
        if error is None or self._policy == "mask":
            self._rows.append((number, key, error, content))

    def _take(self) -> TensorBatch:
        numbers, keys, errors, contents = zip(*self._rows)
        rows = self._array(self._taken)
        del self._arrays[self._taken]
        self._taken += 1
        self._rows = []
        array = rows.array[:len(numbers)]
        if not self._is_written:
            rows.give()
        else:
            rows.hide()
            copy = zeros(array.shape, array.dtype)
            for index, error in enumerate(errors):
                if error is None:
                    copy[index] = array[index]
            array, self._is_written = copy, False
        return TensorBatch(array, errors, contents, numbers[0], keys)


def form_of(
    options: TensorOptions | TensorsOptions, fields: Mapping[str, Any], known: wire.ProcessingConfiguration | None,
) -> tuple[tuple[int, ...], str]:
    """Returns the shape and the type of the arrays of `fields`, which `tensor_fields` made of `options` and `known`.

    Raises `ValueError` for elements of another type than those of the arrays.
    """
    width, height = options.get("width"), options.get("height")
    if width is None or height is None:
        raise TypeError("tensors of one shape need width and height")
    tensor = _merged(known, fields)
    elements, dtype = _TYPES.get(tensor.element_type, "uint8"), options.get("dtype")
    if dtype is not None and elements != (name := _dtype(dtype).name):
        raise ValueError(f"dtype is {name!r}, but tensor.element_type that of {elements!r}; set dtype alone")
    count = 1 if tensor.channels == wire.TENSOR_CHANNELS_GRAY else 3
    return (count, height, width) if tensor.layout == wire.TENSOR_LAYOUT_CHW else (height, width, count), elements
