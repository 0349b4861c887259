"""Shared memory into which a worker on this host writes results."""

from __future__ import annotations

import contextlib
import mmap
import os
import secrets
import weakref

from ._generated import image_worker_pb2 as wire

#: Where the bytes of results begin, behind the token: arrays there are aligned to pages.
_HEAD_BYTES = mmap.ALLOCATIONGRANULARITY


def _remove(path: str, owner: int) -> None:
    if owner != os.getpid():
        return  # a forked process, whose parent still uses the segment
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


class Segment:
    """A segment of POSIX shared memory, all of which is zero at first.

    Other processes can open it until it is hidden. Its memory is that of this process, and is freed when nothing refers to
    `memory` any more.
    """

    def __init__(self, size: int) -> None:
        self._name = f"image-worker.{os.getpid()}-{secrets.token_hex(8)}"
        self._token = secrets.token_bytes(32)
        path = f"/dev/shm/{self._name}"
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        self.hide = weakref.finalize(self, _remove, path, os.getpid())
        try:
            # All of it, so that the worker never pays for its pages, and a full host is found out here.
            try:
                os.posix_fallocate(file, 0, _HEAD_BYTES + size)
            except OSError as error:
                raise OSError(error.errno, f"/dev/shm has no room for {size} bytes of arrays") from None
            os.pwrite(file, self._token, 0)
            self._map = mmap.mmap(file, _HEAD_BYTES + size)
        except BaseException:
            self.hide()
            raise
        finally:
            os.close(file)

    @property
    def memory(self) -> memoryview:
        """The bytes."""
        return memoryview(self._map)[_HEAD_BYTES:]

    def place(self, start: int, size: int) -> wire.SharedMemory:
        """Returns what a request for a result in a part of the segment contains."""
        return wire.SharedMemory(name=self._name, offset=_HEAD_BYTES + start, max_bytes=size, token=self._token)
