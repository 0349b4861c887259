#!/usr/bin/env python3
"""Checks that documents quote the figures of Benchmarks/results/figures.json, which is their only source.

figures.py [--write]

Exit status 1 if a document quotes another figure, or lacks a quotation; --write corrects the figures. The file has one
run for each machine and instruction set, with its commit, date and command; `make bench ARGS="... --record"` writes it, and
tensors.py --record one for arrays of models. The bytes of JPEGs are from jpeg_encoder.py, and edited by hand: shares at quality 0.8, 4:2:0, of photographs that the encoder
was not fitted to.
"""

import argparse
import json
import math
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FIGURES = ROOT / "Benchmarks" / "results" / "figures.json"
LIBVIPS, OPENCV = "libvips 8.18", "OpenCV"
#: The photographs of the means.
BASELINE = ("12mp-dog", "12mp-dji", "12mp-bmng", "12mp-book")
JOBS = "TFPHWN"
#: What only one kind of run has: the bytes of JPEGs, and arrays for models. Others are of `make bench`.
KINDS = ("bytes", "tensors")
TABLE_HEAD = f"| image | {' | '.join(JOBS)} |\n" + "|---" * (len(JOBS) + 1) + "|\n"

#: Quotations of figures by document. Line breaks may be anywhere.
QUOTATIONS = [
    ("README.md", "a 12-megapixel JPEG becomes a 1280x720 JPEG in {avx512.T.share} of the CPU time of libvips in-process, and "
     "a 300x300 one in {avx512.P.share} of it; without AVX-512 in {avx2.T.share} and {avx2.P.share}"),
    ("README.md", "Two cores serve {avx512.load.12mp-dog.8.worker} JPEGs of 12 megapixels a second; a pyvips server of two "
     "processes on the same cores serves {avx512.load.12mp-dog.8.pyvips}."),
    ("README.md", "JPEG results have {bytes.baseline} of libjpeg-turbo's bytes at equal SSIMULACRA2 for the same encoding time, "
     "progressive ones {bytes.progressive}"),
    ("Benchmarks/results/README.md", "quality 0.8: {bytes.baseline} of libjpeg-turbo's bytes, {bytes.progressive} progressive"),
    ("Benchmarks/results/jpeg-encoder.md", "At quality 0.8, photographs that it was not fitted to have {bytes.baseline} of "
     "libjpeg-turbo's bytes, {bytes.progressive} progressive."),
    ("Benchmarks/results/README.md", "12 MP JPEG to 1280x720: {avx512.T} times libvips, without AVX-512 {avx2.T}; to 300x300: "
     "{avx512.P} and {avx2.P}"),
    ("Benchmarks/results/compared-with-libvips.md", "T {avx512.T} times (least {avx512.T.least}), F {avx512.F} "
     "({avx512.F.least}), P {avx512.P} ({avx512.P.least}), H {avx512.H} ({avx512.H.least}); of WebP results {avx512.W}."),
    ("Benchmarks/results/compared-with-libvips.md", "| AVX-512 | {avx512.T} | {avx512.F} | {avx512.P} | {avx512.H} |"),
    ("Benchmarks/results/compared-with-libvips.md", "| AVX2 | {avx2.T} | {avx2.F} | {avx2.P} | {avx2.H} |"),
    ("Benchmarks/results/compared-with-libvips.md", "images a second: {avx512.load.12mp-dog.8.worker} at 8 calls and "
     "{avx512.load.12mp-dog.32.worker} at 32 of 12mp-dog (a pyvips server of two processes {avx512.load.12mp-dog.8.pyvips} and "
     "{avx512.load.12mp-dog.32.pyvips}), with {avx512.load.12mp-dog.256.worker} at 256 calls ({avx512.load.12mp-dog.256.pyvips}); "
     "{avx512.load.2mp-dog.8.worker} and {avx512.load.2mp-dog.32.worker} of 2mp-dog ({avx512.load.2mp-dog.8.pyvips} and "
     "{avx512.load.2mp-dog.32.pyvips})."),
    ("README.md", "With shared memory, a second of CPU time gives {avx512.tensors.12 MP to 224.in shared memory} arrays of 224x224 from such "
     "JPEGs, client included; the fastest of seven libraries in-process gives {avx512.tensors.12 MP to 224.OpenCV, reduced}."),
    ("Benchmarks/results/README.md", "12 MP to 224x224 in shared memory: {avx512.tensors.12 MP to 224.in shared memory} for each second of a "
     "core, the fastest library in-process {avx512.tensors.12 MP to 224.OpenCV, reduced}; ImageNet's sizes: "
     "{avx512.tensors.0.1 to 0.5 MP to 224.in shared memory} and "
     "{avx512.tensors.0.1 to 0.5 MP to 224.simplejpeg, reduced}"),
    ("Sources/image-worker/Documentation.docc/Tensors.md", "For photographs of 0.1 to 0.5 megapixels and arrays of 224x224 in float16, "
     "the Python client then takes {avx512.tensors.0.1 to 0.5 MP to 224.shared.client} of its CPU time over TCP, and the worker "
     "{avx512.tensors.0.1 to 0.5 MP to 224.shared.worker}"),
]
TABLES = [ROOT / "Benchmarks" / "results" / "compared-with-libvips.md"]


