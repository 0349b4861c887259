"""Counts the allocations and the system calls of a call: a favicon-sized PNG and a JPEG of 0.3 megapixels.

Prints a table: for each image, the mean of many calls over one connection. The counts hardly depend on the machine or its
load. With --stacks N, prints the N most frequent stacks of the allocations of each image instead.

Use: call_costs.py [--calls N] [--stacks N] (with IMAGE_WORKER set; needs cc, strace and Pillow)
"""

import argparse
import io
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time
from bisect import bisect
from collections import Counter
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "Tests" / "EndToEnd")]
from conftest import FIXTURES, Client, Worker  # noqa: E402

STACK_FRAMES, STACKS = 24, 1 << 14


def encoded(size: tuple[int, int], kind: str) -> bytes:
    file = io.BytesIO()
    Image.open(FIXTURES / "photo-420.jpg").convert("RGB").resize(size).save(file, kind)
    return file.getvalue()


IMAGES = {
    "PNG of 64x64 to 32x32": (encoded((64, 64), "PNG"), {"max_width": 32}),
    "JPEG of 640x480 to 300x225": (encoded((640, 480), "JPEG"), {"max_width": 300}),
}


def run(client: Client, image: bytes, configuration: dict, calls: int) -> None:
    for _ in range(calls):
        list(client.process(image, **configuration))


def library(folder: str) -> str:
    path = f"{folder}/count_allocations.so"
    source = Path(__file__).with_name("count_allocations.c")
    subprocess.run(
        ["cc", "-O2", "-fPIC", "-shared", "-fno-omit-frame-pointer", str(source), "-o", path, "-ldl"], check=True)
    return path


class Counts:
    """The counts of a worker's allocations so far, and of their stacks."""

    def __init__(self, path: str, has_stacks: bool):
        data = Path(path).read_bytes()
        self.allocations, self.bytes = struct.unpack_from("<QQ", data)
        self.stacks: Counter = Counter()
        for index in range(STACKS if has_stacks else 0):
            fields = struct.unpack_from(f"<{2 + STACK_FRAMES}Q", data, 16 + index * 8 * (2 + STACK_FRAMES))
            if fields[1] > 0:
                self.stacks[fields[2:]] += fields[1]


def symbols(worker: Worker, addresses: set[int]) -> dict[int, str]:
    """The names of the functions of the worker that have these return addresses."""
    program = os.environ["IMAGE_WORKER"]
    start = min(int(line.split("-")[0], 16) for line in Path(f"/proc/{worker.process.pid}/maps").read_text().splitlines()
                if line.endswith(os.path.basename(program)))
    known = []
    for line in subprocess.run(["nm", "--defined-only", program], capture_output=True, text=True).stdout.splitlines():
        fields = line.split()
        if len(fields) == 3 and fields[1] in "tTwW":
            known.append((int(fields[0], 16) + start, fields[2]))
    known.sort()
    places = [address for address, _ in known]
    found = {}
    for address in addresses:
        index = bisect(places, address) - 1
        found[address] = known[index][1] if index >= 0 and address < places[-1] + 100_000 else f"{address:x}"
    names = "\n".join(found.values())
    plain = subprocess.run(["swift-demangle", "--simplified", "--compact"], input=names, capture_output=True, text=True)
    return dict(zip(found, plain.stdout.splitlines() if plain.returncode == 0 else found.values()))


def count_allocations(calls: int, stacks: int = 0) -> dict[str, tuple[float, float]]:
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/counts"
        environment = {"LD_PRELOAD": library(folder), "ALLOCATION_COUNTS": path}
        if stacks > 0:
            environment["ALLOCATION_STACKS"] = "1"
        worker = Worker("--cache-memory-mib", "0", "--isolation", "none", environment=environment)
        client = Client(worker)
        for name, (image, configuration) in IMAGES.items():
            run(client, image, configuration, 50)
            time.sleep(1)
            before = Counts(path, stacks > 0)
            run(client, image, configuration, calls)
            time.sleep(1)
            after = Counts(path, stacks > 0)
            results[name] = ((after.allocations - before.allocations) / calls, (after.bytes - before.bytes) / calls)
            if stacks > 0:
                frequent = (after.stacks - before.stacks).most_common(stacks)
                names = symbols(worker, {frame for frames, _ in frequent for frame in frames if frame})
                print(f"# {name}: {results[name][0]:.1f} allocations")
                for frames, number in frequent:
                    print(f"{number / calls:.2f}: " + " < ".join(names[frame] for frame in frames if frame))
        worker.stop()
    return results


def count_system_calls(calls: int) -> dict[str, Counter]:
    results = {}
    worker = Worker("--cache-memory-mib", "0", "--isolation", "none")
    client = Client(worker)
    for name, (image, configuration) in IMAGES.items():
        run(client, image, configuration, 50)
        trace = subprocess.Popen(
            ["strace", "-c", "-f", "-p", str(worker.process.pid)], stderr=subprocess.PIPE, text=True)
        time.sleep(1)
        run(client, image, configuration, calls)
        time.sleep(0.5)
        trace.send_signal(signal.SIGINT)
        counts: Counter = Counter()
        for line in trace.communicate()[1].splitlines():
            match = re.match(r"\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?(\w+)$", line)
            if match and match[2] != "total":
                counts[match[2]] += int(match[1])
        results[name] = counts
    worker.stop()
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=500)
    parser.add_argument("--stacks", type=int, default=0)
    options = parser.parse_args()
    allocations = count_allocations(options.calls, options.stacks)
    if options.stacks > 0:
        return
    print("| image | allocations | KB | system calls | of these |\n|---|--:|--:|--:|---|")
    for name, counts in count_system_calls(options.calls).items():
        number, byte_count = allocations[name]
        frequent = ", ".join(f"{key} {value / options.calls:.1f}" for key, value in counts.most_common(6))
        print(f"| {name} | {number:.0f} | {byte_count / 1000:.0f} | {counts.total() / options.calls:.1f} | {frequent} |")


if __name__ == "__main__":
    main()
