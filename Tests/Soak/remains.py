"""What a process has: memory, descriptors, child processes, files and locks."""

import collections
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path


def status_mib(pid: int, name: str) -> float:
    """Returns a field of the process' status, such as VmRSS or VmHWM."""
    return int(re.search(rf"{name}:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) / 1024


def forget_peak(pid: int) -> None:
    """Makes VmHWM begin anew."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def children(pid: int) -> list[int]:
    """Returns the processes that the process has started, and theirs."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(path.parent.name)] = int(path.read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            pass
    found, new = [], [pid]
    while new:
        new = [child for child, parent in parents.items() if parent in new]
        found += new
    return sorted(found)


def descriptors(pid: int) -> collections.Counter:
    """Counts the process' descriptors by what they refer to."""
    kinds = collections.Counter()
    for path in Path(f"/proc/{pid}/fd").iterdir():
        try:
            kinds[re.sub(r":\[\d+\]$", "", os.readlink(path))] += 1
        except OSError:
            pass
    return kinds


def locks(pid: int) -> int:
    return sum(line.split()[4] == str(pid) for line in Path("/proc/locks").read_text().splitlines() if "->" not in line)


@dataclass
class Remains:
    """A count of all that a fault could leave behind."""

    rss_mib: float
    descriptors: collections.Counter
    processes: int
    files: frozenset[str]
    locks: int

    @staticmethod
    def of(pid: int, folder: Path) -> "Remains":
        files = frozenset(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
        return Remains(status_mib(pid, "VmRSS"), descriptors(pid), 1 + len(children(pid)), files, locks(pid))

    def surplus(self, before: "Remains", max_rss_mib: float) -> list[str]:
        """Describes what there is more of than before."""
        found = []
        if self.rss_mib > max_rss_mib:
            found.append(f"{self.rss_mib:.0f} MiB of memory, above {max_rss_mib:.0f}")
        if self.descriptors.total() > before.descriptors.total():
            found.append(f"descriptors: {dict(self.descriptors - before.descriptors)}")
        if self.processes > before.processes:
            found.append(f"{self.processes} processes instead of {before.processes}")
        if self.files - before.files:
            found.append(f"files: {sorted(self.files - before.files)[:5]}")
        if self.locks > before.locks:
            found.append(f"{self.locks} locks instead of {before.locks}")
        return found


def settled(pid: int, folder: Path, before: Remains, max_rss_mib: float, seconds: float) -> tuple[Remains, list[str]]:
    """Waits until nothing is left of a fault, for a bounded time, and returns what there is then."""
    deadline = time.monotonic() + seconds
    while True:
        now = Remains.of(pid, folder)
        surplus = now.surplus(before, max_rss_mib)
        if not surplus or time.monotonic() > deadline:
            return now, surplus
        time.sleep(0.25)
