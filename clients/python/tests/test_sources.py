"""What an image may be: the types that are taken, how pixels are sent, and URLs."""

import array
import asyncio
import concurrent.futures
import io
import itertools
import os
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy
import pytest
from fake import Break, FakeWorker
from image_worker import AsyncClient, Client, DeadlineError
from image_worker._sources import encoded

PIXELS = numpy.arange(2 * 3 * 4, dtype="uint8").reshape(2, 3, 4)


@contextmanager
def sent(source: Any) -> Iterator[tuple[FakeWorker, Client, bytes]]:
    """A client, and what it sends for `source`."""
    with FakeWorker() as worker, Client(worker.address) as client:
        yield worker, client, client.process(source).data[::-1]


@pytest.mark.parametrize("source", [
    array.array("B", b"image"), numpy.frombuffer(b"image", "uint8"), numpy.frombuffer(b"iXmXaXgXeX", "uint8")[::2],
    memoryview(b"iXmXaXgXeX")[::2], io.BytesIO(b"image").getbuffer(), [b"im", b"age"]],
    ids=["array.array", "numpy", "numpy-strides", "strides", "buffer", "list"])
def test_everything_like_bytes_is_a_file(source: Any) -> None:
    with sent(source) as (_, _, received):
        assert received == b"image"


def test_texts_of_numpy_are_paths_and_its_bytes_are_files(tmp_path: Path) -> None:
    (tmp_path / "image").write_bytes(b"image")
    paths, files = numpy.array([str(tmp_path / "image")]), numpy.array([b"image"])
    with FakeWorker() as worker, Client(worker.address) as client:
        for source in (paths[0], files[0]):
            assert client.process(source).data == b"egami"
        assert [result.unwrap().data for result in client.batch(enumerate([*paths, *files]))] == [b"egami"] * 2


@pytest.mark.parametrize("pixels, expected", [
    (PIXELS[..., 0], b"P5\n3 2\n255\n" + PIXELS[..., 0].tobytes()), (PIXELS[..., :1], b"P5\n3 2\n255\n" + PIXELS[..., 0].tobytes()),
    (PIXELS[..., :3], b"P6\n3 2\n255\n" + PIXELS[..., :3].tobytes()),
    (PIXELS[..., ::-1], b"P7\nWIDTH 3\nHEIGHT 2\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n" + PIXELS[..., ::-1].tobytes())],
    ids=["gray", "one-channel", "rgb", "rgba"])
@pytest.mark.parametrize("convert", [lambda pixels: pixels, memoryview], ids=["array", "buffer"])
def test_arrays_are_sent_without_compression(pixels: Any, expected: bytes, convert: Callable[[Any], Any]) -> None:
    pixels = convert(pixels)
    with sent(pixels) as (worker, client, received):
        assert received == expected
        [result] = client.batch([("key", pixels)])
        assert result.unwrap().data[::-1] == expected


@pytest.mark.parametrize("source, text", [
    (PIXELS.astype("f4"), "uint8 of the shape .* not <f4 of the shape"), (PIXELS[..., :2], r"not \|u1 of the shape \(2, 3, 2\)"),
    (numpy.zeros((0, 4), "uint8"), r"the shape \(0, 4\)"), (memoryview(PIXELS.astype("f4")), "not f of the shape"),
    (array.array("f", [1] * 30), r"not f of the shape \(30,\)"), (7, "an image is bytes, a path, a URL, .* not int"),
    (None, "not NoneType"), (object(), "not object"), ({"bytes": b"image"}, "not dict")])
def test_a_wrong_type_is_named_with_its_item(source: Any, text: str) -> None:
    with FakeWorker() as worker, Client(worker.address) as client:
        with pytest.raises(TypeError, match=text):
            client.process(source)
        first, second = sorted(client.batch([(0, b"image"), ("b.jpg", source)]), key=lambda result: str(result.key))
        assert first.error is None and isinstance(second.error, TypeError)
        with pytest.raises(TypeError, match=f"item 'b.jpg': .*{text}"):
            second.unwrap()
        with pytest.raises(TypeError, match=f"item 0: .*{text}"):
            list(client.tensors([source, b"image"], width=1, height=1, errors="raise"))


class Reading:
    """A file whose reads return what a function makes of their bytes."""

    def __init__(self, convert: Callable[[bytes], object]) -> None:
        self._file, self._convert = io.BytesIO(b"image"), convert

    def read(self, size: int = -1) -> Any:
        return self._convert(self._file.read(size))


