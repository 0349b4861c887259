"""Images to upload: bytes, files, URLs, streams and pixels, read in parts, and again for a retry where that is possible."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import re
import struct
import threading
import zlib
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, Union

from ._deadline import Deadline
from ._threads import in_thread

if TYPE_CHECKING:
    from typing_extensions import Buffer

#: An image: its bytes, the path of its file, a URL that fsspec reads, a binary file, a file of `fsspec.open`, its bytes in parts,
#: or pixels: a PIL image or an array of uint8.
Source = Union[
    bytes, bytearray, memoryview, "Buffer", str, "os.PathLike[str]", "Readable", "Openable", "Pixels", Iterable[bytes],
    AsyncIterable[bytes]]

#: An image of at most this size is sent in one message.
WHOLE_BYTES = 1 << 20
#: The size of the parts of a larger one.
CHUNK_BYTES = 256 << 10

_ACCEPTED = (
    "an image is bytes, a path, a URL, a binary file, an iterable of bytes, a PIL image or an array of uint8")
# Follows the last part.
_END = object()
# With two letters or more, as C:/ begins a path. A file system of fsspec can wrap another: zip://a.jpg::s3://bucket/a.zip.
_URL = re.compile(r"[a-z][a-z0-9+.-]+(::.*)?://", re.IGNORECASE)
# The extra of fsspec that brings the file system of a scheme, where its name is another.
_EXTRAS = {"https": "http", "s3a": "s3", "gs": "gcs", "az": "abfs"}


class Readable(Protocol):
    """A binary file."""

    def read(self, size: int = ..., /) -> bytes: ...


class Openable(Protocol):
    """A file that is opened when it is read, as often as needed, such as one of `fsspec.open`."""

    def open(self) -> Any: ...


class Pixels(Protocol):
    """A PIL image, or an array of the shape (height, width), or (height, width, channels) with 1, 3 or 4 channels."""

    @property
    def __array_interface__(self) -> dict[str, Any]: ...


#: What may end a source: all but what ends the task that waits for it.
ERRORS = (Exception, SystemExit, KeyboardInterrupt)


class SourceError(Exception):
    """Carries an error of a source through code that handles errors of the connection."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


