"""Measures what `--isolation process` costs: CPU time of all processes and latency, compared with `none`.

Use: isolation.py [--rounds 30] [--callers] (with IMAGE_WORKER set to the program)

Three workers run at the same time, `none` twice as a control, and take turns round by round; each starts a round
equally often. With --callers, the images of the third come from three connections in turn, so that each needs a new
helper: two stay ready. Each value is the median over the rounds, and a difference is the median of the differences of a round.
"""

import argparse
import math
import statistics
import sys
import time
from pathlib import Path

import grpc

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tables"))
from peers import JOBS, ROOT, cpu_seconds  # noqa: E402
from photographs import PHOTOGRAPHS, path_of  # noqa: E402
from worker import UNLIMITED, Client, Worker  # noqa: E402

from processes import family, fields  # noqa: E402

SHARE_SECONDS = 0.15  # minimum CPU time per turn
TICKS = 100
CASES = [("F", "0.3mp-dog"), ("T", "0.3mp-dog"), ("F", "12mp-dog"), ("T", "12mp-dog"), ("T", "12mp-book-progressive"),
         ("N", "12mp-dog-png")]
WORKERS = {"none": [], "none again": [], "process": ["--isolation", "process"]}


def ended_seconds(pid: int) -> float:
    """Returns the CPU time of the children of a process that have ended."""
    return sum(map(int, fields(f"/proc/{pid}")[13:15])) / TICKS


def living_seconds(pid: int) -> float:
    """Returns the CPU time of a process; 0 if it has ended, so that it counts for its parent."""
    try:
        return cpu_seconds(pid)
    except ProcessLookupError:
        return 0


class Server:
    def __init__(self, options: list[str], connection_count: int = 1):
        self.worker = Worker("--threads", "1", *options)
        own = [*UNLIMITED, ("grpc.use_local_subchannel_pool", 1)]
        self.clients = [Client(self.worker, grpc.insecure_channel(self.worker.address, options=own))
                        for _ in range(connection_count)]

    def cpu_seconds(self) -> float:
        return sum(living_seconds(pid) + ended_seconds(pid) for pid in family(self.worker))

    def run(self, image: bytes, job, count: int) -> tuple[float, float]:
        """Processes images one after the other; returns the CPU and wall milliseconds per image."""
        cpu, wall = self.cpu_seconds(), time.perf_counter()
        for number in range(count):
            for _ in self.clients[number % len(self.clients)].process(image, job):
                pass
        wall = time.perf_counter() - wall
        return (self.cpu_seconds() - cpu) / count * 1000, wall / count * 1000


def measure(servers: list[Server], image: bytes, job, rounds: int) -> list[list[tuple[float, float]]]:
    count = max(min(math.ceil(SHARE_SECONDS * 1000 / server.run(image, job, 3)[0]), 300) for server in servers)
    results = [[] for _ in servers]
    for number in range(rounds):
        for place in range(len(servers)):
            index = (number + place) % len(servers)
            results[index].append(servers[index].run(image, job, count))
    return results


def median_of(results: list[tuple[float, float]], part: int) -> float:
    return statistics.median(one[part] for one in results)


def difference(results, one: int, other: int, part: int) -> float:
    return statistics.median(a[part] - b[part] for a, b in zip(results[one], results[other]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--callers", action="store_true")
    parser.add_argument("--photographs", type=Path, default=ROOT.parent / "shared" / "corpus" / "12-photos")
    parser.add_argument("--cache", type=Path, default=ROOT / ".build" / "benchmarks" / "pictures")
    arguments = parser.parse_args()
    arguments.cache.mkdir(parents=True, exist_ok=True)
    servers = [Server(options, 3 if options and arguments.callers else 1) for options in WORKERS.values()]
    print("| job | image | CPU ms, none | noise | isolated | more | wall ms, none | noise | isolated | more |")
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    for name, photograph in CASES:
        chosen = next(one for one in PHOTOGRAPHS if one.name == photograph)
        image = path_of(chosen, arguments.photographs, arguments.cache).read_bytes()
        results = measure(servers, image, JOBS[name], arguments.rounds)
        cells = []
        for part in (0, 1):
            base, more = median_of(results[0], part), difference(results, 2, 0, part)
            cells += [f"{base:.3f}", f"{difference(results, 1, 0, part):+.3f}", f"{median_of(results[2], part):.3f}",
                      f"{more:+.3f} ({more / base:+.1%})"]
        print(f"| {name} | {photograph} | " + " | ".join(cells) + " |", flush=True)
    for server in servers:
        server.worker.stop()


if __name__ == "__main__":
    main()
