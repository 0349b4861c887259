#!/usr/bin/env python3
"""Measures what an image costs with 1 to 8 workers on the cores of this machine, and 1 to 512 concurrent calls.

Each worker has one thread and is bound to one core; several share a core if there are more workers than cores. The cost is the CPU
time of the workers, which other work on the machine disturbs less than the clock. Needs the Python client and an image:
scaling.py image-worker photo.jpg [--images 400] [--rounds 3]
"""

import argparse
import asyncio
import os
import re
import statistics
import subprocess
import threading
import time
from pathlib import Path

from image_worker import AsyncClient

WORKERS = [1, 2, 3, 4, 6, 8]
CALLS = [1, 8, 64, 512]


class Worker:
    def __init__(self, program: str, core: int):
        self.process = subprocess.Popen(
            [program, "serve", "--port", "0", "--isolation", "none", "--threads", "1", "--cache-memory-mib", "0",
             "--max-waiting-images", "2000", "--max-connection-calls", "2000"],
            stderr=subprocess.PIPE, text=True, preexec_fn=lambda: os.sched_setaffinity(0, {core}))
        self.address = next(match[1] for line in self.process.stderr if (match := re.search(r"(127\.0\.0\.1:\d+)", line)))
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def cpu_milliseconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") * 1000


async def load(workers: list[Worker], image: bytes, calls: int, images: int) -> tuple[float, float]:
    """The CPU milliseconds of an image, and the images in a second."""
    async with AsyncClient([worker.address for worker in workers]) as client:
        room = asyncio.Semaphore(calls)

        async def one() -> None:
            async with room:
                await client.process(image, preset="thumbnail", timeout=300)

        await asyncio.gather(*(one() for _ in range(2 * len(workers))))  # connections and tables
        before, began = sum(worker.cpu_milliseconds() for worker in workers), time.monotonic()
        await asyncio.gather(*(one() for _ in range(images)))
        used = sum(worker.cpu_milliseconds() for worker in workers) - before
        return used / images, images / (time.monotonic() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("worker")
    parser.add_argument("image", type=Path)
    parser.add_argument("--images", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    image, cores = options.image.read_bytes(), sorted(os.sched_getaffinity(0))
    costs: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for _ in range(options.rounds):
        for count in WORKERS:
            workers = [Worker(options.worker, cores[number % len(cores)]) for number in range(count)]
            for calls in CALLS:
                costs.setdefault((count, calls), []).append(asyncio.run(load(workers, image, calls, options.images)))
            for worker in workers:
                worker.process.terminate()
                worker.process.wait()
    print("| workers | " + " | ".join(f"{calls} calls" for calls in CALLS) + " | images/s, 64 calls |")
    print("|---" * (len(CALLS) + 2) + "|")
    for count in WORKERS:
        row = [f"{statistics.median(cost for cost, _ in costs[count, calls]):.2f}" for calls in CALLS]
        print(f"| {count} | " + " | ".join(row) + f" | {statistics.median(rate for _, rate in costs[count, 64]):.0f} |")


if __name__ == "__main__":
    main()
