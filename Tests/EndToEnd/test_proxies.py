"""Tests of the proxies in deploy/proxies, in front of three workers: a batch outlives the loss of two of them."""

import re
import shutil
import socket
import subprocess
from pathlib import Path

import grpc
import pytest
from conftest import FIXTURES, Client, Worker, wait_until
from grpc_health.v1 import health_pb2, health_pb2_grpc
from python_client import ROOT, batch, python, run, tools, wheel  # noqa: F401

CONFIGURATIONS = ROOT / "deploy/proxies"


@pytest.fixture(scope="module")
def programs():
    folder = ROOT / ".build/end-to-end/proxies"
    run(Path(__file__).parent / "proxies.sh", folder)
    return folder


@pytest.fixture
def workers():
    workers = [Worker("--cache-memory-mib", "0", "--threads", "1") for _ in range(3)]
    yield workers
    for worker in workers:
        worker.process.kill()
        worker.process.wait()


class Proxy:
    """HAProxy or nginx with its configuration of deploy/, the addresses replaced."""

    def __init__(self, programs, name, workers, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        text, addresses = (CONFIGURATIONS / f"{name}.c{'fg' if name == 'haproxy' else 'onf'}").read_text(), []
        for number, worker in enumerate(workers, 1):
            text, count = re.subn(rf"\bworker-{number}:50051", worker.address, text)
            addresses.append(count)
        text, count = re.subn(r"(bind :|listen )50050", lambda match: f"{match[1].removesuffix(':')}{self.address}"
                              if match[1] == "listen " else f"bind {self.address}", text)
        assert addresses == [1, 1, 1] and count >= 1
        # The package has a folder for these; here there is none.
        places = "".join(f" {kind}_temp_path {folder};" for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"])
        text = text.replace("http {", "http {" + places)
        path = folder / "configuration"
        path.write_text(text)
        if name == "haproxy":
            run(programs / name, "-c", "-f", path)
            command = [programs / name, "-f", path]
        else:
            command = [programs / name, "-c", path, "-p", folder, "-e", "stderr", "-g",
                       f"daemon off; pid {folder}/pid; error_log stderr;"]
        with open(folder / "log", "w") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=30)


@pytest.fixture(params=["haproxy", "nginx"])
def proxy(request, programs, workers, tmp_path):
    folder = tmp_path / "proxy"
    folder.mkdir()
    proxy = Proxy(programs, request.param, workers, folder)
    yield proxy
    proxy.stop()


def status(address):
    with grpc.insecure_channel(address) as channel:
        try:
            return health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=5).status
        except grpc.RpcError as error:
            return error.code()


def test_a_batch_outlives_a_killed_and_a_drained_worker(proxy, workers, python, request, tmp_path):  # noqa: F811
    count = 5000 if "haproxy" in request.node.name else 1000
    images = tmp_path / "images"
    images.mkdir()
    for name in ["photo-420.jpg", "orientation-6.jpg"]:
        shutil.copy(FIXTURES / name, images)
    assert wait_until(lambda: status(proxy.address) == health_pb2.HealthCheckResponse.SERVING, 20)
    _, expected = batch(python, [workers[2].address], 2, count, images, {})
    sent, digest = batch(
        python, [proxy.address], 6, count, images,
        {str(count // 5): workers[0].process.kill, str(count // 2): workers[1].process.terminate})
    assert digest == expected
    assert count < sent <= count + 400
    assert workers[1].process.wait(timeout=60) == 0, "".join(workers[1].log)


# Not HAProxy with large results: deploy/proxies/README.md explains why that stops.
@pytest.mark.parametrize("proxy, width", [("haproxy", 64), ("nginx", 64), ("nginx", 1200)], indirect=["proxy"])
def test_many_uploads_at_the_same_time(proxy, width):
    """On one stream, while results come back."""
    assert wait_until(lambda: status(proxy.address) == health_pb2.HealthCheckResponse.SERVING, 20)
    client, count = Client(proxy), 24
    data = (FIXTURES / "photo-420.jpg").read_bytes() + bytes(1 << 20)

    def requests():
        for number in range(count):
            start = client.start(str(number))
            start.start.configuration.preferred_format, start.start.configuration.always_encode = 3, True
            start.start.configuration.max_width, start.start.configuration.allow_upscale = width, True
            yield start
        for offset in range(0, len(data), 65536):
            yield from (client.chunk(str(number), data[offset:offset + 65536]) for number in range(count))
        yield from (client.end(str(number)) for number in range(count))

    kinds = [response.WhichOneof("part") for response in client.batch(requests(), timeout=120)]
    assert kinds.count("report") == count and "error" not in kinds
    assert width == 64 or kinds.count("chunk") > 10 * count


def test_a_worker_that_drains_gets_no_new_streams(programs, workers, tmp_path):
    """HAProxy's health check, which is written in bytes, tells SERVING from NOT_SERVING."""
    proxy = Proxy(programs, "haproxy", workers, tmp_path)
    try:
        assert wait_until(lambda: status(proxy.address) == health_pb2.HealthCheckResponse.SERVING, 20)
        # An open upload keeps the worker draining.
        client = Client(workers[0])
        sent = iter([client.start("a"), client.chunk("a", (FIXTURES / "photo-420.jpg").read_bytes()[:9000])])

        def requests():
            yield from sent
            assert wait_until(lambda: "worker-1 is DOWN" in log(), 20)

        def log():
            return (tmp_path / "log").read_text()

        responses = client.batch(requests())
        assert next(responses).WhichOneof("part") == "header"
        assert "DOWN" not in log()
        workers[0].process.terminate()
        assert wait_until(lambda: "worker-1 is DOWN" in log(), 20), log()
        # The worker finishes its last item, of which the rest never came.
        assert [response.WhichOneof("part") for response in responses][-1] == "error"
    finally:
        proxy.stop()
