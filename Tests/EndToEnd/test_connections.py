"""Tests of misbehaving clients, and of their calls when the worker shuts down."""

import asyncio
import contextlib
import json
import os
import re
import resource
import signal
import socket
import struct
import subprocess
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from conftest import SERVICE, Client, Worker, fixture_bytes, metric, scrape, wait_until
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from raw import RESET, SETTINGS, WINDOW_UPDATE, Raw, message, process_request


@pytest.fixture(scope="module")
def large_photo():
    """An image that takes long to decode but not to upload."""
    from io import BytesIO
    from PIL import Image
    buffer = BytesIO()
    Image.open(BytesIO(fixture_bytes("photo-420.jpg"))).resize((5000, 4000)).save(buffer, "JPEG", quality=80)
    return buffer.getvalue()


def test_cancelled_calls_leave_the_others_alone_and_are_no_errors(large_photo):
    worker = Worker("--log-format", "json")
    client = Client(worker)
    watch = health_pb2_grpc.HealthStub(client.channel).Watch(health_pb2.HealthCheckRequest())
    assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
    for index in range(300):
        call = client.process(large_photo if index % 20 == 0 else fixture_bytes("photo-420.jpg"), preset="upload")
        if index % 3:
            next(call)
        call.cancel()
    assert [r.WhichOneof("part") for r in client.process(fixture_bytes("photo.png"), preset="favicon")][-1] == "report"
    assert watch.is_active()  # on the same connection
    watch.cancel()
    client.channel.close()
    assert worker.stop() == 0
    log = "".join(worker.log)
    assert '"level":"error"' not in log and '"code":"INTERNAL"' not in log and '"code":"UNAVAILABLE"' not in log, log
    assert log.count('"code":"CANCELLED"') > 5


def calls_of(worker: Worker) -> dict[str, int]:
    """The number of calls of ProcessImage that the worker has measured, by status code."""
    found = re.findall(
        r'^rpc_server_call_duration_seconds_count\{(?:error_type="\w+",)?rpc_method="[^"]*ProcessImage",'
        r'rpc_response_status_code="(\w+)".*\} (\d+)$', scrape(worker), re.M)
    return {code: int(count) for code, count in found}


def test_clients_that_time_out_in_masses_are_no_errors_and_each_call_is_counted_once():
    worker = Worker("--log-format", "json", "--threads", "1", "--metrics-port", "0")
    half = message(process_request(bytes(20_000)))[:10_000]

    async def time_out():
        """Lets 2,500 calls of one connection, as a proxy has it, end in the middle of their uploads."""
        proxy = await Raw(worker).open()
        await asyncio.sleep(0.1)
        for _ in range(50):
            streams = [proxy.call("ProcessImage") for _ in range(50)]
            for stream in streams:
                await proxy.send(stream, half)
            await asyncio.sleep(0.15)
            for stream in streams:
                proxy.frame(RESET, 0, stream, struct.pack(">I", 8))
        last = proxy.call("ProcessImage")
        await proxy.send(last, message(process_request(fixture_bytes("photo-420.jpg"))), ends=True)
        async with asyncio.timeout(60):
            while last not in proxy.ends and not proxy.closed:
                proxy.changed.clear()
                await proxy.changed.wait()
        assert not proxy.closed

    asyncio.run(time_out())
    assert wait_until(lambda: sum(calls_of(worker).values()) == 2501), calls_of(worker)
    assert calls_of(worker) == {"CANCELLED": 2500, "OK": 1}
    assert worker.stop() == 0
    lines = [json.loads(line) for line in worker.log]
    assert sum(line["message"] == "call" and "ProcessImage" in line["method"] for line in lines) == 2501
    assert not [line for line in lines if line["level"] in ("error", "warning")]


def test_a_deadline_that_passes_is_called_so(large_photo):
    worker = Worker("--log-format", "json", "--metrics-port", "0")
    client = Client(worker)
    # The first of them may pass before the worker knows of the call.
    for timeout in (0.05, 0.15, 0.5, 1.5):
        with pytest.raises(grpc.RpcError) as caught:
            list(client.process(large_photo, timeout=timeout, max_width=4900, preferred_format=3,
                                png={"compression_level": 9}))
        assert caught.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    assert wait_until(lambda: sum('"code":"DEADLINE_EXCEEDED"' in line for line in worker.log) >= 2), worker.log
    assert not any('"code":"CANCELLED"' in line for line in worker.log)
    assert not any('"level":"error"' in line for line in worker.log)
    assert worker.stop() == 0


