"""A limit on the time for which nothing happens on a call."""

from __future__ import annotations

import asyncio
from typing import Any

from ._errors import UnavailableError, stalled


class StallTimer:
    """Cancels a call unless it makes progress. It counts while the caller waits for the worker."""

    def __init__(self, call: Any, seconds: float) -> None:
        self._call = call
        self._seconds = seconds
        self._timer: asyncio.TimerHandle | None = None
        self.has_expired = False

    def start(self) -> None:
        """Starts to wait."""
        self.stop()
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._expire)

    def stop(self) -> None:
        """Ends to wait."""
        if self._timer:
            self._timer.cancel()
        self._timer = None

    def note(self) -> None:
        """Waits from now on: there was progress."""
        if self._timer:
            self.start()

    @property
    def error(self) -> UnavailableError:
        """The error of a call that was cancelled."""
        return stalled(self._seconds)

    def _expire(self) -> None:
        self.has_expired = True
        self._call.cancel()
