#!/usr/bin/env python3
"""Prints what PNGs with a palette weigh, how similar they are to the original and what choosing their colors costs, compared
with libimagequant at speed 4.

    Tests/EndToEnd/python.sh Benchmarks/tables/palette.py [--colors 256,64,16] [--images] [IMAGE...]

Without arguments it takes 25 photographs and 15 graphics of the shared collection, fitted in 1280x720. Both quantizers get
the same RGBA pixels and run on one thread. A file is the rows without a filter, compressed by ISA-L at the worker's default
level and by zlib at level 6, with the palette. The score is SSIMULACRA2, in front of black or white, whichever is lower.
CPU times are the least of three runs in which the two take turns. Set IMAGE_WORKER_INSTRUCTION_SET=scalar for the code
without vectors.

Needs clang, ISA-L, and libimagequant.so.0 (Debian's libimagequant0), which is not part of the worker.
"""

import argparse
import ctypes
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import zlib
from dataclasses import dataclass

from PIL import Image, ImageOps

Image.MAX_IMAGE_PIXELS = None
ROOT = pathlib.Path(__file__).resolve().parents[2]
CORPUS = ROOT.parent / "shared" / "corpus"
GRAPHICS = [
    "01-exif-orientation/imagor--gopher-landscape-exif-cw90.png", "02-pngsuite/PngSuite.png",
    "03-png/imgpng--gama-srgb-order-issue#304.png", "03-png/imgpng--issue#202.png",
    "03-png/imgrs--debug_triangle_corners_widescreen.png", "03-png/pillow--exif.png", "03-png/sharp--grey-8bit-alpha.png",
    "03-png/wuffs--bricks-color.png", "06-webp/gox--blue-purple-pink-large.lossless.webp", "06-webp/gox--tux.lossless.webp",
    "06-webp/gox--yellow_rose.lossless.webp", "06-webp/imgrs--multi-color.webp", "06-webp/wuffs--hat.lossless.webp",
    "06-webp/wuffs--hibiscus.primitive.lossless.webp", "06-webp/wuffs--hibiscus.regular.lossless.webp",
]
SPEED, ROUNDS = 4, 3


class Quantized(ctypes.Structure):
    """As in palette.c."""

    _fields_ = [("rgba", ctypes.c_char_p), ("width", ctypes.c_uint32), ("height", ctypes.c_uint32),
                ("max_colors", ctypes.c_uint32), ("color_count", ctypes.c_uint32), ("colors", ctypes.c_uint8 * 1024),
                ("indices", ctypes.c_void_p), ("milliseconds", ctypes.c_double)]


def build(directory: str) -> ctypes.CDLL:
    sources = ROOT / "Sources"
    codecs, pixels, instructions = sources / "CCodecs", sources / "CPixels", sources / "CInstructions"
    library = pathlib.Path(directory) / "palette.so"
    files = [*codecs.glob("palette/*.c"), codecs / "memory/budget.c", *instructions.glob("*.c"), pixels / "isa.c",
             pixels / "resize_axis.c", *pixels.glob("similarity*.c"), ROOT / "Benchmarks/tables/palette.c"]
    subprocess.run(["clang", "-std=gnu11", "-O2", "-DNDEBUG", "-fPIC", "-shared", f"-I{codecs}", f"-I{codecs}/include",
                    f"-I{pixels}/include", f"-I{instructions}/include", *files, "-lisal", "-ldl", "-lm", "-o", library],
                   check=True)
    code = ctypes.CDLL(str(library))
    code.similarity.restype, code.compressed_size.restype = ctypes.c_double, ctypes.c_size_t
    code.compressed_size.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    return code


@dataclass
class Result:
    score: float
    isal: int
    zlib: int
    milliseconds: float