@pytest.mark.parametrize("compression", [grpc.Compression.Gzip, grpc.Compression.Deflate])
def test_compressed_requests_are_read(worker, compression):
    channel = grpc.insecure_channel(worker.address, compression=compression)
    client = Client(worker)
    request = client.message("ProcessImageRequest")(image=fixture_bytes("photo.png"), preset="favicon")
    expected = list(client.process(request.image, preset="favicon"))
    call = channel.unary_stream(
        f"/{SERVICE}/ProcessImage", request_serializer=type(request).SerializeToString,
        response_deserializer=client.message("ProcessImageResponse").FromString)
    got = list(call(request, timeout=60))
    assert [r.chunk for r in got] == [r.chunk for r in expected] and got[-1].WhichOneof("part") == "report"


def test_metadata_above_the_limit_costs_its_own_call_alone(client):
    stub = health_pb2_grpc.HealthStub(client.channel)
    watch = stub.Watch(health_pb2.HealthCheckRequest())
    next(watch)
    for byte_count in (20_000, 60_000):
        with pytest.raises(grpc.RpcError) as caught:
            stub.Check(health_pb2.HealthCheckRequest(), metadata=[("x-large", "v" * byte_count)], timeout=60)
        assert caught.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED, (byte_count, caught.value)
    assert watch.is_active() and stub.Check(health_pb2.HealthCheckRequest()).status == 1
    watch.cancel()


def test_cancelled_calls_do_not_count_while_nothing_can_be_written(worker):
    request = reflection_pb2.ServerReflectionRequest(file_containing_symbol=SERVICE).SerializeToString()

    async def run():
        raw = await Raw(worker).open()
        raw.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        raw.frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 1 << 24))
        raw.frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1 << 30))
        await asyncio.sleep(0.5)
        # The answers have more bytes than the system buffers.
        raw.task.cancel()
        calls = [raw.call("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo") for _ in range(90)]
        for stream in calls:
            await raw.send(stream, message(request))
        await asyncio.sleep(2)
        for stream in calls:
            raw.frame(RESET, 0, stream, struct.pack(">I", 8))
        others = [raw.call("ListPresets") for _ in range(90)]
        for stream in others:
            await raw.send(stream, message(b""), ends=True)
        await asyncio.sleep(1)
        raw.task = asyncio.create_task(raw.read())
        for _ in range(600):
            if raw.closed or raw.ends.issuperset(others):
                break
            await asyncio.sleep(0.1)
        assert not raw.closed and raw.ends.issuperset(others)
        raw.writer.close()

    asyncio.run(run())


def test_a_drain_cuts_no_accepted_call():
    worker = Worker("--threads", "2", "--cache-memory-mib", "0", "--metrics-port", "0")
    client = Client(worker)
    client.message("ProcessImageRequest")
    sent = threading.Semaphore(0)

    def upload(index):
        def parts():
            yield client.start(f"item {index}", "preview")
            sent.release()
            image = fixture_bytes("photo-420.jpg")
            for offset in range(0, len(image), 4096):
                time.sleep(0.3)
                yield client.chunk(f"item {index}", image[offset:offset + 4096])
            yield client.end(f"item {index}")
        kinds = []
        try:
            for response in client.batch(parts()):
                kinds.append(response.WhichOneof("part"))
        except grpc.RpcError as error:  # a batch that is open when its last item completes
            assert error.code() == grpc.StatusCode.UNAVAILABLE and kinds[-1] == "report"
        return kinds

    def whole(_):
        sent.release()
        return [r.WhichOneof("part") for r in client.process(fixture_bytes("photo-420.jpg"), preset="upload")]

    with ThreadPoolExecutor(48) as pool:
        calls = [pool.submit(upload if index % 2 else whole, index) for index in range(48)]
        for _ in calls:
            sent.acquire()
        assert wait_until(lambda: metric(worker, "imageworker_calls_active") + sum(calls_of(worker).values()) >= 48)
        time.sleep(0.5)
        worker.process.terminate()
        ends = [call.result()[-1] for call in calls]
    assert ends == ["report"] * 48
    assert worker.process.wait(timeout=60) == 0, "".join(worker.log)


