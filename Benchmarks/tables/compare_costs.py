"""Compares what images cost two workers, OLD and NEW: CPU time of the server's process over gRPC, and peak memory.

Use: compare_costs.py OLD NEW [--jobs TFN] [--rounds 16] [--limit 0.02]

Both run side by side and take turns, image by image and round by round (A B A B ...), so that what else the machine
does falls on both. Jobs are those of peers.py: T fits in 1280x720 as JPEG, F in 64x64, N in 1280x720 as PNG. The exit
status is 1 when the median of the rounds' ratios says that NEW takes more than OLD by more than the limit.
"""

import argparse
import math
import os
import statistics
import sys
from pathlib import Path

from peers import JOBS, ROOT, cpu_seconds, resident_mib
from pictures import PICTURES, path_of
from worker import Client, Worker

SHARE_SECONDS = 0.25  # of CPU time in a turn, at least
# By job: a small image, of which the call is much, and large ones of two coders.
CASES = {
    "T": ["0.3mp-dog", "12mp-dog", "12mp-book-progressive"],
    "F": ["0.3mp-dog", "12mp-dog"],
    "N": ["0.3mp-dog-png", "12mp-dog-png"],
}


class Server:
    """One of the two workers."""

    def __init__(self, path: str):
        os.environ["IMAGE_WORKER"] = path
        self.worker = Worker("--threads", "1")
        self.client = Client(self.worker)
        self.pid = self.worker.process.pid

    def run(self, image: bytes, job, count: int) -> float:
        """CPU seconds of one image."""
        began = cpu_seconds(self.pid)
        for _ in range(count):
            for part in self.client.process(image, job):
                last = part
        self.reported_mib = last.report.peak_memory_bytes / 2**20
        return (cpu_seconds(self.pid) - began) / count

    def peak_mib(self) -> float:
        """The most that was resident since the last call of this."""
        peak = resident_mib(self.pid, "VmHWM")
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")
        return peak


def measure(servers: list[Server], image: bytes, job, rounds: int) -> tuple[list[list[float]], list[float]]:
    """By server the CPU milliseconds of an image, by rounds, and its peak memory."""
    counts = [min(max(math.ceil(SHARE_SECONDS / server.run(image, job, 2)), 2), 300) for server in servers]
    for server in servers:
        server.peak_mib()
    times = [[], []]
    for number in range(rounds):
        # Who comes first has the other's caches behind it: each does so half of the time.
        for index in ((0, 1), (1, 0))[number % 2]:
            times[index].append(servers[index].run(image, job, max(counts)) * 1000)
    return times, [server.peak_mib() for server in servers]


def row(job: str, name: str, times: list[list[float]], peaks: list[float], servers: list[Server]) -> tuple[str, float]:
    ratios = sorted(new / old for old, new in zip(*times))
    middle = statistics.median(ratios)
    low, high = (ratios[int((len(ratios) - 1) * part)] for part in (0.25, 0.75))
    old, new = (statistics.median(values) for values in times)
    return (f"{job:3} {name:24} {old:9.2f} {new:9.2f} {middle:8.3f}  ({low:.3f}, {high:.3f})"
            f" {peaks[0]:8.1f} {peaks[1]:8.1f} {servers[0].reported_mib:9.2f} {servers[1].reported_mib:9.2f}"), middle


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--jobs", default="TFN")
    parser.add_argument("--rounds", type=int, default=16)
    parser.add_argument("--limit", type=float, default=0.02)
    parser.add_argument("--photographs", type=Path, default=ROOT.parent / "shared" / "corpus" / "12-photos")
    parser.add_argument("--cache", type=Path, default=ROOT / ".build" / "benchmarks" / "pictures")
    arguments = parser.parse_args()
    arguments.cache.mkdir(parents=True, exist_ok=True)
    servers = [Server(arguments.old), Server(arguments.new)]
    print(f"{'':29}{'CPU ms of an image':^28}  {'quartiles':15} {'resident MiB':^17} {'working set MiB':^19}\n"
          f"job {'image':24} {'old':>9} {'new':>9} {'new/old':>8}  {'of new/old':15}" + f" {'old':>8} {'new':>8}"
          + f" {'old':>9} {'new':>9}")
    slower = []
    try:
        for job in arguments.jobs:
            for name in CASES[job]:
                picture = next(one for one in PICTURES if one.name == name)
                image = path_of(picture, arguments.photographs, arguments.cache).read_bytes()
                times, peaks = measure(servers, image, JOBS[job], arguments.rounds)
                text, ratio = row(job, name, times, peaks, servers)
                print(text, flush=True)
                if ratio > 1 + arguments.limit:
                    slower.append(f"{job} {name}: {ratio - 1:.1%}")
    finally:
        for server in servers:
            server.worker.stop()
    print("\n".join(f"SLOWER: {text}" for text in slower) or f"within {arguments.limit:.0%}")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
