"""Tests of the worker's total memory while it processes images of 100 megapixels, and of the default of its limit."""

import os
import re
import struct
import threading
import zlib
from pathlib import Path

import pytest
from conftest import Client, Worker, built_in, fixture_bytes, metric, wait_until
from processes import PeakMemory, family_mib

WIDTH, HEIGHT = 12_000, 8_400
CHUNK = 256 << 10
LIMIT_MIB = 120  # the limit of a share extension on a phone


def large_png() -> bytes:
    """A gradient with a texture, so that no row equals the one above."""
    deflate = zlib.compressobj(1)
    data = bytearray()
    texture = bytes((x * x // 7 + x) & 0xFF for x in range(WIDTH * 3 + 256))
    for y in range(HEIGHT):
        data += deflate.compress(b"\0" + texture[y % 251:y % 251 + WIDTH * 3])
    data += deflate.flush()

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", bytes(data)) + chunk(b"IEND", b"")


def peak_mib(worker: Worker) -> float:
    status = Path(f"/proc/{worker.process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024


def upload(worker: Worker, image: bytes, results: list, **configuration) -> None:
    client = Client(worker)
    start = client.start("large", configuration.pop("preset", ""))
    if configuration.pop("progressive", False):
        start.start.configuration.jpeg.progressive = True
    for name, value in configuration.items():
        setattr(start.start.configuration, name, value)

    def requests():
        yield start
        for offset in range(0, len(image), CHUNK):
            yield client.chunk("large", image[offset:offset + CHUNK])
        yield client.end("large")

    chunks, last = [], None
    for response in client.batch(requests(), timeout=600):
        last = response
        chunks.append(response.chunk)
    assert last.WhichOneof("part") == "report", last
    results.append((b"".join(chunks), last.report))


@pytest.fixture(scope="module")
def files():
    """The image as a PNG, and as JPEGs that a worker encoded from it."""
    png, results = large_png(), []
    # For a progressive result, all coefficients are buffered.
    worker = Worker("--cache-memory-mib", "0", "--memory-limit-mib", "1024", "--image-memory-limit-mib", "1024")
    try:
        for progressive in (False, True):
            upload(worker, png, results, compression_quality=0.8, preferred_format=2, progressive=progressive)
    finally:
        worker.stop()
    for _, report in results:
        assert (report.output.width, report.output.height) == (WIDTH, HEIGHT)
    return {"png": png, "jpeg": results[0][0], "progressive": results[1][0]}


@pytest.mark.parametrize("isolation", ["none", pytest.param("process", marks=built_in("isolation"))])
@pytest.mark.parametrize("kind", ["png", "jpeg", "progressive"])
def test_two_uploads_of_100_megapixels(files, kind, isolation):
    # Every call must do its work.
    worker, results = Worker("--cache-memory-mib", "0", "--isolation", isolation), []
    try:
        floor = family_mib(worker)
        threads = [
            threading.Thread(target=upload, args=(worker, files[kind], results), kwargs={"preset": "compressedThumbnail"})
            for _ in range(2)]
        with PeakMemory(worker) as peak:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert len(results) == 2
        for _, report in results:
            assert report.peak_memory_bytes < 24 << 20
            assert (report.output.width, report.output.height) == (1029, 720)
        # The samples may have missed the peak of the worker itself, which the system knows.
        assert max(peak.mib, peak_mib(worker)) < LIMIT_MIB
        assert wait_until(lambda: family_mib(worker) < floor + 40)
    finally:
        assert worker.stop() == 0, "".join(worker.log)


def test_free_memory_returns_when_idle(files):
    """Mixed traffic leaves free memory in every thread's arena; an idle worker returns it to the system."""
    worker = Worker("--cache-memory-mib", "0")
    try:
        floor = family_mib(worker)
        formats = [2, 3, 4]  # JPEG, PNG, WebP
        images = [fixture_bytes(name) for name in ("photo.webp", "photo.png", "photo-progressive.jpg", "photo.gif")]
        images.append(files["progressive"])

        def traffic(seed: int) -> None:
            client = Client(worker)
            for turn in range(12):
                image = images[(seed + turn) % len(images)]
                list(client.process(
                    image, timeout=600, max_width=2500, max_height=2500, always_encode=True, allow_upscale=True,
                    preferred_format=formats[(seed + turn) % len(formats)]))

        threads = [threading.Thread(target=traffic, args=(seed,)) for seed in range(6)]
        with PeakMemory(worker) as peak:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert peak.mib > floor + 30, "the traffic was too light to show anything"
        assert wait_until(lambda: family_mib(worker) < floor + 20), f"{family_mib(worker)} MiB, {floor} at its start"
    finally:
        assert worker.stop() == 0, "".join(worker.log)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can replace the files of control groups")
@pytest.mark.parametrize("files, room", [
    ({"memory.max": "max", "memory.high": 300 << 20}, 300), ({"memory.max": 250 << 20, "memory.high": 300 << 20}, 250)])
def test_the_limit_follows_that_of_the_control_group(files, room):
    """Also `memory.high`, above which the kernel slows a process down until it cannot work."""
    write = " && ".join(f"echo {value} > /sys/fs/cgroup/{name}" for name, value in files.items())
    prepared = ("unshare", "--mount", "--propagation", "private", "sh", "-c",
                f'mount -t tmpfs none /sys/fs/cgroup && {write} && exec "$@"', "sh")
    if "0::/\n" not in Path("/proc/self/cgroup").read_text():
        pytest.skip("the control group of this process is not the root of version 2")
    worker = Worker("--metrics-port", "0", "--cache-memory-mib", "0", prefix=prepared)
    assert metric(worker, "imageworker_memory_budget_limit_bytes") == (room - 96) << 20
    assert not any("does not fit" in line for line in worker.log) and worker.stop() == 0
    large = Worker("--memory-limit-mib", str(room - 95), prefix=prepared)
    assert any("does not fit" in line for line in large.log) and large.stop() == 0
