"""Iterables of callers as asynchronous iterators."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import AsyncGenerator, AsyncIterable, Iterable
from typing import TypeVar

from ._threads import settled

Value = TypeVar("Value")
_END = object()


async def iterate(values: Iterable[Value] | AsyncIterable[Value]) -> AsyncGenerator[Value, None]:
    """Iterates over `values`. An iterable that blocks does so in a thread of its own, one value at a time."""
    if isinstance(values, AsyncIterable):
        async for value in values:
            yield value
        return
    if type(values) in (list, tuple):  # which do not block, and a change of threads costs as much as a small image
        for value in values:
            yield value
        return
    loop = asyncio.get_running_loop()
    asked: queue.SimpleQueue[asyncio.Future[object] | None] = queue.SimpleQueue()
    threading.Thread(target=_pull, args=(values, asked, loop), name="image-worker-items", daemon=True).start()
    try:
        while True:
            answer: asyncio.Future[object] = loop.create_future()
            asked.put(answer)
            result = await answer
            if result is _END:
                return
            yield result  # type: ignore[misc]
    finally:
        asked.put(None)


async def prefetched(values: AsyncGenerator[Value, None], count: int) -> AsyncGenerator[Value, None]:
    """Iterates over `values`, of which at most `count` are computed before they are asked for."""
    if count < 1:
        async for value in values:
            yield value
        return
    room = asyncio.Semaphore(count)
    ready: asyncio.Queue[Value | object] = asyncio.Queue()

    async def fill() -> None:
        try:
            await room.acquire()
            async for value in values:
                ready.put_nowait(value)
                await room.acquire()
        finally:
            ready.put_nowait(_END)

    filling = asyncio.create_task(fill())
    try:
        while (result := await ready.get()) is not _END:
            room.release()
            yield result  # type: ignore[misc]
        await filling
    finally:
        filling.cancel()
        await asyncio.gather(filling, return_exceptions=True)


def _pull(
    values: Iterable[object], asked: queue.SimpleQueue[asyncio.Future[object] | None], loop: asyncio.AbstractEventLoop,
) -> None:
    iterator = None
    while (answer := asked.get()) is not None:
        try:
            iterator = iter(values) if iterator is None else iterator
            result, error = next(iterator, _END), None
        except BaseException as caught:
            result, error = None, settled(caught)
        try:
            loop.call_soon_threadsafe(_settle, answer, result, error)
        except RuntimeError:
            return  # the loop was closed
    if iterator is not None and hasattr(iterator, "close"):
        iterator.close()


def _settle(answer: asyncio.Future[object], result: object, error: BaseException | None) -> None:
    if answer.done():
        return
    if error is None:
        answer.set_result(result)
    else:
        answer.set_exception(error)
