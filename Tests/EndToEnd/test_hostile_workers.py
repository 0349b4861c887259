"""`batch --to` and workers that are broken, or that somebody else has taken over."""

import re
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from conftest import Worker, fixture_bytes
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2, status_pb2
from test_batch_workers import Run

METHOD = "/imageworker.v1.ImageWorkerService/BatchProcess"


class FakeWorker:
    """A worker that answers each item with a status, or ends each stream with a code."""

    def __init__(self, status: status_pb2.Status | None = None, end: grpc.StatusCode | None = None):
        self.seen = 0
        self.status, self.end = status, end
        self.server = grpc.server(ThreadPoolExecutor(64))
        handler = grpc.stream_stream_rpc_method_handler(self.answer)  # messages are bytes
        self.server.add_generic_rpc_handlers((Handlers({METHOD: handler}),))
        self.address = f"127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}"
        self.server.start()

    def answer(self, requests, context):
        for request in requests:
            self.seen += 1
            if self.end:
                context.abort(self.end, "it does not want to")
            name = request[:2 + request[1]]  # the field item_id, which comes first
            status = self.status.SerializeToString()
            yield name + b"\x2a" + varint(len(status)) + status


class Handlers(grpc.GenericRpcHandler):
    def __init__(self, methods):
        self.methods = methods

    def service(self, details):
        return self.methods.get(details.method)


def varint(number: int) -> bytes:
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + varint(number >> 7)


def status(code: grpc.StatusCode, reason: str, retry_seconds: int | None = None) -> status_pb2.Status:
    answer = status_pb2.Status(code=code.value[0], message="it does not want to")
    answer.details.add().Pack(error_details_pb2.ErrorInfo(reason=reason, domain="imageworker.v1"))
    if retry_seconds:
        answer.details.add().Pack(error_details_pb2.RetryInfo(retry_delay=Duration(seconds=retry_seconds)))
    return answer


@pytest.fixture
def images(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(12):
        (folder / f"{number}.jpg").write_bytes(fixture_bytes("photo-420.jpg"))
    return folder


def batch(images: Path, *addresses: str, give_up: int = 3) -> Run:
    return Run(images, "--out", images.parent / "out", "--preset", "favicon", "--to", ",".join(addresses),
               "--give-up-seconds", str(give_up))


def silent() -> socket.socket:
    """Accepts connections, and says nothing on them."""
    return socket.create_server(("127.0.0.1", 0))


def test_a_worker_that_says_nothing_ends_the_batch(images):
    with silent() as listener:
        run = batch(images, f"127.0.0.1:{listener.getsockname()[1]}")
        assert run.wait(seconds=30) == 69
        assert "no worker could be reached for" in run.errors and "was not answered in time" in run.errors


def test_one_signal_ends_a_batch_on_a_worker_that_says_nothing(images):
    with silent() as listener:
        run = batch(images, f"127.0.0.1:{listener.getsockname()[1]}", give_up=600)
        time.sleep(1)
        run.process.send_signal(signal.SIGINT)
        assert run.wait(seconds=15) == 130


@pytest.mark.parametrize("code", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INTERNAL, grpc.StatusCode.OK], ids=str)
def test_a_worker_that_drains_for_ever_ends_the_batch(images, code):
    worker = FakeWorker(status(code, "DRAINING"))
    run = batch(images, worker.address)
    assert run.wait(seconds=60) == 69 and "no worker could be reached for" in run.errors
    assert worker.seen < 500


def test_no_worker_lets_a_batch_wait_for_a_day(images):
    worker = FakeWorker(status(grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED", 86_400))
    run = batch(images, worker.address)
    time.sleep(3)
    run.process.send_signal(signal.SIGINT)
    assert run.wait(seconds=20) == 130
    assert worker.seen < 50


@pytest.mark.parametrize("code", [
    grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.FAILED_PRECONDITION], ids=str)
def test_a_broken_worker_ends_no_batch_that_another_one_serves(images, code):
    worker, broken = Worker("--cache-memory-mib", "0"), FakeWorker(end=code)
    run = batch(images, worker.address, broken.address, give_up=30)
    assert run.wait(seconds=120) == 0, run.errors
    assert len(run.of("done")) == 12
    assert worker.stop() == 0


@pytest.mark.parametrize("kind", [0x77, 0x0a, 0x07], ids=["unknown", "altsvc", "goaway"])
def test_frames_that_mean_nothing_take_no_memory(images, kind):
    payload = b"\x7f\xff\xff\xff\0\0\0\0" + bytes((1 << 14) - 8)
    frame = len(payload).to_bytes(3, "big") + bytes([kind]) + bytes(5) + payload
    listener = silent()

    def flood(connection):
        try:
            connection.sendall(b"\0\0\0\x04\0\0\0\0\0")  # SETTINGS
            time.sleep(0.05)  # until streams are open, which keep the connection after GOAWAY
            while True:
                connection.sendall(frame)
        except OSError:
            connection.close()

    def serve():
        while True:
            threading.Thread(target=flood, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    run = batch(images, f"127.0.0.1:{listener.getsockname()[1]}", give_up=600)
    most = 0
    for _ in range(30):
        time.sleep(0.1)
        text = Path(f"/proc/{run.process.pid}/status").read_text()
        most = max(most, int(re.search(r"VmRSS:\s+(\d+)", text)[1]) >> 10)
    run.process.kill()
    assert most < 200
