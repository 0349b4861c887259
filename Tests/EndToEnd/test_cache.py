"""Tests of cached results: across restarts, after kills during writes, and on a full disk."""

import os
import random
import shutil
import signal
import subprocess
import threading
import time

import grpc
import pytest
from conftest import Client, Worker, fixture_bytes

IMAGE = fixture_bytes("photo-420.jpg")
PNG = 3


def process(client: Client, width: int, preset: str = "") -> tuple[bytes, bool]:
    """Returns the result at a width, and whether it came from the cache."""
    parts = list(client.process(IMAGE, preset, max_width=width, allow_upscale=True, preferred_format=PNG))
    return b"".join(part.chunk for part in parts), parts[-1].report.cache_hit


def results(directory):
    return [path for path in directory.iterdir() if path.suffix == ".result"]


def test_files_outlive_the_process(tmp_path):
    directory = tmp_path / "cache"
    worker = Worker("--cache-directory", str(directory))
    first, hit = process(Client(worker), 100)
    assert not hit and process(Client(worker), 100) == (first, True)
    assert worker.stop() == 0
    path, = results(directory)
    worker = Worker("--cache-directory", str(directory), "--cache-memory-mib", "0")
    assert process(Client(worker), 100) == (first, True)

    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    path.write_bytes(damaged)
    assert process(Client(worker), 100) == (first, False)
    assert process(Client(worker), 100) == (first, True)
    assert worker.stop() == 0


def test_concurrent_requests_are_worked_on_once(tmp_path):
    worker = Worker()
    clients = [Client(worker) for _ in range(4)]
    outcomes = []
    first = clients[0].process(IMAGE, max_width=3000, allow_upscale=True, preferred_format=PNG)
    threads = [
        threading.Thread(target=lambda c=client: outcomes.append(process(c, 3000))) for client in clients for _ in range(2)]
    for thread in threads:
        thread.start()
    first.cancel()  # if this call was the leader, another one takes over
    for thread in threads:
        thread.join()
    assert len(outcomes) == 8 and len({result for result, _ in outcomes}) == 1
    # None of them if the first call was done before it was cancelled.
    assert sum(not hit for _, hit in outcomes) <= 1
    assert worker.stop() == 0


def seconds_of_one_call() -> float:
    """The time that a call of `process` takes while this machine is as busy as now."""
    worker = Worker("--cache-memory-mib", "0")
    client = Client(worker)
    process(client, 300)
    began = time.monotonic()
    for _ in range(10):
        process(client, 340)
    worker.process.kill()
    worker.process.wait()
    return (time.monotonic() - began) / 10


def test_kills_in_the_middle_of_writes_leave_a_sound_cache(tmp_path):
    """WORKER_KILLS sets the number of kills; more kills hit rarer moments."""
    directory = tmp_path / "cache"
    limit = 1 << 20
    options = ["--cache-directory", str(directory), "--cache-memory-mib", "0", "--cache-disk-mib", "1"]
    expected = {}
    hits = partial = 0
    pace = seconds_of_one_call()
    generator = random.Random(2024)
    for _ in range(int(os.environ.get("WORKER_KILLS", "25"))):
        worker = Worker(*options)
        partial += any(path.suffix == ".part" for path in directory.iterdir())  # all are removed at the next start
        client = Client(worker)
        killer = threading.Timer(pace * generator.uniform(0.5, 6), lambda: worker.process.send_signal(signal.SIGKILL))
        try:
            while True:
                width = generator.randrange(300, 320)
                result, hit = process(client, width)
                if not killer.ident:  # not before the worker has shown that it keeps results
                    killer.start()
                assert expected.setdefault(width, result) == result
                hits += hit
        except grpc.RpcError as error:
            assert error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED), error
        worker.process.wait()
        killer.join()
        assert sum(path.stat().st_size for path in results(directory)) <= limit
        assert not any("unreadable file" in line for line in worker.log), worker.log
    assert hits > 0 and partial == 0


def test_a_full_disk_turns_the_cache_off_and_fails_no_request(tmp_path, monkeypatch):
    directory = tmp_path / "cache"
    directory.mkdir()
    if shutil.which("unshare") is None or subprocess.run(
            ["unshare", "-m", "mount", "-t", "tmpfs", "none", directory], capture_output=True).returncode != 0:
        pytest.skip("needs a file system of its own, which only root can mount")
    wrapper = tmp_path / "worker"
    wrapper.write_text(
        f"#!/bin/sh\nexec unshare -m sh -c 'mount -t tmpfs -o size=256k,mode=700 none {directory} && exec \"$@\"' sh"
        f" {os.environ['IMAGE_WORKER']} \"$@\"\n")
    wrapper.chmod(0o755)
    monkeypatch.setenv("IMAGE_WORKER", str(wrapper))
    worker = Worker("--cache-directory", str(directory), "--cache-memory-mib", "0")
    client = Client(worker)
    small, _ = process(client, 60)
    assert process(client, 60) == (small, True)
    for width in range(400, 406):
        assert process(client, width)[0]
    assert process(client, 60) == (small, False)
    assert worker.stop() == 0
    assert sum("a disk cache file cannot be written" in line for line in worker.log) == 1, worker.log
