"""Measures the time of a job by stage: perf samples of the worker's process, grouped by the functions' source files."""

import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

from peers import ROOT, Job

SOURCES = ROOT / "Sources"

# The first pattern that matches a function's source file, otherwise its library.
STAGES = [
    (r"jpeg/jpeg_(scan|huffman|bits|input|progressive)", "JPEG entropy decoding"),
    (r"jpeg/jpeg_idct", "JPEG inverse transform"),
    (r"jpeg/jpeg_(decoder|markers|rows|select|turbo|cosines)", "JPEG, what else decoding does"),
    (r"png/png_(decoder|rows|expand|unfilter)", "PNG decoding without inflating"),
    (r"(png/png_(encoder|filter|buffered|palette)|palette/palette_)", "PNG encoding without deflating"),
    (r"libisal|libz\b", "inflating and deflating"),
    (r"webp/(webp_(decoder|encoder|chunks)|row_space)|libwebp", "WebP"),
    (r"jpeg/jpeg_encoder|libjpeg", "JPEG encoding"),
    (r"CPixels/resize", "resampling"),
    (r"CPixels/", "color, alpha and turning"),
    (r"\[kernel", "kernel: reading, writing, pages"),
    (r"libc\b|ld-linux", "C library: copying, allocating"),
    (r"", "Swift and the rest"),
]


def definitions() -> dict[str, str]:
    """Returns the names of C functions and the files that define them."""
    found = {}
    for path in sorted(SOURCES.glob("C*/**/*.[ch]")):
        text = path.read_text()
        made_by_macros = re.findall(r"^[A-Z][A-Z0-9_]*\((\w+)[,)]", text, re.MULTILINE)
        for name in re.findall(r"\b(\w+)\([^(){};]*\) \{$", text, re.MULTILINE) + made_by_macros:
            found.setdefault(name, str(path.relative_to(SOURCES)))
    return found


def file_of(symbol: str, files: dict[str, str]) -> str:
    if symbol.startswith("idct_"):
        return "CCodecs/jpeg/jpeg_idct"  # macros assemble the names of these functions
    return files.get(re.sub(r"\.\w+(\.\d+)?$", "", symbol), "")


def profile(worker: Path, path: Path, job: Job, count: int) -> list[str]:
    """Returns the table's rows for `count` images; empty if perf is missing or not permitted."""
    perf = shutil.which("perf")
    if perf is None:
        return []
    with tempfile.TemporaryDirectory() as directory:
        data = os.path.join(directory, "perf.data")
        command = [worker, "process", *[path] * count, "--out", directory, "--max-width", job.width, "--max-height",
                   job.height, "--quality", job.quality / 100, "--format", job.format, "--always-encode", "--quiet"]
        record = [perf, "record", "-q", "-e", "cpu-clock", "-F", "2000", "-o", data, "--", *map(str, command)]
        if subprocess.run(record, capture_output=True).returncode != 0:
            return []
        report = subprocess.run(
            [perf, "report", "-i", data, "--stdio", "-q", "-t", "\t", "--sort", "dso,symbol"],
            capture_output=True, text=True).stdout
    return table(report, worker.name)


def table(report: str, program: str) -> list[str]:
    files, shares, leaders = definitions(), Counter(), {}
    for line in report.splitlines():
        fields = [field.strip() for field in line.split("\t")]
        if len(fields) < 3 or not fields[0].endswith("%"):
            continue
        share, library = float(fields[0].rstrip("%")), fields[1]
        symbol = re.sub(r"^\[.\] ", "", fields[2]).split()[0]
        source = file_of(symbol, files) if library == program else library
        stage = next(name for pattern, name in STAGES if re.search(pattern, source))
        shares[stage] += share
        leaders.setdefault(stage, []).append(f"`{symbol[:40]}` {share:.1f}")
    lines = ["| stage | % of CPU | most of it |", "|---|---|---|"]
    return lines + [f"| {stage} | {share:.1f} | {', '.join(leaders[stage][:3])} |"
                    for stage, share in shares.most_common() if share >= 0.1]
