"""Single images: sources, fields, errors, retries and deadlines."""

import asyncio
import inspect
import io
import math
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import numpy
import pytest
from fake import Break, FakeWorker, status
from image_worker import (
    TLS, AsyncClient, AuthenticationError, Client, DeadlineError, ImageError, ImageInfo, ImageWorkerError,
    InvalidRequestError, LimitExceededError, OverloadedError, Overlay, ProcessingReport, RetryPolicy, UnavailableError,
    __all__ as exported)

QUICK = RetryPolicy(initial_delay=0.01, max_delay=0.05, give_up_after=1)
LARGE = os.urandom(3 << 20)


class Pipe(io.RawIOBase):
    """A file that cannot be read twice."""

    def __init__(self, data: bytes) -> None:
        self._file = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        return self._file.readinto(buffer)  # type: ignore[arg-type]


@pytest.mark.parametrize("data", [b"small", LARGE], ids=["small", "large"])
def test_an_image_comes_from_bytes_files_and_streams(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "image"
    path.write_bytes(data)
    file = io.BytesIO(b"skipped" + data)
    file.seek(7)

    def parts() -> Iterator[bytes]:
        yield from (data[at:at + 700_001] for at in range(0, len(data), 700_001))

    with FakeWorker() as worker, Client(worker.address) as client:
        for source in (data, bytearray(data), memoryview(data), path, str(path), file, parts(), Pipe(data)):
            result = client.process(source, preset="upload", max_width=7)
            assert result.data == bytes(result) == data[::-1] and (result.width, result.format) == (1, "jpeg")
        first = worker.requests[0]
        request = first if len(data) < 100 else first.start
        assert request.preset == "upload" and request.configuration.max_width == 7
        # A large image is never in one message.
        assert max(request.ByteSize() for request in worker.requests) < 2 << 20
        kinds = [type(part) for part in client.stream(data)]
        assert kinds[0] is ImageInfo and kinds[-1] is ProcessingReport and set(kinds[1:-1]) == {bytes}


@pytest.mark.parametrize("data", [b"small", LARGE], ids=["small", "large"])
def test_images_of_overlays_come_with_the_request(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "mark").write_bytes(b"mark")
    images: dict[str, Overlay] = {"logo": b"logo", "mark": tmp_path / "mark"}
    with FakeWorker() as worker, Client(worker.address) as client:
        client.process(data, auxiliary_images=images, overlays=[{"image": "logo", "scale": 0.5, "gravity": "east"}])
        first = worker.requests[0]
        request = first if len(data) < 100 else first.start
        assert {each.name: each.image for each in request.auxiliary_images} == {"logo": b"logo", "mark": b"mark"}
        [overlay] = request.configuration.overlays
        assert (overlay.image, overlay.scale) == ("logo", 0.5)
        with pytest.raises(FileNotFoundError):
            client.process(data, auxiliary_images={"logo": tmp_path / "missing"})
        with pytest.raises(TypeError, match="logo"):
            client.process(data, auxiliary_images={"logo": 7})  # type: ignore[dict-item]
        for result in client.batch([(1, data)], auxiliary_images=images):
            result.unwrap()
        starts = [each.start for each in worker.requests if each.DESCRIPTOR.name == "BatchProcessRequest" and each.HasField("start")]
        assert {each.name for each in starts[-1].auxiliary_images} == {"logo", "mark"}


def test_a_source_that_cannot_be_read_raises_its_error(tmp_path: Path) -> None:
    def broken() -> Iterator[bytes]:
        yield LARGE
        raise KeyError("gone")

    with FakeWorker() as worker, Client(worker.address) as client:
        with pytest.raises(FileNotFoundError):
            client.process(tmp_path / "missing")
        with pytest.raises(KeyError, match="gone"):
            client.process(broken())
        with pytest.raises(TypeError, match="not int"):
            client.process(5)  # type: ignore[arg-type]


def test_fields_have_the_names_and_values_of_the_contract() -> None:
    with FakeWorker() as worker, Client(worker.address) as client:
        client.process(
            b"image", preferred_format="webp", resize_mode="fill", gravity="north_east", crop={"unit": "fractions", "width": 1},
            filters=[{"name": "blur", "parameters": {"radius": 3}}, {"name": "sepia", "intensity": 0}], webp={"method": 2},
            max_height=None)
        fields = worker.requests[0].configuration
        assert (fields.preferred_format, fields.resize_mode, fields.gravity) == (4, 2, 3)
        assert fields.crop.unit == 2 and fields.webp.method == 2 and fields.filters[0].parameters["radius"] == 3
        assert [each.intensity for each in fields.filters] == [1, 0]
        assert not fields.HasField("max_height")
        for error, text, values in [
                (TypeError, "max_widht is not a field; the fields are max_width", {"max_widht": 1}),
                (ValueError, "preferred_format is 'bmp'; it must be one of original, jpeg", {"preferred_format": "bmp"}),
                (TypeError, r"filters\[0\].nam is not a field", {"filters": [{"nam": "blur"}]}),
                (TypeError, "crop must be a dictionary", {"crop": 3}), (TypeError, "filters must be a list", {"filters": "a"}),
                (TypeError, "crop.x: ", {"crop": {"x": "1"}}), (ValueError, "max_width: ", {"max_width": -1})]:
            with pytest.raises(error, match=text):
                client.process(b"image", **values)  # type: ignore[arg-type]


MEBIBYTE = 1 << 20


@pytest.mark.parametrize("fields, needed, sent", [
    ({}, 1, [MEBIBYTE]), ({"facts": False, "gain_map": "drop"}, 1, [MEBIBYTE]), ({"facts": True}, 1, [3 * MEBIBYTE]),
    ({"gain_map": "KEEP"}, 1, [3 * MEBIBYTE]), ({}, 3 * MEBIBYTE, [MEBIBYTE, 3 * MEBIBYTE]),
    ({}, math.inf, [MEBIBYTE, 3 * MEBIBYTE]), ({"facts": True}, math.inf, [3 * MEBIBYTE])])
def test_an_inspection_sends_what_the_worker_needs(fields: Any, needed: float, sent: list[int]) -> None:
    truncated = status(grpc.StatusCode.INVALID_ARGUMENT, "TRUNCATED_IMAGE")
    with FakeWorker(lambda image, time: truncated if len(image) < needed else None) as worker, Client(worker.address) as client:
        for source in (LARGE, io.BytesIO(LARGE), (LARGE[at:at + 70_001] for at in range(0, len(LARGE), 70_001))):
            worker.requests.clear()
            if needed == math.inf:
                with pytest.raises(ImageError, match="TRUNCATED_IMAGE"):
                    client.inspect(source, **fields)
            else:
                assert client.inspect(source, **fields).decoded_bytes == sent[-1]
            assert [len(request.image) for request in worker.requests] == sent
            assert all(LARGE.startswith(request.image) for request in worker.requests)


def test_an_inspection_sends_a_small_file_once() -> None:
    truncated = status(grpc.StatusCode.INVALID_ARGUMENT, "TRUNCATED_IMAGE")
    with FakeWorker(lambda image, time: truncated) as worker, Client(worker.address) as client:
        for fields in ({}, {"facts": True}):
            with pytest.raises(ImageError):
                client.inspect(b"image", **fields)  # type: ignore[arg-type]
        assert [request.image for request in worker.requests] == [b"image"] * 2


def test_a_rendition_has_a_preset_or_none() -> None:
    with FakeWorker() as worker, Client(worker.address) as client:
        with pytest.raises(ImageWorkerError):  # this worker has no renditions
            client.renditions(b"image", {"a": {"preset": "upload"}, "b": {"preset": None, "max_width": 7}, "c": {}})
        request = worker.requests[0]
        with pytest.raises(TypeError, match=r"renditions\['a'\].max_widht is not a field"):
            client.renditions(b"image", {"a": {"max_widht": 7}})
        with pytest.raises(TypeError, match="the name of a rendition is a str, not int"):
            client.renditions(b"image", {1: {}})  # type: ignore[dict-item]
        assert [each.preset for each in request.renditions] == ["upload", "", ""] and request.renditions[1].configuration.max_width == 7


@pytest.mark.parametrize("code, reason, kind", [
    ("INVALID_ARGUMENT", "INVALID_FIELD", InvalidRequestError), ("INVALID_ARGUMENT", "CORRUPT_IMAGE", ImageError),
    ("UNIMPLEMENTED", "UNKNOWN_FORMAT", ImageError), ("FAILED_PRECONDITION", "LIMIT_EXCEEDED", LimitExceededError),
    ("INTERNAL", "INTERNAL_DEFECT", ImageWorkerError), ("UNAUTHENTICATED", "", AuthenticationError),
    ("PERMISSION_DENIED", "SOMETHING_NEW", AuthenticationError)])
@pytest.mark.parametrize("image", [b"image", LARGE], ids=["small", "large"])
def test_errors_are_exceptions_and_are_not_retried(code: str, reason: str, kind: type[Exception], image: bytes) -> None:
    answer = status(grpc.StatusCode[code], reason, field="start.configuration.max_width", limit_name="pixels", limit="10", value="12")
    with FakeWorker(lambda image, time: answer) as worker, Client(worker.address, retry=QUICK) as client:
        with pytest.raises(ImageWorkerError) as caught:
            client.process(image)
        error = caught.value
        assert type(error) is kind and error.code.name == code and error.reason == reason
        assert worker.seen[image] == 1 and not error.is_retryable
        if reason:
            assert (error.field, error.limit_name, error.limit, error.value) == ("configuration.max_width", "pixels", 10, 12)
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is kind and str(again) == str(error) and vars(again) == vars(error)


@pytest.mark.parametrize("image", [b"image", bytes(1 << 20) + b"large"], ids=["whole", "in chunks"])
def test_what_another_attempt_can_change_is_retried(image: bytes) -> None:
    def behavior(image: bytes, time: int) -> object:
        if time == 1:
            raise Break
        return status(grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED", retry=0.2) if time == 2 else None

    with FakeWorker(behavior) as worker, Client(worker.address, retry=QUICK) as client:
        began = time.monotonic()
        assert client.process(image).data == image[::-1]
        assert worker.seen[image] == 3 and time.monotonic() - began > 0.2
        with pytest.raises(UnavailableError):
            client.process(Pipe(b"pipe"))
        assert worker.seen[b"pipe"] == 1


def test_attempts_and_timeouts_end() -> None:
    full = status(grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED", retry=0.01)
    with FakeWorker(lambda image, time: full) as worker, Client(worker.address, retry=QUICK) as client:
        with pytest.raises(OverloadedError) as caught:
            client.process(b"image")
        assert worker.seen[b"image"] == QUICK.attempts and caught.value.retry_after == 0.01
    late = threading.Event()

    def wait(image: bytes, _: int) -> None:
        late.wait(60)

    with FakeWorker(wait) as worker, Client(worker.address) as client:
        began = time.monotonic()
        with pytest.raises(DeadlineError):
            client.process(b"image", timeout=0.2)
        assert time.monotonic() - began < 40
        late.set()


def test_calls_avoid_an_address_where_nobody_listens() -> None:
    with FakeWorker() as worker, FakeWorker() as gone:
        gone.__exit__()
        with Client([gone.address, worker.address], retry=QUICK) as client:
            for number in range(20):
                assert client.process(b"%d" % number)
    with Client(gone.address, retry=QUICK) as client, pytest.raises(UnavailableError):
        client.process(b"image")


def test_calls_are_spread_over_addresses() -> None:
    with FakeWorker() as one, FakeWorker() as two, Client([one.address, two.address]) as client:
        for number in range(20):
            client.process(b"%d" % number)
        assert one.seen.total() == two.seen.total() == 10


FORKED = """if True:
    import asyncio, os, sys
    from image_worker import AsyncClient, Client, TensorColumn

    async def create():
        client = AsyncClient(address)
        assert (await client.process(b"image")).data == b"egami"
        return client

    address, kind = sys.argv[1:]
    if kind == "Client":
        used = Client(address)
        process = lambda: used.process(b"image")
        assert process().data == b"egami"
    else:
        used = asyncio.run(create())
        process = lambda: asyncio.run(used.process(b"image"))
    if not os.fork():
        for call in (process, lambda: Client(address), lambda: AsyncClient(address),
                     lambda: TensorColumn(address, width=1, height=1)({"bytes": [b"image"]})):
            try:
                call()
            except RuntimeError as error:
                print(error, flush=True)
        os._exit(0)
    os.wait()
    print(Client(address).process(b"image").data)
"""


@pytest.mark.parametrize("kind", ["Client", "AsyncClient"])
def test_clients_raise_in_a_process_that_was_forked_from_one_with_a_client(kind: str) -> None:
    with FakeWorker() as worker:
        called = subprocess.run(
            [sys.executable, "-c", FORKED, worker.address, kind], stdout=subprocess.PIPE, text=True, timeout=60)
    *errors, last = called.stdout.splitlines()
    assert len(errors) == 4 and set(errors) == {
        'gRPC does not work in a process that was forked from one that used it; start processes with "spawn" or "forkserver", a '
        'DataLoader with multiprocessing_context="spawn", or create the first client after the fork'}
    assert (called.returncode, last) == (0, "b'egami'")


STARTED = """
import multiprocessing, sys
from image_worker import Client

def call(address):
    with Client(address) as client:
        print(client.process(b"image").data, flush=True)

if __name__ == "__main__":
    try:
        Client("no address")  # which does not use gRPC
    except ValueError:
        pass
    for method in ("fork", None, "spawn", "forkserver"):
        if method is None:
            call(sys.argv[1])
            continue
        process = multiprocessing.get_context(method).Process(target=call, args=sys.argv[1:])
        process.start()
        process.join()
"""


def test_clients_work_in_processes_that_are_started_and_in_those_forked_before_the_first_one(tmp_path: Path) -> None:
    program = tmp_path / "started.py"
    program.write_text(STARTED)
    with FakeWorker() as worker:
        called = subprocess.run([sys.executable, program, worker.address], capture_output=True, text=True, timeout=120)
    assert (called.returncode, called.stdout, called.stderr) == (0, "b'egami'\n" * 4, "")


def test_tokens_go_over_tls_only(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate],
        check=True, capture_output=True)
    credentials = grpc.ssl_server_credentials([(key.read_bytes(), certificate.read_bytes())])
    tokens = iter(["first", "second\n"])
    with FakeWorker(credentials=credentials) as worker:
        with Client(worker.address, tls=TLS(root_certificates=certificate), token=lambda: next(tokens)) as client:
            client.process(b"image")
            client.process(b"image")
        assert [each["authorization"] for each in worker.metadata] == ["Bearer first", "Bearer second"]
        with Client(worker.address, tls=True, retry=QUICK) as client, pytest.raises(UnavailableError):
            client.process(b"image")
    with pytest.raises(ValueError, match="token needs tls"):
        Client("images.example.com:50051", token="secret")
    for token in "", "\n", "sécret", "a\nb":
        with pytest.raises(ValueError, match="the token must consist of printable ASCII characters"):
            Client("127.0.0.1:50051", token=token)


def test_asyncio() -> None:
    async def main(address: str) -> None:
        async with AsyncClient(address) as client:
            results = await asyncio.gather(*(client.process(b"%d" % number) for number in range(10, 30)))
            assert [result.data for result in results] == [(b"%d" % number)[::-1] for number in range(10, 30)]
            assert [type(part) async for part in client.stream(b"image")] == [ImageInfo, bytes, ProcessingReport]

    with FakeWorker() as worker:
        asyncio.run(main(worker.address))


def test_a_result_is_shown_without_its_bytes() -> None:
    with FakeWorker() as worker, Client(worker.address) as client:
        assert repr(client.process(b"image")) == "<Result jpeg 1x2, 5 bytes>"


def test_a_result_is_saved_whole_or_not_at_all(tmp_path: Path) -> None:
    with FakeWorker() as worker, Client(worker.address) as client:
        result = client.process(b"image")
        result.save(tmp_path / "result")
        longest = "y" * os.pathconf(tmp_path, "PC_NAME_MAX")
        result.save(tmp_path / longest)
        assert (tmp_path / "result").read_bytes() == (tmp_path / longest).read_bytes() == b"egami"
        with pytest.raises(IsADirectoryError):
            (tmp_path / "folder").mkdir()
            result.save(tmp_path / "folder")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "result", longest]


def test_affinity_sends_an_image_to_one_worker_and_moves_only_those_of_a_lost_one() -> None:
    images = [bytes([number]) * 40 for number in range(60)] + [bytes([number]) + LARGE for number in range(4)]

    def owners(workers: list[FakeWorker], client: Client) -> list[str]:
        found = []
        for image in images:
            counts = {worker.address: len(worker.requests) for worker in workers}
            assert client.process(image).data == image[::-1]
            [address] = [worker.address for worker in workers if len(worker.requests) > counts[worker.address]]
            found.append(address)
        return found

    with FakeWorker() as one, FakeWorker() as two, FakeWorker() as three:
        workers = [one, two, three]
        with Client([worker.address for worker in workers], affinity=True, retry=QUICK) as client:
            before = owners(workers, client)
            assert all(before.count(worker.address) > 5 for worker in workers) and owners(workers, client) == before
            keys = {metadata["x-image-key"] for worker in workers for metadata in worker.metadata}
            assert len(keys) == len(images)
            # Another client, which has the addresses in another order, agrees.
            with Client([worker.address for worker in reversed(workers)], affinity=True) as other:
                assert owners(workers, other) == before
        # Not all addresses are known to a third one, as if that worker were gone.
        with Client([one.address, three.address], affinity=True) as rest:
            after = owners(workers, rest)
        assert [address for address in before if address != two.address] == [
            after[at] for at, address in enumerate(before) if address != two.address]
        assert {after[at] for at, address in enumerate(before) if address == two.address} == {one.address, three.address}


def test_affinity_gives_way_to_a_failing_worker() -> None:
    with FakeWorker(lambda image, time: status(grpc.StatusCode.UNAVAILABLE)) as bad, FakeWorker() as good:
        with Client([bad.address, good.address], affinity=True, retry=QUICK) as client:
            for number in range(20):
                assert client.process(bytes([number])).data == bytes([number])
        assert bad.requests and len(good.requests) >= 20


def test_without_affinity_no_key_is_sent() -> None:
    with FakeWorker() as worker, Client(worker.address) as client:
        client.process(b"image")
        assert "x-image-key" not in worker.metadata[-1]


@pytest.mark.parametrize("source, text", [
    (type("ndarray", (list,), {"__array_interface__": {}})([1]), "the pixels of an image are uint8 of the shape"),
    ([1, 2], "the parts of an image are bytes, not int"), ([b"image", None, b"rest"], "the parts of an image are bytes, not NoneType"),
    (["a.jpg"], "the parts of an image are bytes, not str")])
def test_what_is_no_file_is_not_sent(source: object, text: str) -> None:
    with FakeWorker() as worker, Client(worker.address) as client:
        with pytest.raises(TypeError, match=text):
            client.process(source)  # type: ignore[arg-type]
        assert not worker.seen


@pytest.mark.parametrize("address, text", [
    ("http://127.0.0.1:50051", "write it without http://, as in '127.0.0.1:50051'$"),
    ("https://images.example.com/x", "write it without https://, as in 'images.example.com:50051', and set tls=True"),
    ("127.0.0.1", "must be 'HOST:PORT'"), ("localhost:", "must be"), (":50051", "must be"), ("", "must be"), ("host:0", "must be"),
    ("host:70000", "must be"), ("host:http", "must be"), ("dns:///images", "must be"), ("::1:50051", "in brackets")])
def test_an_address_that_is_none_is_explained(address: str, text: str) -> None:
    with pytest.raises(ValueError, match=text) as caught:
        Client(address)
    assert repr(address) in str(caught.value)


@pytest.mark.parametrize("address", [
    "host:1", "127.0.0.1:50051", "[::1]:50051", "dns:///name:1", "dns://8.8.8.8/name:1", "dns:name:1", "unix:/tmp/worker",
    "ipv4:127.0.0.1:1", "xds:///images"])
def test_addresses_of_grpc_are_known(address: str) -> None:
    Client(address).close()


@pytest.mark.parametrize("milliseconds", [0, 0.01, 1, 5, 20])
@pytest.mark.parametrize("image", [b"image", LARGE], ids=["small", "large"])
def test_a_short_timeout_is_a_deadline(milliseconds: float, image: bytes) -> None:
    with FakeWorker(lambda image, _: time.sleep(0.05)) as worker:
        for _ in range(5):
            with Client(worker.address) as client:
                for call in (lambda: client.process(image, timeout=milliseconds / 1000),
                             lambda: list(client.stream(image, timeout=milliseconds / 1000)),
                             lambda: next(client.batch([(0, image)], timeout=milliseconds / 1000)).unwrap()):
                    with pytest.raises(DeadlineError):
                        call()


TIMED: list[Callable[[Client, Any], object]] = [
    lambda client, timeout: client.process(b"image", timeout=timeout),
    lambda client, timeout: list(client.stream(b"image", timeout=timeout)),
    lambda client, timeout: client.renditions(b"image", {"a": {}}, timeout=timeout),
    lambda client, timeout: client.tensor(b"image", timeout=timeout),
    lambda client, timeout: client.tensors([b"image"], width=1, height=1, timeout=timeout).__next__().unwrap(),
    lambda client, timeout: client.inspect(b"image", timeout=timeout), lambda client, timeout: client.presets(timeout=timeout),
    lambda client, timeout: next(client.batch([(0, b"image")], timeout=timeout)).unwrap()]


@pytest.mark.parametrize("call", TIMED)
def test_a_timeout_is_a_number_of_seconds(call: Callable[[Client, Any], object]) -> None:
    with FakeWorker() as worker, Client(worker.address) as client:
        for wrong, kind in [(math.nan, ValueError), ("5", TypeError)]:
            with pytest.raises(kind, match=f"timeout is {wrong!r}; it must be a number of seconds, or None"):
                call(client, wrong)
        for passed in (0, -1):
            with pytest.raises(DeadlineError):
                call(client, passed)
        for endless in (math.inf, 1e10, 10**400, numpy.float32(1e30), None):
            try:
                call(client, endless)
            except (ImageWorkerError, ValueError) as error:  # this worker has no tensors and no presets
                assert not isinstance(error, DeadlineError) and "timeout" not in str(error)


def test_a_closed_client_says_so() -> None:
    with FakeWorker() as worker:
        client = Client(worker.address)
        client.close()
        client.close()
        for call in (lambda: client.process(b"image"), lambda: list(client.stream(b"image")), client.presets,
                     lambda: list(client.batch([(0, b"image")])), lambda: client.inspect(b"image")):
            with pytest.raises(RuntimeError, match="the client is closed"):
                call()


@pytest.mark.parametrize("call", [
    lambda client: client.process(b"image"), lambda client: list(client.stream(b"image")),
    lambda client: list(client.batch([(0, b"image")]))], ids=["process", "stream", "batch"])
def test_closing_ends_calls(call: Callable[[Client], object]) -> None:
    arrived, going = threading.Event(), threading.Event()

    def behavior(image: bytes, time: int) -> None:
        arrived.set()
        going.wait(10)

    with FakeWorker(behavior) as worker, ThreadPoolExecutor(1) as pool:
        client = Client(worker.address)
        called = pool.submit(call, client)
        assert arrived.wait(10)
        client.close()
        with pytest.raises(RuntimeError, match="the client is closed"):
            called.result(10)
        going.set()


def test_the_messages_of_an_image_can_be_imported() -> None:
    descriptors = [ImageInfo.DESCRIPTOR, *(field.message_type for field in ImageInfo.DESCRIPTOR.fields if field.message_type)]
    names = {descriptor.name for descriptor in descriptors if descriptor.file.package.startswith("imageworker")}
    assert {"ImageInfo", "GainMapInfo", "TensorInfo"} <= names <= set(exported)


def test_both_clients_have_the_same_methods() -> None:
    """With the same parameters. The ordinary one describes them, as editors show that."""
    names = [name for name in vars(AsyncClient) if not name.startswith("_")]
    assert names == [name for name in vars(Client) if not name.startswith("_")]
    for name in ["__init__", *names]:
        own, other = (inspect.signature(getattr(kind, name)).parameters.values() for kind in (Client, AsyncClient))
        assert [(each.name, each.default) for each in own] == [(each.name, each.default) for each in other], name
    for name in names:
        own_text, other_text = (inspect.getdoc(getattr(kind, name)) or "" for kind in (Client, AsyncClient))
        assert other_text and (own_text == other_text or f", as `Client.{name}` describes." in other_text), name


def test_half_of_a_certificate_is_an_error() -> None:
    message = "certificate and private_key must be set together"
    with pytest.raises(ValueError, match=message):
        TLS(certificate=b"pem")
    with pytest.raises(ValueError, match=message):
        TLS(private_key=b"pem")


def test_an_inspection_of_a_silent_worker_is_tried_again() -> None:
    def behavior(image: bytes, time_: int) -> None:
        if time_ == 1:
            time.sleep(5)

    retry = RetryPolicy(stall_after=1, attempts=2)
    with FakeWorker(behavior) as worker, Client(worker.address, retry=retry) as client:
        assert client.inspect(b"image", timeout=None) is not None
        assert worker.seen[b"image"] == 2


def test_results_travel_between_processes() -> None:
    with FakeWorker() as worker, Client(worker.address) as client:
        result = client.process(b"image")
        [item] = client.batch([("key", b"image")])
        copies = pickle.loads(pickle.dumps((result, item)))
        assert copies[0].data == result.data and copies[0].header == result.header and copies[0].report == result.report
        assert copies[1].unwrap().data == b"egami"


def test_fields_that_are_none_are_not_set() -> None:
    width: int | None = None
    with FakeWorker() as worker, Client(worker.address) as client:
        client.process(b"image", max_width=width, max_height=5)
        assert [field.name for field, _ in worker.requests[-1].configuration.ListFields()] == ["max_height"]
