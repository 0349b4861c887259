"""Processes every image of a collection; prints a table and totals by kind, and exits with 1 if an image fails its
expectation. Use: corpus.py WORKER [--corpus DIRECTORY] [--only TEXT]

A collection is a directory with expect.json, which contains the expected outcome of each file: `decode` (size and mean
color match), `reject`, `either`, `limit`, or `decode_if_supported` (as decode, or refused as unsupported). Each file is
processed by a separate process, so that a crash and the CPU time belong to one image.
"""

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from PIL import Image, ImageStat

MOST_CPU_SECONDS = 5
MOST_WALL_SECONDS = 120
TOLERANCES = {"tight": 2, "loose": 40}

# Larger results are scaled down, so that decoding dominates the time.
BOUND = 1600

# Files for which the expectation's decoder is wrong: the reason, and the correct mean color. The colors of the BMPs
# were checked against the quantized and dithered colors of the suite's own rgb24.bmp and rgba32-1.bmp.
MASKS = "ImageMagick 6 scales masks of odd widths wrongly"
LIGHT = "ImageMagick 6 takes linear light for sRGB; encoded, its colors are ours"
CORRECTED = {
    "gd--rgb16-231.bmp": (MASKS, (115.0, 117.4, 79.2)),
    "gd--rgb16-3103.bmp": (MASKS, (120.7, 118.4, 121.9)),
    "gd--rgba16-1924.bmp": (MASKS, (77.8, 116.4, 114.3)),
    "gd--rgba16-4444.bmp": (MASKS, (121.5, 116.4, 120.9)),
    "gd--rgba32-1010102.bmp": (MASKS, (121.5, 116.5, 121.0)),
    "gd--rgba32-61754.bmp": (MASKS, (121.5, 116.4, 120.9)),
    "gd--rgba32-81284.bmp": (MASKS, (121.5, 116.4, 120.9)),
    "imgrs--image1.hdr": (LIGHT, (147.4, 146.9, 133.3)),
    "imgrs--rgbr4x4.hdr": (LIGHT, (70, 86, 81.5)),
    "imgtiff--cmyk-4c-8b.tiff": (
        "CMYK without a profile: libvips assumes one of its own, where others take the simple rule", (157.7, 145.5, 97.8)),
    "imgtiff--gradient-3c-32b.tiff": ("libvips takes samples of 32 bits for 8, clipped", (158.6, 138.5, 174.2)),
    "imgtiff--hpredict-1c-12b.tiff": ("Pillow takes samples of 12 bits for 16; ImageMagick agrees", (34, 34, 34)),
    "gd--3x3_srgb_lossy.jxl": (
        "its curve is a gamma of 2.2 and not sRGB's: the expectation leaves profiles out", (98.2, 98.3, 100.7)),
    "gd--hdr_pq_test.jxl": ("djxl 0.7 gives samples that wrap around from white to black", (104.2, 104.2, 104.2)),
    "multiple_entries_with_different_bit_depth.ico": (
        "Pillow takes the shallowest of the largest, where there is a deeper one", (141.4, 131.6, 138.2)),
    "Bad_smile-incorrect-image-length.ico": (
        "Pillow looks for the mask at the end that the directory gives, and finds pixels", (212.4, 212.4, 52.8)),
    "10x12x16bit-CMYK.psd": (
        "ImageMagick 6 leaves its profile out; the colors are littlecms', by Pillow", (180, 179, 179)),
    "bmp_v5_with_icc.ico": ("Pillow takes the profile at its end for a mask", (121.5, 118.4, 122.9)),
    "imgtiff--miniswhite-1c-12b.tiff": ("ImageMagick 6 does not invert where 0 is white", (144.5, 144.5, 144.5)),
    "imgtiff--miniswhite-1c-6b.tiff": ("ImageMagick 6 does not invert where 0 is white", (117.4, 117.4, 117.4)),
}
# Files that are refused although the expectation is an image, with the reason.
REFUSED = {
    "_lossless_psv": "lossless JPEG (SOF3), which libjpeg-turbo decodes from version 3 on, and Debian 12 has 2.1",
    "gd--badrle": "of bmpsuite's bad images: runs go beyond their row",
}

Image.MAX_IMAGE_PIXELS = None


@dataclass
class Outcome:
    kind: str  # ok, warning, refused, crash, hang
    detail: str = ""
    size: tuple[int, int] | None = None  # Size of the image as shown.
    result: tuple[int, int] | None = None
    mean: tuple[float, ...] | None = None
    cpu_seconds: float = 0
    peak_mib: float = 0


@dataclass
class Verdict:
    problem: str = ""
    note: str = ""
    distance: float | None = None


@dataclass
class Totals:
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, what: str):
        self.counts[what] = self.counts.get(what, 0) + 1


def limit_cpu():
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU_SECONDS + 1, MOST_CPU_SECONDS + 1))


def mean_color(path: Path) -> tuple[tuple[int, int], tuple[float, ...]]:
    with Image.open(path) as image:
        image.load()
        if "A" in image.getbands():
            white = Image.new("RGBA", image.size, "white")
            image = Image.alpha_composite(white, image.convert("RGBA"))
        return image.size, tuple(ImageStat.Stat(image.convert("RGB")).mean)


