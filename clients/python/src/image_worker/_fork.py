"""Whether gRPC can be used in this process: not after a fork, which its threads do not survive."""

from __future__ import annotations

import os

# The process that created connections first, of this one and those that it was forked from.
_user: int | None = None


def check_fork() -> None:
    """Raises `RuntimeError` if this process was forked from one that used gRPC, which would hang or abort here."""
    if _user not in (None, os.getpid()):
        raise RuntimeError(
            "gRPC does not work in a process that was forked from one that used it; start processes with \"spawn\" or "
            "\"forkserver\", a DataLoader with multiprocessing_context=\"spawn\", or create the first client after the fork")


def note_use() -> None:
    """Notes that this process uses gRPC. Raises `RuntimeError` as `check_fork`."""
    global _user
    check_fork()
    _user = os.getpid()
