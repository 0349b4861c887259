"""Prints the memory, CPU time and bytes of animations, next to libvips, ImageMagick, gifsicle, gif2webp and ffmpeg.

Every program runs as a process of its own, on one thread where it can be limited to one. Memory is the maximum resident
size, CPU time that of user and system together. The similarity of a result is the mean PSNR of its frames to those of
the original, scaled by Pillow with Lanczos.

Usage: animations.py [--folder DIRECTORY] [--photographs DIRECTORY] [GIF]...

Animations are made with ffmpeg: a test pattern, and a pan over each of the first four photographs. Needs IMAGE_WORKER,
the other programs, and the packages of requirements.txt; a program that is missing is left out.
"""

import argparse
import math
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
from PIL import GifImagePlugin, Image

GifImagePlugin.LOADING_STRATEGY = GifImagePlugin.LoadingStrategy.RGB_ALWAYS
WORKER = os.environ.get("IMAGE_WORKER", "image-worker")
SECONDS = 300
# The maximum number of pixels of all frames for programs that buffer all of them.
BUFFERED_PIXELS = 150_000_000

VIPS = """
import sys, pyvips
source, target, width, quality = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
image = pyvips.Image.thumbnail(source + "[n=-1]", width, height=100000)
image.write_to_file(target, **({"Q": quality} if target.endswith(".webp") else {}))
"""


def worker(source, target, width, quality):
    return [WORKER, "process", source, "--max-frames", "0", "--max-width", width, "--quality", quality / 100, "--out",
            target]


def vips(source, target, width, quality):
    return [sys.executable, "-c", VIPS, source, target, width, quality]


def magick(source, target, width, quality):
    return ["convert", source, "-coalesce", "-resize", f"{width}x", "-quality", quality, "-layers", "optimize", target]


def ffmpeg(source, target, width, quality):
    kind = ["-c:v", "libwebp_anim", "-q:v", quality] if target.suffix == ".webp" else []
    scale = f"scale={width}:-1:flags=lanczos"
    graph = scale if kind else f"{scale},split[a][b];[a]palettegen[p];[b][p]paletteuse"
    return ["ffmpeg", "-v", "error", "-y", "-threads", "1", "-i", source, "-lavfi", graph, *kind, "-loop", "0", target]


def gifsicle(source, target, width, quality):
    return ["gifsicle", "-O2", "--resize-width", width, "--resize-method", "lanczos3", source, "-o", target]


def gif2webp(source, target, width, quality):
    return ["gif2webp", "-quiet", "-lossy", "-q", quality, source, "-o", target]


BUFFERING = {"ImageMagick"}
PROGRAMS = {"image-worker": worker, "libvips": vips, "ImageMagick": magick, "ffmpeg": ffmpeg}


