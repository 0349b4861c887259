"""Tests of what a service manager does: reports, watchdog, sockets that it passes, and restarts under load."""

import collections
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO

import grpc
import pytest
from conftest import UNLIMITED, Client, Worker, fixture_bytes, wait_until
from PIL import Image

# Passes a descriptor as systemd does: with number 3, to the process with this id.
ACTIVATE = """
import os, sys
descriptor, count, *command = sys.argv[1:]
os.dup2(int(descriptor), 3)
os.execve(command[0], command, {**os.environ, "LISTEN_FDS": count, "LISTEN_PID": str(os.getpid())})
"""


class Reports:
    """The end of the notification socket that belongs to the service manager."""

    def __init__(self, folder):
        self.path = folder / "notify"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(self.path))
        self.socket.settimeout(60)

    def next(self) -> str:
        return self.socket.recv(4096).decode()

    def pending(self) -> list[str]:
        """Returns all reports that have arrived."""
        found = []
        self.socket.settimeout(0)
        try:
            while True:
                found.append(self.next())
        except BlockingIOError:
            return found
        finally:
            self.socket.settimeout(60)


def own_channel(worker: Worker) -> grpc.Channel:
    return grpc.insecure_channel(worker.address, options=[*UNLIMITED, ("grpc.use_local_subchannel_pool", 1)])


def test_start_life_and_end_are_reported(tmp_path):
    reports = Reports(tmp_path)
    worker = Worker(environment={"NOTIFY_SOCKET": str(reports.path), "WATCHDOG_USEC": "400000"})
    started = [reports.next(), reports.next()]
    while len(set(started)) < 2:
        started.append(reports.next())
    assert set(started) == {"READY=1\nSTATUS=serving", "WATCHDOG=1"}
    reports.pending()
    began = time.monotonic()
    time.sleep(2.1)
    alive = reports.pending()
    # One for each half of the interval, fewer on a busy machine.
    assert set(alive) == {"WATCHDOG=1"} and 2 <= len(alive) <= (time.monotonic() - began) / 0.2 + 3
    worker.process.terminate()
    ends = [reports.next()]
    while not ends[-1].startswith("STOPPING"):
        ends.append(reports.next())
    assert ends[-1].startswith("STOPPING=1\n") and set(ends[:-1]) <= {"WATCHDOG=1"}
    assert worker.process.wait(timeout=60) == 0


def test_a_stuck_thread_ends_the_reports_of_life(tmp_path):
    # A WebP library whose decoder never returns simulates any library that hangs.
    (tmp_path / "stuck.c").write_text("#include <unistd.h>\nint WebPIAppend() { for (;;) pause(); }\n"
                                      "int WebPIUpdate() { for (;;) pause(); }\n")
    library = tmp_path / "stuck.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "stuck.c"], check=True)
    webp, reports = BytesIO(), Reports(tmp_path)
    Image.open(BytesIO(fixture_bytes("photo.png"))).convert("RGB").save(webp, "WEBP")
    # A helper that is stuck is ended, and does not load the library.
    worker = Worker(
        "--isolation", "none", "--stuck-thread-seconds", "1", "--drain-timeout-seconds", "0",
        environment={"NOTIFY_SOCKET": str(reports.path), "WATCHDOG_USEC": "400000", "LD_PRELOAD": str(library)})
    call = Client(worker).process(webp.getvalue(), preset="favicon")
    threading.Thread(target=call.exception, daemon=True).start()
    assert wait_until(lambda: any("is stuck" in line for line in worker.log))
    reports.pending()
    time.sleep(1.5)
    assert reports.pending() == []
    worker.process.kill()
    worker.process.wait()


@pytest.mark.parametrize("path", ["@abstract", "missing"])
def test_a_socket_that_cannot_be_used_is_named_and_does_no_harm(tmp_path, path):
    path = path if path.startswith("@") else str(tmp_path / path)
    worker = Worker(environment={"NOTIFY_SOCKET": path})
    assert wait_until(lambda: any('"warning"' in line and "NOTIFY_SOCKET" in line for line in worker.log))
    assert [r.WhichOneof("part") for r in Client(worker).process(fixture_bytes("photo.png"))][-1] == "report"
    assert worker.stop() == 0


def listening(host: str = "127.0.0.1") -> socket.socket:
    passed = socket.socket()
    passed.bind((host, 0))
    passed.listen(100)
    return passed


def activated(passed: socket.socket, *options: str, count: int = 1, address: str = r"127\.0\.0\.1:(\d+)") -> Worker:
    prefix = (sys.executable, "-c", ACTIVATE, str(passed.fileno()), str(count))
    return Worker(*options, prefix=prefix, descriptors=(passed.fileno(),), address=address)


def test_a_socket_that_is_passed_outlives_workers():
    passed = listening()
    photo, port = fixture_bytes("photo.png"), passed.getsockname()[1]
    first = activated(passed)
    assert first.port == port
    assert [r.WhichOneof("part") for r in Client(first).process(photo, preset="favicon")][-1] == "report"
    assert first.stop() == 0
    # Between the two, connections wait in the socket that nobody has closed.
    waiting = socket.create_connection(("127.0.0.1", port), timeout=60)
    waiting.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
    second = activated(passed)
    assert waiting.recv(9)[3] == 4  # SETTINGS
    waiting.close()
    assert [r.WhichOneof("part") for r in Client(second).process(photo, preset="favicon")][-1] == "report"
    assert second.stop() == 0


