"""Memory over a long run: mixed images, 1 % of them hostile, and the resident memory in each tenth of the run.

Use: Tests/EndToEnd/python.sh Benchmarks/experiments/long_run.py WORKER [--images 200000] [--clients 4] [--options ...]

Each client is a process with a connection of its own, which it opens anew after every 500 images. Every result is
compared with the first one of the same image and settings. The exit status is 1 if a result differs, an image that is
not hostile is lost, or the memory of the last tenth is more than 5 % above that of the second.
"""

import argparse
import hashlib
import json
import multiprocessing
import os
import random
import re
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "Tests" / "EndToEnd"))
import grpc  # noqa: E402
from conftest import FIXTURES, UNLIMITED, Client, Worker  # noqa: E402

# At most 64 KB, so that the time goes to many images rather than to few.
MAX_BYTES = 64 << 10
SETTINGS = [
    ("favicon", {}), ("compressedThumbnail", {}), ("preview", {}), ("upload", {}),
    ("", {"max_width": 120, "preferred_format": 4}), ("", {"max_height": 90, "preferred_format": 3}),
    ("", {"max_width": 200, "max_height": 50, "compression_quality": 0.5, "preferred_format": 2}),
]
REFUSALS = (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE)
HOSTILE_SHARE = 0.01
ALLOWED_GROWTH = 1.05


def images() -> list[tuple[str, bytes]]:
    files = [path for path in sorted(FIXTURES.iterdir()) if path.suffix not in (".json", ".icc")]
    return [(path.name, path.read_bytes()) for path in files if path.stat().st_size <= MAX_BYTES]


def hostile(chance: random.Random, mixed: list[tuple[str, bytes]], crashers: list[bytes]) -> bytes:
    """A file that once crashed a decoder, or one that is damaged or truncated."""
    if chance.random() < 0.3:
        return chance.choice(crashers)
    image = bytearray(chance.choice(mixed)[1])
    for _ in range(chance.randrange(1, 30)):
        image[chance.randrange(len(image))] = chance.randrange(256)
    return bytes(image[:chance.randrange(1, 2 * len(image))])


class Address:
    """What a client needs of a worker that another process started."""

    def __init__(self, address: str):
        self.address = address


def client(address: str, seed: int, count: int, done, results) -> None:
    """Sends `count` images, and reports digests by image, and errors by text."""
    chance, mixed = random.Random(seed), images()
    crashers = [path.read_bytes() for path in sorted((ROOT / "Tests/Fuzz/crashers").rglob("*")) if path.is_file()]
    digests, lost, pool = {}, {}, None
    for number in range(count):
        if number % 500 == 0:
            if pool:
                own.channel.close()
            options = [*UNLIMITED, ("grpc.use_local_subchannel_pool", 1)]
            own = Client(Address(address), grpc.insecure_channel(address, options=options))
            own.pool = pool = pool or own.pool
        name, image = chance.choice(mixed)
        setting = chance.randrange(len(SETTINGS))
        is_hostile = chance.random() < HOSTILE_SHARE
        if is_hostile:
            image = hostile(chance, mixed, crashers)
        outcome = attempt(own, image, *SETTINGS[setting])
        if not is_hostile:
            # Some images are refused for what they are, always with the same words.
            digests.setdefault(f"{name} {setting}", set()).add(outcome)
            if outcome.startswith(("INTERNAL", "UNKNOWN", "UNAVAILABLE", "RESOURCE_EXHAUSTED", "DEADLINE")):
                lost[outcome] = lost.get(outcome, 0) + 1
        with done.get_lock():
            done.value += 1
    results.put(({case: sorted(found) for case, found in digests.items()}, lost))


def attempt(own: Client, image: bytes, preset: str, configuration: dict) -> str:
    """Returns the digest of the result, or the error."""
    for _ in range(20):
        try:
            responses = list(own.process(image, preset=preset, **configuration))
            return hashlib.sha256(b"".join(response.chunk for response in responses)).hexdigest()
        except grpc.RpcError as failure:
            error = f"{failure.code().name}: {failure.details()}"
            if failure.code() not in REFUSALS or "limit" in failure.details():
                break
            time.sleep(0.1)
    return error



def watch(worker: Worker, total: int, done) -> list[list[float]]:
    """Samples the memory until all images are done; returns the samples of each tenth."""
    tenths = [[] for _ in range(10)]
    while done.value < total and worker.process.poll() is None:
        time.sleep(0.1)
        tenths[min(9, done.value * 10 // total)].append(worker.rss_mib())
    return tenths


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("worker")
    parser.add_argument("--images", type=int, default=200_000)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--options", nargs=argparse.REMAINDER, default=[], help="settings of the worker")
    arguments = parser.parse_args()
    os.environ["IMAGE_WORKER"] = arguments.worker
    worker = Worker("--cache-memory-mib", "0", "--isolation", "none", *arguments.options)
    context = multiprocessing.get_context("spawn")
    done, results = context.Value("l", 0), context.Queue()
    each = arguments.images // arguments.clients
    clients = [context.Process(target=client, args=(worker.address, seed, each, done, results))
               for seed in range(arguments.clients)]
    began = time.monotonic()
    for process in clients:
        process.start()
    tenths = watch(worker, each * arguments.clients, done)
    print("| tenth | RSS, mean MiB | max MiB |\n|---|---|---|")
    for number, samples in enumerate(tenths, 1):
        print(f"| {number} | {sum(samples) / max(1, len(samples)):.1f} | {max(samples, default=0):.1f} |")
    digests, lost = {}, {}
    for _ in clients:
        found, errors = results.get(timeout=120)
        for case, values in found.items():
            digests.setdefault(case, set()).update(values)
        for error, count in errors.items():
            lost[error] = lost.get(error, 0) + count
    wrong = [case for case, values in digests.items() if len(values) > 1]
    second, last = (sum(samples) / max(1, len(samples)) for samples in (tenths[1], tenths[9]))
    status = Path(f"/proc/{worker.process.pid}/status").read_text()
    peak_mib = int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024
    seconds = time.monotonic() - began
    print(f"\n{done.value} images in {seconds:.0f} s, {len(digests)} kinds, {len(wrong)} with different results, "
          f"{sum(lost.values())} lost, peak {peak_mib:.0f} MiB, "
          f"last tenth {last / second - 1:+.1%} of the second")
    if wrong or lost:
        print(json.dumps({"different": wrong, "lost": lost}, indent=1))
    code = worker.stop()
    return 1 if wrong or lost or code or last > second * ALLOWED_GROWTH else 0


if __name__ == "__main__":
    sys.exit(main())
