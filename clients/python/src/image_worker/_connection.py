"""A client that is created where it is used, for objects that are sent to other processes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Union

from ._sync import Client

#: The address of a worker, several, or a function that returns a client, such as `functools.partial(Client, address, tls=True)`.
Workers = Union[str, Sequence[str], Callable[[], Client]]


class Connection:
    """Creates one client in each process that asks for it. It lives as long as the process."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._client: Client | None = None
        self._process = 0

    def client(self) -> Client:
        """Returns the client of this process. Raises `RuntimeError` if it was forked from one that had any."""
        if self._client is None or self._process != os.getpid():
            self._client = self._workers() if callable(self._workers) else Client(self._workers)
            self._process = os.getpid()
        return self._client

    def __getstate__(self) -> dict[str, object]:
        return {"_workers": self._workers, "_client": None, "_process": 0}
