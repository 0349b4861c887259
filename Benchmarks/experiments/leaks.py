"""Looks for leaked memory: mixed images, 1 % of them hostile, then SIGTERM, and the report of LeakSanitizer.

Use: Tests/EndToEnd/python.sh Benchmarks/experiments/leaks.py WORKER [--images 5000] [--clients 2] [--options ...]

LeakSanitizer is preloaded (Debian: liblsan0), so that any build of the worker can be examined, a release build too. At
the end of the process it reports each block that no pointer in memory refers to. With `--isolation process`, it
examines the worker; helpers end without exit handlers. The exit status is 1 if a block is leaked. Before the worker, a
program that leaks is examined, to show that leaks are found here.
"""

import argparse
import glob
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from long_run import Worker, client

LIBRARY = "/usr/lib/*/liblsan.so.0"
# A Swift enumeration keeps its case in unused bits of its pointer, which LeakSanitizer then does not recognize.
SUPPRESSIONS = "leak:WorkerTelemetry7SamplerO\n"
LEAK = "import ctypes; [ctypes.CDLL(None).malloc(4321) for _ in range(9)]"


def examined(suppressions: Path, library: str) -> dict[str, str]:
    return {"LD_PRELOAD": library, "PYTHONMALLOC": "malloc",
            "LSAN_OPTIONS": f"exitcode=23:print_suppressions=0:suppressions={suppressions}"}


def run(worker: Worker, images: int, clients: int) -> None:
    context = multiprocessing.get_context("spawn")
    done, results = context.Value("l", 0), context.Queue()
    processes = [context.Process(target=client, args=(worker.address, seed, images // clients, done, results))
                 for seed in range(clients)]
    for process in processes:
        process.start()
    for _ in processes:
        results.get()
    for process in processes:
        process.join()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("worker")
    parser.add_argument("--images", type=int, default=5000)
    parser.add_argument("--clients", type=int, default=2)
    parser.add_argument("--options", nargs=argparse.REMAINDER, default=[], help="settings of the worker")
    arguments = parser.parse_args()
    libraries = glob.glob(LIBRARY)
    if not libraries:
        sys.exit(f"there is no {LIBRARY}; install liblsan0")
    os.environ["IMAGE_WORKER"] = arguments.worker
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as suppressions:
        suppressions.write(SUPPRESSIONS)
        suppressions.flush()
        environment = examined(Path(suppressions.name), libraries[0])
        control = subprocess.run(
            [sys.executable, "-c", LEAK], env={**os.environ, **environment}, capture_output=True, text=True)
        if "4321 byte(s)" not in control.stderr and "38889 byte(s)" not in control.stderr:
            sys.exit(f"LeakSanitizer does not find leaks here: {control.stderr[-500:]}")
        worker, began = Worker("--isolation", "none", *arguments.options, environment=environment), time.monotonic()
        run(worker, arguments.images, arguments.clients)
        code = worker.stop()
    report = "".join(line for line in worker.log if not line.startswith("{"))
    summary = re.findall(r"SUMMARY: LeakSanitizer: (.*)", report)
    print(f"{arguments.images} images in {time.monotonic() - began:.0f} s, exit status {code}, "
          f"{summary[0] if summary else 'no leak'}")
    if summary:
        print(report)
    return 1 if code or summary else 0


if __name__ == "__main__":
    sys.exit(main())
