"""The programs that the tables of animations compare: the worker over gRPC, libvips, and programs of the command line.

Each processes a file to another one and returns its CPU time, of user and system together, in one thread where it can be
limited to one. The worker and libvips are processes that go on; the others are started each time, and what they take for an
animation of two frames of 16x16 is subtracted.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from peers import CHUNK, cpu_seconds, resident_mib
from worker import Client, Worker

SECONDS = 400
QUALITY = 80
FORMATS = {".webp": 4, ".gif": 6, ".png": 3}
ONE_THREAD = {"VIPS_CONCURRENCY": "1", "MAGICK_THREAD_LIMIT": "1", "OMP_NUM_THREADS": "1"}
VIPS = """
import sys, pyvips
pyvips.cache_set_max(0)
print("libvips", *(f"{pyvips.version(i)}" for i in range(3)), flush=True)
for line in sys.stdin:
    source, target, width, quality = line.rstrip("\\n").split("\\t")
    try:
        if int(width):
            image = pyvips.Image.thumbnail(source + "[n=-1]", int(width), height=100000)
        else:
            image = pyvips.Image.new_from_file(source, n=-1, access="sequential")
        image.write_to_file(target, **({"Q": int(quality)} if target.endswith(".webp") else {}))
        del image
        print("done", flush=True)
    except pyvips.Error as error:
        print("failed", flush=True)
"""


@dataclass
class Job:
    """`width` is that of the result, 0 for the same as that of the source."""

    source: Path
    target: Path
    width: int
    quality: int = QUALITY
    max_bytes: int = 0


class Failed(Exception):
    """The program does not process this animation."""


class OverGRPC:
    """The worker, to which a file is sent in chunks; its CPU time includes receiving and sending."""

    name = "image-worker"

    def __init__(self):
        self.worker = Worker("--threads", "1", "--max-cpu-seconds-per-image", "2000")
        self.client = Client(self.worker)
        self.report = None

    def requests(self, job: Job, pause: float, sent: list):
        start = self.client.start("a")
        options = {"max_frames": 0, "compression_quality": job.quality / 100, "always_encode": True,
                   "preferred_format": FORMATS[job.target.suffix]}
        options |= {"max_width": job.width} if job.width else {}
        options |= {"max_bytes": job.max_bytes} if job.max_bytes else {}
        start.start.configuration.MergeFrom(self.client.message("ProcessingConfiguration")(**options))
        yield start
        with job.source.open("rb") as file:
            while data := file.read(int(job.source.stat().st_size / 50) + 1 if pause else CHUNK):
                yield self.client.chunk("a", data)
                sent.append(len(data))
                time.sleep(pause)
        yield self.client.end("a")

    def run(self, job: Job, pause: float = 0) -> tuple[float, int | None]:
        """Returns CPU seconds, and how many bytes had been sent when the first part of the result arrived."""
        began, sent, first = cpu_seconds(self.worker.process.pid), [], None
        with job.target.open("wb") as file:
            for response in self.client.batch(self.requests(job, pause, sent), timeout=SECONDS * 5):
                kind = response.WhichOneof("part")
                if kind == "chunk":
                    first = sum(sent) if first is None else first
                    file.write(response.chunk)
                elif kind == "report":
                    self.report = response.report
                elif kind == "error":
                    raise Failed(response.error.message)
        return cpu_seconds(self.worker.process.pid) - began, first

    def seconds(self, job: Job) -> float:
        return self.run(job)[0]

    def memory(self) -> float:
        return resident_mib(self.worker.process.pid, "VmHWM")

    def close(self) -> None:
        self.client.channel.close()
        self.worker.stop()


class Vips:
    """libvips in a Python process."""

    name = "libvips"

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, "-c", VIPS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env=os.environ | ONE_THREAD)
        self.version = self.process.stdout.readline().strip()

    def seconds(self, job: Job) -> float:
        began = cpu_seconds(self.process.pid)
        self.process.stdin.write(f"{job.source}\t{job.target}\t{job.width}\t{job.quality}\n")
        self.process.stdin.flush()
        if self.process.stdout.readline() != "done\n":
            raise Failed(self.name)
        return cpu_seconds(self.process.pid) - began

    def memory(self) -> float:
        return resident_mib(self.process.pid, "VmHWM")

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


class Program:
    """A program of the command line."""

    def __init__(self, name: str, command):
        self.name, self.command, self.peak = name, command, 0.0
        self.startup = 0.0
        with tempfile.TemporaryDirectory() as folder:
            tiny = two_frames(Path(folder))
            for suffix in (".webp", ".gif"):
                try:
                    job = Job(tiny, tiny.with_name(f"result{suffix}"), 0)
                    self.startup = min(self.seconds(job) for _ in range(5))
                    break
                except Failed:
                    continue

    def seconds(self, job: Job) -> float:
        command = self.command(job)
        with tempfile.NamedTemporaryFile("r") as peak:
            process = subprocess.Popen(
                ["timeout", str(SECONDS), "/usr/bin/time", "-f", "%M", "-o", peak.name, *map(str, command)],
                env=os.environ | ONE_THREAD, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode != 0 or not job.target.exists():
                raise Failed(self.name)
            self.peak = int(peak.read().split()[-1]) / 1024
        return usage.ru_utime + usage.ru_stime - self.startup

    def memory(self) -> float:
        return self.peak

    def close(self) -> None:
        pass


def two_frames(folder: Path) -> Path:
    path = folder / "tiny.gif"
    first, second = (Image.new("RGB", (16, 16), color) for color in ("red", "blue"))
    first.save(path, save_all=True, append_images=[second], duration=40)
    return path


MAGICK = next((name for name in ("magick", "convert-im6.q16", "convert") if shutil.which(name)), "convert")


def magick(job: Job) -> list:
    resize = ["-resize", f"{job.width}x"] if job.width else []
    kind = ["-quality", job.quality] if job.target.suffix == ".webp" else ["-layers", "optimize"]
    return [MAGICK, job.source, "-coalesce", *resize, *kind, job.target]


def ffmpeg(job: Job) -> list:
    scale = f"scale={job.width or 'iw'}:-1:flags=lanczos"
    if job.target.suffix == ".webp":
        kind, graph = ["-c:v", "libwebp_anim", "-q:v", job.quality], scale
    else:
        kind, graph = [], f"{scale},split[a][b];[a]palettegen[p];[b][p]paletteuse"
    options = ["-v", "error", "-y", "-threads", "1"]
    return ["ffmpeg", *options, "-i", job.source, "-lavfi", graph, *kind, "-loop", "0", job.target]


def gifsicle(job: Job) -> list:
    resize = ["--resize-width", job.width, "--resize-method", "lanczos3"] if job.width else []
    return ["gifsicle", "-O2", *resize, job.source, "-o", job.target]


def gif2webp(job: Job) -> list:
    return ["gif2webp", "-quiet", "-lossy", "-q", job.quality, job.source, "-o", job.target]


CREATED = {"image-worker": OverGRPC, "libvips": Vips, "ImageMagick": lambda: Program("ImageMagick", magick),
           "ffmpeg": lambda: Program("ffmpeg", ffmpeg), "gifsicle": lambda: Program("gifsicle", gifsicle),
           "gif2webp": lambda: Program("gif2webp", gif2webp)}
