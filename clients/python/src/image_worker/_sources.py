"""Images to upload: bytes, files and streams, read in parts, and again for a retry where that is possible."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from typing import Any, Protocol, Union

#: An image: its bytes, the path of its file, a binary file, its bytes in parts, or pixels: a PIL image or an array of uint8.
Source = Union[
    bytes, bytearray, memoryview, str, "os.PathLike[str]", "Readable", "Pixels", Iterable[bytes], AsyncIterable[bytes]]

#: An image of at most this size is sent in one message.
WHOLE_BYTES = 1 << 20
#: The size of the parts of a larger one.
CHUNK_BYTES = 256 << 10


class Readable(Protocol):
    """A binary file."""

    def read(self, size: int = ..., /) -> bytes: ...


class Pixels(Protocol):
    """A PIL image, or an array of the shape (height, width), or (height, width, channels) with 1, 3 or 4 channels."""

    @property
    def __array_interface__(self) -> dict[str, Any]: ...


class SourceError(Exception):
    """Carries an error of a source through code that handles errors of the connection."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class Upload:
    """An image that is uploaded once or several times."""

    def __init__(self, source: Source) -> None:
        self._source: Any = source
        self._start = 0
        self._is_begun = False
        kind = type(source).__name__
        if hasattr(source, "__array_interface__"):
            self._source = encoded(source)
            self._is_replayable = True
        elif isinstance(source, (bytes, bytearray, memoryview, str, os.PathLike)):
            self._is_replayable = True
        elif hasattr(source, "read"):
            file: Any = source
            self._is_replayable = bool(hasattr(file, "seekable") and file.seekable())
            self._start = file.tell() if self._is_replayable else 0
        elif isinstance(source, (Iterable, AsyncIterable)):
            self._is_replayable = False
        else:
            raise TypeError(
                f"an image is bytes, a path, a binary file, an iterable of bytes, a PIL image or an array, not {kind}")

    @property
    def can_start(self) -> bool:
        """Whether the image can be read from its beginning."""
        return self._is_replayable or not self._is_begun

    async def open(self) -> Reader:
        """Starts to read the image. Raises `SourceError` if that fails."""
        self._is_begun = True
        try:
            return await self._open(self._source)
        except Exception as error:
            raise SourceError(error) from error

    async def _open(self, source: Any) -> Reader:
        if isinstance(source, (bytes, bytearray, memoryview)):
            return _Parts(_once(memoryview(source)))
        if isinstance(source, (str, os.PathLike)):
            return _File(await asyncio.to_thread(open, source, "rb"), closes=True)
        if hasattr(source, "read"):
            if self._is_replayable:
                await asyncio.to_thread(source.seek, self._start)
            return _File(source, closes=False)
        return _Parts(aiter(source) if isinstance(source, AsyncIterable) else _in_threads(source))


class Reader:
    """Reads one image from its beginning to its end."""

    async def read(self, limit: int) -> bytes:
        """Returns the next bytes, at most `limit`; none at the end. Raises `SourceError`."""
        try:
            return await self._read(limit)
        except Exception as error:
            raise SourceError(error) from error

    async def read_exactly(self, limit: int) -> bytes:
        """Returns the next `limit` bytes, or fewer at the end."""
        data = await self.read(limit)
        while len(data) < limit and (more := await self.read(limit - len(data))):
            data += more
        return data

    async def _read(self, limit: int) -> bytes:
        raise NotImplementedError

    async def close(self) -> None:
        """Closes what `open` opened."""


class _File(Reader):
    def __init__(self, file: Any, closes: bool) -> None:
        self._file = file
        self._closes = closes

    async def _read(self, limit: int) -> bytes:
        data: bytes = await asyncio.to_thread(self._file.read, limit)
        return data

    async def close(self) -> None:
        if self._closes:
            await asyncio.to_thread(self._file.close)


class _Parts(Reader):
    def __init__(self, parts: AsyncIterator[bytes | memoryview]) -> None:
        self._parts = parts
        self._rest: memoryview = memoryview(b"")

    async def _read(self, limit: int) -> bytes:
        while not self._rest:
            try:
                part = await anext(self._parts)
            except StopAsyncIteration:
                return b""
            if not isinstance(part, (bytes, bytearray, memoryview)):
                raise TypeError(f"the parts of an image are bytes, not {type(part).__name__}")
            self._rest = memoryview(part).cast("B")
        data = bytes(self._rest[:limit])
        self._rest = self._rest[limit:]
        return data


def encoded(pixels: Any) -> bytes:
    """Returns pixels as a file without compression (PNM), without a library."""
    if hasattr(pixels, "mode") and hasattr(pixels, "convert"):  # a PIL image
        if pixels.mode[0] in "IF":
            raise TypeError(f"a PIL image has 8 bits per sample, not the mode {pixels.mode}; convert it first")
        if pixels.mode not in ("L", "RGB", "RGBA"):
            has_alpha = "A" in pixels.getbands() or "transparency" in pixels.info
            pixels = pixels.convert("RGBA" if has_alpha else "L" if pixels.mode == "1" else "RGB")
        return _header(pixels.height, pixels.width, len(pixels.getbands())) + bytes(pixels.tobytes())
    interface = pixels.__array_interface__
    shape = tuple(interface.get("shape", ())) if isinstance(interface, dict) else ()
    count = 1 if len(shape) == 2 else shape[2] if len(shape) == 3 else 0
    if interface.get("typestr") != "|u1" or count not in (1, 3, 4) or 0 in shape or not hasattr(pixels, "tobytes"):
        raise TypeError(
            f"the pixels of an image are uint8 of the shape (height, width) or (height, width, 1, 3 or 4), not "
            f"{interface.get('typestr', 'unknown')} of the shape {shape}")
    return _header(shape[0], shape[1], count) + bytes(pixels.tobytes())


def _header(height: int, width: int, count: int) -> bytes:
    if count == 4:
        return f"P7\nWIDTH {width}\nHEIGHT {height}\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n".encode()
    return f"P{5 if count == 1 else 6}\n{width} {height}\n255\n".encode()


async def _once(part: memoryview) -> AsyncIterator[memoryview]:
    yield part


async def _in_threads(parts: Iterable[bytes]) -> AsyncIterator[bytes]:
    iterator = iter(parts)
    while (part := await asyncio.to_thread(next, iterator, None)) is not None:
        yield part
