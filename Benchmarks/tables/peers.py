"""The compared programs: each peer repeatedly processes one image by one job in a separate process.

CPU time is the kernel's clock of the process with all its threads, read from outside, so that the measure is the same
for every peer. Peak memory is the maximum resident memory, compared with the resident memory before the first image.
"""

import ctypes
import json
import os
import re
import subprocess
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from worker import Client, Worker

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ONE_THREAD = {"VIPS_CONCURRENCY": "1", "OMP_NUM_THREADS": "1", "OPENCV_FOR_THREADS_NUM": "1"}
MIB = 1 << 20
MESSAGE_LIMIT = 48 * MIB  # larger uploads are sent in chunks, because the worker accepts no larger messages
CHUNK = 256 << 10


@dataclass(frozen=True)
class Job:
    name: str
    width: int
    height: int
    quality: int
    format: str


JOBS = {
    job.name: job
    for job in (
        Job("T", 1280, 720, 80, "jpeg"), Job("H", 1920, 1080, 100, "jpeg"), Job("F", 64, 64, 80, "jpeg"),
        Job("P", 300, 300, 80, "jpeg"), Job("W", 1280, 720, 80, "webp"), Job("N", 1280, 720, 80, "png"),
    )
}


@dataclass
class Case:
    """An image and the job to apply to it."""

    job: Job
    path: Path
    size: tuple[int, int]
    has_alpha: bool


@dataclass
class Tools:
    """The paths of the programs."""

    worker: Path
    python: Path
    simd_python: Path | None
    vips: Path | None


def cpu_seconds(pid: int) -> float:
    """Returns the CPU time of another process with nanosecond resolution, using clock_getcpuclockid(3)."""
    clock = ctypes.c_int()
    if ctypes.CDLL(None).clock_getcpuclockid(pid, ctypes.byref(clock)) != 0:
        raise ProcessLookupError(pid)
    return time.clock_gettime(clock.value)