def kind(run: dict) -> str:
    """Returns what of KINDS a run has; "" for one of `make bench`."""
    return next((name for name in KINDS if name in run), "")


def means(run: dict) -> dict[str, list[float]]:
    """Returns by job how many times the worker's CPU time libvips takes: of each baseline photograph, or their mean."""
    if kind(run):
        return {}
    if "means" in run:
        return {job: [value] for job, value in run["means"][LIBVIPS].items()}
    times = {job: [images[name]["times"][LIBVIPS] for name in BASELINE if name in images]
             for job, images in run["jobs"].items()}
    return {job: values for job, values in times.items() if values}


def values(runs: list[dict]) -> dict[str, str]:
    """Returns the figures that documents quote, as they are written. Of several runs with the same instructions, the last
    one counts."""
    found = {}
    for run in runs:
        name = run["instruction_set"]
        for job, times in means(run).items():
            mean = math.prod(times) ** (1 / len(times))
            found |= {f"{name}.{job}": f"{mean:.2f}", f"{name}.{job}.share": f"{1 / mean:.2f}",
                      f"{name}.{job}.least": f"{min(times):.2f}"}
        found |= {f"bytes.{kind}": f"{share:.2f}" for kind, share in run.get("bytes", {}).items()}
        for job, rows in run.get("tensors", {}).items():
            found |= {f"{name}.tensors.{job}.{row}": f"{one['rate']:.0f}" for row, one in rows.items()}
            found |= {f"{name}.tensors.{job}.shared.{side}": f"{shared / sent:.2f}" for side in ("worker", "client")
                      for sent, shared in [[rows[row][f"{side}_ms"] for row in ("over TCP", "in shared memory")]]}
        for image, by_calls in run.get("load", {}).items():
            for calls, rates in by_calls.items():
                found |= {f"{name}.load.{image}.{calls}.{server}": f"{rate:.0f}" for server, rate in rates.items()}
    return found


def table(runs: list[dict]) -> str:
    """Returns the table of the last run that measured each image."""
    jobs = [run for run in runs if "jobs" in run][-1]["jobs"]
    names = list(dict.fromkeys(name for images in jobs.values() for name in images))
    lines = []
    for name in names:
        cells = []
        for job in JOBS:
            one = jobs.get(job, {}).get(name)
            times = one and ", ".join(f"{one['times'][peer]:.2f}" for peer in (LIBVIPS, OPENCV) if peer in one["times"])
            cells.append(f"{one['worker_ms']:.1f} ({times})" if one else "")
        lines.append(f"| {name} | " + " | ".join(cells) + " |\n")
    return TABLE_HEAD + "".join(lines)


def corrected(text: str, quotation: str, known: dict[str, str]) -> str | None:
    """Returns the text with the figures of a quotation, or None if it has no such quotation."""
    parts = re.split(r"\{(.*?)\}", quotation)
    pattern = "".join(r"([\d.]*\d)" if i % 2 else re.sub(r"(?:\\ )+", r"\\s+", re.escape(part))
                      for i, part in enumerate(parts))
    match = re.search(pattern, text)
    if not match:
        return None
    for i in range(match.lastindex, 0, -1):
        text = text[:match.start(i)] + known[parts[2 * i - 1]] + text[match.end(i):]
    return text


def dump(runs: list[dict]) -> str:
    """Returns the JSON of the runs, with one line for each image of a job."""
    text = json.dumps(runs, indent=2)
    return re.sub(r"\{[^{}]*(?:\{[^{}]*\}[^{}]*)?\}",
                  lambda found: re.sub(r"\s+", " ", found[0]) if len(found[0]) < 260 else found[0], text) + "\n"


def record(run: dict) -> None:
    """Writes a run to the file, in the place of one of the same kind, machine and instructions."""
    runs = json.loads(FIGURES.read_text())
    key = ("machine", "instruction_set")
    others = [one for one in runs if kind(one) != kind(run) or any(one[name] != run[name] for name in key)]
    FIGURES.write_text(dump(others + [run]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="correct the documents instead of checking them")
    options = parser.parse_args()
    runs = json.loads(FIGURES.read_text())
    known, problems = values(runs), []
    texts = {path: path.read_text() for path in {*TABLES, *(ROOT / name for name, _ in QUOTATIONS)}}
    wanted = dict(texts)
    for name, quotation in QUOTATIONS:
        missing = [figure for figure in re.findall(r"\{(.*?)\}", quotation) if figure not in known]
        if missing:
            problems.append(f"figures.json lacks {', '.join(missing)}, which {name} quotes")
            continue
        text = corrected(wanted[ROOT / name], quotation, known)
        if text is None:
            problems.append(f"{name} does not quote: {quotation}")
        else:
            wanted[ROOT / name] = text
    for path in TABLES:
        pattern = re.escape(TABLE_HEAD) + r"(?:\|.*\n)+"
        if not re.search(pattern, wanted[path]):
            problems.append(f"{path.relative_to(ROOT)} has no table of CPU times")
        wanted[path] = re.sub(pattern, lambda _: table(runs), wanted[path])
    for path, text in wanted.items():
        if options.write:
            path.write_text(text)
        elif text != texts[path]:
            problems.append(f"{path.relative_to(ROOT)} quotes other figures than figures.json; `make figures` corrects it")
    print("\n".join(problems) or "the documents quote the figures of figures.json")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
