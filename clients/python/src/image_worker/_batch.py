"""The batch: items go over several streams at once, and over others when a stream breaks.

Each item is in one place at a time: waiting, in flight on one lane, or done. A lane is a loop that keeps one stream open. When
its stream breaks, the items in flight wait again, and the lane opens a stream to the worker that is best then. An item during
which streams broke repeatedly is sent alone, so that an image that breaks workers takes no other item with it.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import grpc

from ._deadline import Deadline, checked
from ._errors import EXHAUSTED, AuthenticationError, ImageWorkerError, UnavailableError, from_rpc_error, lost, timed_out
from ._generated import image_worker_pb2 as wire
from ._requests import configuration
from ._results import Collector, Intake, Result
from ._sources import CHUNK_BYTES, ERRORS, WHOLE_BYTES, Source, SourceError, Upload
from ._threads import told
from ._workers import Worker, Workers

Key = TypeVar("Key")
Value = TypeVar("Value")

# An item that this many streams broke with is sent alone.
_SUSPECT_BREAKS = 2
# A stream ends after this many items, so that the load spreads over workers that came later.
_ITEMS_PER_STREAM = 1000
_CONNECT_SECONDS = 10.0


@dataclass(frozen=True)
class Item(Generic[Key]):
    """An image of a batch. `preset` and `fields` replace those of the batch."""

    #: Names the item in its result. Need not be unique.
    key: Key
    #: The image.
    image: Source
    preset: str | None = None
    fields: Mapping[str, object] = field(default_factory=dict)
    #: Shared memory of this host that the worker writes the result into, which then has no data.
    memory: wire.SharedMemory | None = None


@dataclass(frozen=True)
class BatchResult(Generic[Key]):
    """The outcome of one item: a result or an error."""

    key: Key
    result: Result | None
    #: An `ImageWorkerError`, or the error that reading the image raised.
    error: Exception | None
    #: The number of times that the image was sent.
    attempts: int

    def unwrap(self) -> Result:
        """Returns the result, or raises the error."""
        if self.result is None:
            raise self.error or RuntimeError("no result")
        return self.result


@dataclass(eq=False)
class _Entry(Generic[Key]):
    key: Key
    upload: Upload
    start: wire.BatchItemStart
    intake: Intake
    attempts: int = 0
    breaks: int = 0
    #: The workers that had no room for it, or took no images any more.
    refusals: int = 0
    not_before: float = 0
    deadline: Deadline = Deadline(None)
    collector: Collector = field(default_factory=Collector)


class _Signal:
    """Wakes all that wait."""

    def __init__(self) -> None:
        self._waiters: set[asyncio.Future[None]] = set()

    def notify(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def wait(self, seconds: float | None = None) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            if seconds is None:
                await waiter
            else:
                await asyncio.wait([waiter], timeout=seconds)
        finally:
            self._waiters.discard(waiter)


class Batch(Generic[Key]):
    """One run of `batch`."""

    def __init__(
        self, workers: Workers, preset: str, fields: Mapping[str, object], streams: int, window: int, timeout: float | None,
        auxiliary_images: Sequence[wire.AuxiliaryImage] = (),
    ) -> None:
        self.workers = workers
        self.retry = workers.retry
        self.timeout = checked(timeout)
        self.window = window
        self.changed = _Signal()
        self.lanes = [_Lane(self) for _ in range(streams)]
        self._preset, self._fields = preset, dict(fields)
        # Of items without fields of their own. A mistake in it is raised, not reported with every item.
        self._configuration = configuration(fields)
        self._auxiliary_images = auxiliary_images
        self._slots = asyncio.Semaphore(streams * window)
        self._waiting: list[_Entry[Key]] = []
        self._results: asyncio.Queue[BatchResult[Key] | None] = asyncio.Queue()
        self._unfinished = 0
        self._is_exhausted = False
        self._is_stopped = False
        self._failure: BaseException | None = None
        self._items_failure: BaseException | None = None

    async def run(self, items: AsyncIterator[Item[Key]]) -> AsyncGenerator[BatchResult[Key], None]:
        """Processes all items. Returns results as they are ready, and takes items as results are consumed."""
        work = [self._feed(items), *(lane.run() for lane in self.lanes), self._watch()]
        tasks = [asyncio.create_task(self._guard(each)) for each in work]
        try:
            while (result := await self._results.get()) is not None:
                yield result
                self._slots.release()
            if failure := self._failure or self._items_failure:
                raise failure
            # Streams are about to end; one that is cancelled instead counts as a cancelled call at its worker.
            if ending := [task for task, lane in zip(tasks[1:-1], self.lanes) if lane.is_open]:
                await asyncio.wait(ending, timeout=1)
        finally:
            self._is_stopped = True
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for entry in self._waiting:
                entry.upload.discard()

    async def _guard(self, work: Any) -> None:
        try:
            try:
                await work
            except (grpc.aio.UsageError, asyncio.CancelledError):
                # The calls of a client that was closed meanwhile.
                if not self._is_stopped:
                    self.workers.check_open()
                raise
        except Exception as error:
            self.fail(error)

    async def _feed(self, items: AsyncIterator[Item[Key]]) -> None:
        try:
            await self._take_all(items)
        except ERRORS as error:
            # It follows the outcomes of the items that were taken.
            self._items_failure = error
        self._is_exhausted = True
        self._finish_if_done()

    async def _take_all(self, items: AsyncIterator[Item[Key]]) -> None:
        await self._slots.acquire()
        async for item in items:
            self._unfinished += 1
            try:
                fields = configuration({**self._fields, **item.fields}) if item.fields else self._configuration
                preset = self._preset if item.preset is None else item.preset
                start = wire.BatchItemStart(
                    preset=preset, configuration=fields, auxiliary_images=self._auxiliary_images,
                    shared_memory=item.memory)
                upload = await Upload.create(item.image)
            except (TypeError, ValueError, OverflowError) as error:
                self._deliver(BatchResult(item.key, None, _named(item.key, error), 0))
            except Exception as error:  # of an image that Pillow cannot read
                self._deliver(BatchResult(item.key, None, error, 0))
            else:
                upload.prefetch()
                self._waiting.append(_Entry(item.key, upload, start, Intake(self.workers.max_result_bytes, start)))
            self.changed.notify()
            await self._slots.acquire()

    async def _watch(self) -> None:
        """Ends items whose timeout has passed, and streams on which nothing happens."""
        timeout = float("inf") if self.timeout is None else self.timeout
        while True:
            await asyncio.sleep(max(0.001, min(0.25, timeout / 4, self.retry.stall_after / 4)))
            for entry in [entry for entry in self._waiting if entry.deadline.has_passed()]:
                self._waiting.remove(entry)
                self.finish(entry, timed_out(timeout))
            for lane in self.lanes:
                lane.expire(timeout)

    # Items

    @property
    def is_done(self) -> bool:
        """Whether no item is left."""
        return self._is_stopped or self._failure is not None or (self._is_exhausted and self._unfinished == 0)

    @property
    def has_work(self) -> bool:
        """Whether an item waits that may be sent now."""
        now = asyncio.get_running_loop().time()
        return any(entry.not_before <= now for entry in self._waiting)

    def take(self, alone: bool) -> _Entry[Key] | None:
        """Returns the next item that may be sent. `alone`: the lane has no item in flight and may take a suspect."""
        now = asyncio.get_running_loop().time()
        for index, entry in enumerate(self._waiting):
            if entry.not_before <= now and (alone or entry.breaks < _SUSPECT_BREAKS):
                if not entry.attempts:
                    entry.deadline = Deadline(self.timeout)
                return self._waiting.pop(index)
        return None

    def next_delay(self) -> float | None:
        """The time until the next item may be sent; `None` if none waits for its time."""
        now = asyncio.get_running_loop().time()
        return min((max(0.01, entry.not_before - now) for entry in self._waiting if entry.not_before > now), default=None)

    def again(self, entry: _Entry[Key], error: ImageWorkerError, *, is_break: bool) -> None:
        """Sends an item again after an error, unless that is pointless."""
        delay = error.retry_delay
        if is_break:
            entry.breaks += 1
            delay = self.retry.delay(entry.breaks)
        else:
            entry.refusals += 1
            # Another worker may have room, or not shut down, at once.
            delay = max(delay, self.retry.delay(entry.refusals) if error.reason in EXHAUSTED else 0.0)
        is_spent = entry.breaks >= self.retry.attempts or entry.refusals >= self.retry.overload_attempts
        if not error.is_retryable or is_spent or not entry.upload.can_start:
            return self.finish(entry, error)
        entry.collector, entry.intake = Collector(), Intake(self.workers.max_result_bytes, entry.start)
        entry.not_before = asyncio.get_running_loop().time() + delay
        self._waiting.append(entry)
        self.changed.notify()

    def finish(self, entry: _Entry[Key], outcome: Result | Exception) -> None:
        """Ends an item."""
        entry.upload.discard()
        is_result = isinstance(outcome, Result)
        self._deliver(BatchResult(
            entry.key, outcome if is_result else None, None if is_result else outcome,  # type: ignore[arg-type]
            entry.attempts))

    def fail(self, error: BaseException) -> None:
        """Ends the batch."""
        self._failure = self._failure or error
        self._results.put_nowait(None)
        self.changed.notify()

    def _deliver(self, result: BatchResult[Key]) -> None:
        self._unfinished -= 1
        self._results.put_nowait(result)
        self._finish_if_done()

    def _finish_if_done(self) -> None:
        if self.is_done and self._failure is None:
            self._results.put_nowait(None)
        if self._waiting or self.is_done:  # else the lanes have nothing to do
            self.changed.notify()


def _named(key: object, error: Exception) -> Exception:
    """Returns an error of the same kind that names the item."""
    kind = next(kind for kind in (TypeError, ValueError, OverflowError) if isinstance(error, kind))
    named = kind(f"item {repr(key)[:200]}: {error}")
    named.__cause__ = error
    return named


class _Lane:
    """Keeps one stream open while there are items."""

    def __init__(self, batch: Batch[Any]) -> None:
        self._batch = batch
        self._workers = batch.workers
        self._ids = itertools.count(1)
        self._in_flight: dict[str, _Entry[Any]] = {}
        # The item whose image is read now. Its deadline ends that, and is no sign of a stream that stalls.
        self._reading: str | None = None
        self._is_closing = False
        # Why the worker takes no images any more.
        self._refusal: ImageWorkerError | None = None
        self._is_stalled = False
        self._sent = 0
        self._moved_at = 0.0
        self._failing_since: float | None = None
        # The number of streams that failed since the last success. Behind one address there may be several workers of which
        # one is lost: that streams to the others go on says nothing about the next stream of this lane.
        self._failures = 0
        self._available_at = 0.0
        self._call: Any = None

    @property
    def is_open(self) -> bool:
        """Whether a stream is open."""
        return self._call is not None

    async def run(self) -> None:
        """Opens streams until no item is left."""
        while not self._batch.is_done:
            if not self._batch.has_work:
                await self._batch.changed.wait(self._batch.next_delay())
                continue
            own_delay = self._available_at - asyncio.get_running_loop().time()
            await asyncio.sleep(max(self._workers.delay(), own_delay))
            with self._workers.use() as worker:
                if await worker.connect(_CONNECT_SECONDS):
                    await self._stream(worker)
                else:
                    self._fail(worker, lost(f"no connection to {worker.address}"))

    def expire(self, timeout: float) -> None:
        """Ends items whose timeout has passed, and the stream if it made no progress meanwhile or for long."""
        silence = asyncio.get_running_loop().time() - self._moved_at
        expired = [id for id, entry in self._in_flight.items() if entry.deadline.has_passed() and id != self._reading]
        is_stalled = bool(self._in_flight) and (silence > self._batch.retry.stall_after or bool(expired) and silence > timeout / 2)
        for id in expired:
            self._batch.finish(self._in_flight.pop(id), timed_out(timeout))
        if is_stalled and self._call is not None:
            self._is_stalled = True
            self._call.cancel()

    async def _stream(self, worker: Worker) -> None:
        self._is_closing, self._is_stalled, self._sent = False, False, 0
        self._refusal = None
        self._moved_at = asyncio.get_running_loop().time()
        self._call = worker.batch(metadata=self._workers.metadata())
        sender = asyncio.create_task(self._send(self._call))
        error: ImageWorkerError | None = None
        try:
            await self._receive(self._call, worker)
        except grpc.aio.AioRpcError as caught:
            error = from_rpc_error(caught)
        except asyncio.CancelledError:
            if not self._is_stalled:
                raise
            error = lost("the stream stalled")
        finally:
            self._call.cancel()
            sender.cancel()
            await asyncio.gather(sender, return_exceptions=True)
            self._call = None
        self._end(worker, error)

    def _end(self, worker: Worker, error: ImageWorkerError | None) -> None:
        entries = list(self._in_flight.values())
        self._in_flight.clear()
        if isinstance(error, AuthenticationError):
            return self._batch.fail(error)
        if error and not error.is_retryable:  # whatever else a worker, or a proxy, ends a stream with, another one may not
            error = lost(f"the stream ended with {error}")
        if entries or (error and not self._is_closing):
            self._fail(worker, error or lost("the stream ended before its items"))
        elif self._refusal:
            self._fail(worker, self._refusal)
        for entry in entries:
            self._batch.again(entry, error or lost("the stream ended before the item"), is_break=True)

    def _fail(self, worker: Worker, error: ImageWorkerError) -> None:
        now = asyncio.get_running_loop().time()
        self._failing_since = self._failing_since or now
        self._failures += 1
        self._available_at = now + self._batch.retry.delay(self._failures)
        self._workers.fail(worker, error.retry_delay)
        if now - self._failing_since > self._batch.retry.give_up_after:
            self._batch.fail(UnavailableError(
                f"no worker could be reached for {self._batch.retry.give_up_after:g} s; last error: {error.message}", code=error.code))

    # Sending

    async def _send(self, call: Any) -> None:
        try:
            while (entry := await self._next()) is not None:
                await self._upload(call, entry)
            await call.done_writing()
        except (grpc.aio.AioRpcError, grpc.aio.UsageError, asyncio.InvalidStateError):
            pass  # the receiver sees why
        except Exception as error:
            self._batch.fail(error)

    async def _next(self) -> _Entry[Any] | None:
        """Waits for the next item that this stream should carry; `None` if there is none."""
        while not (self._is_closing or self._batch.is_done or self._sent >= _ITEMS_PER_STREAM):
            carries_suspect = any(entry.breaks >= _SUSPECT_BREAKS for entry in self._in_flight.values())
            if len(self._in_flight) < self._batch.window and not carries_suspect:
                if entry := self._batch.take(alone=not self._in_flight):
                    return entry
            await self._batch.changed.wait(self._batch.next_delay())
        self._is_closing = True
        return None

    async def _upload(self, call: Any, entry: _Entry[Any]) -> None:
        if entry.deadline.has_passed():  # with a timeout of 0, as soon as it is taken
            return self._batch.finish(entry, entry.deadline.error)
        id = str(next(self._ids))
        entry.attempts += 1
        self._sent += 1
        if not self._in_flight:
            self._moved_at = asyncio.get_running_loop().time()
        self._in_flight[id] = entry
        is_started = False
        try:
            reader = await self._read(id, entry.upload.open(entry.deadline))
            try:
                head = await self._read(id, reader.read_exactly(WHOLE_BYTES + 1))
                request = wire.BatchProcessRequest(item_id=id, start=entry.start)
                if 0 < len(head) <= WHOLE_BYTES:
                    request.start.image = head
                    await call.write(request)
                    return
                await call.write(request)
                is_started = True
                for offset in range(0, len(head), CHUNK_BYTES):
                    await call.write(wire.BatchProcessRequest(item_id=id, chunk=head[offset:offset + CHUNK_BYTES]))
                # An item that has ended early, such as a corrupt one, needs no more of its bytes.
                while id in self._in_flight and (chunk := await self._read(id, reader.read(CHUNK_BYTES))):
                    await call.write(wire.BatchProcessRequest(item_id=id, chunk=chunk))
                    self._moved_at = asyncio.get_running_loop().time()
            finally:
                await reader.close()
        except SourceError as error:
            if self._in_flight.pop(id, None):
                cause = error.error if isinstance(error.error, Exception) else told(error.error)
                self._batch.finish(entry, _named(entry.key, cause) if isinstance(cause, TypeError) else cause)
        if is_started:
            await call.write(wire.BatchProcessRequest(item_id=id, end=wire.BatchItemEnd()))

    async def _read(self, id: str, reading: Awaitable[Value]) -> Value:
        self._reading = id
        try:
            return await reading
        finally:
            self._reading = None

    # Receiving

    async def _receive(self, call: Any, worker: Worker) -> None:
        while (response := await call.read()) is not grpc.aio.EOF:
            entry = self._in_flight.get(response.item_id)
            outcome = self._add(response, entry) if entry else None
            if entry is None or outcome is None:
                continue
            del self._in_flight[response.item_id]
            self._note(outcome, worker)
            if isinstance(outcome, ImageWorkerError):
                self._batch.again(entry, outcome, is_break=outcome.is_retryable and outcome.reason not in _NO_BREAK)
            else:
                self._batch.finish(entry, outcome)

    def _add(self, response: wire.BatchProcessResponse, entry: _Entry[Any]) -> Result | ImageWorkerError | None:
        """Returns the outcome of an item if the response ends it."""
        try:
            if not entry.intake.admits(response):
                return None
        except ImageWorkerError as error:
            return error
        self._moved_at = asyncio.get_running_loop().time()
        return entry.collector.add(response)

    def _note(self, outcome: Result | ImageWorkerError, worker: Worker) -> None:
        if isinstance(outcome, ImageWorkerError) and outcome.is_end:
            # The worker shuts down. What it has begun it will finish; the rest goes elsewhere.
            self._is_closing, self._refusal = True, outcome
            self._batch.changed.notify()
            self._workers.fail(worker, outcome.retry_delay)
        else:
            self._failing_since = None
            self._failures = 0
            self._workers.succeed(worker)


# An item that a worker refuses is not suspected to have broken it.
_NO_BREAK = EXHAUSTED | {"DRAINING"}
