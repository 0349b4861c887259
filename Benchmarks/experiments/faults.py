"""Prints what hostile and slow clients cost a worker: lost calls, peak memory, memory afterwards, health meanwhile.

Usage: faults.py [--memory-limit-mib 256] [--isolation none] [name ...]
Needs IMAGE_WORKER, the path of the worker, and the packages of requirements.txt. Each fault has a worker of its own.

Health, reflection, metrics and new connections are measured by a process of its own (`operations.py`), with a higher
priority than all others if that is allowed; the last column is the worst 99th percentile of the last three. Memory is the
resident memory of the worker; with `--isolation process`, the proportional memory of the worker and its helpers.
"""

import argparse
import asyncio
import json
import os
import re
import statistics
import struct
import subprocess
import sys
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc

TESTS = Path(__file__).resolve().parents[2] / "Tests"
sys.path[:0] = [str(TESTS / "EndToEnd"), str(TESTS / "Soak")]
from conftest import Client, Worker, fixture_bytes, wait_until  # noqa: E402
from raw import Raw, bmp, message, process_request  # noqa: E402
from remains import children, status_mib  # noqa: E402

MIB = 1 << 20
HEALTH_NICENESS = -10


async def unfinished(worker: Worker, connections: int, seconds: float) -> tuple[int, int]:
    """Messages of 62 MB whose last byte is never sent; none is a call that could be lost."""
    unfinished = message(b"\0" * 62_000_000)[:-1]

    async def flood(raw: Raw) -> None:
        stream = raw.call("ProcessImage")
        await raw.send(stream, unfinished)
        await asyncio.sleep(3600)

    raws = [await Raw(worker).open() for _ in range(connections)]
    await asyncio.sleep(0.5)
    tasks = [asyncio.create_task(flood(raw)) for raw in raws for _ in range(40)]
    await asyncio.wait(tasks, timeout=seconds)
    for task in tasks:
        task.cancel()
    for raw in raws:
        raw.writer.close()
    return len(tasks), 0


async def silent(worker: Worker, count: int, seconds: float) -> tuple[int, int]:
    """Connections that say nothing, and as many that say only hello."""
    raws = []
    for index in range(count):
        try:
            raws.append(await Raw(worker).open(speaks=index % 2 == 0))
        except ConnectionError:
            pass
    await asyncio.sleep(seconds)
    for raw in raws:
        raw.writer.close()
    return count, 0


async def slow_uploads(worker: Worker, seconds: float) -> tuple[int, int]:
    """200 messages of 1 MB at 1 KB/s; lost are those that the worker does not end."""
    raws = [await Raw(worker).open() for _ in range(4)]
    await asyncio.sleep(0.5)

    async def drip(raw: Raw) -> bool:
        stream = raw.call("ProcessImage")
        await raw.send(stream, message(b"\0" * MIB)[:1000])
        began = time.monotonic()
        while time.monotonic() - began < seconds and stream not in raw.ends and not raw.closed:
            await raw.send(stream, b"\0" * 1000)
            await asyncio.sleep(1)
        return stream in raw.ends or raw.closed

    ends = await asyncio.gather(*(drip(raw) for raw in raws for _ in range(50)))
    return len(ends), ends.count(False)


async def unread(worker: Worker, seconds: float) -> tuple[int, int]:
    """100 calls whose results are never read; lost are those that the worker does not end."""
    raws = [await Raw(worker, reads_results=False).open() for _ in range(10)]
    await asyncio.sleep(0.5)
    request = message(process_request(bmp(600)))

    async def ignore(raw: Raw) -> bool:
        stream = raw.call("ProcessImage")
        await raw.send(stream, request, ends=True)
        began = time.monotonic()
        while time.monotonic() - began < seconds and stream not in raw.ends and not raw.closed:
            await asyncio.sleep(0.5)
        return stream in raw.ends or raw.closed

    ends = await asyncio.gather(*(ignore(raw) for raw in raws for _ in range(10)))
    return len(ends), ends.count(False)


def calls(worker: Worker, side: int) -> tuple[int, int]:
    """256 calls at once, on three connections, with an image in one message."""
    image, clients, errors = bmp(side), [Client(worker) for _ in range(3)], []
    for client in clients:
        client.message("ProcessImageRequest")

    def call(index: int) -> bool:
        try:
            return list(clients[index % 3].process(image, preset="favicon", timeout=600))[-1].WhichOneof("part") == "report"
        except grpc.RpcError as error:
            errors.append(f"{error.code().name}: {error.details()}")
            return False

    with ThreadPoolExecutor(256) as pool:
        ends = list(pool.map(call, range(256)))
    for error in sorted(set(errors))[:3]:
        print(f"  {errors.count(error)} x {error}", file=sys.stderr)
    return len(ends), ends.count(False)


