"""The course of one fault: a calm time, the trouble, and what is left of it."""

import dataclasses
import tempfile
import time
import traceback
from pathlib import Path

from bystanders import CASES, Bystanders
from fault import LIMIT_MIB, Fault
from remains import Remains, forget_peak, settled, status_mib

# Beyond --memory-limit-mib: the process itself.
PROCESS_MIB = 64
# Of the floor, and what the allocator may keep in addition: its arenas are emptied, but not returned page by page.
FLOOR_SHARE = 1.1
FLOOR_MIB = 4
# An idle worker returns its memory after 2 to 4 seconds.
REST_SECONDS = 4.5
RECOVERY_SECONDS = 20
HEALTH_MS = 1000


@dataclasses.dataclass
class Row:
    """What came of one fault."""

    name: str
    missing: str = ""
    tries: int = 0
    images: int = 0
    again: int = 0
    lost: int = 0
    wrong: int = 0
    peak_mib: float = 0
    before_mib: float = 0
    after_mib: float = 0
    health_p50_ms: float = 0
    health_p99_ms: float = 0
    descriptors: int = 0
    processes: int = 0
    # Digests of the results in the calm run, which are the same for all faults.
    results: dict[int, str] = dataclasses.field(default_factory=dict)
    # Why the row is a failure.
    failures: list[str] = dataclasses.field(default_factory=list)


class Course:
    """Runs one fault and fills its row."""

    def __init__(self, fault: Fault):
        self.fault = fault
        self.row = Row(fault.name, fault.missing())

    def run(self, seconds: float) -> Row:
        if self.row.missing:
            return self.row
        worker = self.fault.start()
        try:
            self.live_through(worker, seconds)
        except Exception:
            self.row.failures.append(traceback.format_exc(limit=-3))
        if worker.process.poll() is not None:
            self.row.failures.append(f"the worker ended with {worker.process.returncode}")
        elif (code := worker.stop()) != 0:
            self.row.failures.append(f"the exit status is {code}")
        if self.row.failures:
            self.row.failures += [line.strip() for line in worker.log if '"level":"error"' in line][-5:]
        return self.row

    def live_through(self, worker, seconds: float) -> None:
        self.serve(worker)
        time.sleep(REST_SECONDS)
        row = self.row
        before = Remains.of(worker.process.pid, self.fault.folder)
        row.before_mib = before.rss_mib
        forget_peak(worker.process.pid)
        bystanders = self.bystanders(worker)
        row.tries = self.fault.trouble(worker, time.monotonic() + seconds)
        self.account(bystanders)
        row.health_p50_ms, row.health_p99_ms = bystanders.health.percentile(50), bystanders.health.percentile(99)
        # The process may be another one now.
        pid = worker.process.pid
        row.peak_mib = status_mib(pid, "VmHWM")
        after, surplus = settled(
            pid, self.fault.folder, before, before.rss_mib * FLOOR_SHARE + FLOOR_MIB, RECOVERY_SECONDS)
        row.after_mib, row.descriptors, row.processes = after.rss_mib, after.descriptors.total(), after.processes
        row.failures += [f"left: {what}" for what in surplus]
        self.serve(worker)
        self.judge()

    def bystanders(self, worker, new: bool | None = None) -> Bystanders:
        return Bystanders(
            worker, self.fault.credentials(), self.fault.authority(), self.row.results,
            self.fault.takes_connections if new is None else new, self.fault.cost)

    def serve(self, worker) -> None:
        """Lets every bystander process every image."""
        bystanders = self.bystanders(worker, new=True)
        deadline = time.monotonic() + 60
        while min(member.images + len(member.lost) for member in bystanders.members) < len(CASES):
            if time.monotonic() > deadline:
                break
            time.sleep(0.05)
        self.account(bystanders)

    def account(self, bystanders: Bystanders) -> None:
        bystanders.stop()
        row = self.row
        row.images += bystanders.images
        row.again += bystanders.again
        row.lost += len(bystanders.lost)
        row.wrong += bystanders.wrong
        row.failures += [f"lost: {error}" for error in sorted(set(bystanders.lost))[:3]]

    def judge(self) -> None:
        row = self.row
        if row.wrong:
            row.failures.append(f"{row.wrong} wrong results")
        if row.peak_mib > LIMIT_MIB + PROCESS_MIB:
            row.failures.append(f"{row.peak_mib:.0f} MiB at the peak, above {LIMIT_MIB + PROCESS_MIB}")
        if row.health_p99_ms > HEALTH_MS:
            row.failures.append(f"health took {row.health_p99_ms:.0f} ms at p99")
        if row.tries == 0:
            row.failures.append("there was no trouble")


def run(kind: type[Fault], seconds: float) -> Row:
    with tempfile.TemporaryDirectory(prefix="soak.", dir="/var/tmp") as folder:
        return Course(kind(Path(folder))).run(seconds)
