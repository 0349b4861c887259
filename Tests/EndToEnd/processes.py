"""The state of processes and their threads, any of which may end while it is read."""

from __future__ import annotations

import os
import re
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conftest import Worker

GONE = (FileNotFoundError, ProcessLookupError)


def contents(path: Path | str) -> str:
    """The contents of a file of a process; empty if the process has ended."""
    try:
        return Path(path).read_text()
    except GONE:
        return ""


def threads(pid: int) -> list[Path]:
    try:
        return list(Path(f"/proc/{pid}/task").iterdir())
    except GONE:
        return []


def fields(path: Path | str) -> list[str]:
    """The fields of a file `stat` that follow the name: the state first."""
    return contents(f"{path}/stat").rpartition(") ")[2].split()


def descendants(pid: int) -> list[int]:
    children = [int(child) for thread in threads(pid) for child in contents(thread / "children").split()]
    return [found for child in children for found in (child, *descendants(child))]


def helpers(worker: Worker) -> list[int]:
    return [pid for pid in descendants(worker.process.pid) if contents(f"/proc/{pid}/comm") == "codec-helper\n"]


def is_alive(pid: int) -> bool:
    return fields(f"/proc/{pid}")[:1] not in ([], ["Z"])


def cpu_seconds(pid: int) -> float:
    """The CPU time of a process; 0 if it has ended."""
    spent = fields(f"/proc/{pid}")[11:13]
    return sum(map(int, spent)) / os.sysconf("SC_CLK_TCK")


def work_nanoseconds(pid: int) -> int:
    """The CPU time of a process with one thread, more precisely; 0 if it has ended."""
    return int((contents(f"/proc/{pid}/schedstat").split() or ["0"])[0])


def family(worker: Worker) -> list[int]:
    """The worker and the processes that it has started."""
    return [worker.process.pid, *descendants(worker.process.pid)]


def family_cpu_seconds(worker: Worker) -> float:
    """The CPU time of a worker and of the processes that it has started, including those that have ended."""
    spent = (fields(f"/proc/{pid}")[11:15] for pid in family(worker))
    return sum(int(ticks) for four in spent for ticks in four) / os.sysconf("SC_CLK_TCK")


def family_mib(worker: Worker) -> float:
    """The memory of a worker and of the processes that it has started, in which shared pages count once."""
    found = (re.search(r"^Pss:\s+(\d+)", contents(f"/proc/{pid}/smaps_rollup"), re.MULTILINE) for pid in family(worker))
    return sum(int(one[1]) for one in found if one) / 1024


class PeakMemory(threading.Thread):
    """Observes the memory of a worker and of the processes that it has started."""

    def __init__(self, worker: Worker):
        super().__init__(daemon=True)
        self.worker, self.mib, self.is_over = worker, 0.0, threading.Event()

    def __enter__(self) -> PeakMemory:
        self.start()
        return self

    def run(self):
        while not self.is_over.wait(0.05):
            self.mib = max(self.mib, family_mib(self.worker))

    def __exit__(self, *_):
        self.is_over.set()
        self.join()


def is_idle(*processes: int) -> bool:
    """Whether processes neither work nor wait for a processor, which takes a third of a second to find out."""
    before = sum(map(cpu_seconds, processes))
    for _ in range(6):
        if any(fields(thread)[:1] != ["S"] for pid in processes for thread in threads(pid)):
            return False
        time.sleep(0.05)
    return all(map(is_alive, processes)) and sum(map(cpu_seconds, processes)) - before < 0.05
