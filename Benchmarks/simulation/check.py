#!/usr/bin/env python3
"""Checks the simulation against three real workers, and writes what was measured to measured.json beside it.

Each worker has one thread, one core to run on, and a share of it, by a group of the kernel's CPU controller. Where the kernel can
(version 1, with real-time groups), all that is measured runs before everything else on the machine. The three workers at
saturation, one at a time, give the time that they need for each image: the gaps between their results. Then images arrive at them by
chance, through HAProxy and through the Python client, and the simulation gets the same arrivals. Needs root, the Python client, and
HAProxy (Tests/EndToEnd/proxies.sh extracts it):

check.py image-worker haproxy 2mp.jpg 12mp.jpg [--seconds 18]
"""

import argparse
import asyncio
import contextlib
import json
import os
import random
import re
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from image_worker import AsyncClient, RetryPolicy, UnavailableError
from policies import POLICIES
from simulation import Event, Settings, Simulation

HERE = Path(__file__).parent
PROXY = HERE.parent.parent / "deploy/proxies/haproxy.cfg"
#: Of a core, for each worker and for the clients, in periods shorter than the smallest image takes.
SHARE, CLIENTS, PERIOD = 0.2, 0.3, 0.01
#: Of the second image.
MIX = 0.3
LOADS = [0.5, 0.7, 0.85]


class Group:
    """A group of processes with a share of each core, which comes before all other work on the machine."""

    def __init__(self, name: str, share: float) -> None:
        old = Path("/sys/fs/cgroup/cpu")
        self.path = (old if old.is_dir() else Path("/sys/fs/cgroup")) / f"image-worker-{os.getpid()}-{name}"
        self.path.mkdir()
        quota, period = str(int(PERIOD * share * 1e6)), str(int(PERIOD * 1e6))
        self.is_real_time = (self.path / "cpu.rt_runtime_us").exists()
        if self.is_real_time:
            (self.path / "cpu.rt_period_us").write_text(period)
            self.reserve(quota)
        elif old.is_dir():
            (self.path / "cpu.shares").write_text("262144")
            (self.path / "cpu.cfs_period_us").write_text(period)
            (self.path / "cpu.cfs_quota_us").write_text(quota)
        else:
            (self.path / "cpu.weight").write_text("10000")
            (self.path / "cpu.max").write_text(f"{quota} {period}")

    def reserve(self, quota: str) -> None:
        """Takes the share, which the kernel gives back some time after an earlier group was removed."""
        for attempt in range(100):
            try:
                (self.path / "cpu.rt_runtime_us").write_text(quota)
                return
            except OSError:
                if attempt == 99:
                    self.remove()
                    raise
            time.sleep(0.1)

    def enter(self) -> None:
        (self.path / "cgroup.procs").write_text(str(os.getpid()))
        if self.is_real_time:
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))

    def leave(self) -> None:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        (self.path.parent / "cgroup.procs").write_text(str(os.getpid()))
        self.remove()

    def remove(self) -> None:
        for _ in range(50):
            with contextlib.suppress(OSError):
                self.path.rmdir()
                return
            time.sleep(0.1)


class Worker:
    """A worker on a share of a core."""

    def __init__(self, program: str, number: int, core: int) -> None:
        self.group = Group(str(number), SHARE)

        def confine() -> None:
            os.sched_setaffinity(0, {core})
            self.group.enter()

        self.process = subprocess.Popen(
            [program, "serve", "--port", "0", "--isolation", "none", "--threads", "1", "--cache-memory-mib", "0",
             "--max-waiting-images", "2000", "--max-connection-calls", "2000"], stderr=subprocess.PIPE, text=True, preexec_fn=confine)
        self.address = next(match[1] for line in self.process.stderr if (match := re.search(r"(127\.0\.0\.1:\d+)", line)))
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        self.group.remove()


