#!/usr/bin/env python3
"""Compares arrays for models of the Python client with those of libraries in-process: images for each second of a core.

The images are 500 photographs of ImageNet's sizes, 0.1 to 0.5 megapixels, which are parts of those of the corpus, and photographs of
12 megapixels. Each becomes a normalized array of float16 in CHW, of which its middle fills 224x224 or 336x336. CPU time is that of
the client and the worker together, or of the library; libraries and ways take turns, and medians count.

Use: tensors.py image-worker [--rounds 3] [--simd PYTHON] [--record] (with the packages of requirements-tensors.txt)
PYTHON is that of an environment with pillow-simd and NumPy; Pillow cannot be installed in the same one.
"""

import argparse
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "clients/python/src"), str(ROOT / "Benchmarks/tables")]
import figures  # noqa: E402
import image_worker  # noqa: E402
from photographs import PHOTOGRAPHS, path_of  # noqa: E402
from PIL import Image, ImageOps  # noqa: E402
from tensor_peers import PEERS  # noqa: E402

SMALL, LARGE = "0.1 to 0.5 MP", "12 MP"
JOBS = [(SMALL, 224), (SMALL, 336), (LARGE, 224), (LARGE, 336)]
#: Options of `tensors` by the way, and whether it is over the Unix socket.
WAYS = {
    "over TCP": (False, {}), "over a Unix socket": (True, {}), "in shared memory": (True, {"shared_memory": True}),
    "in shared memory, exact": (True, {"shared_memory": True, "exact_resize": True, "resampling_kernel": "bicubic"})}
#: How often the four photographs of 12 megapixels are processed.
REPETITIONS = 4


def make_small(photographs: Path, folder: Path, count: int) -> None:
    """Makes photographs of ImageNet's sizes: parts of large ones, most of them with reduced chroma."""
    if len(list(folder.glob("*.jpg"))) == count:
        return
    folder.mkdir(parents=True, exist_ok=True)
    sources = [ImageOps.exif_transpose(Image.open(path)).convert("RGB") for path in sorted(photographs.iterdir())
               if path.suffix.lower() == ".jpg" and 1e6 < os.path.getsize(path) < 4e6]
    sources = [image for image in sources if image.width * image.height < 40e6]
    chance = random.Random(34)
    for number in range(count):
        image = sources[number % len(sources)]
        pixels, ratio = chance.uniform(0.1e6, 0.5e6), chance.choice([4 / 3, 4 / 3, 3 / 2, 3 / 4, 1])
        size = round((pixels * ratio) ** 0.5), round((pixels / ratio) ** 0.5)
        scale = chance.uniform(1, min(image.width / size[0], image.height / size[1]))
        width, height = size[0] * scale, size[1] * scale
        left, top = chance.uniform(0, image.width - width), chance.uniform(0, image.height - height)
        image.resize(size, Image.Resampling.LANCZOS, (left, top, left + width, top + height)).save(
            folder / f"{number:03}.jpg", quality=chance.randrange(85, 97), subsampling=chance.choice([0, 2, 2, 2]))


