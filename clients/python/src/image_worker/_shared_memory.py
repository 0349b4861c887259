"""Shared memory into which a worker on this host writes results."""

from __future__ import annotations

import contextlib
import functools
import mmap
import os
import secrets
import weakref
from pathlib import Path

from ._generated import image_worker_pb2 as wire

#: Where the bytes of results begin, behind the token: arrays there are aligned to pages.
_HEAD_BYTES = mmap.ALLOCATIONGRANULARITY
_FOLDER = Path("/dev/shm")
#: Of the names of segments that their process has locked: other clients have names of their own.
_PREFIX = "image-worker.python-"


def _remove(path: Path, file: int, owner: int) -> None:
    if owner == os.getpid():  # not a forked process, whose parent still uses the segment
        path.unlink(missing_ok=True)
    os.close(file)


def _is_free(file: int) -> bool:
    """Locks a segment, unless a process that lives has locked it."""
    import fcntl  # which Windows lacks

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _create() -> tuple[Path, int]:
    """Creates an empty segment and locks it."""
    while True:
        path = _FOLDER / f"{_PREFIX}{os.getpid()}-{secrets.token_hex(8)}"
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        # Another process may have found it without a lock, and removed it.
        if _is_free(file) and os.fstat(file).st_nlink > 0:
            return path, file
        os.close(file)


@functools.cache
def _remove_stale() -> None:
    """Removes the segments of processes of this user that were killed."""
    for path in _FOLDER.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            file = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                if os.fstat(file).st_uid == os.geteuid() and _is_free(file):
                    path.unlink()
            finally:
                os.close(file)


class Segment:
    """A segment of POSIX shared memory, all of which is zero at first.

    Other processes can open it until it is hidden. Its memory is that of this process, and is freed when nothing refers to
    `memory` any more. If the process is killed, the next one of its user that shares memory
    removes the segment.
    """

    def __init__(self, size: int) -> None:
        _remove_stale()
        path, file = _create()
        self._name, self._token = path.name, secrets.token_bytes(32)
        self.hide = weakref.finalize(self, _remove, path, file, os.getpid())
        try:
            # All of it, so that the worker never pays for its pages, and a full host is found out here.
            try:
                os.posix_fallocate(file, 0, _HEAD_BYTES + size)
            except OSError as error:
                raise OSError(error.errno, f"{_FOLDER} has no room for {size} bytes of arrays") from None
            os.pwrite(file, self._token, 0)
            self._map = mmap.mmap(file, _HEAD_BYTES + size)
        except BaseException:
            self.hide()
            raise

    @property
    def memory(self) -> memoryview:
        """The bytes."""
        return memoryview(self._map)[_HEAD_BYTES:]

    def place(self, start: int, size: int) -> wire.SharedMemory:
        """Returns what a request for a result in a part of the segment contains."""
        return wire.SharedMemory(name=self._name, offset=_HEAD_BYTES + start, max_bytes=size, token=self._token)
