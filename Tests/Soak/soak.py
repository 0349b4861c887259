#!/usr/bin/env python3
"""Makes trouble for a worker, and prints what came of it: one row for each fault.

Use: Tests/Soak/run.sh WORKER [--seconds 3600] [--at-once 1] [--only TEXT]

Each fault has a worker and a process of its own. Its calm run gives the results that are expected and the floor of the
memory. During the trouble, other clients send the same images. The exit status is 1 if an image is lost, a result is
another one, memory exceeds its limit, or anything is left afterwards, in this run and when the fault runs once more by itself.
"""

import argparse
import dataclasses
import json
import logging
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "EndToEnd"))
from course import PROCESS_MIB, REST_SECONDS, Row, run  # noqa: E402
from fault import LIMIT_MIB  # noqa: E402
from faults import FAULTS  # noqa: E402

# Of one fault, in addition to the trouble: start, calm run, rest, recovery.
OTHER_SECONDS = REST_SECONDS + 6
LEAST_SECONDS = 1
# More than all waits for calls that do not end, so that their fault reports them itself.
END_SECONDS = 300
COLUMNS = ["fault", "tries", "other images", "tried again", "lost", "wrong", f"peak MiB, of {LIMIT_MIB + PROCESS_MIB}",
           "MiB before", "MiB after", "health p50 ms", "p99 ms", "descriptors", "processes"]


def line(row: Row) -> str:
    if row.missing:
        return f"| {row.name} | skipped: {row.missing} |" + " |" * (len(COLUMNS) - 2)
    cells = [row.name, row.tries, row.images, row.again, row.lost, row.wrong, f"{row.peak_mib:.0f}",
             f"{row.before_mib:.0f}", f"{row.after_mib:.0f}", f"{row.health_p50_ms:.1f}", f"{row.health_p99_ms:.1f}",
             row.descriptors, row.processes]
    return "| " + " | ".join(map(str, cells)) + " |"


def in_process(name: str, seconds: float) -> Row:
    """Runs one fault in a process of its own."""
    command = [sys.executable, __file__, os.environ["IMAGE_WORKER"], "--fault", name, "--seconds", str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            output, _ = process.communicate(timeout=seconds + END_SECONDS)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)  # its worker, too
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            return Row(name, failures=[f"its program has not ended after {seconds + END_SECONDS:.0f} s"])
    if process.returncode != 0:
        return Row(name, failures=["its program failed"])
    row = Row(**json.loads(output.splitlines()[-1]))
    row.results = {int(case): result for case, result in row.results.items()}
    return row


def print_all(names: list[str], seconds: float, at_once: int) -> list[str]:
    """Prints the row of each fault, and then all failures; returns the names of the faults that failed."""
    print("| " + " | ".join(COLUMNS) + " |\n" + "|---" * len(COLUMNS) + "|", flush=True)
    failures, expected = {}, {}
    with ThreadPoolExecutor(at_once) as pool:
        for row in pool.map(lambda name: in_process(name, seconds), names):
            print(line(row), flush=True)
            found = list(row.failures)
            for case, result in row.results.items():
                if expected.setdefault(case, result) != result:
                    found.append("another result in the calm run")
            if found:
                failures[row.name] = found
    for name, found in failures.items():
        for failure in found:
            print(f"\nFAILED {name}: {failure}", flush=True)
    return list(failures)


def try_again(names: list[str], seconds: float) -> list[str]:
    """Runs the faults that failed once more, one after the other; returns those that failed twice."""
    print("\nWhat failed runs once more, by itself:\n", flush=True)
    failed = print_all(names, seconds, 1)
    for name in set(names) - set(failed):
        print(f"\nPASSED ONLY AT THE SECOND TRY, which is a defect to mend: {name}", flush=True)
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("worker")
    parser.add_argument("--seconds", type=float, default=3600, help="of all faults together")
    parser.add_argument("--at-once", type=int, default=1, help="faults at the same time")
    parser.add_argument("--only", default="", help="faults whose names contain this")
    parser.add_argument("--fault", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    os.environ["IMAGE_WORKER"] = os.path.abspath(arguments.worker)
    if arguments.fault:
        # Writing to a connection that the worker has closed is what some faults do.
        logging.getLogger("asyncio").setLevel(logging.ERROR)
        kind = next(kind for kind in FAULTS if kind.name == arguments.fault)
        print(json.dumps(dataclasses.asdict(run(kind, arguments.seconds))))
        return 0
    names = [kind.name for kind in FAULTS if arguments.only in kind.name]
    seconds = max(LEAST_SECONDS, arguments.seconds * arguments.at_once / max(1, len(names)) - OTHER_SECONDS)
    began = time.monotonic()
    failed = print_all(names, seconds, arguments.at_once)
    if failed:
        failed = try_again(failed, seconds)
    print(f"\n{len(names)} faults, {seconds:.0f} s of trouble each, in {time.monotonic() - began:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
