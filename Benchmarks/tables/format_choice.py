#!/usr/bin/env python3
"""Prints what OUTPUT_FORMAT_AUTO costs compared with trying every format, in bytes and in processor time.

    IMAGE_WORKER=.build/release/image-worker Tests/EndToEnd/python.sh Benchmarks/tables/format_choice.py [--images 60]

Images of the shared collection are fitted in 1280x720. Every format is tried at the score of SSIMULACRA2 that the JPEG of
the same compression_quality has, and without loss as PNG and WebP. Sizes are adjusted to equal scores: the distance to 100
is about inverse to the size. The processor time is that of the call with AUTO, divided by that of a call for its format and
quality, both from the same lossless image.
"""

import argparse
import io
import statistics
from pathlib import Path

import numpy as np
from PIL import Image

from efforts import processor_seconds
from worker import Client, Worker

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"
FOLDERS = ("12-photos", "04-jpeg", "05-icc-gainmap-mpo", "03-png", "06-webp", "10-avif-heic-jxl", "09-tiff",
           "08-bmp-tga-psd-pnm-hdr-ico-qoi")
ACCEPTED = ("jpeg,png,webp", "jpeg,png,webp,avif", "jpeg,png,webp,avif,jxl")


def process(client: Client, image: bytes, **fields):
    configuration = client.message("ProcessingConfiguration")(always_encode=True, **fields)
    request = client.message("ProcessImageRequest")(image=image, configuration=configuration)
    parts = list(client.call("ProcessImage", "unary_stream")(request, timeout=600))
    return parts[-1].report, b"".join(part.chunk for part in parts)


def images(client: Client, count: int) -> list[bytes]:
    """Different images without transparency, as PNG."""
    found: dict[bytes, bytes] = {}
    for path in (path for folder in FOLDERS for path in sorted((CORPUS / folder).iterdir())):
        try:
            _, png = process(client, path.read_bytes(), max_width=1280, max_height=720, preferred_format=3)
        except Exception:  # damaged images, and descriptions of images
            continue
        picture = Image.open(io.BytesIO(png)).convert("RGB")
        if min(picture.size) < 96:
            continue
        buffer = io.BytesIO()
        picture.save(buffer, "PNG", compress_level=1)
        found.setdefault((np.asarray(picture.resize((32, 32))) // 24).tobytes(), buffer.getvalue())
        if len(found) == count:
            break
    return list(found.values())


class Comparison:
    """One image at one quality."""

    def __init__(self, client: Client, image: bytes, quality: float):
        self.client, self.image, self.quality = client, image, quality
        report, _ = self.at(2, quality)
        self.score = report.similarity
        self.sizes = {"jpeg": report.output_bytes}
        for name, format in (("webp", 4), ("avif", 5), ("jxl", 7)):
            self.sizes[name] = self.equal(process(client, image, preferred_format=format, compression_quality=1,
                                                  target_similarity=max(30, min(100, self.score)))[0])
        self.lossless = min(process(client, image, preferred_format=3)[0].output_bytes,
                            process(client, image, preferred_format=4, webp={"lossless": True})[0].output_bytes)

    def at(self, format: int, quality: float):
        """The result of a quality, with its score."""
        return process(self.client, self.image, preferred_format=format, compression_quality=quality,
                       target_similarity=100)

    def equal(self, report) -> float:
        """The size at the score of the JPEG."""
        return report.output_bytes * max(0.5, 100 - report.similarity) / max(0.5, 100 - self.score)

    def chosen(self, accepted: str):
        """The adjusted size of AUTO's result, the smallest possible one, the report and the score."""
        report, _ = process(self.client, self.image, preferred_format=8, accept=accepted,
                            compression_quality=self.quality)
        best = min([self.sizes[name] for name in accepted.split(",") if name in self.sizes] + [self.lossless])
        if not report.HasField("compression_quality"):
            return report.output_bytes, best, report, 100
        format = {"jpeg": 2, "webp": 4, "avif": 5, "jxl": 7}[report.output.format]
        measured, _ = self.at(format, report.compression_quality)
        return self.equal(measured) * report.output_bytes / measured.output_bytes, best, report, measured.similarity

    def time(self, worker: Worker, rounds: int, **fields) -> float:
        seconds = []
        for _ in range(rounds):
            before = processor_seconds(worker)
            for _ in range(5):
                process(self.client, self.image, **fields)
            seconds.append(processor_seconds(worker) - before)
        return min(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=60)
    parser.add_argument("--quality", type=float, default=0.8)
    parser.add_argument("--rounds", type=int, default=1)
    arguments = parser.parse_args()
    worker = Worker("--threads", "1")
    client = Client(worker)
    comparisons = [Comparison(client, image, arguments.quality) for image in images(client, arguments.images)]
    print(f"{len(comparisons)} images, compression_quality {arguments.quality:g}\n")
    print("| accept | bytes of the smallest, all together | of an image, median | p90 | within 3 % | chosen "
          "| score less JPEG's, p5, median, p95 | CPU of the format alone, median | p90 |")
    print("|---|---|---|---|---|---|---|---|---|")
    for accepted in ACCEPTED:
        rows = [(comparison, *comparison.chosen(accepted)) for comparison in comparisons]
        shares = [size / best for _, size, best, _, _ in rows]
        names = [report.output.format for _, _, _, report, _ in rows]
        counted = ", ".join(f"{name} {names.count(name)}" for name in sorted(set(names)))
        errors = sorted(score - comparison.score for comparison, _, _, report, score in rows if score < 100)
        times = []
        for comparison, _, _, report, _ in rows:
            format = {"jpeg": 2, "png": 3, "webp": 4, "avif": 5, "jxl": 7}[report.output.format]
            alone = {"preferred_format": format}
            if report.HasField("compression_quality"):
                alone["compression_quality"] = report.compression_quality
            elif format == 4:
                alone["webp"] = {"lossless": True}
            single = comparison.time(worker, arguments.rounds, **alone)
            times.append(comparison.time(worker, arguments.rounds, preferred_format=8, accept=accepted,
                                         compression_quality=arguments.quality) / max(single, 0.01))
        spread = ", ".join(f"{errors[int(share * (len(errors) - 1))]:+.1f}" for share in (0.05, 0.5, 0.95))
        print(f"| {accepted} | {sum(row[1] for row in rows) / sum(row[2] for row in rows):.3f} "
              f"| {statistics.median(shares):.3f} | {statistics.quantiles(shares, n=10)[8]:.3f} "
              f"| {sum(share <= 1.03 for share in shares) / len(shares):.0%} | {counted} | {spread} "
              f"| {statistics.median(times):.2f} | {statistics.quantiles(times, n=10)[8]:.2f} |", flush=True)
    worker.process.kill()


if __name__ == "__main__":
    main()
