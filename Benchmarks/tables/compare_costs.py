"""Compares the cost of images in two workers, OLD and NEW: CPU time of the server process over gRPC, and peak memory.

Use: compare_costs.py OLD NEW [--jobs TFN] [--rounds 40] [--limit 0.02]

OLD runs twice as a control: the difference between its two processes is noise. All three processes run at the same time
and take turns, round by round; each starts a round equally often, so that other load on the machine affects all of
them. The value of each is the lower quartile of its rounds, which other load disturbs least. Jobs are those of
peers.py: T fits in 1280x720 as JPEG, F in 64x64, N in 1280x720 as PNG. The exit status is 1 if NEW exceeds the mean of
both OLD processes by more than the limit plus the noise.
"""

import argparse
import math
import os
import statistics
import sys
from pathlib import Path

from peers import JOBS, ROOT, cpu_seconds, resident_mib
from photographs import PHOTOGRAPHS, path_of
from worker import Client, Worker

SHARE_SECONDS = 0.1  # minimum CPU time per turn
# By job: a small image, dominated by the cost of the call, and large images of two formats.
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
        """Processes images and returns the CPU seconds per image."""
        began = cpu_seconds(self.pid)
        for _ in range(count):
            for part in self.client.process(image, job):
                last = part
        self.reported_mib = last.report.peak_memory_bytes / 2**20
        return (cpu_seconds(self.pid) - began) / count

    def peak_mib(self) -> float:
        """Returns the peak resident memory since the previous call."""
        peak = resident_mib(self.pid, "VmHWM")
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")
        return peak


def measure(servers: list[Server], image: bytes, job, rounds: int) -> tuple[list[float], list[float]]:
    """Returns the CPU milliseconds per image and the peak memory, by server."""
    count = max(min(max(math.ceil(SHARE_SECONDS / server.run(image, job, 2)), 1), 300) for server in servers)
    for server in servers:
        server.peak_mib()
    times = [[] for _ in servers]
    for number in range(rounds):
        for place in range(len(servers)):
            index = (number + place) % len(servers)
            times[index].append(servers[index].run(image, job, count) * 1000)
    return [statistics.quantiles(one, n=4)[0] for one in times], [server.peak_mib() for server in servers]


def row(job: str, name: str, times: list[float], peaks: list[float], servers: list[Server]) -> tuple[str, float, float]:
    """Returns a line of the table, the ratio of NEW to OLD, and the noise."""
    old, new = statistics.mean(times[:2]), times[2]
    noise = abs(times[1] / times[0] - 1)
    return (f"{job:3} {name:24} {old:9.2f} {new:9.2f} {new / old:9.3f} {noise:7.1%}"
            f" {max(peaks[:2]):9.1f} {peaks[2]:9.1f} {servers[0].reported_mib:9.2f} {servers[2].reported_mib:9.2f}",
            new / old, noise)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--jobs", default="TFN")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--limit", type=float, default=0.02)
    parser.add_argument("--photographs", type=Path, default=ROOT.parent / "shared" / "corpus" / "12-photos")
    parser.add_argument("--cache", type=Path, default=ROOT / ".build" / "benchmarks" / "pictures")
    arguments = parser.parse_args()
    arguments.cache.mkdir(parents=True, exist_ok=True)
    servers = [Server(path) for path in (arguments.old, arguments.old, arguments.new)]
    print(f"{'':28} {'CPU ms of an image':^37} {'resident MiB':^19} {'working set MiB':^19}\n"
          f"job {'image':24} {'old':>9} {'new':>9} {'new/old':>9} {'noise':>7}" + f" {'old':>9} {'new':>9}" * 2)
    slower = []
    try:
        for job in arguments.jobs:
            for name in CASES[job]:
                photograph = next(one for one in PHOTOGRAPHS if one.name == name)
                image = path_of(photograph, arguments.photographs, arguments.cache).read_bytes()
                times, peaks = measure(servers, image, JOBS[job], arguments.rounds)
                text, ratio, noise = row(job, name, times, peaks, servers)
                print(text, flush=True)
                if ratio > 1 + arguments.limit + noise:
                    slower.append(f"{job} {name}: {ratio - 1:.1%}")
    finally:
        for server in servers:
            server.worker.stop()
    print("\n".join(f"SLOWER: {text}" for text in slower) or f"within {arguments.limit:.0%}")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
