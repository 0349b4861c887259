#!/usr/bin/env python3
"""Prints what the JPEG encoder's files weigh at equal quality, compared with libjpeg-turbo, and the CPU time.

    python3 Benchmarks/tables/jpeg_encoder.py PHOTOGRAPH...

Each photograph is fitted in 1280x720. Of every setting the table has the bytes at libjpeg-turbo's score, interpolated
between neighboring qualities of our encoder, for SSIMULACRA2 and for the PSNR of luma: mean, smallest and largest; the
bytes and the change of the score at the same quality; and the CPU time of encoding planes. Needs clang, libjpeg-turbo,
and the packages pillow, numpy and ssimulacra2.
"""

import math
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from PIL import Image, ImageOps
from ssimulacra2 import compute_ssimulacra2

ROOT = pathlib.Path(__file__).resolve().parents[2]
SETTINGS = [(quality, "420") for quality in (30, 60, 80)] + [(quality, "444") for quality in (80, 90, 100)]
RUNS = 9


def build(directory: pathlib.Path) -> pathlib.Path:
    codecs, program = ROOT / "Sources/CCodecs", directory / "jpeg_encode"
    sources = [*(codecs / "memory" / f"{name}.c" for name in ("budget", "bytes")), codecs / "core/encoder.c",
               *codecs.glob("jpeg/jpeg_encode*.c"), ROOT / "Benchmarks/tables/jpeg_encode.c"]
    subprocess.run(["clang", "-std=gnu11", "-O2", "-DNDEBUG", f"-I{codecs}", f"-I{codecs}/include", *sources, "-ljpeg",
                    "-lm", "-o", program], check=True)
    return program


class Photograph:
    def __init__(self, path: str, directory: pathlib.Path, program: pathlib.Path):
        self.program, self.files = program, {}
        image = ImageOps.exif_transpose(Image.open(path)).convert("RGB")
        image.thumbnail((1280, 720), Image.Resampling.LANCZOS)
        self.name, self.directory = pathlib.Path(path).stem, directory
        self.source = directory / f"{self.name}.ppm"
        image.save(self.source)
        self.luma = np.asarray(image.convert("L"), dtype=float)

    def encode(self, encoder: str, quality: int, chroma: str, kind: str, runs: int = 1):
        """Returns bytes, SSIMULACRA2, PSNR and CPU milliseconds."""
        key = (encoder, quality, chroma, kind, runs)
        if key not in self.files:
            output = self.directory / f"{self.name}.jpg"
            time = subprocess.run([self.program, encoder, str(quality), chroma, kind, self.source, output, str(runs)],
                                  check=True, capture_output=True, text=True).stdout
            luma = np.asarray(Image.open(output).convert("L"), dtype=float)
            psnr = 10 * math.log10(255 ** 2 / max(1e-9, ((luma - self.luma) ** 2).mean()))
            score = compute_ssimulacra2(str(self.source), str(output))
            self.files[key] = (output.stat().st_size, score, psnr, float(time))
        return self.files[key]

    def at_score(self, quality: int, chroma: str, kind: str, metric: int, wanted: float) -> float:
        """Returns our bytes at a score, interpolated between two neighboring qualities."""
        low, high = 1, 100
        while high - low > 1:
            middle = (low + high) // 2
            if self.encode("native", middle, chroma, kind)[metric] < wanted:
                low = middle
            else:
                high = middle
        below, above = self.encode("native", low, chroma, kind), self.encode("native", high, chroma, kind)
        share = min(1, max(0, (wanted - below[metric]) / (above[metric] - below[metric])))
        return math.exp(math.log(below[0]) * (1 - share) + math.log(above[0]) * share)


def row(photographs, quality: int, chroma: str, kind: str) -> str:
    equal, psnr, same, changes, ours, theirs = [], [], [], [], [], []
    for photograph in photographs:
        turbo = photograph.encode("turbo", quality, chroma, "baseline", RUNS)
        native = photograph.encode("native", quality, chroma, kind, RUNS)
        equal.append(photograph.at_score(quality, chroma, kind, 1, turbo[1]) / turbo[0])
        psnr.append(photograph.at_score(quality, chroma, kind, 2, turbo[2]) / turbo[0])
        same.append(native[0] / turbo[0])
        changes.append(native[1] - turbo[1])
        ours.append(native[3])
        theirs.append(turbo[3])
    mean = lambda values: math.exp(sum(map(math.log, values)) / len(values))
    return (f"| {quality / 100} | {chroma} | {kind} | {mean(equal):.3f} ({min(equal):.3f}, {max(equal):.3f}) "
            f"| {mean(psnr):.3f} | {mean(same):.3f} | {min(changes):+.2f} | {sum(ours) / len(ours):.1f} "
            f"| {sum(theirs) / len(theirs):.1f} |")


def main():
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        program = build(directory)
        photographs = [Photograph(path, directory, program) for path in sys.argv[1:]]
        print("| quality | chroma | kind | bytes at equal SSIMULACRA2 | at equal PSNR | bytes at the same quality "
              "| lowest change of the score | CPU ms | libjpeg-turbo, baseline |\n|---|---|---|---|---|---|---|---|---|")
        for quality, chroma in SETTINGS:
            for kind in ("baseline", "progressive"):
                print(row(photographs, quality, chroma, kind), flush=True)


if __name__ == "__main__":
    main()