class Upload:
    """An image that is uploaded once or several times."""

    @classmethod
    async def create(cls, source: Source, deadline: Deadline = Deadline(None)) -> Upload:
        """Creates an upload. Pixels are copied, in a thread, so that the caller may change them. Raises what that raises."""
        return cls(await deadline.limit(in_thread, encoded, source) if _has_pixels(source) else source)

    def __init__(self, source: Source) -> None:
        self._source: Any = source
        self._start = 0
        self._is_begun = False
        self._ahead: asyncio.Task[Reader] | None = None
        #: Held while a thread uses the source, which may still read it for an attempt that was given up.
        self._lock = threading.Lock()
        if _is_buffer(source):
            self._source = _view(source)
            self._is_replayable = True
        elif isinstance(source, (str, os.PathLike)):
            self._is_replayable = True
        elif hasattr(source, "read"):
            file: Any = source
            self._is_replayable = bool(hasattr(file, "seekable") and file.seekable())
            self._start = file.tell() if self._is_replayable else 0
        elif hasattr(source, "open"):
            self._is_replayable = True
        elif isinstance(source, (Iterable, AsyncIterable)) and not isinstance(source, Mapping):
            self._is_replayable = False
        else:
            raise TypeError(f"{_ACCEPTED}, not {type(source).__name__}")

    @property
    def can_start(self) -> bool:
        """Whether the image can be read from its beginning."""
        return self._is_replayable or not self._is_begun

    def prefetch(self) -> None:
        """Starts to read the beginning of an image that is elsewhere, for the next `open`."""
        if _is_url(self._source) or _is_openable(self._source):
            self._ahead = asyncio.create_task(self._open_ahead())

    def discard(self) -> None:
        """Drops what `prefetch` has read."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None and not ahead.cancel() and not ahead.cancelled() and not ahead.exception():
            ahead.result().drop()

    async def open(self, deadline: Deadline) -> Reader:
        """Starts to read the image, until the deadline. Raises `SourceError` if that fails."""
        self._is_begun = True
        if isinstance(self._source, memoryview):
            return _Bytes(self._source)
        try:
            reader = await deadline.limit(self._open_or_take)
        except SourceError:
            raise
        except ERRORS as error:
            raise SourceError(error) from error
        reader.deadline = deadline
        return reader

    async def _open_or_take(self) -> Reader:
        ahead, self._ahead = self._ahead, None
        return await (ahead or self._open(self._source))

    async def _open(self, source: Any) -> Reader:
        if _is_url(source):
            file, opened = await in_thread(_open_url, source)
            return _File(_own(file), closes=True, owner=opened)
        if isinstance(source, (str, os.PathLike)):
            return _File(await in_thread(open, source, "rb"), closes=True)
        if hasattr(source, "read"):
            if self._is_replayable:
                await in_thread(self._rewind)
            return _File(source, closes=False, lock=self._lock)
        if hasattr(source, "open"):
            return _File(_own(await in_thread(source.open)), closes=True)
        return _Parts(aiter(source) if isinstance(source, AsyncIterable) else _in_threads(source))

    def _rewind(self) -> None:
        source: Any = self._source
        with self._lock:
            source.seek(self._start)

    async def _open_ahead(self) -> Reader:
        reader = await self._open(self._source)
        reader.head = await reader.read_exactly(WHOLE_BYTES + 1)
        return reader


def _is_url(source: object) -> bool:
    return isinstance(source, str) and _URL.match(source) is not None


def _is_openable(source: object) -> bool:
    return hasattr(source, "open") and not hasattr(source, "read") and not isinstance(source, os.PathLike)


def _is_buffer(source: object) -> bool:
    # A mapped file has a position, and the buffer of a text of NumPy has its characters.
    if hasattr(source, "read") or isinstance(source, str):
        return False
    try:
        memoryview(source)  # type: ignore[arg-type]
    except TypeError:
        return False
    return True


def _view(source: Any) -> memoryview:
    view = memoryview(source)
    return view.cast("B") if view.c_contiguous else memoryview(view.tobytes())


def _open_url(url: str) -> tuple[Any, Any]:
    """Returns the file of a URL, and what must be kept as long as it is read: with it goes the archive that contains the file."""
    scheme = url.split("://")[0]
    try:
        import fsspec
    except ImportError:
        raise ImportError(f"images of {scheme}:// need fsspec: pip install fsspec") from None
    try:
        opened = fsspec.open(url, "rb")
        return opened.open(), opened
    except ImportError as error:
        name = scheme.split("::")[-1]
        raise ImportError(
            f"images of {scheme}:// need a file system of fsspec: pip install 'fsspec[{_EXTRAS.get(name, name)}]' ({error})"
        ) from None


def _own(file: Any) -> Any:
    # The file system memory:// returns the same object, with one position, each time.
    return io.BytesIO(file.getvalue()) if isinstance(file, io.BytesIO) else file


class Reader:
    """Reads one image from its beginning to its end."""

    #: What was read ahead.
    head: bytes = b""
    #: When reading fails with `DeadlineError`.
    deadline = Deadline(None)

    async def read(self, limit: int) -> bytes:
        """Returns the next bytes, at most `limit`; none at the end. Raises `SourceError`."""
        if self.head:
            data, self.head = self.head[:limit], self.head[limit:]
            return data
        try:
            return await self.deadline.limit(self._read, limit)
        except ERRORS as error:
            raise SourceError(error) from error

    async def read_exactly(self, limit: int) -> bytes:
        """Returns the next `limit` bytes, or fewer at the end."""
        parts: list[bytes] = []
        # Not more at once, as files make room for what they are asked for.
        while limit > 0 and (part := await self.read(min(limit, WHOLE_BYTES + 1))):
            parts.append(part)
            limit -= len(part)
        return b"".join(parts)

    async def _read(self, limit: int) -> bytes:
        raise NotImplementedError

    async def close(self) -> None:
        """Closes what `open` opened."""

    def drop(self) -> None:
        """Closes it without waiting for a thread."""


class _File(Reader):
    def __init__(self, file: Any, closes: bool, lock: threading.Lock | None = None, owner: object = None) -> None:
        self._file = file
        self._owner = owner
        self._closes = closes
        self._lock = lock or threading.Lock()
        # Whether a thread still reads, which then closes the file: others would wait for it.
        self._is_abandoned = False

    async def _read(self, limit: int) -> bytes:
        try:
            return await in_thread(self._read_here, limit)
        except asyncio.CancelledError:
            self._is_abandoned = True
            raise

    def _read_here(self, limit: int) -> bytes:
        try:
            with self._lock:
                # Another attempt may have begun anew.
                data = b"" if self._is_abandoned else self._file.read(limit)
            _check_bytes(data, "the read of an image returns")
            return bytes(data)
        finally:
            if self._is_abandoned:
                self.drop()

    async def close(self) -> None:
        if not self._is_abandoned:
            await in_thread(self.drop)

    def drop(self) -> None:
        if self._closes:
            # All that was needed has been read.
            with contextlib.suppress(Exception):
                self._file.close()


class _Bytes(Reader):
    def __init__(self, rest: memoryview) -> None:
        self._rest = rest

    async def read(self, limit: int) -> bytes:
        data = bytes(self._rest[:limit])
        self._rest = self._rest[limit:]
        return data


class _Parts(Reader):
    def __init__(self, parts: AsyncIterator[bytes]) -> None:
        self._parts = parts
        self._rest: memoryview = memoryview(b"")

    async def _read(self, limit: int) -> bytes:
        while not self._rest:
            try:
                part = await anext(self._parts)
            except StopAsyncIteration:
                return b""
            _check_bytes(part, "the parts of an image are")
            self._rest = memoryview(part).cast("B")
        data = bytes(self._rest[:limit])
        self._rest = self._rest[limit:]
        return data


def _check_bytes(data: object, subject: str) -> None:
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"{subject} bytes, not {type(data).__name__}")


def _has_pixels(source: object) -> bool:
    # Asked of the class, as a PIL image copies its pixels for this property. Texts and bytes of NumPy are paths and files.
    if hasattr(type(source), "__array_interface__"):
        return not isinstance(source, (str, bytes))
    if not _is_buffer(source):
        return False
    view = memoryview(source)  # type: ignore[arg-type]
    return view.ndim != 1 or view.itemsize != 1


def encoded(pixels: Any) -> bytes:
    """Returns pixels as a file without compression: PNM, which needs no library, or PNG for a PIL image with a color profile.

    An array of one dimension is a file already.
    """
    if hasattr(pixels, "mode") and hasattr(pixels, "convert"):
        return _encoded_image(pixels)
    interface = _interface(pixels)
    shape = tuple(interface.get("shape", ())) if isinstance(interface, dict) else ()
    count = 1 if len(shape) == 2 else shape[2] if len(shape) == 3 else 0
    if interface.get("typestr") == "|u1" and len(shape) == 1:
        return bytes(pixels.tobytes())
    if interface.get("typestr") != "|u1" or count not in (1, 3, 4) or 0 in shape or not (
            _is_buffer(pixels) or hasattr(pixels, "tobytes")):
        raise TypeError(
            f"the pixels of an image are uint8 of the shape (height, width) or (height, width, 1, 3 or 4), not "
            f"{interface.get('typestr', 'unknown')} of the shape {shape}")
    samples = _view(pixels) if _is_buffer(pixels) else pixels.tobytes()
    return b"".join((_header(shape[0], shape[1], count), samples))


def _interface(pixels: Any) -> Any:
    if hasattr(pixels, "__array_interface__"):
        return pixels.__array_interface__
    view = memoryview(pixels)
    return {"shape": view.shape, "typestr": "|u1" if view.format == "B" else view.format}


def _encoded_image(image: Any) -> bytes:
    if image.mode[0] in "IF":
        raise TypeError(f"a PIL image has 8 bits per sample, not the mode {image.mode}; convert it first")
    if _is_transparent(image):
        image = (image.convert("LA") if image.mode == "La" else image).convert("RGBA")
    elif image.mode not in ("L", "RGB"):
        image = image.convert("L" if image.mode == "1" else "RGB")
    # Conversions leave the profile of what was there before.
    profile = image.info.get("icc_profile") or b""
    if profile[16:20] == (b"GRAY" if image.mode == "L" else b"RGB "):
        return _png(image, profile)
    return b"".join((_header(image.height, image.width, len(image.mode)), image.tobytes()))


def _is_transparent(image: Any) -> bool:
    if image.mode in ("1", "L", "P", "RGB"):
        # Of a palette, its own alpha as well.
        return "transparency" in image.info or (image.mode == "P" and image.palette.mode.endswith("A"))
    return image.mode in ("LA", "La", "PA", "RGBA", "RGBa")


def _png(image: Any, profile: bytes) -> bytes:
    """Returns a PNG without filters and compression, which Pillow needs five times as long for."""
    rows, stride = memoryview(image.tobytes()), image.width * len(image.mode)
    filtered = b"".join(part for at in range(0, len(rows), stride) for part in (b"\0", rows[at:at + stride]))
    header = struct.pack(">IIBBBBB", image.width, image.height, 8, {"L": 0, "RGB": 2, "RGBA": 6}[image.mode], 0, 0, 0)
    chunks = [(b"IHDR", header), (b"iCCP", b"ICC\0\0" + zlib.compress(profile)), (b"IDAT", zlib.compress(filtered, 0)),
              (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(part for name, data in chunks for part in (
        struct.pack(">I", len(data)), name, data, struct.pack(">I", zlib.crc32(data, zlib.crc32(name)))))


def _header(height: int, width: int, count: int) -> bytes:
    if count == 4:
        return f"P7\nWIDTH {width}\nHEIGHT {height}\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n".encode()
    return f"P{5 if count == 1 else 6}\n{width} {height}\n255\n".encode()


async def _in_threads(parts: Iterable[bytes]) -> AsyncIterator[bytes]:
    iterator = iter(parts)
    while (part := await in_thread(next, iterator, _END)) is not _END:
        yield part
