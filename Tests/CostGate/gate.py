#!/usr/bin/env python3
"""Compares the instructions that jobs take with those in figures.json, and fails if one takes 5 % more.

gate.py PROGRAM [--update] [JOB ...]

Valgrind counts the instructions. They do not depend on how fast or how busy a machine is, and since Valgrind presents a
processor of its own, AVX-512 is never used. They depend on the compiler, on the system's libraries and on whether the
processor has AVX2: figures.json has figures for each such environment. Revisions of a distribution's package do not
count. A job without a figure fails. In an unknown environment nothing is compared, which is printed; --update adds it.
"""

import argparse
import concurrent.futures
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FIGURES = Path(__file__).with_name("figures.json")
TOLERANCE = 0.05
# Thousands of instructions by which counts of the same program can differ, as it reads clocks.
NOISE = 20
# The difference of these two counts of images leaves out the start of the process, whose count varies by a million.
IMAGES = (1, 33)
# The libraries that do the work of some jobs, by the start of their names.
LIBRARIES = {"png": ["zlib1g", "libisal2"], "webp": ["libwebp7"]}


def version_of(package: str) -> str:
    """Returns the upstream version of an installed package."""
    query = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True)
    return re.sub(r"^\d+:|[-+].*$", "", query.stdout.strip())


def environment() -> dict[str, str]:
    """Returns what the figures of all jobs depend on, except for the sources."""
    swift = subprocess.run(["swift", "--version"], capture_output=True, text=True, check=True).stdout
    flags = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    valgrind = subprocess.run(["valgrind", "--version"], capture_output=True, text=True, check=True).stdout
    libraries = sorted(library for libraries in LIBRARIES.values() for library in libraries)
    return {
        "architecture": platform.machine(), "avx2": str(" avx2 " in flags),
        "swift": re.search(r"version ([\d.]+)", swift)[1], "valgrind": valgrind.strip().removeprefix("valgrind-"),
        "libc6": version_of("libc6"), **{library: version_of(library) for library in libraries},
    }


def affects(library: str, job: str) -> bool:
    """Whether the version of a library, or another property of the environment, changes the figure of a job."""
    users = [start for start, libraries in LIBRARIES.items() if library in libraries]
    return not users or any(job.startswith(start) for start in users)


def differences(here: dict[str, str], there: dict[str, str], job: str) -> list[str]:
    """Returns the properties of two environments that differ and change the figure of a job."""
    return [name for name in here if affects(name, job) and there.get(name) != here[name]]


def count(program: str, job: str, images: int) -> int:
    """Returns the instructions of a process that runs a job for some images."""
    command = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    done = subprocess.run(
        [*command, program, job, str(images)], capture_output=True, text=True,
        env=os.environ | {"SWIFT_DETERMINISTIC_HASHING": "1"})
    found = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    if done.returncode != 0 or not found:
        raise SystemExit(f"{job} failed:\n{done.stderr[-2000:]}")
    return int(found[1].replace(",", ""))


def measure(program: str, jobs: list[str]) -> dict[str, int]:
    """Returns the thousands of instructions of one image of each job."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        tasks = {(job, images): pool.submit(count, program, job, images) for job in jobs for images in IMAGES}
        counts = {key: task.result() for key, task in tasks.items()}
    few, many = IMAGES
    return {job: (counts[job, many] - counts[job, few]) // (1000 * (many - few)) for job in jobs}


def compare(measured: dict[str, int], known: list[dict], here: dict[str, str]) -> tuple[bool, int]:
    """Prints the change of each job.

    Returns whether each that can be compared has a figure and does not exceed it, and the number of those.
    """
    passed, compared = True, 0
    print(f"{'job':20}{'figure':>12}{'now':>12}  thousand instructions per image")
    for job, now in measured.items():
        same = [entry["figures"] for entry in known if not differences(here, entry["environment"], job)]
        if known and not same:
            others = "; ".join(f"{name} is {here[name]}" for name in differences(here, known[0]["environment"], job))
            print(f"{job:20}{'':12}{now:12}  NOT COMPARED: {others}")
            continue
        figure = next((figures[job] for figures in same if job in figures), None)
        change = now / figure - 1 if figure else None
        verdict = "no figure" if change is None else f"{change:+.1%}"
        if change is None or now > figure * (1 + TOLERANCE) + NOISE:
            passed, verdict = False, verdict + "  FAILED"
        elif change < -TOLERANCE:
            verdict += "  better: update the figures"
        compared += 1
        print(f"{job:20}{figure or 0:12}{now:12}  {verdict}")
    print(f"compared {compared} of {len(measured)} jobs" + ("" if compared == len(measured) else
          "; `make cost-gate ARGS=--update` adds figures of this environment"))
    return passed, compared


def updated(known: list[dict], here: dict[str, str], measured: dict[str, int], jobs: list[str]) -> list[dict]:
    """Returns all figures with those that were measured here."""
    old = next((entry["figures"] for entry in known if entry["environment"] == here), {})
    figures = {job: figure for job in jobs if (figure := measured.get(job, old.get(job))) is not None}
    return [entry for entry in known if entry["environment"] != here] + [{"environment": here, "figures": figures}]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("jobs", nargs="*")
    parser.add_argument("--update", action="store_true", help="write the figures instead of comparing them")
    options = parser.parse_args()
    here, known = environment(), json.loads(FIGURES.read_text()) if FIGURES.exists() else []
    jobs = subprocess.run([options.program], capture_output=True, text=True, check=True).stdout.split()
    with tempfile.TemporaryDirectory() as folder:
        program = shutil.copy(options.program, folder)
        subprocess.run(["strip", program], check=True)  # Valgrind 3.19 cannot read what Swift writes for debuggers
        measured = measure(program, [job for job in jobs if not options.jobs or job in options.jobs])
    if options.update:
        FIGURES.write_text(json.dumps(updated(known, here, measured, jobs), indent=2) + "\n")
        return 0
    passed, compared = compare(measured, known, here)
    if not compared:
        print("cost gate NOT RUN: there are no figures of this environment")
        return 0
    print("cost gate passed" if passed else
          f"cost gate FAILED: a job takes over {TOLERANCE:.0%} more instructions than its figure, or has none; make it "
          "cheaper, or accept it with `make cost-gate ARGS=--update` and say why in the commit")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
