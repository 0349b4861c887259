"""Prints the memory, CPU time and bytes of animations, next to libvips, ImageMagick, gifsicle, gif2webp and ffmpeg.

    Tests/EndToEnd/python.sh Benchmarks/tables/animations.py [--folder DIRECTORY] [--tables MNWSGHVEF] [GIF or WEBP]...

Programs take turns, round by round, and CPU times are medians of the rounds. The bytes of a lossy WebP are those at the
lowest score that one of the programs has at quality 80, interpolated between two qualities. See animation_peers.py for
how CPU time is taken and animation_scores.py for the score. Animations are made by animation_sources.py, in addition to the
files named; the tables:

- M, N: peak memory of GIF to WebP and to GIF by the number of frames
- W, S: GIF to WebP at half and at the same size
- G, H: GIF to GIF at half and at the same size
- V: WebP to WebP at half size
- E: what the stages of GIF to WebP at half size take, and libwebp alone
- F: when the first bytes of a GIF leave during a slow upload

Needs IMAGE_WORKER, clang, `time`, and the other programs.
"""

import argparse
import io
import math
import os
import re
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

from PIL import Image

from animation_peers import CREATED, QUALITY, Failed, Job, two_frames
from animation_scores import frames_of, score
from animation_sources import made
from report import origin

ROOT = Path(__file__).resolve().parents[2]
WORKER = "image-worker"
SHORT = 25  # frames of the generated animations, except for memory
STEP = 8  # of quality, between which sizes are interpolated
SLOW_MILLISECONDS = 3000
NOISE_MILLISECONDS = 5
LONG_SECONDS = 60  # more CPU time than this is not spent on the memory of another program
BUFFERED_PIXELS = 150_000_000  # more pixels of all frames are not given to programs that buffer all of them
MEMORY = [("film", (480, 270), count) for count in (10, 100, 1000)]
MEMORY += [("cartoon", (480, 270), count) for count in (10, 100, 1000, 10_000)] + [("film", (1920, 1080), 300)]


def row(cells: list) -> None:
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def heading(title: str, columns: list) -> None:
    print(f"\n## {title}\n")
    row(columns)
    row(["---", *["--:"] * (len(columns) - 1)])


# MARK: Memory


def memory_of(name: str, source: Path, target: Path, width: int) -> tuple[float, float, float, int]:
    """The peak of a process of its own, in MiB, and that before the animation; CPU seconds, and the bytes of the result."""
    program = CREATED[name]()
    try:
        with tempfile.TemporaryDirectory() as folder:
            program.seconds(Job(two_frames(Path(folder)), target, 0))
        before = program.memory()
        target.unlink(missing_ok=True)
        seconds = program.seconds(Job(source, target, width))
        return program.memory(), before, seconds, target.stat().st_size
    finally:
        program.close()


