"""Compares arrays that a worker sends with arrays that it writes into the client's shared memory: CPU time for each image.

Prints a table: medians of the CPU time of the worker and of the Python client, and of the time that passes, in
microseconds for an image. Both ways take turns.

Use: shared_memory.py [--rounds N] (with IMAGE_WORKER set; needs NumPy and Pillow)
"""

import argparse
import io
import resource
import statistics
import sys
import time
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "Tests" / "EndToEnd"), str(ROOT / "clients" / "python" / "src")]
import image_worker  # noqa: E402
from conftest import FIXTURES, Worker  # noqa: E402

IMAGES, BATCH = 640, 64
KINDS = [(224, "float16"), (336, "float32")]


def photo() -> bytes:
    """A JPEG of the usual size of ImageNet's."""
    file = io.BytesIO()
    Image.open(FIXTURES / "photo-420.jpg").convert("RGB").resize((500, 375)).save(file, "JPEG", quality=90)
    return file.getvalue()


def own_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def measured(worker: Worker, client: image_worker.Client, image: bytes, side: int, dtype: str, is_shared: bool) -> list[float]:
    before = [worker.cpu_seconds(), own_cpu(), time.monotonic()]
    images = (image for _ in range(IMAGES))
    for batch in client.tensors(images, width=side, height=side, dtype=dtype, batch_size=BATCH, shared_memory=is_shared):
        batch.unwrap()
    after = [worker.cpu_seconds(), own_cpu(), time.monotonic()]
    return [1e6 * (end - start) / IMAGES for start, end in zip(before, after)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=6)
    rounds = parser.parse_args().rounds
    image, worker = photo(), Worker("--shared-memory", "--cache-memory-mib", "0", "--isolation", "none")
    print("| array | | worker | client | time |\n|---|---|--:|--:|--:|")
    with image_worker.Client(worker.address) as client:
        for side, dtype in KINDS:
            rows: dict[bool, list[list[float]]] = {False: [], True: []}
            for number in range(rounds + 1):
                for is_shared in rows:
                    row = measured(worker, client, image, side, dtype, is_shared)
                    if number > 0:  # the first round is a warm-up
                        rows[is_shared].append(row)
            for is_shared, values in rows.items():
                medians = " | ".join(f"{statistics.median(column):.0f}" for column in zip(*values))
                print(f"| {side}x{side} {dtype} | {'shared' if is_shared else 'sent'} | {medians} |", flush=True)
    worker.stop()


if __name__ == "__main__":
    main()