def empty_png(side: int) -> bytes:
    """A PNG whose rows are all 0, and so compress 1000 times."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    compressor, row = zlib.compressobj(9), bytes(1 + side // 8)
    data = b"".join(compressor.compress(row) for _ in range(side)) + compressor.flush()
    header = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def large_pngs(worker: Worker, seconds: float) -> tuple[int, int]:
    """100 calls of 33 KB with 268 megapixels; lost are those that fail otherwise than by a deadline or a refusal."""
    image, client = empty_png(16_384), Client(worker)
    client.message("ProcessImageRequest")
    expected = (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.RESOURCE_EXHAUSTED)

    def call(_: int) -> bool:
        try:
            return bool(list(client.process(image, preset="favicon", timeout=seconds)))
        except grpc.RpcError as error:
            return error.code() in expected

    with ThreadPoolExecutor(100) as pool:
        ends = list(pool.map(call, range(100)))
    return len(ends), ends.count(False)


def small_images(worker: Worker, count: int) -> tuple[int, int]:
    """Small images, four at a time; lost are those whose result differs from the first one."""
    image, client = fixture_bytes("photo-420.jpg"), Client(worker)

    def call(_: int) -> bytes:
        parts = client.process(image, preset="favicon", timeout=600)
        return b"".join(part.chunk for part in parts if part.WhichOneof("part") == "chunk")

    expected = call(0)
    with ThreadPoolExecutor(4) as pool:
        ends = [result == expected for result in pool.map(call, range(count))]
    return len(ends), ends.count(False)


FAULTS = {
    "40 unfinished messages of 62 MB, one connection": lambda w: asyncio.run(unfinished(w, 1, 20)),
    "40 unfinished messages of 62 MB on each of 22 connections": lambda w: asyncio.run(unfinished(w, 22, 40)),
    "256 calls with 20 MB messages": lambda w: calls(w, 2600),
    "256 calls with 4 MB messages": lambda w: calls(w, 1160),
    "200 uploads of 1 KB/s": lambda w: asyncio.run(slow_uploads(w, 130)),
    "100 callers that never read": lambda w: asyncio.run(unread(w, 60)),
    "2000 connections that say nothing": lambda w: asyncio.run(silent(w, 2000, 20)),
    "100 calls with a PNG of 268 megapixels": lambda w: large_pngs(w, 20),
    "20000 small images": lambda w: small_images(w, 20_000),
}


class Operations:
    """Measures what operators call, from a process of its own."""

    def __init__(self, worker: Worker):
        assert wait_until(lambda: any('"metrics"' in line for line in worker.log))
        line = next(line for line in worker.log if '"metrics"' in line)
        port = re.search(r":(\d+)\D*$", json.loads(line)["address"])[1]
        self.process = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("operations.py"), worker.address, port], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True)
        try:
            os.setpriority(os.PRIO_PROCESS, self.process.pid, HEALTH_NICENESS)
        except PermissionError:
            pass
        self.process.stdout.readline()

    def stop(self) -> tuple[float, float, float]:
        """Returns the median and the 99th percentile of health, and the worst percentile of the others."""
        times = {name: sorted(values) for name, values in json.loads(self.process.communicate("end")[0]).items()}
        last = {name: values[len(values) * 99 // 100] for name, values in times.items()}
        health = last.pop("health")
        print(f"  {last}", file=sys.stderr)
        return statistics.median(times["health"]), health, max(last.values())


class Memory(threading.Thread):
    """Samples the memory of a worker and its helpers."""

    def __init__(self, worker: Worker, isolated: bool):
        super().__init__(daemon=True)
        self.pid, self.isolated, self.peak, self.stopped = worker.process.pid, isolated, 0.0, threading.Event()
        self.before = self.mib()
        self.start()

    def mib(self) -> float:
        if not self.isolated:
            return status_mib(self.pid, "VmRSS")
        total = 0
        for pid in (self.pid, *children(self.pid)):
            try:
                total += int(re.search(r"\nPss:\s+(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text())[1])
            except OSError:  # it has ended
                pass
        return total / 1024

    def run(self) -> None:
        while self.isolated and not self.stopped.wait(0.2):
            self.peak = max(self.peak, self.mib())

    def stop(self) -> float:
        """Returns the peak."""
        self.stopped.set()
        return self.peak if self.isolated else status_mib(self.pid, "VmHWM")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--memory-limit-mib", default="256")
    parser.add_argument("--isolation", choices=("none", "process"), default="none")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    print("| fault | tries | lost | before MiB | peak MiB | after 10 s MiB | health p50 ms | p99 ms | others p99 ms |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    for name, fault in FAULTS.items():
        if arguments.names and not any(part in name for part in arguments.names):
            continue
        worker = Worker(
            "--cache-memory-mib", "0", "--memory-limit-mib", arguments.memory_limit_mib, "--isolation",
            arguments.isolation, "--metrics-port", "0")
        memory, operations = Memory(worker, arguments.isolation == "process"), Operations(worker)
        tries, lost = fault(worker)
        (median, health, others), peak = operations.stop(), memory.stop()
        time.sleep(10)
        print(
            f"| {name} | {tries} | {lost} | {memory.before:.0f} | {peak:.0f} | {memory.mib():.0f} | "
            f"{median:.1f} | {health:.1f} | {others:.1f} |", flush=True)
        worker.process.kill()
        worker.process.wait()


if __name__ == "__main__":
    main()
