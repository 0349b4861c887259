"""The timeouts of calls and items."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from numbers import Real
from typing import Any, TypeVar

from ._errors import DeadlineError, timed_out

Value = TypeVar("Value")

# In seconds: a year. gRPC takes times that are too far for times that have passed.
_FOREVER = 366 * 86400


def checked(timeout: float | None) -> float | None:
    """Returns the seconds of a timeout, or `None` for no limit. Raises `TypeError` or `ValueError` for what is none."""
    is_number = isinstance(timeout, Real)
    if timeout is not None and (not is_number or timeout != timeout):
        raise (ValueError if is_number else TypeError)(f"timeout is {timeout!r}; it must be a number of seconds, or None")
    return None if timeout is None or timeout > _FOREVER else float(timeout)


class Deadline:
    """The time when a timeout ends that begins now. One that is 0 or negative has ended."""

    def __init__(self, timeout: float | None) -> None:
        self._timeout = checked(timeout)
        self._time = None if self._timeout is None else asyncio.get_running_loop().time() + self._timeout

    def has_passed(self, after: float = 0) -> bool:
        """Returns whether the time has come in so many seconds."""
        return self._time is not None and asyncio.get_running_loop().time() + after >= self._time

    @property
    def error(self) -> DeadlineError:
        """The error of what takes longer."""
        return timed_out(self._timeout or 0)

    def left(self) -> float | None:
        """Returns the seconds until then; `None` for no limit. Raises `DeadlineError` if it has passed."""
        if self._time is None:
            return None
        left = self._time - asyncio.get_running_loop().time()
        if left <= 0:
            raise self.error
        return left

    async def limit(self, function: Callable[..., Coroutine[Any, Any, Value]], *arguments: object) -> Value:
        """Calls a function, which is cancelled at that time. Raises `DeadlineError` then."""
        left = self.left()
        if left is None:
            return await function(*arguments)
        # Not wait_for, which can lose a cancellation up to Python 3.11.
        task = asyncio.create_task(function(*arguments))
        try:
            await asyncio.wait([task], timeout=left)
            if not task.done():
                raise self.error
            return task.result()
        finally:
            if not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