class Picture:
    def __init__(self, path: pathlib.Path, is_photograph: bool):
        image = Image.open(path)
        image.draft("RGB", (2560, 1440))
        image = ImageOps.exif_transpose(image).convert("RGBA")
        image.thumbnail((1280, 720), Image.Resampling.LANCZOS)
        self.name, self.is_photograph = path.name, is_photograph
        self.width, self.height = image.size
        self.pixels = image.tobytes()

    def compare(self, code: ctypes.CDLL, colors: int) -> tuple[Result, Result]:
        """Returns the results of this project and of libimagequant."""
        runs = []
        for _ in range(ROUNDS):
            for run in (lambda q: code.quantize(q), lambda q: code.quantize_liq(q, SPEED)):
                indices = ctypes.create_string_buffer(self.width * self.height)
                q = Quantized(self.pixels, self.width, self.height, colors, 0, indices=ctypes.addressof(indices))
                if run(ctypes.byref(q)) != 0:
                    sys.exit("error: libimagequant.so.0 is missing or failed")
                runs.append((q, indices))
        return tuple(self.measure(code, runs[i::2]) for i in range(2))

    def measure(self, code: ctypes.CDLL, runs: list) -> Result:
        q, indices = runs[0]
        rows = packed(indices.raw, self.width, self.height, q.color_count)
        alphas = sum(q.colors[4 * i + 3] < 255 for i in range(q.color_count))
        rest = 57 + 12 + 3 * q.color_count + (12 + alphas if alphas else 0)
        return Result(code.similarity(ctypes.byref(q)), rest + code.compressed_size(rows, len(rows)),
                      rest + len(zlib.compress(rows, 6)), min(run.milliseconds for run, _ in runs))


def packed(indices: bytes, width: int, height: int, colors: int) -> bytes:
    """Returns the rows of a PNG without a filter."""
    bits = 1 if colors <= 2 else 2 if colors <= 4 else 4 if colors <= 16 else 8
    rows = []
    for y in range(height):
        row = indices[y * width:(y + 1) * width]
        if bits < 8:
            row += bytes(-width % (8 // bits))
            row = bytes(sum(row[x + i] << (8 - bits * (i + 1)) for i in range(8 // bits))
                        for x in range(0, len(row), 8 // bits))
        rows.append(b"\0" + row)
    return b"".join(rows)


def mean_share(pairs: list[tuple[Result, Result]], value) -> float:
    return math.exp(statistics.mean(math.log(value(ours) / value(theirs)) for ours, theirs in pairs))


def summary(name: str, pairs: list[tuple[Result, Result]]) -> str:
    scores = [statistics.mean(pair[i].score for pair in pairs) for i in range(2)]
    not_worse = sum(ours.score >= theirs.score for ours, theirs in pairs)
    worst = min(ours.score - theirs.score for ours, theirs in pairs)
    shares = [mean_share(pairs, value) for value in (lambda r: r.isal, lambda r: r.zlib, lambda r: r.milliseconds)]
    return (f"| {name} | {len(pairs)} | {scores[1]:.2f} | {scores[0]:.2f} | {not_worse} | {worst:+.2f} "
            f"| {shares[0]:.3f} | {shares[1]:.3f} | {shares[2]:.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--colors", default="256,64,16", help="numbers of colors (default: %(default)s)")
    parser.add_argument("--images", action="store_true", help="also print a row for each image")
    parser.add_argument("image", nargs="*", type=pathlib.Path)
    options = parser.parse_args()
    paths = [(path, True) for path in options.image] or [
        *((path, True) for path in sorted((CORPUS / "12-photos").iterdir())), *((CORPUS / name, False) for name in GRAPHICS)]
    with tempfile.TemporaryDirectory() as directory:
        code = build(directory)
    pictures = [Picture(*path) for path in paths]
    instructions = os.environ.get("IMAGE_WORKER_INSTRUCTION_SET", "all of the processor")
    print(f"Instructions: {instructions}. Bytes and CPU are geometric means of ours as shares of libimagequant's.\n")
    table = ["| images, colors | number | score of libimagequant | ours | not worse | worst difference | bytes, ISA-L "
             "| bytes, zlib 6 | CPU |", "|---|---|---|---|---|---|---|---|---|"]
    for colors in map(int, options.colors.split(",")):
        pairs = {picture: picture.compare(code, colors) for picture in pictures}
        if options.images:
            print(f"| image, {colors} colors | scores | bytes, ISA-L | bytes, zlib 6 | CPU, ms |\n|---|---|---|---|---|")
            for picture, (ours, theirs) in pairs.items():
                print(f"| {picture.name} | {theirs.score:.2f}, {ours.score:.2f} | {theirs.isal}, {ours.isal} "
                      f"| {theirs.zlib}, {ours.zlib} | {theirs.milliseconds:.1f}, {ours.milliseconds:.1f} |")
            print()
        for name, is_photograph in (("photographs", True), ("graphics", False)):
            chosen = [pair for picture, pair in pairs.items() if picture.is_photograph == is_photograph]
            if chosen:
                table.append(summary(f"{name}, {colors}", chosen))
    print("\n".join(table))


if __name__ == "__main__":
    main()
