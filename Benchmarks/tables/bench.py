"""Prints the cost of images in the worker and its peers: CPU, memory, bytes and quality; then throughput under load.

Started by run.sh. For each job and image, the peers take turns, round by round (A B C, A B C, ...), so that other load
on the machine affects all of them. The values are medians over rounds, and medians of the ratios of adjacent turns.
"""

import argparse
import math
import os
import signal
import statistics
import tempfile
from pathlib import Path

import figures
import load
import stages
from peers import GRPC, JOBS, PEERS, Case, Tools
from photographs import PHOTOGRAPHS, Photograph, path_of, pixels
from reference import scores
from report import Measured, Row, cpu_table, detail_table, environment, origin, peer_versions, summary

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTATION = ROOT / "Benchmarks" / "results" / "peers.md"
SHARE_SECONDS = 0.2  # minimum work of a peer in one turn

INTRODUCTION = """# Benchmarks

Written by `make bench`; not to be edited.

T fits an image in 1280x720 and writes JPEG of quality 80, H in 1920x1080 at quality 100 (4:4:4), F in 64x64 at 80,
P in 300x300 at 80, W in 1280x720 as WebP of quality 80, N in 1280x720 as PNG. Images are named by their megapixels;
`Benchmarks/tables/photographs.py` lists the files that they are made from. Every peer decodes, resizes and encodes in one thread.
"""

CPU_NOTE = """CPU milliseconds of one image, and in brackets how many times that is of what the worker takes over
gRPC, where receiving and sending are part of it, and the client is not.
"""

DETAIL_NOTE = """Peak resident MiB of the process (and above what it had before the image), kilobytes of the result,
and its SSIMULACRA2 score against a Lanczos-3 resize of the whole image in double precision.
"""

LOAD_NOTE = """Job T over gRPC with the server and its client on the same machine, in a closed loop. CPU is per image;
memory is that of all processes of the server together.
"""