def measured(command: list) -> tuple | None:
    """The MiB and CPU seconds of a process; `None` if it failed."""
    environment = dict(os.environ, VIPS_CONCURRENCY="1", MAGICK_THREAD_LIMIT="1", OMP_NUM_THREADS="1")
    if shutil.which(str(command[0])) is None:
        return None
    process = subprocess.Popen(
        ["timeout", str(SECONDS), *map(str, command)], env=environment, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return (usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime) if process.returncode == 0 else None


def frames_of(path: Path, width: int) -> list:
    """The frames on gray, each with the time at which it appears."""
    found, now = [], 0
    with Image.open(path) as image:
        for index in range(getattr(image, "n_frames", 1)):
            image.seek(index)
            image.load()
            frame = Image.new("RGBA", image.size, (128, 128, 128, 255))
            frame.alpha_composite(image.convert("RGBA"))
            if frame.width != width:
                frame = frame.resize((width, max(1, round(frame.height * width / frame.width))), Image.LANCZOS)
            found.append((now, frame.convert("RGB")))
            now += image.info.get("duration") or 0
    return found


def similarity(source: Path, target: Path, width: int) -> float:
    originals, results = frames_of(source, width), frames_of(target, width)
    scores, place = [], 0
    for now, original in originals:
        while place + 1 < len(results) and results[place + 1][0] <= now + 5:
            place += 1
        result = results[place][1]
        if result.size != original.size:
            result = result.resize(original.size)
        error = numpy.mean((numpy.asarray(original, float) - numpy.asarray(result, float)) ** 2)
        scores.append(99 if error == 0 else min(99, 10 * math.log10(255**2 / error)))
    return sum(scores) / len(scores)


def pattern(path: Path, size: str, count: int) -> Path:
    if not path.exists():
        command = ["ffmpeg", "-v", "error", "-f", "lavfi", "-i", f"testsrc=size={size}:rate=25", "-frames:v", count, path]
        subprocess.run([str(part) for part in command], check=True)
    return path


def pan(path: Path, photograph: Path) -> Path:
    """A GIF of 60 frames that moves over a photograph, with a palette of its own."""
    if not path.exists():
        graph = ("scale=720:-1,crop=480:270:x='mod(n*2,iw-480)':y='min(ih-270,n/2)',split[a][b];"
                 "[a]palettegen=max_colors=128[p];[b][p]paletteuse=dither=sierra2_4a")
        command = ["ffmpeg", "-v", "error", "-loop", "1", "-framerate", "20", "-t", "3", "-i", photograph, "-lavfi", graph,
                   "-frames:v", "60", path]
        subprocess.run([str(part) for part in command], check=True)
    return path


def row(cells: list) -> None:
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def print_memory(folder: Path, target: Path) -> None:
    print("GIF to WebP of half the width at quality 70: MiB of memory, and CPU ms per frame\n")
    row(["frames", *PROGRAMS])
    row(["---"] * (1 + len(PROGRAMS)))
    for size, count in [("480x270", n) for n in (10, 100, 1000, 10_000)] + [("1920x1080", 300)]:
        source = pattern(folder / f"pattern-{size}-{count}.gif", size, count)
        width, height = map(int, size.split("x"))
        cells = []
        for name, command in PROGRAMS.items():
            is_left_out = name in BUFFERING and width * height * count > BUFFERED_PIXELS
            found = None if is_left_out else measured(command(source, target, width // 2, 70))
            cells.append(f"{found[0]:.0f}, {found[1] * 1000 / count:.1f}" if found else "-")
        row([f"{count:,} of {size}", *cells])


def print_bytes(title: str, sources: list, programs: dict, target: Path, halves: bool) -> None:
    print(f"\n{title}: KB, CPU ms, and dB\n")
    row(["image", *programs])
    row(["---"] * (1 + len(programs)))
    sums = {name: [0, 0, 0] for name in programs}
    for source in sources:
        with Image.open(source) as image:
            width = image.width // 2 if halves else image.width
        cells = []
        for name, command in programs.items():
            found = measured(command(source, target, width, 70))
            if not found:
                cells.append("-")
                continue
            size, score = target.stat().st_size / 1000, similarity(source, target, width)
            cells.append(f"{size:.0f}, {found[1] * 1000:.0f}, {score:.1f}")
            sums[name] = [a + b for a, b in zip(sums[name], (size, found[1] * 1000, score / len(sources)))]
        row([source.stem, *cells])
    row(["all", *(f"{size:.0f}, {time:.0f}, {score:.1f}" for size, time, score in sums.values())])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--photographs", type=Path)
    parser.add_argument("--no-memory", action="store_true")
    parser.add_argument("gifs", type=Path, nargs="*")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        sources = [pattern(folder / "pattern.gif", "480x270", 60), *options.gifs]
        photographs = sorted(p for p in options.photographs.iterdir() if p.suffix == ".jpg") if options.photographs else []
        sources += [pan(folder / f"{path.stem}.gif", path) for path in photographs[:4]]
        webp, gif = folder / "result.webp", folder / "result.gif"
        if not options.no_memory:
            print_memory(folder, webp)
        print_bytes("GIF to WebP of half the width", sources, PROGRAMS, webp, True)
        same = {"image-worker": worker, "libvips": vips, "gif2webp": gif2webp}
        print_bytes("GIF to WebP of the same size", sources, same, webp, False)
        print_bytes("GIF to GIF of half the width", sources, PROGRAMS | {"gifsicle": gifsicle}, gif, True)
        stored = []
        for source in sources:
            stored.append(folder / f"{source.stem}-q90.webp")
            measured(gif2webp(source, stored[-1], 0, 90))
        print_bytes("WebP to WebP of half the width", stored, {k: PROGRAMS[k] for k in ("image-worker", "libvips")}, webp,
                    True)


if __name__ == "__main__":
    main()
