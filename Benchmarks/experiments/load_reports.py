#!/usr/bin/env python3
"""Compares balancing by load reports with other ways: three workers, of which one may have a quarter of the others' speed.

Each worker has one thread and a share of one core, by a group of the kernel's CPU controller; that of the slow one is a quarter of
it. Images arrive by chance, at the same times for each row, at a share of the rate that three equal workers can process. Envoy and
gRPC's own library send them to the workers in turn, to the one with the fewest open calls, or by the reports of the workers. Prints a
table: latencies in milliseconds of three equal workers, and of two and a slow one; their ratio; and the slow one's share of the calls.

Use: Tests/EndToEnd/python.sh Benchmarks/experiments/load_reports.py [--load 0.4] [--seconds 20] (with IMAGE_WORKER set, as root)
"""

import argparse
import asyncio
import io
import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager, suppress
from pathlib import Path

import grpc
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / folder) for folder in ("Tests/EndToEnd", "Benchmarks/simulation", "clients/python/src")]
from check import Group, percentile  # noqa: E402
from conftest import FIXTURES, wait_until  # noqa: E402
from image_worker._generated import image_worker_pb2 as wire  # noqa: E402
from test_proxies import LEAST_REQUEST, Proxy, by_load_reports  # noqa: E402

#: Of a core: of each worker, of the slow one, and of the clients and Envoy.
SHARE, SLOW_SHARE, CLIENTS = 0.2, 0.05, 0.3
#: Seconds of arrivals before those that count.
WARM_UP = 10.0
METHOD = "/imageworker.v1.ImageWorkerService/ProcessImage"
WEIGHTED = {"weighted_round_robin": {"blackoutPeriod": "1s", "weightUpdatePeriod": "1s"}}
ENVOY = {"in turn": [(LEAST_REQUEST, LEAST_REQUEST.replace("LEAST_REQUEST", "ROUND_ROBIN"))], "open calls": [],
         "load reports": by_load_reports()}
GRPC = {"in turn": {"round_robin": {}}, "load reports": WEIGHTED}


class Worker:
    """A worker with one thread, on a share of a core."""

    def __init__(self, number: int, share: float) -> None:
        self.group, self.log = Group(f"load-{number}", share), []
        cores = sorted(os.sched_getaffinity(0))

        def confine() -> None:
            os.sched_setaffinity(0, {cores[number % len(cores)]})
            self.group.enter()

        self.process = subprocess.Popen(
            [os.environ["IMAGE_WORKER"], "serve", "--port", "0", "--isolation", "none", "--threads", "1", "--cache-memory-mib", "0",
             "--load-reports", "--log-format", "json", "--max-waiting-images", "2000", "--max-connection-calls", "2000"],
            stderr=subprocess.PIPE, text=True, preexec_fn=confine)
        self.address = next(match[1] for line in self.process.stderr if (match := re.search(r"(127\.0\.0\.1:\d+)", line)))
        self.port = int(self.address.split(":")[1])
        threading.Thread(target=self.read_log, daemon=True).start()

    def read_log(self) -> None:
        for line in self.process.stderr:
            self.log.append(line)

    @property
    def call_count(self) -> int:
        return sum(METHOD[1:] in line for line in self.log)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        self.group.remove()


def request() -> bytes:
    """A photograph of 600x400, and what to make of it."""
    file = io.BytesIO()
    Image.open(FIXTURES / "photo-420.jpg").convert("RGB").resize((600, 400)).save(file, "JPEG", quality=90)
    return wire.ProcessImageRequest(image=file.getvalue(), preset="thumbnail").SerializeToString()


def arrivals(rate: float, seconds: float) -> list[float]:
    generator, at, times = random.Random(1), 0.0, []
    while (at := at + generator.expovariate(rate)) < seconds:
        times.append(at)
    return times