@pytest.mark.parametrize("convert", [bytearray, memoryview])
def test_a_file_may_return_what_is_like_bytes(convert: Callable[[bytes], object]) -> None:
    with FakeWorker() as worker, Client(worker.address) as client:
        assert client.process(Reading(convert)).data == b"egami"
        [result] = client.batch([(0, Reading(convert))])
        assert result.unwrap().data == b"egami"


@pytest.mark.parametrize("create, name", [
    (lambda: io.StringIO("image"), "the read of an image returns bytes, not str"), (lambda: open(__file__), "returns bytes, not str"),
    (lambda: Reading(lambda _: None), "not NoneType"), (lambda: Reading(len), "not int"),
    (lambda: ["image"], "the parts of an image are bytes, not str")], ids=["StringIO", "text", "None", "int", "parts"])
def test_what_reads_no_bytes_fails_alone(create: Callable[[], Any], name: str) -> None:
    with FakeWorker() as worker, Client(worker.address) as client:
        with pytest.raises(TypeError, match=name):
            client.process(create())
        with pytest.raises(TypeError, match=name):
            client.inspect(create())
        items = [(number, create() if number == 20 else b"image") for number in range(40)]
        errors = {result.key: result.error for result in client.batch(items)}
        assert len(errors) == 40 and [key for key, error in errors.items() if error] == [20]
        with pytest.raises(TypeError, match=f"^item 20: .*{name}"):
            raise errors[20] or AssertionError
        batches = list(client.tensors([image for _, image in [*items[:20], (20, create()), *items[21:]]], width=1, height=1))
        assert sum(map(len, batches)) == 40 and isinstance(batches[0].errors[20], TypeError)


def test_an_array_may_change_when_it_has_been_taken() -> None:
    pixels = numpy.zeros((4, 4), "uint8")

    def frames() -> Iterator[tuple[int, Any]]:
        for number in range(20):
            pixels[:] = number
            yield number, pixels

    with FakeWorker() as worker, Client(worker.address) as client:
        assert {result.key: result.unwrap().data[0] for result in client.batch(frames())} == {n: n for n in range(20)}


def test_images_of_pillow_keep_their_profile() -> None:
    Image = pytest.importorskip("PIL.Image")
    ImageCms = pytest.importorskip("PIL.ImageCms")
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    photo = Image.effect_noise((5, 3), 90).convert("RGB")
    assert encoded(photo).startswith(b"P6\n5 3\n")
    photo.info["icc_profile"] = profile
    for mode in ("RGB", "RGBA", "P"):
        png = Image.open(io.BytesIO(encoded(photo.convert(mode))))
        assert png.format == "PNG" and png.info["icc_profile"] == profile
        assert png.convert("RGBA").tobytes() == photo.convert(mode).convert("RGBA").tobytes()
    # A profile of other colors than those of the pixels, as `convert` leaves it.
    assert encoded(photo.convert("L")).startswith(b"P5\n5 3\n")
    inks = photo.convert("CMYK")
    inks.info["icc_profile"] = profile[:16] + b"CMYK" + profile[20:]
    assert encoded(inks).startswith(b"P6\n5 3\n")
    with pytest.raises(TypeError, match="not the mode F"):
        encoded(photo.convert("F"))


def test_images_of_pillow_keep_their_transparency() -> None:
    Image = pytest.importorskip("PIL.Image")
    color = Image.effect_noise((5, 3), 90).convert("RGB").convert("RGBA")
    color.putalpha(Image.linear_gradient("L").resize((5, 3)))
    header = b"P7\nWIDTH 5\nHEIGHT 3\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n"
    gray = color.convert("LA")
    images = [gray, gray.convert("La"), Image.new("PA", (5, 3), (3, 100)), color, color.convert("RGBa"), color.quantize(8, method=2)]
    for mode, transparency in [("1", 255), ("L", 119), ("P", 0), ("P", bytes(range(1, 250, 20))), ("RGB", (119, 119, 119))]:
        image = color.convert("RGB").convert(mode)
        image.putpixel((2, 1), 255 if mode == "1" else 0 if mode == "P" else 119 if mode == "L" else (119, 119, 119))
        image.info["transparency"] = transparency
        images.append(image)
    for image in images:
        expected = (image.convert("LA") if image.mode == "La" else image).convert("RGBA")
        assert expected.getextrema()[3][0] < 255 and encoded(image) == header + expected.tobytes(), image.mode
    for mode in ("1", "L", "P", "RGB", "RGBX", "CMYK", "YCbCr", "HSV"):
        image = Image.new(mode, (5, 3), 7)
        if mode not in ("1", "L", "P", "RGB"):
            image.info["transparency"] = 0  # of another mode, from which it was converted
        kind, name = ("P5", "L") if mode in ("1", "L") else ("P6", "RGB")
        assert encoded(image) == f"{kind}\n5 3\n255\n".encode() + image.convert(name).tobytes(), mode
    lab = Image.new("LAB", (5, 3), (128, 200, 140))  # of which "A" is a color; Pillow converts it with a profile of sRGB
    png = Image.open(io.BytesIO(encoded(lab)))
    assert png.mode == "RGB" and png.tobytes() == lab.convert("RGB").tobytes()
    for mode in ("I", "I;16", "F"):
        with pytest.raises(TypeError, match=f"not the mode {mode};"):
            encoded(Image.new(mode, (5, 3)))


