#!/usr/bin/env python3
"""Prints what target_similarity costs and how near its results come, for each of some workers.

    Tests/EndToEnd/python.sh Benchmarks/tables/similarity.py WORKER... [--images 40] [--formats jpeg,webp] [--targets 60,90]

Images of the shared collection are fitted in 1280x720 once, and encoded at some scores. The processor time is that of a call
less that of a call with a fixed quality, the least of some rounds in which the workers take turns.
"""

import argparse
import os
import statistics

from efforts import processor_seconds
from format_choice import images, process
from worker import Client, Worker

FORMATS = {"jpeg": 2, "webp": 4, "avif": 5, "jxl": 7}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("workers", nargs="+")
    parser.add_argument("--images", type=int, default=40)
    parser.add_argument("--formats", default="jpeg,webp")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--targets", default="60,70,80,90")
    arguments = parser.parse_args()
    targets = [int(target) for target in arguments.targets.split(",")]
    workers = []
    for path in arguments.workers:
        os.environ["IMAGE_WORKER"] = path
        workers.append(Worker("--threads", "1"))
    clients = [Client(worker) for worker in workers]
    files = images(clients[0], arguments.images)
    print(f"{len(files)} images, scores of {', '.join(map(str, targets))}\n")
    print("| format | worker | CPU ms of the search, median | score above the target, median | p95 | within 1 | bytes |")
    print("|---|---|---|---|---|---|---|")
    for name in arguments.formats.split(","):
        rows: list[list] = [[] for _ in workers]
        for image in files:
            for target in targets:
                for index, (worker, client) in enumerate(zip(workers, clients)):
                    plain, sought = [], []
                    for _ in range(arguments.rounds):
                        for seconds, fields in (
                                (plain, {"compression_quality": 0.8}), (sought, {"target_similarity": target})):
                            before = processor_seconds(worker)
                            for _ in range(3):
                                report, _ = process(client, image, preferred_format=FORMATS[name], **fields)
                            seconds.append((processor_seconds(worker) - before) / 3)
                    rows[index].append((min(sought) - min(plain), report.similarity - target, report.output_bytes))
        for index, found in enumerate(rows):
            reached = [distance for _, distance, _ in found if distance >= 0]
            share = sum(0 <= distance <= 1 for _, distance, _ in found) / len(found)
            size = statistics.median(own[2] / other[2] for own, other in zip(found, rows[0]))
            print(f"| {name} | {index + 1} | {statistics.median(row[0] for row in found) * 1000:.1f} "
                  f"| {statistics.median(reached):.2f} | {statistics.quantiles(reached, n=20)[18]:.2f} | {share:.0%} "
                  f"| {size:.3f} |", flush=True)
    for worker in workers:
        worker.process.kill()


if __name__ == "__main__":
    main()
