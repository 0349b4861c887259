#!/usr/bin/env python3
"""Prints what files of JPEG encoders weigh at equal quality, compared with libjpeg-turbo, and the CPU time of encoding.

    nice -n 19 python3 Benchmarks/tables/jpeg_encoder.py --set fitted PHOTOGRAPH... --set others PHOTOGRAPH...

Each photograph is fitted in 1280x720, and all encoders receive the same planes. The bytes of an encoder are those at
which its file reaches the score of libjpeg-turbo's baseline file, interpolated between neighboring quality settings, by
three metrics: SSIMULACRA2 (of CPixels), the PSNR of luma, and the 3-norm of butteraugli. Cells are geometric means.
Where an encoder does not reach the score of a photograph at its highest quality, both are compared at its highest
score, and the cell has an asterisk. CPU times are medians of runs in which the encoders take turns; an encoder that
takes more than 25 ms runs once.

Needs clang, libjpeg-turbo, pillow and numpy. Without one of these, its rows or columns are left out:

  mozjpeg      the package jpeglib (4.0.3, without SIMD), or a libjpeg.so.62 of mozjpeg: --mozjpeg LIBRARY
  jpegli       the package pyjpegli, or any other library with its functions: --jpegli LIBRARY
  butteraugli  libjxl-dev before 0.10

Scores are kept in the file of --scores, by the samples of the decoded file: a second run scores only what has changed.
"""

import argparse
import ctypes
import ctypes.util
import hashlib
import importlib.util
import json
import math
import pathlib
import statistics
import subprocess
import tempfile
from dataclasses import dataclass
from io import BytesIO

import numpy as np
from PIL import Image, ImageOps

Image.MAX_IMAGE_PIXELS = None
ROOT = pathlib.Path(__file__).resolve().parents[2]
QUALITIES, CHROMAS = (60, 80, 90, 100), ("420", "444")
SETTINGS = [(quality, chroma) for chroma in CHROMAS for quality in QUALITIES]
MAIN = (80, "420")
STANDARD, OPTIMIZED, PROGRESSIVE = range(3)
# The settings that each metric compares. Butteraugli takes 0.4 s a file, the others 0.01 s.
METRICS = {"SSIMULACRA2": SETTINGS, "PSNR": SETTINGS, "butteraugli": [MAIN, (90, "444")]}

SLOW_MILLISECONDS = 25  # An encoder that takes longer is not run again.

Pointer = ctypes.c_void_p


def digest(*parts: bytes) -> str:
    return hashlib.sha1(b"".join(parts)).hexdigest()


# MARK: Encoders


@dataclass
class Encoder:
    name: str
    kind: int
    library: int | None  # None: the native encoder.
    identity: str  # Equal for equal code.


class Native:
    """The functions of jpeg_encode.c."""

    def __init__(self, directory: pathlib.Path):
        codecs, pixels, library = ROOT / "Sources/CCodecs", ROOT / "Sources/CPixels", directory / "jpeg_encode.so"
        encoder = [*codecs.glob("memory/*.c"), codecs / "core/encoder.c",
                   *sorted(codecs.glob("jpeg/jpeg_encode*.[ch]")), *sorted(codecs.glob("jpeg/jpeg_metadata.[ch]"))]
        instructions = ROOT / "Sources/CInstructions"
        similarity = [instructions / "instructions.c", pixels / "isa.c", pixels / "resize_axis.c", *pixels.glob("similarity*.c")]
        sources = [*encoder, *similarity, ROOT / "Benchmarks/tables/jpeg_encode.c"]
        has_jxl = subprocess.run(["pkg-config", "--max-version=0.9", "libjxl"], capture_output=True).returncode == 0
        subprocess.run(["clang", "-std=gnu11", "-O2", "-DNDEBUG", "-fPIC", "-shared", f"-I{codecs}",
                        f"-I{codecs}/include", f"-I{pixels}/include", f"-I{instructions}/include",
                        *(path for path in sources if path.suffix == ".c"), "-ldl", "-lm",
                        *(["-DHAS_BUTTERAUGLI", "-ljxl"] if has_jxl else []), "-o", library], check=True)
        self.identity = digest(*(path.read_bytes() for path in encoder))
        self.has_butteraugli = has_jxl
        code = ctypes.CDLL(str(library))
        self.open, self.create_planes, self.destroy_planes = code.library_open, code.planes_create, code.planes_destroy
        self.encode, self.similarity, self.butteraugli = code.encode, code.similarity, code.butteraugli
        self.open.restype, self.open.argtypes = Pointer, [ctypes.c_char_p] * 2
        self.create_planes.restype, self.create_planes.argtypes = Pointer, [Pointer] + [ctypes.c_uint32] * 3
        self.destroy_planes.argtypes = [Pointer]
        self.encode.restype = ctypes.c_size_t
        self.encode.argtypes = [Pointer, Pointer, ctypes.c_int, ctypes.c_int, Pointer, ctypes.POINTER(ctypes.c_double)]
        for measure in (self.similarity, self.butteraugli):
            measure.restype, measure.argtypes = ctypes.c_double, [Pointer, Pointer, ctypes.c_uint32, ctypes.c_uint32]