def test_a_unix_socket_can_be_passed(tmp_path):
    with socket.socket(socket.AF_UNIX) as passed:
        passed.bind(str(tmp_path / "worker.sock"))
        passed.listen(100)
        worker = activated(passed, address="unix")
        client = Client(worker, channel=grpc.insecure_channel(f"unix:{tmp_path}/worker.sock"))
        assert [r.WhichOneof("part") for r in client.process(fixture_bytes("photo.png"))][-1] == "report"
        assert worker.stop() == 0
    assert (tmp_path / "worker.sock").exists()  # its owner removes it


def failed_activation(passed: socket.socket, *options: str, count: int = 1) -> str:
    with pytest.raises(AssertionError) as caught:
        activated(passed, *options, count=count)
    return str(caught.value)


def test_a_passed_socket_that_others_can_reach_needs_insecure():
    errors = failed_activation(listening("0.0.0.0"))
    assert "descriptor 3" in errors and "can be reached from other machines" in errors and "--insecure" in errors
    worker = activated(listening("0.0.0.0"), "--insecure", address=r"0\.0\.0\.0:(\d+)")
    assert wait_until(lambda: any('"warning"' in line and "--insecure" in line for line in worker.log))
    assert worker.stop() == 0


def test_what_is_no_listening_socket_is_refused(tmp_path):
    assert "LISTEN_FDS is 2" in failed_activation(listening(), count=2)
    with open(tmp_path / "file", "w") as file:
        assert "descriptor 3" in failed_activation(file)


def test_workers_share_a_port_only_if_both_are_told_to():
    first = Worker("--reuse-port")
    with pytest.raises(AssertionError, match="address already in use"):
        Worker("--port", str(first.port))
    second = Worker("--port", str(first.port), "--reuse-port")
    assert first.port == second.port
    for worker in (first, second):
        assert worker.stop() == 0


def test_a_rolling_restart_loses_no_image():
    worker = Worker("--reuse-port", "--cache-memory-mib", "0")
    photo, stopping, counts = fixture_bytes("photo-420.jpg"), threading.Event(), collections.Counter()
    client = Client(worker, own_channel(worker))
    expected = b"".join(r.chunk for r in client.process(photo, preset="favicon"))

    def work(_):
        own = Client(worker, own_channel(worker))
        own.pool = client.pool
        while not stopping.is_set():
            try:
                # Clients wait for a connection; a call that a worker has accepted is not repeated.
                result = b"".join(r.chunk for r in own.process(photo, preset="favicon"))
                counts["right" if result == expected else "wrong"] += 1
            except grpc.RpcError as error:
                counts["again" if "connect" in error.details().lower() else error.details()] += 1
                time.sleep(0.05)

    with ThreadPoolExecutor(8) as pool:
        calls = [pool.submit(work, index) for index in range(8)]
        workers = [worker]
        for _ in range(3):
            workers.append(Worker("--reuse-port", "--cache-memory-mib", "0", "--port", str(worker.port)))
            done = counts["right"]
            assert workers[-2].stop() == 0
            assert wait_until(lambda: counts["right"] > done + 50)
        stopping.set()
        for call in calls:
            call.result()
    assert set(counts) <= {"right", "again"}, counts
    assert workers[-1].stop() == 0


def test_a_drain_under_full_load_names_every_item_that_it_does_not_take():
    buffer = BytesIO()
    Image.open(BytesIO(fixture_bytes("photo-420.jpg"))).resize((1600, 1200)).save(buffer, "JPEG", quality=80)
    photo, worker = buffer.getvalue(), Worker("--cache-memory-mib", "0")
    pool_of, progress = Client(worker), collections.Counter()
    pool_of.message("ProcessImageRequest")

    def stream(_):
        """Sends items until one is refused; returns what became of each, by its id."""
        client = Client(worker, own_channel(worker))
        client.pool = pool_of.pool
        sent, ends, refused = [], {}, threading.Event()

        def requests():
            while not refused.is_set() and len(sent) < 5000:
                sent.append(str(len(sent)))
                yield client.start(sent[-1], "upload", photo)
            refused.wait(120)
            time.sleep(3)  # the stream is the worker's to end

        with pytest.raises(grpc.RpcError) as caught:
            for response in client.batch(requests()):
                if response.WhichOneof("part") == "report":
                    ends[response.item_id] = "report"
                    progress["items"] += 1
                elif response.WhichOneof("part") == "error":
                    ends[response.item_id] = grpc.StatusCode.UNAVAILABLE.value[0] == response.error.code
                    refused.set()
        assert caught.value.code() == grpc.StatusCode.UNAVAILABLE
        return sent, ends

    def whole(_):
        client = Client(worker, own_channel(worker))
        client.pool = pool_of.pool
        done = 0
        while True:
            call = client.process(photo, preset="upload")
            try:
                done += [r.WhichOneof("part") for r in call][-1] == "report"
                progress["calls"] += 1
            except grpc.RpcError as error:
                return done, error.details()

    with ThreadPoolExecutor(12) as pool:
        streams = [pool.submit(stream, index) for index in range(4)]
        calls = [pool.submit(whole, index) for index in range(8)]
        assert wait_until(lambda: progress["items"] > 8 and progress["calls"] > 8)
        worker.process.send_signal(signal.SIGTERM)
        results = [each.result() for each in streams]
        ends = [each.result() for each in calls]
    assert worker.process.wait(timeout=120) == 0
    reports = sum(list(ends.values()).count("report") for _, ends in results)
    named = sum(list(ends.values()).count(True) for _, ends in results)
    assert reports > 4 and named > 0 and reports + named == sum(len(sent) for sent, _ in results), (reports, named)
    # A call that was not served was not accepted: its client could not connect any more.
    assert sum(done for done, _ in ends) > 0
    assert all("connect" in details.lower() for _, details in ends), ends
