"""What the faults have in common."""

import functools
import os
import subprocess
import time
from pathlib import Path

import grpc
from conftest import Worker

LIMIT_MIB = 128
# Short, so that what must end ends while somebody watches. Those that the worker does not have are left out.
TIMES = {
    "--upload-timeout-seconds": "2", "--download-timeout-seconds": "2", "--handshake-timeout-seconds": "2",
    "--connection-idle-seconds": "4", "--keepalive-seconds": "2", "--keepalive-timeout-seconds": "3",
}


@functools.cache
def help_text() -> str:
    return subprocess.run([os.environ["IMAGE_WORKER"], "serve", "--help"], capture_output=True, text=True).stdout


def has_setting(name: str) -> bool:
    return f"{name} <" in help_text() or f"{name}/" in help_text()


class Fault:
    """A kind of trouble, for a worker of its own."""

    # What the table calls it.
    name = ""
    # Whether clients can still connect anew.
    takes_connections = True
    # The text of errors that the fault may cost an image, which its client then sends again; empty for none.
    cost = ""

    def __init__(self, folder: Path):
        # The directory of all files that the worker or the fault writes.
        self.folder = folder

    def missing(self) -> str:
        """Returns what this machine or the worker lacks for it; empty for nothing."""
        return ""

    def options(self) -> list[str]:
        """Returns settings that the worker needs for it."""
        return []

    def environment(self) -> dict[str, str]:
        return {}

    def prefix(self) -> tuple[str, ...]:
        """Returns a command that executes the worker."""
        return ()

    def credentials(self) -> grpc.ChannelCredentials | None:
        """Returns what bystanders connect with; `None` for plaintext."""
        return None

    def authority(self) -> Path | None:
        """Returns the authority of the worker's certificate."""
        return None

    def start(self, *more: str) -> Worker:
        spill = self.folder / "spill"
        spill.mkdir(exist_ok=True)
        times = [part for name, value in TIMES.items() if has_setting(name) for part in (name, value)]
        return Worker(
            "--cache-memory-mib", "0", "--memory-limit-mib", str(LIMIT_MIB), "--drain-timeout-seconds", "10",
            "--spill-directory", str(spill), *times, *self.options(), *more, environment=self.environment(),
            prefix=self.prefix())

    def trouble(self, worker: Worker, until: float) -> int:
        """Makes trouble until the monotonic clock shows `until`, undoes what can be undone, and returns the tries."""
        raise NotImplementedError


def is_before(until: float) -> bool:
    return time.monotonic() < until


class Failed(Exception):
    """Something else than expected came of the trouble itself."""


def check(is_right: bool, what: object) -> None:
    if not is_right:
        raise Failed(str(what))