def test_an_image_that_pillow_cannot_read_is_an_error_of_its_item() -> None:
    Image = pytest.importorskip("PIL.Image")
    file = io.BytesIO()
    Image.effect_noise((200, 200), 50).save(file, "PNG")
    truncated = Image.open(io.BytesIO(file.getvalue()[:9000]))
    with FakeWorker() as worker, Client(worker.address) as client:
        results = {result.key: result for result in client.batch([(0, truncated), (1, b"image")])}
        assert isinstance(results[0].error, OSError) and results[1].error is None
        with pytest.raises(OSError, match="truncated"):
            client.process(truncated)


@pytest.fixture
def memory() -> Iterator[Any]:
    file_system = pytest.importorskip("fsspec").filesystem("memory")
    yield file_system
    file_system.store.clear()


@pytest.mark.parametrize("size", [5, 3 << 20])
def test_urls_are_read_by_the_client(memory: Any, size: int) -> None:
    import fsspec

    data = bytes(range(251)) * (size // 251) + b"end"
    memory.pipe_file("/folder/image.jpg", data)
    with sent("memory://folder/image.jpg") as (_, client, received):
        assert received == data
        assert client.process(fsspec.open("memory://folder/image.jpg")).data[::-1] == data
        results = {result.key: result for result in client.batch([
            ("url", "memory://folder/image.jpg"), ("file", fsspec.open("memory://folder/image.jpg")),
            ("missing", "memory://folder/missing.jpg"), ("unknown", "nosuch://folder/image.jpg")])}
        assert results["url"].unwrap().data[::-1] == results["file"].unwrap().data[::-1] == data
        assert isinstance(results["missing"].error, FileNotFoundError)
        assert isinstance(results["unknown"].error, ValueError) and "nosuch" in str(results["unknown"].error)


def test_an_image_in_an_archive_is_read(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    with zipfile.ZipFile(tmp_path / "images.zip", "w") as archive:
        archive.writestr("image.jpg", b"image")
    url = f"zip://image.jpg::file://{tmp_path / 'images.zip'}"
    with sent(url) as (_, client, received):
        assert received == b"image"
        assert [result.unwrap().data for result in client.batch((number, url) for number in range(9))] == [b"egami"] * 9


def test_an_image_of_a_url_is_read_again_for_another_attempt(memory: Any) -> None:
    memory.pipe_file("/image.jpg", b"image")

    def behavior(image: bytes, time: int) -> None:
        if time == 1:
            raise Break

    with FakeWorker(behavior) as worker, Client(worker.address) as client:
        [result] = client.batch([(0, "memory://image.jpg")])
        assert result.unwrap().data == b"egami" and result.attempts == 2


def test_urls_of_a_batch_are_opened_at_the_same_time(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as may be open, and no more, though a stream sends one image at a time."""
    import fsspec

    together = threading.Barrier(8)
    opened = itertools.count()

    class File(io.BytesIO):
        def __init__(self) -> None:
            super().__init__(b"image")
            if next(opened) < 8:
                together.wait(30)

    class OpenFile:
        def open(self) -> File:
            return File()

    monkeypatch.setattr(fsspec, "open", lambda url, mode: OpenFile())
    with FakeWorker() as worker, Client(worker.address) as client:
        results = client.batch((number, f"https://images.example/{number}") for number in range(40))
        assert next(results).unwrap().data == b"egami"
        assert next(opened) <= 10
        results.close()


def test_a_file_that_cannot_be_closed_has_been_read() -> None:
    class File:
        def __init__(self) -> None:
            self.read = io.BytesIO(b"image").read

        def close(self) -> None:
            raise OSError("the connection is lost")

    class OpenFile:
        def open(self) -> Any:
            return File()

    with FakeWorker() as worker, Client(worker.address) as client:
        assert client.process(OpenFile()).data == b"egami"
        images: list[tuple[int, Any]] = [(1, OpenFile()), (2, b"image")]
        results = list(client.batch(images))
        assert sorted((result.key, result.unwrap().data) for result in results) == [(1, b"egami"), (2, b"egami")]


@pytest.mark.parametrize("hidden, url, text", [
    ("fsspec", "s3://bucket/a.jpg", "images of s3:// need fsspec: pip install fsspec"),
    ("s3fs", "s3a://bucket/a.jpg", "images of s3a:// need a file system of fsspec: pip install 'fsspec[s3]' ("),
    ("gcsfs", "gs://bucket/a.jpg", "pip install 'fsspec[gcs]'"),
    ("aiohttp", "https://host/a.jpg?secret", "images of https:// need a file system of fsspec: pip install 'fsspec[http]'")])
def test_a_package_that_is_missing_is_named(hidden: str, url: str, text: str) -> None:
    pytest.importorskip("fsspec")
    program = (
        f"import sys; sys.modules[{hidden!r}] = None\n"
        "from image_worker import Client\n"
        "client = Client('127.0.0.1:1')\n"
        f"try: client.process({url!r})\n"
        "except ImportError as error: print(error)\n")
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert text in printed and "secret" not in printed


@pytest.mark.parametrize("path", ["C:/a.jpg", "a://b.jpg", "folder/with:colon.jpg", "://"])
def test_a_path_is_no_url(path: str) -> None:
    with FakeWorker() as worker, Client(worker.address) as client, pytest.raises(FileNotFoundError):
        client.process(path)


class Blocking:
    """Images of which the first bytes come, and the others when the test has ended."""

    def __init__(self, folder: Path, size: int) -> None:
        self._ended = threading.Event()
        self._folder = folder
        self._begin = bytes(size)
        self._files: list[Any] = []
        self._unopened: list[Path] = []

    def __enter__(self) -> "Blocking":
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for file in [*self._files, *(open(path, "r+b", buffering=0) for path in self._unopened)]:
            file.close()

    def iterable(self) -> Iterator[bytes]:
        yield self._begin
        self._ended.wait(60)

    async def asynchronous(self) -> AsyncIterator[bytes]:
        yield self._begin
        await asyncio.sleep(60)

    def file(self) -> Any:
        reading, writing = os.pipe()
        return os.fdopen(self._fill(reading, writing), "rb")

    def path(self) -> Any:
        path = self._folder / f"pipe-{len(self._files)}"
        os.mkfifo(path)
        self._fill(None, os.open(path, os.O_RDWR))
        return path

    def unopened(self) -> Any:
        path = self._folder / "unopened"
        os.mkfifo(path)
        self._unopened.append(path)
        return path

    def _fill(self, reading: Any, writing: int) -> Any:
        file = os.fdopen(writing, "r+b" if reading is None else "wb", buffering=0)
        self._files.append(file)
        threading.Thread(target=file.write, args=[self._begin], daemon=True).start()
        return reading


CALLS: dict[str, Callable[..., Any]] = {
    "process": lambda client, source, **options: client.process(source, timeout=0.2, **options),
    "stream": lambda client, source, **options: anext(client.stream(source, timeout=0.2, **options)),
    "inspect": lambda client, source, **options: client.inspect(source, timeout=0.2, **options),
    "batch": lambda client, source, **options: anext(client.batch([(0, source)], timeout=0.2, **options))}


@pytest.mark.parametrize("kind", ["iterable", "asynchronous", "file", "path", "unopened"])
@pytest.mark.parametrize("name, size", [
    *((name, 5) for name in CALLS), *((name, 2 << 20) for name in CALLS if name != "inspect")])  # which reads a mebibyte
def test_a_timeout_ends_a_call_whose_image_does_not_come(tmp_path: Path, name: str, kind: str, size: int) -> None:
    async def call(address: str) -> None:
        async with AsyncClient(address) as client:
            outcome = await CALLS[name](client, getattr(blocking, kind)())
            if name == "batch":
                outcome.unwrap()

    with FakeWorker() as worker, Blocking(tmp_path, size) as blocking:
        began = time.monotonic()
        with pytest.raises(DeadlineError):
            asyncio.run(call(worker.address))
        assert 0.2 <= time.monotonic() - began < 10


@pytest.mark.parametrize("name", CALLS)
def test_a_timeout_ends_a_call_whose_overlay_does_not_come(tmp_path: Path, name: str) -> None:
    async def call(address: str) -> None:
        async with AsyncClient(address) as client:
            await CALLS[name](client, b"image", auxiliary_images={"logo": blocking.path()})

    with FakeWorker() as worker, Blocking(tmp_path, 5) as blocking:
        with pytest.raises(DeadlineError):
            asyncio.run(call(worker.address))


def test_images_that_do_not_come_hold_no_others_up(tmp_path: Path) -> None:
    path = tmp_path / "image"
    path.write_bytes(b"image")

    async def call(address: str) -> None:
        async with AsyncClient(address) as client:
            # More than there are threads.
            errors = await asyncio.gather(
                *(client.process(blocking.file(), timeout=0.5) for _ in range(40)), return_exceptions=True)
            assert {type(error) for error in errors} == {DeadlineError}
            assert (await client.process(path)).data == b"egami"
            items = [(number, blocking.file() if number == 3 else path) for number in range(20)]
            outcomes = {result.key: result async for result in client.batch(items, timeout=2)}
            assert isinstance(outcomes.pop(3).error, DeadlineError)
            assert all(outcome.unwrap().data == b"egami" for outcome in outcomes.values())

    with FakeWorker() as worker, Blocking(tmp_path, 5) as blocking:
        asyncio.run(call(worker.address))


EXITING = """
import asyncio, sys
from image_worker import AsyncClient, Client, DeadlineError

async def call(address):
    async with AsyncClient(address) as client:
        await client.process(sys.stdin.buffer, timeout=0.5)

try:
    if sys.argv[2] == "AsyncClient":
        asyncio.run(call(sys.argv[1]))
    else:
        Client(sys.argv[1]).process(sys.stdin.buffer, timeout=0.5)
except DeadlineError as error:
    print(error, flush=True)
"""


@pytest.mark.parametrize("kind", ["Client", "AsyncClient"])
def test_a_program_exits_while_a_read_blocks(kind: str) -> None:
    reading, writing = os.pipe()
    with FakeWorker() as worker:
        called = subprocess.run(
            [sys.executable, "-c", EXITING, worker.address, kind], stdin=reading, capture_output=True, text=True, timeout=60)
    os.close(reading)
    os.close(writing)
    assert (called.returncode, called.stdout, called.stderr) == (0, "DEADLINE_EXCEEDED: no result after 0.5 s\n", "")


class Raising:
    """A file whose first read raises an error."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def read(self, size: int = -1) -> bytes:
        raise self._error


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()], ids=repr)
def test_what_ends_the_interpreter_reaches_its_caller_and_other_calls_go_on(error: BaseException) -> None:
    def items() -> Iterator[tuple[str, bytes]]:
        yield "first", b"image"
        raise error

    with FakeWorker() as worker, Client(worker.address) as client:
        with pytest.raises(type(error)):
            client.process(Raising(error), timeout=20)
        found = []
        with pytest.raises(type(error)):
            for result in client.batch(items()):
                found.append(result.unwrap().data)
        assert found == [b"egami"]
        items_: list[tuple[str, Any]] = [("bad", Raising(error)), ("good", b"image")]
        errors = {result.key: result.error for result in client.batch(items_)}
        assert isinstance(errors["bad"], RuntimeError) and errors["bad"].__cause__ is error and errors["good"] is None
        assert client.process(b"image", timeout=20).data == b"egami"


@pytest.mark.parametrize("error", [StopIteration(), concurrent.futures.CancelledError(), asyncio.CancelledError()], ids=repr)
def test_what_ends_an_iterator_or_a_future_is_an_error_of_its_source(error: BaseException) -> None:
    with FakeWorker() as worker, Client(worker.address) as client:
        with pytest.raises(RuntimeError, match=f"raised {type(error).__name__}"):
            client.process(Raising(error), timeout=20)
        items: list[tuple[str, Any]] = [("key", Raising(error))]
        [result] = client.batch(items, timeout=20)
        assert isinstance(result.error, RuntimeError)


def test_an_iterable_that_raises_what_ends_a_future_ends_its_batch() -> None:
    def items() -> Iterator[tuple[str, bytes]]:
        yield "first", b"image"
        raise concurrent.futures.CancelledError

    with FakeWorker() as worker, Client(worker.address) as client:
        with pytest.raises(RuntimeError, match="raised CancelledError"):
            list(client.batch(items()))