def arguments_of() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench ARGS=")
    parser.add_argument("worker", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--jobs", default="THFPWN", help="letters of jobs; default: THFPWN")
    parser.add_argument("--images", default="", help="only those whose names begin with one of these (comma)")
    parser.add_argument("--peers", default="", help="only those, and the worker, whose names have one of these (comma)")
    parser.add_argument("--rounds", type=int, default=5, help="default: 5")
    parser.add_argument("--no-quality", action="store_true", help="no SSIMULACRA2, which takes longest")
    parser.add_argument("--no-load", action="store_true", help="without the table of concurrent calls")
    parser.add_argument("--load-only", action="store_true", help="only that table")
    parser.add_argument("--load-rounds", type=int, default=3, help="default: 3")
    parser.add_argument("--load-calls", type=int, default=200, help="calls of a round, at least; default: 200")
    parser.add_argument("--concurrency", default="1,2,8,32,256", help="default: 1,2,8,32,256")
    parser.add_argument("--output", type=Path, help="a Markdown file for the results; default: Benchmarks/results/peers.md "
                        "when nothing was left out")
    parser.add_argument("--instruction-set", choices=["scalar", "avx2", "avx512", "neon"],
                        help="limit the instructions of the worker's own kernels; libraries use what the processor has")
    parser.add_argument("--record", action="store_true", help="write the figures to Benchmarks/results/figures.json")
    parser.add_argument("--photographs", type=Path, default=ROOT.parent / "shared" / "corpus" / "12-photos")
    parser.add_argument("--cache", type=Path, default=ROOT / ".build" / "benchmarks" / "pictures")
    parser.add_argument("--python", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--simd-python", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--vips", type=Path, help=argparse.SUPPRESS)
    parser.set_defaults(is_interrupted=False, run={"peers": {}, "jobs": {}, "load": {}})
    return parser.parse_args()


def is_whole(arguments: argparse.Namespace) -> bool:
    is_part = arguments.images or arguments.peers or arguments.no_quality or arguments.no_load or arguments.load_only
    return not is_part and not arguments.is_interrupted and set(arguments.jobs) == set(JOBS)


def is_wanted_photograph(photograph: Photograph, parts: str) -> bool:
    return any(photograph.name.startswith(part) for part in parts.split(","))


def is_wanted_peer(name: str, parts: str) -> bool:
    return name == GRPC or any(part.lower() in name.lower() for part in parts.split(","))


def fits(job: str, photograph: Photograph) -> bool:
    """Returns whether a job applies to an image: only PNGs become PNG; they are also converted to JPEG and WebP."""
    return job != "N" or photograph.suffix == ".png"


def measure(case: Case, arguments: argparse.Namespace, tools: Tools) -> dict[str, Measured]:
    running, results = {}, {}
    try:
        for name, create in PEERS.items():
            peer = create(tools, case) if is_wanted_peer(name, arguments.peers) else None
            if peer is not None:
                running[name] = peer
                results[name] = Measured(name, peer.version, start_mib=peer.start_mib)
        take_turns(running, results, arguments.rounds)
        for name, peer in running.items():
            if not results[name].failure:
                results[name].peak_mib = peer.peak_mib()
                result = peer.result()
                results[name].output_bytes = len(result)
                results[name].score = None if arguments.no_quality else score(case, result, arguments.cache)
    finally:
        for peer in running.values():
            peer.close()
    return results


def take_turns(running: dict, results: dict[str, Measured], rounds: int) -> None:
    counts = {}
    for name, peer in running.items():
        try:
            counts[name] = shares(peer)
        except RuntimeError as error:
            results[name].failure = f"failed: {error}"
    for _ in range(rounds):
        for name, count in counts.items():
            results[name].cpu_ms.append(running[name].run(count) * 1000)


def shares(peer) -> int:
    """Returns the number of images per turn of a peer, based on a first run that is not counted."""
    first = max(peer.run(1), 1e-4)
    return min(max(math.ceil(SHARE_SECONDS / first), 1), 100)


def score(case: Case, result: bytes, cache: Path) -> float:
    with tempfile.NamedTemporaryFile(suffix="." + case.job.format) as file:
        file.write(result)
        file.flush()
        return scores(cache / "references").score(case.path, Path(file.name))


def case_of(job: str, path: Path) -> Case:
    with pixels(path) as image:
        return Case(JOBS[job], path, image.size, "A" in image.getbands())


def rows_of(arguments: argparse.Namespace, tools: Tools) -> list[Row]:
    """Returns the rows and prints each as it completes. An interrupt (Ctrl-C) ends early with the rows so far."""
    rows = []
    try:
        for photograph in PHOTOGRAPHS:
            for job in arguments.jobs:
                if is_wanted_photograph(photograph, arguments.images) and fits(job, photograph):
                    path = path_of(photograph, arguments.photographs, arguments.cache)
                    rows.append(Row(photograph, job, measure(case_of(job, path), arguments, tools)))
                    tables = (table(rows[-1:], list(rows[-1].peers))[-1] for table in (cpu_table, detail_table))
                    print(f"{job}:", *tables, sep="\n", flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        arguments.is_interrupted = True
    return rows


def note_costs(rows: list[Row], run: dict) -> None:
    """Adds the figures of the rows to the run."""
    run["peers"] = {peer: measured.version for row in rows for peer, measured in row.peers.items()
                    if "worker" not in peer}
    for row in rows:
        ratios = {peer: round(ratio, 2) for peer in row.peers if peer != GRPC and (ratio := row.ratio(peer))}
        run["jobs"].setdefault(row.job, {})[row.photograph.name] = {
            "worker_ms": round(statistics.median(row.peers[GRPC].cpu_ms), 1), "times": ratios}


def note_load(name: str, loads: list[load.Load], run: dict) -> None:
    """Adds the images a second of both servers to the run."""
    for one in loads:
        server = "pyvips" if "pyvips" in one.server else "worker"
        of_image = run["load"].setdefault(name, {})
        of_image.setdefault(str(one.concurrency), {})[server] = round(statistics.median(one.rates))


def table_of_costs(arguments: argparse.Namespace, tools: Tools) -> list[str]:
    rows = rows_of(arguments, tools)
    note_costs(rows, arguments.run)
    text = [*peer_versions(rows), "", "## Beside libvips", "", *summary(rows)]
    for job in arguments.jobs:
        of_job = [row for row in rows if row.job == job]
        if of_job:
            peers = list(of_job[0].peers)
            text += ["", f"## Job {job}", "", CPU_NOTE, *cpu_table(of_job, peers), "", DETAIL_NOTE,
                     *detail_table(of_job, peers)]
    return text


def table_of_stages(arguments: argparse.Namespace, tools: Tools) -> list[str]:
    """Returns the table of the worker's time by stage."""
    text = []
    for name, job, count in (("12mp-dog", "T", 60), ("12mp-book-progressive", "T", 30), ("12mp-dog-png", "N", 10)):
        photograph = next(one for one in PHOTOGRAPHS if one.name == name)
        path = path_of(photograph, arguments.photographs, arguments.cache)
        rows = stages.profile(tools.worker, path, JOBS[job], count)
        text += ["", f"## Profile of job {job}: {name}", "", *(rows or ["There is no perf on this machine."])]
    return text


def table_of_loads(arguments: argparse.Namespace, tools: Tools) -> list[str]:
    text = []
    for name in ("12mp-dog", "2mp-dog"):
        photograph = next(one for one in PHOTOGRAPHS if one.name == name)
        path = path_of(photograph, arguments.photographs, arguments.cache)
        concurrencies = [int(part) for part in arguments.concurrency.split(",")]
        loads = load.measure(tools, path, arguments.load_rounds, arguments.load_calls, concurrencies)
        note_load(name, loads, arguments.run)
        text += ["", f"## Concurrent calls: {name} ({path.stat().st_size / 1e6:.1f} MB)", "", LOAD_NOTE, *load.table(loads)]
    return text


def sections(arguments: argparse.Namespace) -> list:
    if arguments.load_only:
        return [table_of_loads]
    return [table_of_costs, table_of_stages] + ([] if arguments.no_load else [table_of_loads])


def main() -> None:
    arguments = arguments_of()
    if arguments.instruction_set:
        os.environ["IMAGE_WORKER_INSTRUCTION_SET"] = arguments.instruction_set
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    tools = Tools(arguments.worker, arguments.python, arguments.simd_python, arguments.vips)
    text = environment()
    for section in sections(arguments):
        try:
            text += section(arguments, tools)
        except KeyboardInterrupt:
            arguments.is_interrupted = True
        if arguments.is_interrupted:
            break
    document = "\n".join([INTRODUCTION, *text]) + "\n"
    print(document)
    output = arguments.output or (DOCUMENTATION if is_whole(arguments) else None)
    if output:
        output.write_text(document)
    if arguments.record and not arguments.is_interrupted:
        figures.record(origin() | arguments.run)


if __name__ == "__main__":
    main()
