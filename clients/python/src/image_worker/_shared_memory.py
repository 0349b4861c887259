"""Shared memory into which a worker on this host writes results."""

from __future__ import annotations

import contextlib
import functools
import mmap
import os
import secrets
import weakref
from collections.abc import Callable
from pathlib import Path

from ._generated import image_worker_pb2 as wire

#: Where the bytes of results begin, behind the token: arrays there are aligned to pages.
_HEAD_BYTES = mmap.ALLOCATIONGRANULARITY
_FOLDER = Path("/dev/shm")
#: The maximum number of files that are kept for later segments. A process that is killed leaves them behind.
_MAX_KEPT_FILES = 4
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


class _File:
    """The file of a segment, with its pages. It is removed when nothing refers to it any more."""

    def __init__(self, size: int) -> None:
        _remove_stale()
        path, self.descriptor = _create()
        self.name, self.size = path.name, size
        self.remove = weakref.finalize(self, _remove, path, self.descriptor, os.getpid())
        # All of it, so that the worker never pays for its pages, and a full host is found out here.
        try:
            os.posix_fallocate(self.descriptor, 0, size)
        except OSError as error:
            self.remove()
            raise OSError(error.errno, f"{_FOLDER} has no room for {size} bytes of arrays") from None


class Segment:
    """A segment of POSIX shared memory. Its bytes are zero at first, unless its file was that of another segment.

    Other processes can open it until it is hidden. Its memory is that of this process, and is freed when nothing refers to
    `memory` any more. If the process is killed, the next one of its user that shares memory removes the segment.
    """

    def __init__(self, size: int, file: _File | None = None) -> None:
        self.file = file or _File(_HEAD_BYTES + size)
        self.hide = self.file.remove
        self._token = secrets.token_bytes(32)
        try:
            os.pwrite(self.file.descriptor, self._token, 0)
            self._map = mmap.mmap(self.file.descriptor, self.file.size)
        except BaseException:
            self.hide()
            raise

    @property
    def memory(self) -> memoryview:
        """The bytes."""
        return memoryview(self._map)[_HEAD_BYTES:]

    def place(self, start: int, size: int) -> wire.SharedMemory:
        """Returns what a request for a result in a part of the segment contains."""
        return wire.SharedMemory(name=self.file.name, offset=_HEAD_BYTES + start, max_bytes=size, token=self._token)

    def lend(self, freed: Callable[[_File], object]) -> None:
        """Lets no worker open the segment any more. `freed` gets its file when nothing refers to `memory` any more."""
        os.pwrite(self.file.descriptor, secrets.token_bytes(len(self._token)), 0)
        weakref.finalize(self._map, freed, self.file)


class Segments:
    """The segments of a client. They use files again, as the pages of a new one cost a tenth of what else a client does."""

    def __init__(self) -> None:
        # The files of arrays that are not freed yet, and those of arrays that are.
        self._lent: set[_File] = set()
        self._free: list[_File] = []
        _open.add(self)

    def create(self, size: int) -> Segment:
        """Returns a segment, whose bytes may be those of an array that was freed. Files of other sizes are removed."""
        chosen = None
        for file in list(self._free):  # to which another thread may add files meanwhile
            fits = file.size == _HEAD_BYTES + size
            if not (fits and chosen):
                self._free.remove(file)
                if fits:
                    chosen = file
                else:
                    file.remove()
        return Segment(size, chosen)

    def give(self, segment: Segment) -> None:
        """Leaves a segment, into which no worker writes any more, to the one who uses its memory."""
        if len(self._lent) + len(self._free) < _MAX_KEPT_FILES:
            self._lent.add(segment.file)
            segment.lend(self._take_back)
        else:
            segment.hide()

    def close(self) -> None:
        """Hides all segments that were given, and removes the files that wait for another use."""
        self._free.clear()
        with contextlib.suppress(KeyError):
            while True:
                self._lent.pop().remove()

    def _take_back(self, file: _File) -> None:
        # In any thread. A file that was removed meanwhile is not lent any more.
        with contextlib.suppress(KeyError):
            self._lent.remove(file)
            self._free.append(file)


_open: weakref.WeakSet[Segments] = weakref.WeakSet()


def _close_all() -> None:
    for segments in list(_open):
        segments.close()


if hasattr(os, "register_at_fork"):
    # The new process has the arrays, and may use them when this one has freed them.
    os.register_at_fork(before=_close_all)