def resident_mib(pid: int, field: str) -> float:
    """Returns resident memory in MiB; `field` is VmRSS, or VmHWM for the maximum so far."""
    return int(re.search(rf"{field}:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) / 1024


class Child:
    """A peer that uses the protocol of peer_python.py."""

    def __init__(self, command: list):
        self.process = subprocess.Popen(
            [str(part) for part in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, **ONE_THREAD})
        self.version = self.process.stdout.readline().strip()
        if not self.version:
            raise RuntimeError(f"{command[0]} did not start")
        self.start_mib = resident_mib(self.process.pid, "VmRSS")

    def ask(self, line: str) -> None:
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        if self.process.stdout.readline() != "done\n":
            raise RuntimeError("it failed")

    def run(self, count: int) -> float:
        """Processes images and returns the CPU seconds per image."""
        began = cpu_seconds(self.process.pid)
        self.ask(str(count))
        return (cpu_seconds(self.process.pid) - began) / count

    def result(self) -> bytes:
        with tempfile.NamedTemporaryFile() as file:
            self.ask(f"save {file.name}")
            return Path(file.name).read_bytes()

    def peak_mib(self) -> float:
        return resident_mib(self.process.pid, "VmHWM")

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


class InProcess:
    """The worker's pipeline without a server: `image-worker process`, which reads and writes files.

    The cost of an image is the difference between a run over many images and a run over one; the memory before the
    first image is that of a run over a tiny image.
    """

    def __init__(self, worker: Path, case: Case):
        self.directory, self.inputs = tempfile.TemporaryDirectory(), tempfile.TemporaryDirectory()
        self.worker, self.case = worker, case
        self.version = "this worktree"
        self.peak = 0.0
        tiny = ROOT / "Tests" / "TestSupport" / "Fixtures" / "photo-odd.jpg"
        self.start_mib = max(self.execute([tiny])[1] for _ in range(2))

    def execute(self, paths: list[Path]) -> tuple[float, float]:
        """Returns CPU seconds, and peak memory in MiB sampled shortly before the end."""
        job = self.case.job
        command = [self.worker, "process", *paths, "--out", self.directory.name, "--max-width", job.width,
                   "--max-height", job.height, "--quality", job.quality / 100, "--format", job.format,
                   "--always-encode", "--quiet"]
        process = subprocess.Popen([str(part) for part in command])
        peak = 0.0
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid != 0:
                process.returncode = os.waitstatus_to_exitcode(status)
                break
            try:
                peak = max(peak, resident_mib(process.pid, "VmHWM"))
            except (TypeError, FileNotFoundError):
                pass  # it has exited and has no memory any more
            time.sleep(0.002)
        if process.returncode != 0:
            raise RuntimeError("it failed")
        return usage.ru_utime + usage.ru_stime, peak

    def run(self, count: int) -> float:
        short, _ = self.execute([self.case.path])
        long, peak = self.execute(self.named(1 + count))
        self.peak = max(self.peak, peak)
        return (long - short) / count

    def named(self, count: int) -> list[Path]:
        """Returns links to the image with different names, as each result has the name of its image."""
        links = [Path(self.inputs.name) / f"{index}{self.case.path.suffix}" for index in range(count)]
        for link in links:
            if not link.exists():
                link.symlink_to(self.case.path)
        return links

    def result(self) -> bytes:
        results = Path(self.directory.name).iterdir()
        return next(path for path in results if path.stem == self.case.path.stem).read_bytes()

    def peak_mib(self) -> float:
        return self.peak

    def close(self) -> None:
        self.directory.cleanup()
        self.inputs.cleanup()


class OverGRPC:
    """The worker over gRPC, one call at a time: CPU time of the server only, including receiving and sending."""

    def __init__(self, worker: Path, case: Case):
        os.environ["IMAGE_WORKER"] = str(worker)
        self.worker, self.case = Worker(), case
        self.client = Client(self.worker)
        self.version = "this worktree"
        self.data = case.path.read_bytes()
        self.output = b""
        self.start_mib = resident_mib(self.worker.process.pid, "VmRSS")

    def requests(self):
        start = self.client.start("a")
        job = self.case.job
        start.start.configuration.MergeFrom(self.client.configuration(job))
        yield start
        for at in range(0, len(self.data), CHUNK):
            yield self.client.chunk("a", self.data[at : at + CHUNK])
        yield self.client.end("a")

    def call(self) -> bytes:
        if len(self.data) > MESSAGE_LIMIT:
            parts = list(self.client.batch(self.requests(), timeout=300))
        else:
            parts = list(self.client.process(self.data, self.case.job))
        if parts[-1].WhichOneof("part") != "report":
            raise RuntimeError(f"the worker answered: {parts[-1]}")
        return b"".join(part.chunk for part in parts)

    def run(self, count: int) -> float:
        began = cpu_seconds(self.worker.process.pid)
        for _ in range(count):
            self.output = self.call()
        return (cpu_seconds(self.worker.process.pid) - began) / count

    def result(self) -> bytes:
        return self.output

    def peak_mib(self) -> float:
        return resident_mib(self.worker.process.pid, "VmHWM")

    def close(self) -> None:
        self.client.channel.close()
        self.worker.stop()


def python_peer(python: Path, library: str, case: Case) -> Child:
    job = {**asdict(case.job), "input_size": case.size}
    return Child([python, HERE / "peer_python.py", library, case.path, json.dumps(job)])


def vips_peer(program: Path, case: Case) -> Child:
    job = case.job
    options = {"jpeg": f".jpg[Q={job.quality},strip,background=255]", "webp": f".webp[Q={job.quality},strip]",
               "png": ".png[compression=6,strip]"}
    return Child([program, case.path, job.width, job.height, options[job.format]])


GRPC = "worker over gRPC"
LIBVIPS = "libvips 8.18"

PEERS = {
    GRPC: lambda tools, case: OverGRPC(tools.worker, case),
    "worker in-process": lambda tools, case: InProcess(tools.worker, case),
    LIBVIPS: lambda tools, case: python_peer(tools.python, "pyvips", case),
    "Debian's libvips (C)": lambda tools, case: vips_peer(tools.vips, case) if tools.vips else None,
    "Pillow": lambda tools, case: python_peer(tools.python, "pillow", case),
    "pillow-simd": lambda tools, case: python_peer(tools.simd_python, "pillow", case) if tools.simd_python else None,
    "OpenCV": lambda tools, case: python_peer(tools.python, "opencv", case),
    "fast_image_resize": lambda tools, case: python_peer(tools.python, "resizer", case),
}