def package_file(name: str, pattern: str) -> str | None:
    """Returns the path of a shared object in an installed package, without importing it."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        return None
    found = sorted(pathlib.Path(spec.origin).parent.glob(pattern))
    return str(found[0]) if found else None


def find_encoders(native: Native, options) -> list[Encoder]:
    libraries = [
        ("libjpeg-turbo", "jpeg", ctypes.util.find_library("jpeg"),
         {"baseline, standard tables": STANDARD, "baseline, optimized tables": OPTIMIZED, "progressive": PROGRESSIVE}),
        ("mozjpeg", "jpeg", options.mozjpeg or package_file("jpeglib", "cjpeglib/cjpeglib_mozjpeg403*.so"),
         {"baseline, trellis": OPTIMIZED, "progressive, trellis": PROGRESSIVE}),
        ("jpegli", "jpegli", options.jpegli or package_file("pyjpegli", "pyjpegli*.so"),
         {"baseline, standard tables": STANDARD, "baseline, optimized tables": OPTIMIZED, "progressive": PROGRESSIVE}),
    ]
    encoders = []
    for name, prefix, path, kinds in libraries:
        handle = native.open(path.encode(), prefix.encode()) if path else None
        print(f"{name}: {path if handle else 'not found, left out'}")
        if handle:
            identity = digest(pathlib.Path(path).read_bytes() if "/" in path else path.encode())
            encoders += [Encoder(f"{name}, {kind}", value, handle, identity) for kind, value in kinds.items()]
    if not native.has_butteraugli:
        print("butteraugli: not found, left out")
    return encoders + [Encoder("**ours, baseline**", OPTIMIZED, None, native.identity),
                       Encoder("**ours, progressive**", PROGRESSIVE, None, native.identity)]


# MARK: Photographs


class Photograph:
    def __init__(self, path: str, native: Native, kept: dict):
        self.native, self.kept = native, kept
        image = Image.open(path)
        image.draft("RGB", (2560, 1440))
        image = ImageOps.exif_transpose(image).convert("RGB")
        image.thumbnail((1280, 720), Image.Resampling.LANCZOS)
        self.width, self.height = image.size
        self.samples = image.tobytes()
        self.luma = np.asarray(image.convert("L"), dtype=np.float32)
        self.identity = digest(self.samples)
        self.planes = {chroma: native.create_planes(self.samples, *image.size, 2 if chroma == "420" else 1)
                       for chroma in CHROMAS}
        self.output = ctypes.create_string_buffer(self.width * self.height * 6 + 65536)

    def close(self):
        for planes in self.planes.values():
            self.native.destroy_planes(planes)

    def encode(self, encoder: Encoder, quality: int, chroma: str) -> tuple[bytes, float]:
        """Returns the file and the CPU time in milliseconds."""
        milliseconds = ctypes.c_double()
        count = self.native.encode(encoder.library, self.planes[chroma], quality, encoder.kind, self.output,
                                   ctypes.byref(milliseconds))
        return ctypes.string_at(self.output, count), milliseconds.value

    def measure(self, encoder: Encoder, quality: int, chroma: str, metric: str) -> tuple[int, float]:
        """Returns the bytes of the file and its score, which is higher for better files."""
        key = f"{self.identity} {encoder.identity} {encoder.kind} {quality} {chroma}"
        entry, decoded = self.kept.get(key), None
        if entry is None:
            file = self.encode(encoder, quality, chroma)[0]
            decoded = Image.open(BytesIO(file)).convert("RGB")
            entry = self.kept[key] = [len(file), digest(decoded.tobytes())]
        score_key = f"{self.identity} {entry[1]} {metric}"
        if score_key not in self.kept:
            if decoded is None:
                decoded = Image.open(BytesIO(self.encode(encoder, quality, chroma)[0])).convert("RGB")
            self.kept[score_key] = self.score(decoded, metric)
        return entry[0], self.kept[score_key]

    def score(self, decoded: Image.Image, metric: str) -> float:
        if metric == "PSNR":
            difference = np.asarray(decoded.convert("L"), dtype=np.float32) - self.luma
            return 10 * math.log10(255**2 / max(1e-9, float((difference**2).mean())))
        samples = decoded.tobytes()
        if metric == "butteraugli":
            return -self.native.butteraugli(self.samples, samples, self.width, self.height)
        return self.native.similarity(self.samples, samples, self.width, self.height)

    def reach(self, wanted: float, slope: float, encoder: Encoder, quality: int, chroma: str, metric: str):
        """Returns the bytes of the encoder's file at a score and its quality, or None if the score is out of reach.

        The search begins at `quality`, and `slope` is the expected change of the score per step of quality.
        """
        low, high, files = 0, 101, {}
        while high - low > 1:
            files[quality] = self.measure(encoder, quality, chroma, metric)
            missing = wanted - files[quality][1]
            low, high = (quality, high) if missing > 0 else (low, quality)
            step = math.ceil(missing / slope) if missing > 0 else math.floor(missing / slope)
            quality = min(high - 1, max(low + 1, quality + (step or -1)))
        if high == 101:
            return None
        if low == 0:
            return files[high][0], high
        below, above = files[low], files[high]
        share = (wanted - below[1]) / (above[1] - below[1])
        return math.exp(math.log(below[0]) * (1 - share) + math.log(above[0]) * share), high


@dataclass
class Ratio:
    """Bytes compared with libjpeg-turbo's baseline file."""

    value: float
    is_at_lower_score: bool = False


