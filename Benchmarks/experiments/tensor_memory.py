#!/usr/bin/env python3
"""Measures the peak of the worker's resident memory with a thousand images in flight, which become arrays of float16.

Prints a table: the photographs of tensors.py, on four streams of a batch with 250 images each, and as 1,000 calls at the same time.

Use: tensor_memory.py image-worker CACHE (with NumPy; CACHE is the one of Benchmarks/tables/tensors.py, which makes the photographs)
"""

import asyncio
import re
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / folder) for folder in ("clients/python/src", "Benchmarks/tables")]
from image_worker import AsyncClient, Client  # noqa: E402
from tensors import Worker  # noqa: E402

COUNT, STREAMS = 1000, 4
SIZE = {"width": 224, "height": 224, "dtype": "float16"}


def on_streams(worker: Worker, images: list[bytes]) -> int:
    """Returns how many images became arrays, while so many others were in flight."""
    window = COUNT // STREAMS
    with Client(worker.address) as client:
        batches = client.tensors(
            (images[number % len(images)] for number in range(2 * COUNT)), batch_size=window, streams=STREAMS, window=window, **SIZE)
        return sum(error is None for batch in batches for error in batch.errors)


def as_calls(worker: Worker, images: list[bytes]) -> int:
    async def all_at_once() -> list[object]:
        async with AsyncClient(worker.address) as client:
            calls = (client.tensor(images[number % len(images)], **SIZE) for number in range(COUNT))
            return await asyncio.gather(*calls, return_exceptions=True)

    return sum(not isinstance(result, Exception) for result in asyncio.run(all_at_once()))


def peak_mib(worker: Worker) -> float:
    status = Path(f"/proc/{worker.process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024


def main() -> None:
    program, cache = sys.argv[1], Path(sys.argv[2])
    ways: dict[str, Callable[[Worker, list[bytes]], int]] = {
        f"{STREAMS} streams": on_streams, f"{COUNT:,} calls": as_calls}
    print("| images | in flight on | arrays | peak of the worker, MiB |\n|---|---|--:|--:|")
    for kind in ("small-*", "large"):
        images = [path.read_bytes() for path in sorted(next(cache.glob(kind)).glob("*.jpg"))]
        for name, way in ways.items():
            worker = Worker(program)
            try:
                count = way(worker, images)
                print(f"| {kind.split('-')[0]} | {name} | {count:,} | {peak_mib(worker):.0f} |", flush=True)
            finally:
                worker.stop()


if __name__ == "__main__":
    main()