def test_a_drain_resets_no_call_of_a_busy_connection():
    worker = Worker("--cache-memory-mib", "0")
    client = Client(worker)
    client.process(fixture_bytes("photo.png"), preset="favicon")
    done = []

    def work():
        while True:
            try:
                responses = list(client.process(fixture_bytes("photo.png"), preset="favicon"))
                done.append(responses[-1].WhichOneof("part"))
            except grpc.RpcError as error:
                return error.code(), error.details()

    with ThreadPoolExecutor(32) as pool:
        calls = [pool.submit(work) for _ in range(32)]
        assert wait_until(lambda: len(done) > 100)
        worker.process.terminate()
        ends = [call.result() for call in calls]
    # Clients that could not be served were no longer connected.
    assert all(code == grpc.StatusCode.UNAVAILABLE and "connect" in details.lower() for code, details in ends), ends
    assert not any("Stream removed" in details or "RST_STREAM" in details for _, details in ends), ends
    assert set(done) == {"report"} and worker.process.wait(timeout=60) == 0


def test_clients_without_work_do_not_delay_the_end():
    worker = Worker("--drain-timeout-seconds", "600")
    idle = socket.create_connection(("127.0.0.1", worker.port))  # sends nothing at all
    silent = socket.create_connection(("127.0.0.1", worker.port))  # sends only what it must
    silent.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
    channel = grpc.insecure_channel(worker.address)
    watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
    next(watch)
    done = threading.Event()

    def questions():
        yield reflection_pb2.ServerReflectionRequest(list_services="")
        done.wait(300)

    answers = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo(questions())
    next(answers)
    worker.process.terminate()
    code = worker.process.wait(timeout=60)
    done.set()
    idle.close()
    silent.close()
    assert code == 0


@pytest.mark.parametrize("first, second, code", [("TERM", "TERM", 143), ("INT", "INT", 130), ("TERM", "INT", 130)])
def test_a_second_signal_ends_at_once(first, second, code):
    worker = Worker("--drain-timeout-seconds", "600")
    client = Client(worker)
    held = threading.Event()

    def parts():
        yield client.start("a", "preview")
        yield client.chunk("a", fixture_bytes("photo-420.jpg")[:3000])
        held.wait(300)

    call = client.batch(parts())
    assert next(call).WhichOneof("part") == "header"
    worker.process.send_signal(getattr(signal, f"SIG{first}"))
    assert wait_until(lambda: any("draining" in line for line in worker.log))
    assert worker.process.poll() is None
    worker.process.send_signal(getattr(signal, f"SIG{second}"))
    assert worker.process.wait(timeout=60) == code
    held.set()


def test_a_library_that_is_stuck_does_not_keep_the_process(tmp_path):
    # A WebP library whose decoder never returns simulates any library that hangs.
    (tmp_path / "stuck.c").write_text("#include <unistd.h>\nint WebPIAppend() { for (;;) pause(); }\n"
                                      "int WebPIUpdate() { for (;;) pause(); }\n")
    library = tmp_path / "stuck.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "stuck.c"], check=True)
    from io import BytesIO
    from PIL import Image
    webp = BytesIO()
    Image.open(BytesIO(fixture_bytes("photo.png"))).convert("RGB").save(webp, "WEBP")
    # A helper that is stuck is ended, and does not load the library.
    worker = Worker(
        "--isolation", "none", "--drain-timeout-seconds", "1", "--metrics-port", "0",
        environment={"LD_PRELOAD": str(library)})
    client = Client(worker)
    call = client.process(webp.getvalue(), preset="favicon")
    threading.Thread(target=lambda: call.exception(), daemon=True).start()
    assert wait_until(lambda: metric(worker, "imageworker_memory_budget_used_bytes") > 0)
    started = time.monotonic()
    worker.process.terminate()
    assert worker.process.wait(timeout=60) == 1
    assert time.monotonic() - started > 1