async def called(address: str, policy: dict | None, times: list[float], body: bytes, counted: Callable[[], None]) -> list[float]:
    """How long the calls take that begin at these times; those after the warm-up."""
    options = [("grpc.max_receive_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]
    if policy:
        options.append(("grpc.service_config", json.dumps({"loadBalancingConfig": [policy]})))
    async with grpc.aio.insecure_channel(address, options=options) as channel:
        call, latencies = channel.unary_stream(METHOD), []
        await asyncio.gather(*(drained(call(body)) for _ in range(6)))
        began = time.monotonic()

        async def one(at: float) -> None:
            await asyncio.sleep(began + at - time.monotonic())
            is_refused = False
            try:
                await drained(call(body, timeout=120))
            except grpc.RpcError:
                is_refused = True
            # From when it should have begun: a busy client hides no queue.
            if at >= WARM_UP:
                latencies.append(math.inf if is_refused else time.monotonic() - began - at)

        async def count() -> None:
            await asyncio.sleep(WARM_UP)
            counted()

        await asyncio.gather(count(), *(one(at) for at in times))
    return latencies


async def drained(call: grpc.aio.UnaryStreamCall) -> None:
    async for _ in call:
        pass


@contextmanager
def envoy(workers: list[Worker], changes: list[tuple[str, str]], folder: Path):
    proxy = Proxy(None, "envoy", workers, folder, changes)

    def is_ready() -> bool:
        with suppress(OSError):
            return len(proxy.healthy_addresses()) == len(workers)
        return False

    try:
        if not wait_until(is_ready):
            sys.exit(proxy.log)
        yield proxy.address
    finally:
        proxy.stop()


def service_time(body: bytes) -> float:
    """The seconds that an equal worker takes for an image."""
    worker = Worker(0, SHARE)
    try:
        with grpc.insecure_channel(worker.address) as channel:
            call = channel.unary_stream(METHOD)
            for _ in range(10):
                list(call(body))
            began = time.monotonic()
            for _ in range(40):
                list(call(body))
        return (time.monotonic() - began) / 40
    finally:
        worker.stop()


def milliseconds(seconds: float) -> str:
    return "refused" if math.isinf(seconds) else f"{1e3 * seconds:.0f}"


def measured(balancer: str, name: str, share: float, times: list[float], body: bytes, folder: Path) -> tuple[list[float], float]:
    """The latencies, and the share of the calls that the last worker gets."""
    workers = [Worker(number, SHARE if number < 2 else share) for number in range(3)]
    before: list[int] = []

    def counted() -> None:
        before.extend(worker.call_count for worker in workers)

    try:
        if balancer == "Envoy":
            with envoy(workers, ENVOY[name], folder) as address:
                latencies = asyncio.run(called(address, None, times, body, counted))
        else:
            target = "ipv4:" + ",".join(worker.address for worker in workers)
            latencies = asyncio.run(called(target, GRPC[name], times, body, counted))
        counts = [worker.call_count - start for worker, start in zip(workers, before, strict=True)]
        return latencies, counts[-1] / sum(counts)
    finally:
        for worker in workers:
            worker.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--load", type=float, default=0.4, help="of what three equal workers can process (default: 0.4)")
    parser.add_argument("--seconds", type=float, default=20, help="of each measurement (default: 20)")
    parser.add_argument("--by", choices=list(ENVOY), action="append", help="measure this way alone; repeatable")
    options = parser.parse_args()
    body, ours = request(), Group("load-clients", CLIENTS)
    ours.enter()
    try:
        seconds = service_time(body)
        rate = 3 / seconds * options.load
        times = arrivals(rate, WARM_UP + options.seconds)
        print(f"{1e3 * seconds:.0f} ms for an image, {rate:.1f} images a second, load {options.load:.0%}\n")
        print("| balancer | by | p50, p99 of equal workers | p50, p99 with a slow one | ratio of p99 | share of the slow one |")
        print("|---|---|--:|--:|--:|--:|")
        with tempfile.TemporaryDirectory() as folder:
            ways = [*(("Envoy", name) for name in ENVOY), *(("gRPC", name) for name in GRPC)]
            for balancer, name in (way for way in ways if not options.by or way[1] in options.by):
                equal, _ = measured(balancer, name, SHARE, times, body, Path(folder))
                slow, part = measured(balancer, name, SLOW_SHARE, times, body, Path(folder))
                cells = [", ".join(milliseconds(percentile(each, at)) for at in (0.5, 0.99)) for each in (equal, slow)]
                ratio = percentile(slow, 0.99) / percentile(equal, 0.99)
                print(f"| {balancer} | {name} | {' | '.join(cells)} | {ratio:.2f} | {part:.0%} |", flush=True)
    finally:
        ours.leave()


if __name__ == "__main__":
    main()