@contextlib.contextmanager
def proxy(program: str, addresses: list[str], balance: str, folder: Path):
    """HAProxy with the configuration of deploy/, before the workers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    text = PROXY.read_text().replace("bind :50050", f"bind 127.0.0.1:{port}").replace("leastconn", balance)
    for number, address in enumerate(addresses, 1):
        text = text.replace(f" worker-{number}:50051", f" {address}")
    path = folder / "haproxy.cfg"
    path.write_text(text)
    process = subprocess.Popen([program, "-f", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(2)  # health checks
    try:
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


async def calibrated(address: str, images: list[bytes], count: int) -> tuple[list[list[float]], float]:
    """The seconds that one worker needs for each image, as samples, and those that a call takes in addition."""
    async with AsyncClient(address) as client:
        for image in images * 2:
            await client.process(image, preset="thumbnail")
        gaps: list[list[float]] = [[] for _ in images]
        last, numbers = time.monotonic(), iter([0, 0, 1] * (count // 3))

        async def caller() -> None:
            nonlocal last
            for number in numbers:
                await client.process(images[number], preset="thumbnail")
                now = time.monotonic()
                gaps[number].append(now - last)
                last = now

        await asyncio.gather(*(caller() for _ in range(4)))
        alone = []
        for number in [0, 0, 1] * 3:
            began = time.monotonic()
            await client.process(images[number], preset="thumbnail")
            alone.append(time.monotonic() - began - statistics.mean(gaps[number]))
    # The first gaps are those of callers that begin together.
    return [each[2:] for each in gaps], max(0.0, statistics.mean(alone))


async def measured(
    addresses: list[str], images: list[bytes], trace: list[tuple[float, int]], victim: tuple[float, Worker] | None,
) -> list[tuple[float, float]]:
    """When each image ended, and how long it took, if they are sent at the times of the trace."""
    async with AsyncClient(addresses, retry=RetryPolicy(attempts=8)) as client:
        await asyncio.gather(*(client.process(images[0], preset="thumbnail") for _ in range(6)))
        began, ends = time.monotonic(), []

        async def one(at: float, number: int) -> None:
            await asyncio.sleep(began + at - time.monotonic())
            # From when it should have been sent: a busy client does not hide a queue.
            while True:
                # A call whose answer had begun when its worker was killed is for the caller to repeat.
                with contextlib.suppress(UnavailableError):
                    await client.process(images[number], preset="thumbnail", timeout=120)
                    break
            ends.append((time.monotonic() - began, time.monotonic() - began - at))

        async def kill() -> None:
            if victim:
                await asyncio.sleep(began + victim[0] - time.monotonic())
                os.kill(victim[1].process.pid, signal.SIGKILL)

        await asyncio.gather(kill(), *(one(at, number) for at, number in trace))
    return ends


def arrivals(rate: float, seconds: float, seed: int) -> list[tuple[float, int]]:
    generator, at, trace = random.Random(seed), 0.0, []
    while (at := at + generator.expovariate(rate)) < seconds:
        trace.append((at, int(generator.random() < MIX)))
    return trace


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("worker")
    parser.add_argument("haproxy")
    parser.add_argument("images", nargs=2, type=Path)
    parser.add_argument("--seconds", type=float, default=18)
    options = parser.parse_args()
    images, folder = [path.read_bytes() for path in options.images], Path(tempfile.mkdtemp(prefix="image-worker-check-"))
    cores, workers = sorted(os.sched_getaffinity(0)), []
    ours = Group("clients", CLIENTS)
    ours.enter()
    try:
        rows, samples, network = [], [[], []], 0.0
        runs = [(name, load, False) for load in LOADS for name in ["HAProxy, leastconn", "HAProxy, roundrobin", "Python client"]]
        for seed, (name, load, dies) in enumerate([*runs, ("Python client, one worker killed", 0.5, True)]):
            workers = [Worker(options.worker, number, cores[number % len(cores)]) for number in range(3)]
            addresses = [worker.address for worker in workers]
            samples, network = [[], []], 0.0
            for address in addresses:
                found, more = asyncio.run(calibrated(address, images, 45))
                samples, network = [known + new for known, new in zip(samples, found, strict=True)], network + more / 3
            means = [statistics.mean(each) for each in samples]
            capacity = 3 / (means[0] * (1 - MIX) + means[1] * MIX)
            trace = arrivals(capacity * load, options.seconds, seed)
            half = options.seconds / 2
            with contextlib.ExitStack() as stack:
                if name.startswith("HAProxy"):
                    addresses = [stack.enter_context(proxy(options.haproxy, addresses, name.split(", ")[1], folder))]
                ends = asyncio.run(measured(addresses, images, trace, (half, workers[0]) if dies else None))
            for worker in workers:
                worker.stop()
            workers = []
            settings = Settings(
                3, 1, POLICIES["round robin" if "roundrobin" in name else "least requests"],
                lambda key, generator: generator.choice(samples[key]), network=network / 2)
            outcomes = [
                Simulation(settings, seed).run(
                    options.seconds, trace=trace, events=[Event(half, 0, "die")] if dies else [])
                for seed in range(10)]
            simulated = [latency for outcome in outcomes for latency in outcome.latencies]
            latencies = [latency for _, latency in ends]
            row = {
                "balancing": name, "load": load, "capacity": capacity, "network": network, "images": len(trace),
                "failed": len(trace) - len(ends),
                "rate": [len(ends) / max(end for end, _ in ends),
                         statistics.mean(len(each.ends) / max(each.ends) for each in outcomes)],
                **{f"p{share}": [percentile(latencies, share / 100), percentile(simulated, share / 100)] for share in (50, 90, 99)}}
            rows.append(row)
            print(json.dumps(row))
        result = {
            "share": SHARE, "seconds": samples_of(samples), "network": network, "capacity": capacity, "rows": rows}
        (HERE / "measured.json").write_text(json.dumps(result, indent=1) + "\n")
    finally:
        for worker in workers:
            worker.stop()
        ours.leave()
        shutil.rmtree(folder)


def samples_of(samples: list[list[float]]) -> list[dict[str, float]]:
    return [
        {"samples": len(each), "mean": statistics.mean(each), "deviation": statistics.stdev(each), "p99": percentile(each, 0.99)}
        for each in samples]


if __name__ == "__main__":
    main()
