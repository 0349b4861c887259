"""Prints CPU time and peak memory of the worker's pipeline beside libvips, both in-process, one thread each.

Each run processes the same picture many times; what one picture costs is the difference between a long run and a short
one, so that starting a process does not count. Runs of the two programs alternate (A B A B), and the medians and the
ratio of each pair are printed. Peak memory is the long run's, less the resident size of the same program without work.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

VIPS = """
import sys, pyvips
pyvips.cache_set_max(0)
path, width, height, quality, suffix, count = sys.argv[1:7]
data = open(path, "rb").read()
for _ in range(int(count)):
    image = pyvips.Image.thumbnail_buffer(data, int(width), height=int(height), size="down")
    options = {"compression": 6} if suffix == ".png" else {"Q": int(quality)}
    image.write_to_buffer(suffix, keep="none", **options)
"""

JOBS = {  # name: width, height, quality, format of the result
    "T": (1280, 720, 80, "jpeg"), "H": (1920, 1080, 100, "jpeg"), "F": (64, 64, 80, "jpeg"),
    "P": (300, 300, 80, "jpeg"), "W": (1280, 720, 80, "webp"), "N": (1280, 720, 80, "png"),
}


def run(command: list[str]) -> tuple[float, float]:
    """CPU seconds and peak resident MiB of a process."""
    pid = os.spawnvpe(os.P_NOWAIT, command[0], command, {**os.environ, "VIPS_CONCURRENCY": "1"})
    _, status, usage = os.wait4(pid, 0)
    if status != 0:
        raise SystemExit(f"failed: {' '.join(command[:6])}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("worker")
    parser.add_argument("pictures", nargs="+")
    parser.add_argument("--jobs", default="TFP")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=12)
    arguments = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)
    print("| job | picture | CPU ms | libvips CPU ms | libvips / ours | peak MiB | libvips peak MiB |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as out:
        for job in arguments.jobs:
            ratios = [measure(arguments, job, Path(picture), out) for picture in arguments.pictures]
            print(f"| {job} | median | | | {statistics.median(ratios):.2f} | | |")


def measure(arguments, job: str, picture: Path, out: str) -> float:
    width, height, quality, form = JOBS[job]

    def ours(count: int):
        return run([arguments.worker, "process", *[str(picture)] * count, "--out", out, "--max-width", str(width),
                    "--max-height", str(height), "--quality", str(quality / 100), "--format", form, "--quiet"])

    def vips(count: int):
        suffix = {"jpeg": ".jpg", "png": ".png", "webp": ".webp"}[form]
        return run([sys.executable, "-c", VIPS, str(picture), str(width), str(height), str(quality), suffix, str(count)])

    rows = []
    for _ in range(arguments.rounds):
        row = []
        for program in (ours, vips):
            short, idle = program(1)
            long, peak = program(1 + arguments.count)
            row += [(long - short) / arguments.count * 1000, peak]
        rows.append(row)
    ours_ms, ours_peak, vips_ms, vips_peak = (statistics.median(column) for column in zip(*rows))
    ratio = statistics.median(row[2] / row[0] for row in rows)
    print(f"| {job} | {picture.stem[:28]} | {ours_ms:.1f} | {vips_ms:.1f} | {ratio:.2f} | {ours_peak:.0f} | {vips_peak:.0f} |")
    return ratio


if __name__ == "__main__":
    main()