def print_memory(options, suffix: str, names: list) -> None:
    heading(f"Memory: GIF to {suffix[1:].upper()} of half the width",
            ["frames", "MB of the file", "MB of the result", WORKER, *names])
    pace = {}  # the CPU seconds of a pixel
    for kind, size, count in MEMORY:
        source, cells, result = made(options.folder, kind, size, count, options.photograph), [], 0
        pixels = size[0] * size[1] * count
        for name in (WORKER, *names):
            is_slow = name != WORKER and pixels * pace.get((name, kind), 0) > LONG_SECONDS
            try:
                if is_slow or (name == "ImageMagick" and pixels > BUFFERED_PIXELS):
                    raise Failed(name)
                peak, before, seconds, length = memory_of(name, source, options.folder / f"result{suffix}", size[0] // 2)
                pace[name, kind] = seconds / pixels
                cells.append(f"{peak - before:.1f} ({peak:.0f})")
                result = result or length
            except Failed:
                cells.append("-")
        megabytes = [f"{length / 1e6:.1f}" for length in (source.stat().st_size, result)]
        row([f"{kind}, {count:,} of {size[0]}x{size[1]}", *megabytes, *cells])


# MARK: CPU time and bytes


@dataclass
class Result:
    """What a program makes of an animation. `size` is in bytes."""

    job: Job
    size: float
    score: float


def processed(program, job: Job) -> Result:
    program.seconds(job)
    return Result(job, job.target.stat().st_size, score(job.source, job.target))


def matched(program, best: Result, wanted: float) -> Result:
    """The size at a score, between those of two qualities; the job is that of the better one."""
    better = worse = best
    while worse.score >= wanted and worse.job.quality > STEP:
        better, job = worse, replace(worse.job, quality=worse.job.quality - STEP)
        worse = processed(program, job)
    if better.score == worse.score or worse.score > wanted:
        return worse
    place = (wanted - worse.score) / (better.score - worse.score)
    return Result(better.job, worse.size * (better.size / worse.size) ** place, wanted)


def prepared(programs: list, job_of, is_matched: bool) -> dict:
    """The results of the programs that process an animation."""
    results = {}
    for program in programs:
        try:
            results[program] = processed(program, job_of(program))
        except Failed:
            continue
    if is_matched:
        wanted = min(result.score for result in results.values())
        results = {program: matched(program, result, wanted) for program, result in results.items()}
    return results


def measured(results: dict, rounds: int) -> dict:
    """The CPU milliseconds of each program by round; all take turns, slow ones in the first round alone."""
    times = {program: [] for program in results}
    for _ in range(rounds):
        for program, result in results.items():
            if not times[program] or times[program][0] < SLOW_MILLISECONDS:
                times[program].append(program.seconds(result.job) * 1000)
    return times


def print_costs(title: str, options, sources: list, suffix: str, names: list, is_half: bool, is_matched: bool) -> None:
    values = "KB, CPU ms" if is_matched else "KB, CPU ms, score"
    heading(title, ["animation", *(["score"] if is_matched else []), *[f"{name}: {values}" for name in (WORKER, *names)]])
    programs = [CREATED[name]() for name in (WORKER, *names)]
    comparisons = {program: Comparison([], [], []) for program in programs}
    for source in sources:
        with Image.open(source) as image:
            width, frames = image.width // 2 if is_half else 0, image.n_frames
        results = prepared(
            programs, lambda program: Job(source, options.folder / f"{program.name}{suffix}", width), is_matched)
        medians = {program: statistics.median(times) for program, times in measured(results, options.rounds).items()}
        compare(programs[0], results, medians, comparisons, is_matched)
        cells = [f"{results[programs[0]].score:.1f}"] if is_matched else []
        cells += [cell(results.get(program), medians.get(program), is_matched) for program in programs]
        row([f"{name_of(source)}, {frames} frames, {source.stat().st_size / 1000:.1f} KB", *cells])
    space = [""] if is_matched else []
    row(["bytes, ours as a share, geometric mean", *space, *(one.share_of_bytes() for one in comparisons.values())])
    row(["CPU, ours as a share, of the sums", *space, *(one.share_of_cpu() for one in comparisons.values())])
    if not is_matched:
        row(["score with at most its bytes, ours less its", *(one.difference() for one in comparisons.values())])
    for program in programs:
        program.close()


def cell(result: Result | None, milliseconds: float | None, is_matched: bool) -> str:
    if result is None:
        return "-"
    spent = f"{milliseconds:.0f}" if milliseconds >= NOISE_MILLISECONDS else f"<{NOISE_MILLISECONDS}"
    return f"{result.size / 1000:.1f}, {spent}" + ("" if is_matched else f", {result.score:.1f}")


@dataclass
class Comparison:
    """The worker next to a program, by animation: shares of bytes, CPU times of both, and differences of scores."""

    bytes: list
    cpu: list
    scores: list

    def share_of_bytes(self) -> str:
        return f"{math.exp(statistics.mean(map(math.log, self.bytes))):.2f}" if self.bytes else "-"

    def share_of_cpu(self) -> str:
        """Of sums, as times of small animations are within what starting a program varies by."""
        return f"{sum(ours for ours, _ in self.cpu) / sum(theirs for _, theirs in self.cpu):.2f}" if self.cpu else "-"

    def difference(self) -> str:
        return f"{statistics.mean(self.scores):+.1f} ({len(self.scores)})" if self.scores else "-"


def compare(ours, results: dict, medians: dict, comparisons: dict, is_matched: bool) -> None:
    for program, result in results.items():
        comparisons[program].bytes.append(results[ours].size / result.size)
        comparisons[program].cpu.append((medians[ours], medians[program]))
        if program is not ours and not is_matched:
            try:
                limited = processed(ours, replace(results[ours].job, max_bytes=int(result.size)))
            except Failed:
                continue
            comparisons[program].scores.append(limited.score - result.score)


def name_of(path: Path) -> str:
    return re.sub(r"^.*--", "", path.stem).replace("tests-samples-", "").replace("app-src-main-assets-", "assets-")


# MARK: Stages


def stages(source: Path, target: Path, width: int) -> dict[str, float]:
    command = [os.environ["IMAGE_WORKER"], "process", source, "--max-frames", "0", "--max-width", width,
               "--quality", QUALITY / 100, "--timings", "--out", target]
    output = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=True)
    found = re.findall(r"^ +(decode|resize|encode) +([\d.]+)", output.stdout + output.stderr, re.M)
    return {name: float(milliseconds) for name, milliseconds in found}