def ratios(photograph: Photograph, encoders: list[Encoder], metrics, quality: int, chroma: str):
    """Yields encoder, metric and ratio."""
    standard, starts = encoders[0], {}
    for metric in (metric for metric, settings in metrics.items() if (quality, chroma) in settings):
        count, wanted = photograph.measure(standard, quality, chroma, metric)
        slope = max(1e-3, (wanted - photograph.measure(standard, quality - 4, chroma, metric)[1]) / 4)
        for encoder in encoders:
            if encoder.identity == standard.identity:  # Only the coding differs: no search is needed.
                yield encoder.name, metric, Ratio(photograph.measure(encoder, quality, chroma, metric)[0] / count)
                continue
            start = starts.get(encoder.name, quality)
            reached = photograph.reach(wanted, slope, encoder, start, chroma, metric)
            if reached is not None:
                starts[encoder.name] = reached[1]
                yield encoder.name, metric, Ratio(reached[0] / count)
                continue
            best_count, best = photograph.measure(encoder, 100, chroma, metric)
            lower_count, _ = photograph.reach(best, slope, standard, quality, chroma, metric)
            yield encoder.name, metric, Ratio(best_count / lower_count, is_at_lower_score=True)


def times(photograph: Photograph, encoders: list[Encoder], quality: int, chroma: str, runs: int):
    """Yields encoder and the CPU time in milliseconds."""
    measured = {encoder.name: [photograph.encode(encoder, quality, chroma)[1]] for encoder in encoders}
    fast = [encoder for encoder in encoders if measured[encoder.name][0] < SLOW_MILLISECONDS]
    for _ in range(runs - 1):
        for encoder in fast:
            measured[encoder.name].append(photograph.encode(encoder, quality, chroma)[1])
    for name, values in measured.items():
        yield name, statistics.median(values)


# MARK: Tables