def run(worker: str, image: Path) -> Outcome:
    with tempfile.TemporaryDirectory() as directory, tempfile.TemporaryFile("w+") as text:
        process = subprocess.Popen(
            [worker, "process", str(image), "--format", "png", "--max-width", str(BOUND), "--max-height",
             str(BOUND), "--always-encode", "--out", directory], stdout=text, stderr=text,
            preexec_fn=limit_cpu)
        _, status, usage = os.wait4(process.pid, 0)
        code = process.returncode = os.waitstatus_to_exitcode(status)
        text.seek(0)
        said = text.read()
        spent = {"cpu_seconds": usage.ru_utime + usage.ru_stime, "peak_mib": usage.ru_maxrss / 1024}
        if spent["cpu_seconds"] > MOST_CPU_SECONDS:
            return Outcome("hang", **spent)
        if code not in (0, 1):
            return Outcome("crash", f"exit status {code}: {said[-300:]}", **spent)
        if code == 1:
            typed = re.search(r": ([A-Z_]+): (.*)", said)
            return Outcome("refused", typed[0][2:] if typed else f"untyped: {said[-300:]}", **spent)
        warnings = "; ".join(re.findall(r"warning: (.*)", said))
        size, mean = mean_color(next(Path(directory).iterdir()))
        shown = re.search(r": \w+ (\d+)x(\d+), \d+ bytes -> ", said)
        return Outcome(
            "warning" if warnings else "ok", warnings, (int(shown[1]), int(shown[2])), size, mean, **spent)


def fitted(size: tuple[int, int]) -> tuple[int, int]:
    scale = min(1, BOUND / max(size))
    return tuple(max(1, int(side * scale + 0.5)) for side in size)


def excuse(table: dict, name: str):
    return next((value for part, value in table.items() if part in name), None)


def judge_refusal(name: str, expected: dict, outcome: Outcome) -> Verdict:
    code = outcome.detail.split(":")[0]
    if code in ("untyped", "INTERNAL_DEFECT"):
        return Verdict("refused without a type")
    is_wanted = expected["want"] == "decode" or (
        expected["want"] == "decode_if_supported" and code != "UNSUPPORTED_IMAGE")
    reason = excuse(REFUSED, name)
    return Verdict("refused") if is_wanted and not reason else Verdict(note=reason if is_wanted else "")


def judge(name: str, expected: dict, outcome: Outcome) -> Verdict:
    if outcome.kind in ("crash", "hang"):
        return Verdict(outcome.kind)
    if outcome.kind == "refused":
        return judge_refusal(name, expected, outcome)
    if expected["want"] == "reject":
        return Verdict("not refused")
    if excuse(REFUSED, name):
        return Verdict("decoded, and in the list of what is refused")
    note, mean = "", expected.get("mean_srgb_after_icc") or expected.get("mean_rgb")
    if corrected := excuse(CORRECTED, name):
        note, mean = corrected
    distance = max(abs(a - b) for a, b in zip(outcome.mean, mean)) if mean else None
    if not expected["want"].startswith("decode"):
        return Verdict(note=note, distance=distance)
    if outcome.size != (expected["width"], expected["height"]):
        return Verdict(f"wrong size, {expected['width']}x{expected['height']} expected")
    if outcome.result != fitted(outcome.size):
        return Verdict(f"the result is {outcome.result}, and not {fitted(outcome.size)}")
    tolerance = TOLERANCES["tight" if corrected else expected["tolerance"]]
    problem = f"color {distance:.1f} off" if distance is not None and distance > tolerance else ""
    return Verdict(problem, note, distance)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("worker")
    parser.add_argument("--corpus", type=Path, default=Path("../shared/corpus"))
    parser.add_argument("--only", default="", help="only files whose path has this in it")
    options = parser.parse_args()
    expectations = json.loads((options.corpus / "expect.json").read_text())["files"]
    names = [name for name in expectations if options.only in name]
    kinds, problems, known, slowest, largest = {}, [], [], (0, ""), (0, "")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        outcomes = pool.map(lambda name: run(options.worker, options.corpus / name), names)
        for name, outcome in zip(names, outcomes):
            expected = expectations[name]
            verdict = judge(name, expected, outcome)
            totals = kinds.setdefault(name.split("/")[0], Totals())
            is_unsupported = outcome.detail.startswith("UNSUPPORTED_IMAGE")
            totals.add("unsupported" if outcome.kind == "refused" and is_unsupported else outcome.kind)
            slowest = max(slowest, (outcome.cpu_seconds, name))
            largest = max(largest, (outcome.peak_mib, name))
            size = "x".join(map(str, outcome.size)) if outcome.size else "-"
            distance = "-" if verdict.distance is None else f"{verdict.distance:.2f}"
            print(
                f"{outcome.kind:8} {size:>11} {distance:>6}  {name}  ({expected['want']})"
                + "".join(f"  {text}" for text in (outcome.detail, verdict.note) if text)
                + (f"  WRONG: {verdict.problem}" if verdict.problem else ""))
            if verdict.problem:
                totals.add("wrong")
                problems.append(f"{name} ({expected['want']}): {verdict.problem} {outcome.mean or outcome.detail}")
            if verdict.note:
                known.append(f"{name}: {verdict.note}")
    columns = ["ok", "warning", "refused", "unsupported", "crash", "hang", "wrong"]
    everything = Totals({c: sum(t.counts.get(c, 0) for t in kinds.values()) for c in columns})
    print(f"\n{'kind':34}" + "".join(f"{c:>12}" for c in columns))
    for kind, totals in [*sorted(kinds.items()), ("all", everything)]:
        print(f"{kind:34}" + "".join(f"{totals.counts.get(c, 0):12}" for c in columns))
    print(f"\nmost CPU: {slowest[0]:.2f} s, {slowest[1]}\nmost memory: {largest[0]:.0f} MiB, {largest[1]}")
    for title, lines in (("known", known), ("WRONG", problems)):
        print(*(f"{title}: {line}" for line in lines), sep="\n")
    return 1 if problems or not names else 0


if __name__ == "__main__":
    sys.exit(main())