def libwebp_milliseconds(source: Path, size: tuple[int, int]) -> float:
    """The CPU time of encoding every frame as a whole, in Pillow."""
    frames = [frame.resize(size, Image.LANCZOS) for _, frame in frames_of(source)]
    began = time.process_time()
    for frame in frames:
        frame.save(io.BytesIO(), "WEBP", quality=QUALITY, method=4)
    return (time.process_time() - began) * 1000


def print_stages(options, sources: list) -> None:
    heading("GIF to WebP of half the width: ms of the worker's stages, and of libwebp for whole frames",
            ["animation", "decode", "resize", "encode", "libwebp, in Pillow"])
    for source in sources:
        with Image.open(source) as image:
            width = image.width // 2
        target, rounds = options.folder / "stages.webp", []
        for _ in range(options.rounds):
            found = stages(source, target, width)
            with Image.open(target) as image:
                alone = libwebp_milliseconds(source, image.size)
            rounds.append((*(found[name] for name in ("decode", "resize", "encode")), alone))
        row([name_of(source), *(f"{statistics.median(column):.0f}" for column in zip(*rounds))])


# MARK: First bytes


def print_first_bytes(options, sources: list) -> None:
    heading("GIF to GIF: how much of the file was sent when the first bytes of the result arrived",
            ["animation", "KB", "same size", "half the width"])
    worker = CREATED[WORKER]()
    for source in sources:
        with Image.open(source) as image:
            width = image.width // 2
        size = source.stat().st_size
        found = [worker.run(Job(source, options.folder / "first.gif", wanted), 0.04)[1] for wanted in (0, width)]
        row([name_of(source), f"{size / 1000:.0f}", *(f"{sent / size:.0%}" for sent in found)])
    worker.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="where generated animations and results are written")
    parser.add_argument("--photograph", type=Path, default=ROOT.parent / "shared/corpus/12-photos/immich--tanners_ridge.jpg")
    parser.add_argument("--tables", default="MNWSGHVEF")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("files", type=Path, nargs="*")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        options.folder = options.folder or Path(temporary)
        options.folder.mkdir(exist_ok=True)
        print_tables(options)


def print_tables(options) -> None:
    found = origin()
    print(f"{found['machine']}; {found['instruction_set']}; {found['date']}")
    gifs = [path for path in options.files if path.suffix == ".gif"]
    webps = [path for path in options.files if path.suffix == ".webp"]
    generated = [made(options.folder, kind, (480, 270), SHORT, options.photograph) for kind in ("film", "cartoon")]
    gifs += generated
    gif_peers = ["libvips", "ImageMagick", "ffmpeg", "gifsicle"]
    webp_peers = ["libvips", "ImageMagick", "ffmpeg"]
    for table in options.tables:
        if table == "M":
            print_memory(options, ".webp", ["libvips", "ImageMagick", "gif2webp"])
        elif table == "N":
            print_memory(options, ".gif", ["libvips", "ImageMagick", "gifsicle"])
        elif table == "W":
            print_costs("GIF to WebP of half the width", options, gifs, ".webp", webp_peers, True, True)
        elif table == "S":
            peers = ["libvips", "gif2webp", "ffmpeg"]
            print_costs("GIF to WebP of the same size", options, gifs, ".webp", peers, False, True)
        elif table == "G":
            print_costs("GIF to GIF of half the width", options, gifs, ".gif", gif_peers, True, False)
        elif table == "H":
            print_costs("GIF to GIF of the same size", options, gifs, ".gif", gif_peers, False, False)
        elif table == "V":
            program = CREATED["gif2webp"]()
            for source in generated:
                webps.append(options.folder / f"{source.stem}-q90.webp")
                program.seconds(Job(source, webps[-1], 0, 90))
            print_costs("WebP to WebP of half the width", options, webps, ".webp", ["libvips", "ImageMagick"], True, True)
        elif table == "E":
            print_stages(options, gifs)
        elif table == "F":
            print_first_bytes(options, [path for path in gifs if path.stat().st_size > 100_000])


if __name__ == "__main__":
    main()
