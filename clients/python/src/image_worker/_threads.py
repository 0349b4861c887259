"""Threads for what may block: the files, URLs and iterables of callers."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import sys
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

Value = TypeVar("Value")


def told(error: BaseException) -> RuntimeError:
    """Returns what tells of an error of an image or an iterable that would end more than that."""
    telling = RuntimeError(f"an image or an iterable raised {type(error).__name__}")
    telling.__cause__ = error
    return telling


def settled(error: BaseException) -> BaseException:
    """Returns an error as one that a future can have, which does not end an iterator or a future."""
    ends = (StopIteration, StopAsyncIteration, GeneratorExit, asyncio.CancelledError, concurrent.futures.CancelledError)
    return told(error) if isinstance(error, ends) else error


class _Call:
    def __init__(self, function: Callable[[], Any]) -> None:
        self.function = function
        self.future: Future[Any] = Future()
        # Whether its caller was cancelled while it ran.
        self.is_abandoned = False


class _Threads:
    """At most `limit` threads, without those whose callers do not wait for them any more.

    Unlike those of an executor, they do not keep the interpreter from exiting while they block.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._changed = threading.Condition()
        self._calls: deque[_Call] = deque()
        self._count = 0
        self._idle = 0

    def submit(self, call: _Call) -> None:
        with self._changed:
            self._calls.append(call)
            self._changed.notify()
            self._grow()

    def abandon(self, call: _Call) -> None:
        """Lets another thread take the place of one that may block for ever."""
        with self._changed:
            if call.future.running():
                call.is_abandoned = True
                self._count -= 1
                self._grow()

    def _grow(self) -> None:
        if len(self._calls) > self._idle and self._count < self._limit:
            threading.Thread(target=self._serve, name="image-worker-files", daemon=True).start()
            self._count += 1

    def _serve(self) -> None:
        # The interpreter aborts if it closes its standard input while a thread reads that.
        _kept = sys.__stdin__
        while True:
            call = self._next()
            if call.future.set_running_or_notify_cancel():
                try:
                    call.future.set_result(call.function())
                except BaseException as error:
                    call.future.set_exception(settled(error))
            with self._changed:
                if call.is_abandoned:
                    return
            del call  # and with it the caller's file

    def _next(self) -> _Call:
        with self._changed:
            self._idle += 1
            while not self._calls:
                self._changed.wait()
            self._idle -= 1
            return self._calls.popleft()


# As many as processors and a few, the default of asyncio, are too few for URLs.
_threads = _Threads(32)


async def in_thread(function: Callable[..., Value], *arguments: object) -> Value:
    """Calls a function in a thread. If it blocks and its caller is cancelled, the thread lives until the function returns."""
    call = _Call(partial(contextvars.copy_context().run, function, *arguments))
    _threads.submit(call)
    try:
        value: Value = await asyncio.wrap_future(call.future)
        return value
    except asyncio.CancelledError:
        _threads.abandon(call)
        raise