def mean(found: list[Ratio]) -> str:
    star = "*" if any(ratio.is_at_lower_score for ratio in found) else ""
    return f"{statistics.geometric_mean(ratio.value for ratio in found):.3f}{star}"


def spread(found: list[Ratio]) -> str:
    values = [ratio.value for ratio in found]
    return f"{mean(found)} ({min(values):.3f}, {max(values):.3f})"


def title(setting) -> str:
    return f"{setting[0] / 100} {':'.join(setting[1])}"


def table(head: list[str], rows: list[list[str]]):
    print("\n| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(row) + " |")


def print_tables(sets: list[str], encoders: list[Encoder], metrics, found: dict, spent: dict):
    """Prints the tables from lists of values: `found` by set, setting, encoder and metric, `spent` without metric."""
    names = [encoder.name for encoder in encoders]

    def each(cell, name: str, setting, metric: str) -> str:
        return " / ".join(cell(found[kind, setting, name, metric]) for kind in sets)

    def time(name: str, setting, kinds) -> str:
        return f"{statistics.mean(value for kind in kinds for value in spent[kind, setting, name]):.1f}"

    joined, (first, *others) = " / ".join(sets), metrics
    print(f"\nQuality {title(MAIN)}, bytes at equal score: mean (least, most)")
    table(["encoder", *(f"{first}, {kind}" for kind in sets), *(f"{metric}, {joined}" for metric in others),
           f"CPU ms, {joined}"],
          [[name, *(spread(found[kind, MAIN, name, first]) for kind in sets),
            *(each(mean, name, MAIN, metric) for metric in others),
            " / ".join(time(name, MAIN, [kind]) for kind in sets)] for name in names])
    searched = [encoder.name for encoder in encoders if encoder.identity != encoders[0].identity]
    for metric, settings in metrics.items():  # The files of libjpeg-turbo differ in coding alone, for all metrics.
        print(f"\nBytes at equal {metric}, means, {joined}")
        table(["encoder", *map(title, settings)],
              [[name, *(each(mean, name, setting, metric) for setting in settings)]
               for name in (names[1:] if metric == first else searched)])
    print(f"\nOurs at equal {first}: mean (least, most)")
    table(["setting", *(f"{name}, {kind}" for name in names[-2:] for kind in sets)],
          [[title(setting), *(spread(found[kind, setting, name, first]) for name in names[-2:] for kind in sets)]
           for setting in SETTINGS])
    print("\nCPU ms, mean of all photographs")
    table(["encoder", *map(title, SETTINGS)],
          [[name, *(time(name, setting, sets) for setting in SETTINGS)] for name in names])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", nargs="+", action="append", required=True, metavar=("NAME", "PHOTOGRAPH"))
    parser.add_argument("--mozjpeg", metavar="LIBRARY", help="mozjpeg's libjpeg.so.62")
    parser.add_argument("--jpegli", metavar="LIBRARY", help="a library with jpegli's functions")
    parser.add_argument("--scores", type=pathlib.Path, metavar="FILE", help="where to keep scores")
    parser.add_argument("--runs", type=int, default=5, help="of each encoder, for the CPU time (default: 5)")
    options = parser.parse_args()
    kept = json.loads(options.scores.read_text()) if options.scores and options.scores.exists() else {}
    found, spent = {}, {}
    with tempfile.TemporaryDirectory() as directory:
        native = Native(pathlib.Path(directory))
        encoders = find_encoders(native, options)
        metrics = {name: METRICS[name] for name in METRICS if name != "butteraugli" or native.has_butteraugli}
        for kind, *paths in options.set:
            for path in paths:
                photograph = Photograph(path, native, kept)
                print(f"{kind}: {path}, {photograph.width}x{photograph.height}", flush=True)
                for setting in SETTINGS:
                    for name, metric, ratio in ratios(photograph, encoders, metrics, *setting):
                        found.setdefault((kind, setting, name, metric), []).append(ratio)
                    for name, milliseconds in times(photograph, encoders, *setting, options.runs):
                        spent.setdefault((kind, setting, name), []).append(milliseconds)
                photograph.close()
                if options.scores:
                    options.scores.write_text(json.dumps(kept))
    print_tables([kind for kind, *_ in options.set], encoders, metrics, found, spent)


if __name__ == "__main__":
    main()