def make_large(photographs: Path, folder: Path, cache: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for photograph in PHOTOGRAPHS:
        if photograph.name in figures.BASELINE:
            data = path_of(photograph, photographs, cache).read_bytes()
            for number in range(REPETITIONS):
                (folder / f"{number}-{photograph.name}.jpg").write_bytes(data)


class Worker:
    """A worker at a port, or at a Unix socket in a folder."""

    def __init__(self, program: str, folder: Path | None = None) -> None:
        place = ["--unix-socket", str(folder / "socket")] if folder else ["--port", "0"]
        self.process = subprocess.Popen(
            [program, "serve", *place, "--isolation", "none", "--shared-memory", "--cache-memory-mib", "0"], stderr=subprocess.PIPE, text=True)
        line = next((line for line in self.process.stderr if "serving" in line), "")
        port = re.search(r"127\.0\.0\.1:(\d+)", line)
        self.address = f"unix:{folder}/socket" if folder else f"127.0.0.1:{port[1]}"
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()

    def cpu_seconds(self) -> float:
        nanoseconds = sum(int(path.read_text().split()[0]) for path in Path(f"/proc/{self.process.pid}/task").glob("*/schedstat"))
        return nanoseconds / 1e9


def by_client(workers: dict[bool, Worker], images: list[bytes], side: int, way: str) -> dict[str, float]:
    """The CPU seconds of the client and the worker."""
    is_local, options = WAYS[way]
    worker = workers[is_local]
    with image_worker.Client(worker.address) as client:
        settings = {"width": side, "height": side, "dtype": "float16", "normalize": "imagenet", "batch_size": 64, **options}
        for batch in client.tensors(images[:8], **settings):
            batch.unwrap()
        before = worker.cpu_seconds(), time.process_time()
        for batch in client.tensors(images, **settings):
            batch.unwrap()
        return {"worker": worker.cpu_seconds() - before[0], "client": time.process_time() - before[1]}


class Peer:
    """A library in a process of its own."""

    def __init__(self, name: str, python: str, folder: Path, side: int) -> None:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("OPENBLAS")}
        self.process = subprocess.Popen(
            [python, str(Path(__file__).with_name("tensor_peers.py")), name, str(folder), str(side)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, env={**environment, "OMP_NUM_THREADS": "1"})
        self.version = self.process.stdout.readline().strip()

    def seconds(self) -> float:
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def stop(self) -> None:
        self.process.communicate()


def measured(workers: dict[bool, Worker], folder: Path, side: int, peers: dict[str, str], rounds: int, versions: dict) -> dict[str, dict]:
    """Images for each second of a core by way and by library, with the milliseconds of client and worker."""
    images = [path.read_bytes() for path in sorted(folder.glob("*.jpg"))]
    running = {name: Peer(name, python, folder, side) for name, python in peers.items()}
    times: dict[str, list[dict[str, float]]] = {}
    for _ in range(rounds):
        for way in WAYS:
            times.setdefault(way, []).append(by_client(workers, images, side, way))
        for name, peer in running.items():
            if peer.version:
                versions[name] = peer.version
                times.setdefault(name, []).append({"library": peer.seconds()})
    for peer in running.values():
        peer.stop()
    rows = {}
    for name, each in times.items():
        parts = {part: statistics.median(seconds[part] for seconds in each) / len(images) for part in each[0]}
        rows[name] = {"rate": round(1 / sum(parts.values()), 1), **{f"{part}_ms": round(1e3 * value, 3) for part, value in parts.items()}}
    return rows


def table(results: dict[str, dict]) -> str:
    names = list(next(iter(results.values())))
    lines = ["| arrays by | " + " | ".join(results) + " |", "|---" * (len(results) + 1) + "|"]
    for name in names:
        cells = []
        for rows in results.values():
            row = rows.get(name)
            split = f" ({row['worker_ms']:.2f} + {row['client_ms']:.2f})" if row and "worker_ms" in row else ""
            cells.append(f"{row['rate']:,.0f}{split}" if row else "")
        lines.append(f"| {'the worker, ' if name in WAYS else ''}{name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("worker")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--count", type=int, default=500, help="the number of small photographs (default: 500)")
    parser.add_argument("--simd", metavar="PYTHON", help="an interpreter with pillow-simd")
    parser.add_argument("--photographs", type=Path, default=ROOT.parent / "shared/corpus/12-photos")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "image-worker-tensors")
    parser.add_argument("--record", action="store_true", help="write figures.json")
    options = parser.parse_args()
    folders = {SMALL: options.cache / f"small-{options.count}", LARGE: options.cache / "large"}
    make_small(options.photographs, folders[SMALL], options.count)
    make_large(options.photographs, folders[LARGE], options.cache)
    peers = {name: sys.executable for name in [*PEERS, "DALI"] if name != "pillow-simd"}
    if options.simd:
        peers["pillow-simd"] = options.simd
    results, versions = {}, {}
    for kind, side in JOBS:
        with tempfile.TemporaryDirectory() as folder:
            workers = {False: Worker(options.worker), True: Worker(options.worker, Path(folder))}
            try:
                results[f"{kind} to {side}"] = measured(workers, folders[kind], side, peers, options.rounds, versions)
            finally:
                for worker in workers.values():
                    worker.stop()
        print(f"{kind} to {side}: {json.dumps(results[f'{kind} to {side}'])}", file=sys.stderr, flush=True)
    print(table(results))
    print("\n" + ", ".join(f"{name} {number}" for name, number in versions.items()))
    if options.record:
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
        figures.record({
            "commit": commit, "date": str(date.today()), "machine": "2 cores of AMD EPYC, 24 GiB; Debian GNU/Linux 12 (bookworm)",
            "instruction_set": os.environ.get("IMAGE_WORKER_INSTRUCTION_SET", "avx512"), "peers": versions, "tensors": results})


if __name__ == "__main__":
    main()