def test_without_descriptors_the_worker_rests_and_says_so():
    worker = Worker()
    resource.prlimit(worker.process.pid, resource.RLIMIT_NOFILE, (64, 64))
    connections = []
    for _ in range(150):
        connections.append(socket.create_connection(("127.0.0.1", worker.port)))
    assert wait_until(lambda: any("new connections cannot be accepted" in line for line in worker.log))
    cpu = worker.cpu_seconds()
    time.sleep(2)
    assert worker.cpu_seconds() - cpu < 0.3
    # The rest is for what is not a connection.
    assert 40 < len(os.listdir(f"/proc/{worker.process.pid}/fd")) < 56
    assert sum("new connections cannot be accepted" in line for line in worker.log) == 1, worker.log
    for connection in connections:
        connection.close()
    with grpc.insecure_channel(worker.address) as channel:
        answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=60, wait_for_ready=True)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
    assert worker.stop() == 0


def test_connections_of_http_leave_descriptors_for_the_rest():
    worker = Worker("--metrics-port", "0", "--playground-port", "0")
    def addresses():
        log = "".join(list(worker.log))
        return [re.search(pattern, log) for pattern in (r'"metrics".*?(127\.0\.0\.1:\d+)', r"//(127\.0\.0\.1:\d+/)")]

    assert wait_until(lambda: all(addresses()))
    pages = [found[1] for found in addresses()]
    ports = [int(re.search(r":(\d+)", page)[1]) for page in pages]
    used = len(os.listdir(f"/proc/{worker.process.pid}/fd"))
    resource.prlimit(worker.process.pid, resource.RLIMIT_NOFILE, (used + 24, used + 24))
    connections = [socket.create_connection(("127.0.0.1", port)) for port in ports for _ in range(60)]

    def is_closed(connection):
        try:
            return connection.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK) == b""
        except BlockingIOError:
            return False
        except ConnectionError:
            return True

    # Those for which there is no room are closed: sixteen descriptors are left for what is not a connection.
    assert wait_until(lambda: sum(map(is_closed, connections)) >= 120 - 8)
    assert len(os.listdir(f"/proc/{worker.process.pid}/fd")) <= used + 8
    for connection in connections:
        connection.close()
    assert wait_until(lambda: len(os.listdir(f"/proc/{worker.process.pid}/fd")) <= used + 6)
    for page in pages[0] + "/health", pages[1]:
        with urllib.request.urlopen(f"http://{page}", timeout=60) as response:
            assert response.status == 200
    assert worker.stop() == 0


def test_many_connections_at_once_need_not_try_again():
    worker = Worker()
    limit = min(1000, int(open("/proc/sys/net/core/somaxconn").read()))
    os.kill(worker.process.pid, signal.SIGSTOP)  # nothing is accepted meanwhile
    connections = []
    try:
        for _ in range(limit):
            connection = socket.socket()
            connection.setblocking(False)
            connection.connect_ex(("127.0.0.1", worker.port))
            connections.append(connection)
        def is_connected(connection):
            try:
                return bool(connection.getpeername())
            except OSError:
                return False

        assert wait_until(lambda: all(map(is_connected, connections)))
    finally:
        os.kill(worker.process.pid, signal.SIGCONT)
        for connection in connections:
            connection.close()
    assert worker.stop() == 0


def test_frames_that_end_within_reads_take_no_memory():
    """The parser of swift-nio-http2 keeps what it has read for as long as reads end within frames."""
    worker = Worker("--cache-memory-mib", "0")
    payload = bytes(262_144 - 1000)
    frame = len(payload).to_bytes(3, "big") + b"\x77\0" + bytes(4) + payload
    settings = b"\0\0\0\x04\0\0\0\0\0" + b"\0\0\0\x04\x01\0\0\0\0"
    try:
        host, port = worker.address.rsplit(":", 1)
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings)
            end, most = time.monotonic() + 3, 0
            with contextlib.suppress(OSError):  # it may be closed for the flood
                while time.monotonic() < end:
                    connection.sendall(frame)
                    text = Path(f"/proc/{worker.process.pid}/status").read_text()
                    most = max(most, int(re.search(r"VmRSS:\s+(\d+)", text)[1]) >> 10)
        assert 0 < most < 250
    finally:
        assert worker.stop() == 0
