"""Prints what hostile and slow clients cost a worker: lost calls, peak memory, memory afterwards, health meanwhile.

Usage: faults.py [--memory-limit-mib 256] [name ...]
Needs IMAGE_WORKER, the path of the worker, and the packages of requirements.txt. Each fault has a worker of its own.
"""

import argparse
import asyncio
import re
import statistics
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "Tests" / "EndToEnd"))
from conftest import Client, Worker  # noqa: E402
from raw import Raw, bmp, message, process_request  # noqa: E402

MIB = 1 << 20


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


FAULTS = {
    "40 unfinished messages of 62 MB, one connection": lambda w: asyncio.run(unfinished(w, 1, 20)),
    "40 unfinished messages of 62 MB on each of 22 connections": lambda w: asyncio.run(unfinished(w, 22, 40)),
    "256 calls with 20 MB messages": lambda w: calls(w, 2600),
    "256 calls with 4 MB messages": lambda w: calls(w, 1160),
    "200 uploads of 1 KB/s": lambda w: asyncio.run(slow_uploads(w, 130)),
    "100 callers that never read": lambda w: asyncio.run(unread(w, 60)),
    "2000 connections that say nothing": lambda w: asyncio.run(silent(w, 2000, 20)),
}


class Health(threading.Thread):
    """Measures the health check's duration until it is stopped."""

    def __init__(self, worker: Worker):
        super().__init__(daemon=True)
        self.times, self.stopped = [], threading.Event()
        self.stub = health_pb2_grpc.HealthStub(grpc.insecure_channel(worker.address))
        self.stub.Check(health_pb2.HealthCheckRequest(), timeout=30)
        self.start()

    def run(self) -> None:
        while not self.stopped.wait(0.05):
            began = time.monotonic()
            try:
                self.stub.Check(health_pb2.HealthCheckRequest(), timeout=30)
                self.times.append(1000 * (time.monotonic() - began))
            except grpc.RpcError:
                self.times.append(30_000)


def status_mib(worker: Worker, name: str) -> float:
    text = Path(f"/proc/{worker.process.pid}/status").read_text()
    return int(re.search(rf"{name}:\s+(\d+)", text)[1]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--memory-limit-mib", default="256")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    print("| fault | tries | lost | before MiB | peak MiB | after 10 s MiB | health p50 ms | p99 ms |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for name, fault in FAULTS.items():
        if arguments.names and not any(part in name for part in arguments.names):
            continue
        worker = Worker("--cache-memory-mib", "0", "--memory-limit-mib", arguments.memory_limit_mib)
        before, health = status_mib(worker, "VmRSS"), Health(worker)
        tries, lost = fault(worker)
        health.stopped.set()
        time.sleep(10)
        times = sorted(health.times)
        print(
            f"| {name} | {tries} | {lost} | {before:.0f} | {status_mib(worker, 'VmHWM'):.0f} | "
            f"{status_mib(worker, 'VmRSS'):.0f} | {statistics.median(times):.1f} | {times[len(times) * 99 // 100]:.1f} |",
            flush=True)
        worker.process.kill()
        worker.process.wait()


if __name__ == "__main__":
    main()
