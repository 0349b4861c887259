#!/usr/bin/env python3
"""Prints what a photograph weighs in each format and at each effort, and what encoding it costs, at equal similarity.

    IMAGE_WORKER=.build/release/image-worker Tests/EndToEnd/python.sh Benchmarks/tables/efforts.py [--target 80] [--rounds 3]

Photographs of the shared collection are fitted in 1280x720. For each format and effort the worker finds the quality whose result
reaches the score of SSIMULACRA2; a call with that quality then costs the processor time that the table has, the least of some
rounds in which all of them take turns. It includes decoding and resizing, which the row of an uncompressed PNG shows.
"""

import argparse
import statistics
import time
from pathlib import Path

from photographs import PHOTOGRAPHS
from worker import Client, Worker

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "12-photos"
ROWS = [("PNG", {"png": {"compression_level": 0}}), ("JPEG", {}), ("WEBP", {})]
ROWS += [("WEBP", {"webp": {"method": effort}}) for effort in (0, 2, 6)]
ROWS += [("WEBP", {"webp": {"sharp_chroma": True}})]
ROWS += [("AVIF", {"avif": {"effort": effort}}) for effort in (0, 1, 2, 3, 4, 5)]
ROWS += [("JXL", {"jxl": {"effort": effort}}) for effort in (1, 3, 5, 7)]


def processor_seconds(worker: Worker) -> float:
    return time.clock_gettime(~worker.process.pid << 3 | 2)  # the number that clock_getcpuclockid returns


class Call:
    """One image in one format at one effort."""

    def __init__(self, client: Client, image: bytes, format: str, options: dict, target: float):
        self.client, self.image = client, image
        self.fields = {"max_width": 1280, "max_height": 720, "preferred_format": f"OUTPUT_FORMAT_{format}", **options}
        if format != "PNG":
            report, _ = self.run(target_similarity=target)
            self.fields["compression_quality"] = report.compression_quality
        self.seconds = float("inf")

    def run(self, **fields):
        configuration = self.client.message("ProcessingConfiguration")(always_encode=True, **self.fields, **fields)
        request = self.client.message("ProcessImageRequest")(image=self.image, configuration=configuration)
        parts = list(self.client.call("ProcessImage", "unary_stream")(request, timeout=600))
        return parts[-1].report, sum(len(part.chunk) for part in parts)

    def measure(self, worker: Worker, repeats: int) -> None:
        before = processor_seconds(worker)
        for _ in range(repeats):
            self.bytes = self.run()[1]
        self.seconds = min(self.seconds, (processor_seconds(worker) - before) / repeats)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", type=float, default=80)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=4)
    arguments = parser.parse_args()
    worker = Worker("--threads", "1")
    client = Client(worker)
    names = sorted({photograph.source for photograph in PHOTOGRAPHS})
    images = [(CORPUS / name).read_bytes() for name in names]
    table = [[Call(client, image, format, options, arguments.target) for image in images] for format, options in ROWS]
    for _ in range(arguments.rounds):
        for calls in table:
            for call in calls:
                call.measure(worker, arguments.repeats)
    worker.process.kill()
    jpeg = table[1]
    print(f"{len(images)} photographs, score {arguments.target:g}\n")
    print("| format | options | bytes of the JPEG's | CPU ms |\n|---|---|---|---|")
    for (format, options), calls in zip(ROWS, table):
        share = statistics.median(call.bytes / base.bytes for call, base in zip(calls, jpeg))
        text = ", ".join(f"{name} {value}" for group in options.values() for name, value in group.items()) or "default"
        print(f"| {format} | {text} | {share:.2f} | {statistics.median(call.seconds for call in calls) * 1000:.0f} |")


if __name__ == "__main__":
    main()
