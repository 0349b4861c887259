"""Tests of the proxies in deploy/proxies, in front of three workers: images outlive the loss of two of them."""

import random
import re
import shutil
import socket
import subprocess
import threading
import time
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
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


LEAST_REQUEST = "      lb_policy: LEAST_REQUEST\n"


def by_load_reports() -> list[tuple[str, str]]:
    """The changes of envoy.yaml that its comment describes."""
    [block] = re.findall(
        r"^      # load_balancing_policy:\n(?:      #   .*\n)+", (CONFIGURATIONS / FILES["envoy"]).read_text(), re.M)
    return [(block, block.replace("      # ", "      ")), (LEAST_REQUEST, "")]


FILES = {"haproxy": "haproxy.cfg", "nginx": "nginx.conf", "envoy": "envoy.yaml"}


def free_port() -> int:
    """A port below those that the system gives to connections and to other tests, which could take it before the proxy does."""
    while True:
        port = random.randrange(10_000, 30_000)
        with socket.socket() as free:
            try:
                free.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


class Proxy:
    """A proxy with its configuration of deploy/, the addresses replaced, and `changes` made."""

    def __init__(self, programs, name, workers, folder, changes=()):
        self.port, self.admin_port, self.folder = free_port(), free_port(), folder
        self.address = f"127.0.0.1:{self.port}"
        text, addresses = (CONFIGURATIONS / FILES[name]).read_text(), []
        for number, worker in enumerate(workers, 1):
            written = rf"address: worker-{number}, port_value: 50051" if name == "envoy" else rf"worker-{number}:50051"
            address = f"address: 127.0.0.1, port_value: {worker.port}" if name == "envoy" else worker.address
            text, count = re.subn(rf"\b{written}", address, text)
            addresses.append(count)
        text, count = re.subn(
            r"(bind |listen )(:?)50050|address: 0\.0\.0\.0, port_value: 50050",
            lambda match: f"{match[1]}{self.address}" if match[1] else f"address: 127.0.0.1, port_value: {self.port}", text)
        assert addresses == [1, 1, 1] and count >= 1
        for old, new in [("port_value: 9901", f"port_value: {self.admin_port}"), *changes] if name == "envoy" else changes:
            assert text.count(old) == 1
            text = text.replace(old, new)
        # The package has a folder for these; here there is none.
        places = "".join(f" {kind}_temp_path {folder};" for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"])
        text = text.replace("http {", "http {" + places) if name == "nginx" else text
        path = folder / FILES[name]
        path.write_text(text)
        with open(folder / "log", "w") as log:
            self.process = subprocess.Popen(self.command(programs, name, path), stdout=log, stderr=log)

    def command(self, programs, name, path):
        match name:
            case "haproxy":
                run(programs / name, "-c", "-f", path)
                return [programs / name, "-f", path]
            case "nginx":
                return [programs / name, "-c", path, "-p", self.folder, "-e", "stderr", "-g",
                        f"daemon off; pid {self.folder}/pid; error_log stderr;"]
            case "envoy":
                # Without the memory that it shares with its successor, which has one name for all processes.
                return [name, "-c", path, "--disable-hot-restart", "--log-level", "warn"]

    @property
    def log(self):
        return (self.folder / "log").read_text()

    def healthy_addresses(self):
        """The workers that Envoy sends calls to."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin_port}/clusters", timeout=60) as response:
            return set(re.findall(r"^workers::(\S+)::health_flags::healthy$", response.read().decode(), re.M))

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=60)


@pytest.fixture(params=["haproxy", "nginx", "envoy"])
def proxy(request, programs, workers, tmp_path):
    folder = tmp_path / "proxy"
    folder.mkdir()
    proxy = Proxy(programs, request.param, workers, folder)
    yield proxy
    proxy.stop()
    print(proxy.log)  # shown when the test failed


def status(address):
    with grpc.insecure_channel(address) as channel:
        try:
            return health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=5).status
        except grpc.RpcError as error:
            return error.code()


def test_a_batch_outlives_a_killed_and_a_drained_worker(proxy, workers, python, request, tmp_path):  # noqa: F811
    count = 1000 if "nginx" in request.node.name else 5000
    images = tmp_path / "images"
    images.mkdir()
    for name in ["photo-420.jpg", "orientation-6.jpg"]:
        shutil.copy(FIXTURES / name, images)
    assert wait_until(lambda: status(proxy.address) == health_pb2.HealthCheckResponse.SERVING)
    _, expected = batch(python, [workers[2].address], 2, count, images, {})
    sent, digest = batch(
        python, [proxy.address], 6, count, images,
        {str(count // 5): workers[0].process.kill, str(count // 2): workers[1].process.terminate})
    assert digest == expected
    assert count < sent <= count + 400
    assert workers[1].process.wait(timeout=60) == 0, "".join(workers[1].log)


# Not HAProxy with large results: deploy/proxies/README.md explains why that stops.
@pytest.mark.parametrize("proxy, width", [("haproxy", 64), ("nginx", 64), ("nginx", 1200), ("envoy", 1200)], indirect=["proxy"])
def test_many_uploads_at_the_same_time(proxy, width):
    """On one stream, while results come back."""
    assert wait_until(lambda: status(proxy.address) == health_pb2.HealthCheckResponse.SERVING)
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


@pytest.mark.parametrize("name", ["haproxy", "envoy"])
def test_a_worker_that_drains_gets_no_new_streams(programs, workers, tmp_path, name):
    """The health checks of the proxy tell SERVING from NOT_SERVING."""
    proxy = Proxy(programs, name, workers, tmp_path)
    try:
        assert wait_until(lambda: status(proxy.address) == health_pb2.HealthCheckResponse.SERVING)
        # An open upload keeps the worker draining.
        client = Client(workers[0])
        sent = iter([client.start("a"), client.chunk("a", (FIXTURES / "photo-420.jpg").read_bytes()[:9000])])

        def is_down():
            return "worker-1 is DOWN" in proxy.log if name == "haproxy" \
                else workers[0].address not in proxy.healthy_addresses()

        def requests():
            yield from sent
            assert wait_until(is_down)

        responses = client.batch(requests())
        assert next(responses).WhichOneof("part") == "header"
        assert not is_down()
        workers[0].process.terminate()
        assert wait_until(is_down), proxy.log
        # The worker finishes its last item, of which the rest never came.
        assert [response.WhichOneof("part") for response in responses][-1] == "error"
    finally:
        proxy.stop()


def result(client, image, **options):
    """The parts of a result, or the status of a call that a client without retries made."""
    try:
        return list(client.process(image, preset="favicon", timeout=60, **options))
    except grpc.RpcError as error:
        return f"{error.code().name} {error.details()}"


def test_envoy_repeats_single_calls_of_a_lost_worker(workers, tmp_path):
    proxy = Proxy(None, "envoy", workers, tmp_path)
    try:
        assert wait_until(lambda: status(proxy.address) == health_pb2.HealthCheckResponse.SERVING)
        options = [("grpc.enable_retries", 0), ("grpc.use_local_subchannel_pool", 1)]
        client, count = Client(proxy, grpc.insecure_channel(proxy.address, options=options)), 2000
        # Bytes after the end of a JPEG are ignored; one call in ten has more of them than a window.
        photo, done, lock = (FIXTURES / "photo-420.jpg").read_bytes(), Counter(), threading.Lock()
        [expected] = [part.chunk for part in result(Client(workers[2]), photo) if part.WhichOneof("part") == "chunk"]

        def call(number):
            parts = result(client, photo + bytes(3 << 20 if number % 10 == 0 else 1))
            end = parts if isinstance(parts, str) else b"".join(part.chunk for part in parts) == expected
            with lock:
                done[end] += 1
                reached = done.total()
            if reached == count // 5:
                workers[0].process.kill()
            elif reached == count // 2:
                workers[1].process.terminate()

        with ThreadPoolExecutor(16) as pool:
            list(pool.map(call, range(count)))
        # Envoy resets a call whose worker had begun to answer. 16 calls were open when the worker was killed.
        assert done[True] >= count - 16, done
        assert {str(end).split()[0] for end in done} <= {"True", "INTERNAL", "UNAVAILABLE"}, done
        assert workers[1].process.wait(timeout=60) == 0, "".join(workers[1].log)
        assert wait_until(lambda: proxy.healthy_addresses() == {workers[2].address})
    finally:
        proxy.stop()


def test_envoy_gives_workers_shares_by_their_load_reports(tmp_path):
    """The one with fewer threads is as fast for a single call, so that only its reports can be the reason."""
    workers = [Worker("--load-reports", "--log-format", "json", "--cache-memory-mib", "0", "--threads", str(count))
               for count in (1, 4, 4)]
    proxy = Proxy(None, "envoy", workers, tmp_path, by_load_reports())
    try:
        assert wait_until(lambda: status(proxy.address) == health_pb2.HealthCheckResponse.SERVING)
        assert wait_until(lambda: len(proxy.healthy_addresses()) == 3)
        client, photo = Client(proxy), (FIXTURES / "photo-420.jpg").read_bytes()

        def counts():
            return [sum("/ProcessImage" in line for line in worker.log) for worker in workers]

        def has_shares():
            before = counts()
            with ThreadPoolExecutor(2) as pool:
                parts = pool.map(lambda _: list(client.process(photo, preset="upload")), range(90))
                assert {found[-1].WhichOneof("part") for found in parts} == {"report"}
            one, *others = [after - start for after, start in zip(counts(), before, strict=True)]
            return one * 1.5 < min(others)

        # Shares are equal until the first reports have come, and change once a second.
        assert wait_until(has_shares), counts()
    finally:
        proxy.stop()
        for worker in workers:
            worker.process.kill()
            worker.process.wait()


def test_envoy_sends_the_same_image_to_the_same_worker(tmp_path):
    """With RING_HASH, and with caches; the loss of a worker moves its images only."""
    workers = [Worker("--threads", "1") for _ in range(3)]
    proxy = Proxy(None, "envoy", workers, tmp_path, [("lb_policy: LEAST_REQUEST", "lb_policy: RING_HASH")])
    try:
        assert wait_until(lambda: status(proxy.address) == health_pb2.HealthCheckResponse.SERVING)
        # The ring changes until all of them are known to be healthy, and up to a second later.
        assert wait_until(lambda: len(proxy.healthy_addresses()) == 3)
        time.sleep(4)
        client, photo = Client(proxy), (FIXTURES / "photo-420.jpg").read_bytes()
        request = client.message("ProcessImageRequest")

        def hits():
            found = 0
            for number in range(60):
                call = client.call("ProcessImage", "unary_stream")(
                    request(image=photo + b"%d" % number, preset="favicon"), timeout=60,
                    metadata=[("x-image-key", str(number))])
                found += [part.report.cache_hit for part in call if part.WhichOneof("part") == "report"] == [True]
            return found

        assert hits() == 0
        assert hits() == 60
        workers[0].process.kill()
        assert wait_until(lambda: workers[0].address not in proxy.healthy_addresses())
        moved = 60 - hits()
        assert 5 < moved < 40
        assert hits() == 60
    finally:
        proxy.stop()
        for worker in workers:
            worker.process.kill()
            worker.process.wait()
