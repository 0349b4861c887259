"""A worker process on its own port, and a client that knows only what reflection reports."""

import functools
import json
import os
import re
import subprocess
import threading
import time
import urllib.request
from pathlib import Path

import grpc
import pytest
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClassesForFiles
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from hooks import (  # noqa: F401
    pytest_runtest_logreport, pytest_runtest_protocol, pytest_sessionfinish, pytest_terminal_summary)
from processes import family_cpu_seconds

FIXTURES = Path(__file__).parent.parent / "TestSupport" / "Fixtures"
SERVICE = "imageworker.v1.ImageWorkerService"
UNLIMITED = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


# Optional features of the build, with the library that a worker with the feature loads or reports.
LIBRARIES = {"tiff": "libtiff", "avif": "libheif", "heic": "libheif", "jxl": "libjxl", "isolation": "libseccomp",
             "text": "libpango"}


def fixture_bytes(name: str) -> bytes:
    return (FIXTURES / name).read_bytes()


@functools.cache
def linked_libraries() -> str:
    return subprocess.run(["ldd", os.environ["IMAGE_WORKER"]], capture_output=True, text=True, check=True).stdout


@functools.cache
def reported_libraries() -> str:
    command = [os.environ["IMAGE_WORKER"], "--version", "--verbose"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def is_built_in(what: str) -> bool:
    return LIBRARIES.get(what, "") in linked_libraries() + reported_libraries()


def built_in(*what: str):
    """Returns a mark for tests that need all of these features."""
    missing = [name for name in what if not is_built_in(name)]
    return pytest.mark.skipif(bool(missing), reason=f"not built in: {', '.join(missing)}")


class Worker:
    """A worker process. `address` matches its address in the log, with the port as its group if there is one.

    `prefix` is a command that executes the worker, such as one that prepares its file system; `descriptors` are
    passed to it.
    """

    def __init__(
            self, *options: str, environment: dict[str, str] | None = None, address: str = r"127\.0\.0\.1:(\d+)",
            prefix: tuple[str, ...] = (), descriptors: tuple[int, ...] = ()):
        self.process = subprocess.Popen(
            [*prefix, os.environ["IMAGE_WORKER"], "serve", "--port", "0", *options], stderr=subprocess.PIPE, text=True,
            env={**os.environ, **(environment or {})}, pass_fds=descriptors)
        self.log = []
        self.port = None
        for line in self.process.stderr:
            self.log.append(line)
            match = re.search(f"serving.*{address}", line)
            if match:
                self.port = int(next((group for group in match.groups() if group), 0))
                break
        else:
            raise AssertionError("".join(self.log))
        self.reader = threading.Thread(target=self.read_log, daemon=True)
        self.reader.start()

    def read_log(self):
        for line in self.process.stderr:
            self.log.append(line)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def cpu_seconds(self) -> float:
        """The CPU time of the worker and its helpers."""
        return family_cpu_seconds(self)

    def rss_mib(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024

    def stop(self) -> int:
        self.process.terminate()
        code = self.process.wait(timeout=120)
        self.reader.join(timeout=60)
        return code


class Client:
    """A client whose calls use descriptors received by reflection."""

    def __init__(self, worker: Worker, channel: grpc.Channel | None = None):
        self.worker = worker
        self.channel = channel or grpc.insecure_channel(worker.address, options=UNLIMITED)
        self.pool = DescriptorPool(ProtoReflectionDescriptorDatabase(self.channel))
        self.lock = threading.Lock()  # The pool adds what it has received without one.
        # Kept, as protobuf 7.36 can crash where one thread creates a class that another one has just released.
        self.classes: dict[str, type] = {}

    def message(self, name: str):
        with self.lock:
            if not self.classes:
                file = self.pool.FindFileContainingSymbol(SERVICE)
                self.classes = GetMessageClassesForFiles([file.name], self.pool)
            return self.classes[f"imageworker.v1.{name}"]

    def call(self, method: str, kind: str):
        with self.lock:
            descriptor = self.pool.FindServiceByName(SERVICE).FindMethodByName(method)
            names = descriptor.input_type.name, descriptor.output_type.name
        request, response = map(self.message, names)
        return getattr(self.channel, kind)(
            f"/{SERVICE}/{method}", request_serializer=request.SerializeToString,
            response_deserializer=response.FromString)

    def process(self, image: bytes, preset: str = "", timeout=300, preview=False, **configuration):
        request = self.message("ProcessImageRequest")(
            image=image, preset=preset, preview=preview, configuration=configuration or None)
        return self.call("ProcessImage", "unary_stream")(request, timeout=timeout)

    def batch(self, requests, timeout=300):
        return self.call("BatchProcess", "stream_stream")(requests, timeout=timeout)

    def start(self, item: str, preset: str = "", image: bytes = b""):
        request = self.message("BatchProcessRequest")(item_id=item)
        request.start.preset = preset
        request.start.image = image
        return request

    def chunk(self, item: str, data: bytes):
        return self.message("BatchProcessRequest")(item_id=item, chunk=data)

    def end(self, item: str):
        request = self.message("BatchProcessRequest")(item_id=item)
        request.end.SetInParent()
        return request


def wait_until(condition, seconds: float = 120) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False


def scrape(worker: Worker) -> str:
    """The metrics of a worker with `--metrics-port 0`."""
    assert wait_until(lambda: any('"metrics"' in line for line in worker.log))
    address = json.loads(next(line for line in worker.log if '"metrics"' in line))["address"]
    port = re.search(r":(\d+)\D*$", address)[1]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as response:
        return response.read().decode()


def metric(worker: Worker, name: str) -> float:
    """The value of a metric without dimensions of a worker with `--metrics-port 0`."""
    return float(re.search(rf"^{name} (\S+)", scrape(worker), re.MULTILINE)[1])


@pytest.fixture(scope="module")
def worker():
    # No result is cached, so that every call does its work. The cache has separate tests.
    worker = Worker("--cache-memory-mib", "0")
    yield worker
    assert worker.stop() == 0, "".join(worker.log)


@pytest.fixture(scope="module")
def client(worker):
    return Client(worker)
