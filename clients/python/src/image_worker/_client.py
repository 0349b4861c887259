"""The client for asyncio."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import grpc

from ._addresses import check, is_local
from ._batch import Batch, BatchResult, Item
from ._deadline import Deadline, checked
from ._errors import ImageError, ImageWorkerError, from_rpc_error, from_status, lost, stalled
from ._generated import image_worker_pb2 as wire
from ._iteration import iterate, prefetched
from ._options import MAX_RESULT_BYTES, TLS, RetryPolicy
from ._requests import Overlay, auxiliary_images as auxiliary_images_of, configuration, renditions as renditions_of
from ._results import Collector, Intake, Part, Result
from ._shared_memory import Segments
from ._sources import CHUNK_BYTES, WHOLE_BYTES, Reader, Source, SourceError, Upload
from ._stall import StallTimer
from ._tensors import SharedRows, Stack, TensorBatch, TensorOptions, TensorsOptions, array_of, form_of, preset_of_tensors, tensor_fields, tensor_fields_beside
from ._workers import Worker, Workers, image_key

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Self, Unpack

    from ._generated.fields import Fields

# Every worker refuses a message of this size, with its limit.
_MESSAGE_BYTES = 1 << 30
# For how long the presets of arrays of single images are known.
_PRESET_SECONDS = 60.0

Key = TypeVar("Key")
Value = TypeVar("Value")


class AsyncClient:
    """A client of one or several workers, for asyncio. Create it where an event loop runs, and close it there.

    Its parameters and methods are those of `Client`, which describes them.
    """

    def __init__(
        self, addresses: str | Sequence[str], *, tls: bool | TLS = False, token: str | Callable[[], str] | None = None,
        connections: int = 1, retry: RetryPolicy = RetryPolicy(), affinity: bool = False,
        max_result_bytes: int = MAX_RESULT_BYTES,
    ) -> None:
        listed = [addresses] if isinstance(addresses, str) else list(addresses)
        if not listed or connections < 1:
            raise ValueError("a client needs at least one address and one connection")
        if max_result_bytes < 1:
            raise ValueError(f"max_result_bytes is {max_result_bytes}; it must be at least 1")
        for address in listed:
            check(address)
        if token is not None and not tls and not all(is_local(address) for address in listed):
            raise ValueError("token needs tls; without it, anyone on the network path could read it")
        certificates = TLS() if tls is True else (tls or None)
        self._workers = Workers(listed, certificates, token, connections, retry, affinity, max_result_bytes)
        self._segments = Segments()
        # Those of arrays of single images, and until when they are known.
        self._presets: dict[str, tuple[wire.ProcessingConfiguration | None, float]] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes all connections and ends their calls."""
        await self._workers.close()
        self._segments.close()

    async def process(
        self, image: Source, *, preset: str = "", timeout: float | None = 60,
        auxiliary_images: Mapping[str, Overlay] = {}, **fields: Unpack[Fields],
    ) -> Result:
        """Processes one image, as `Client.process` describes. Raises `ImageWorkerError`."""
        return await self._result(image, preset, timeout, fields, auxiliary_images)

    async def stream(
        self, image: Source, *, preset: str = "", timeout: float | None = 60,
        auxiliary_images: Mapping[str, Overlay] = {}, **fields: Unpack[Fields],
    ) -> AsyncGenerator[wire.ImageInfo | bytes | wire.ProcessingReport, None]:
        """Processes one image, and returns the parts of the result as they arrive, as `Client.stream` describes."""
        async with aclosing(self._parts(image, preset, timeout, configuration(fields), (), auxiliary_images)) as parts:
            async for part in parts:
                kind = part.WhichOneof("part")
                if kind == "error":
                    raise from_status(part.error)
                if kind is not None:
                    yield getattr(part, kind)

    async def renditions(
        self, image: Source, renditions: Mapping[str, Mapping[str, object]], *, timeout: float | None = 60,
        auxiliary_images: Mapping[str, Overlay] = {},
    ) -> dict[str, Result | ImageWorkerError]:
        """Processes one image to several results, as `Client.renditions` describes."""
        outcomes: dict[str, Result | ImageWorkerError] = {}
        collectors = {name: Collector() for name in renditions}
        async with aclosing(self._parts(image, "", timeout, None, renditions_of(renditions), auxiliary_images)) as parts:
            async for part in parts:
                if part.rendition_id not in collectors:
                    raise from_status(part.error)
                if (outcome := collectors[part.rendition_id].add(part)) is not None:
                    outcomes[part.rendition_id] = outcome
                if len(outcomes) == len(collectors):
                    return outcomes
        raise lost("the stream ended before all results")

    async def tensor(self, image: Source, **options: Unpack[TensorOptions]) -> NDArray[Any]:
        """Processes one image to an array for a model, as `Client.tensor` describes."""
        preset, timeout, is_shared = options.pop("preset", ""), options.pop("timeout", 60), options.pop("shared_memory", False)
        auxiliary_images = options.pop("auxiliary_images", {})
        known, expiry = self._presets.get(preset, (None, 0.0))
        if time.monotonic() >= expiry:
            known = await self._preset(preset, timeout)
            self._presets[preset] = known, time.monotonic() + _PRESET_SECONDS
        fields = tensor_fields(known, **options)
        if not is_shared:
            return array_of(await self._result(image, preset, timeout, fields, auxiliary_images))
        # Of each attempt, as the worker of a former one may still write.
        attempts: list[SharedRows] = []

        def place() -> wire.SharedMemory:
            attempts.append(SharedRows(1, shape, elements, self._segments))
            return attempts[-1].place(0)

        shape, elements = form_of(options, fields, known)
        is_written = False
        try:
            result = await self._result(image, preset, timeout, fields, auxiliary_images, place)
            attempts[-1].fill(0, result)
            is_written = True
        finally:
            for rows in attempts:
                if is_written and rows is attempts[-1]:
                    rows.give()
                else:
                    rows.hide()
        return attempts[-1].array[0]

    async def tensors(
        self, images: Iterable[Source | Item[Any]] | AsyncIterable[Source | Item[Any]], **options: Unpack[TensorsOptions],
    ) -> AsyncGenerator[TensorBatch, None]:
        """Processes many images to arrays of one size, stacked in the order of the images, as `Client.tensors` describes."""
        size, errors, prefetch = options.pop("batch_size", 32), options.pop("errors", "mask"), options.pop("prefetch", 0)
        preset, timeout, is_shared = options.pop("preset", ""), options.pop("timeout", 300), options.pop("shared_memory", False)
        streams, window = options.pop("streams", None), options.pop("window", 8)
        auxiliary_images = options.pop("auxiliary_images", {})
        known = await self._preset(preset, timeout)
        fields = tensor_fields(known, **options)
        ahead = max(1, window) * (streams or len(self._workers.all))
        segments = self._segments if is_shared else None
        others = tensor_fields_beside(known, options) if known is not None else {}
        stack = Stack(size, ahead, *form_of(options, fields, known), errors, segments, others)
        results = self.batch(
            stack.numbered(images), preset=preset, timeout=timeout, streams=streams, window=window,
            auxiliary_images=auxiliary_images, **fields)
        async with (
            aclosing(results), aclosing(stack), aclosing(stack.batches(results)) as stacked, aclosing(prefetched(stacked, prefetch)) as batches,
        ):
            async for batch in batches:
                yield batch

    async def inspect(
        self, image: Source, *, preset: str = "", timeout: float | None = 60,
        auxiliary_images: Mapping[str, Overlay] = {}, **fields: Unpack[Fields],
    ) -> wire.InspectImageResponse:
        """Returns the properties of an image and of its result, as `Client.inspect` describes."""
        retries = _Retries(self._workers, timeout)
        try:
            upload = await Upload.create(image, retries.deadline)
            request = wire.InspectImageRequest(
                preset=preset, configuration=configuration(fields),
                auxiliary_images=await auxiliary_images_of(auxiliary_images, retries.deadline))
            reader = await upload.open(retries.deadline)
            try:
                return await self._inspect(request, reader, retries)
            finally:
                await reader.close()
        except SourceError as error:
            raise error.error from None

    async def presets(self, *, timeout: float | None = 60) -> list[wire.Preset]:
        """Returns the presets that the worker has."""
        answer: wire.ListPresetsResponse = await self._call(
            lambda worker: worker.presets, wire.ListPresetsRequest(), _Retries(self._workers, timeout))
        return list(answer.presets)

    async def batch(
        self, items: Iterable[Item[Key] | tuple[Key, Source]] | AsyncIterable[Item[Key] | tuple[Key, Source]], *,
        preset: str = "", timeout: float | None = 300, streams: int | None = None, window: int = 8,
        auxiliary_images: Mapping[str, Overlay] = {}, **fields: Unpack[Fields],
    ) -> AsyncGenerator[BatchResult[Key], None]:
        """Processes many images, and returns their results as they are ready, as `Client.batch` describes."""
        if window < 1 or (streams is not None and streams < 1):
            raise ValueError("streams and window must be at least 1")
        self._workers.check_open()
        batch: Batch[Key] = Batch(
            self._workers, preset, fields, streams or len(self._workers.all), window, timeout,
            await auxiliary_images_of(auxiliary_images, Deadline(timeout)))
        async with aclosing(iterate(items)) as source, aclosing(batch.run(_items(source))) as results:
            async for result in results:
                yield result

    async def _preset(self, name: str, timeout: float | None) -> wire.ProcessingConfiguration | None:
        return preset_of_tensors(await self.presets(timeout=timeout), name) if name else None

    # One call

    async def _inspect(
        self, request: wire.InspectImageRequest, reader: Reader, retries: _Retries,
    ) -> wire.InspectImageResponse:
        # Facts are those of all rows, and the gain map of a JPEG follows its image.
        needs_all = request.configuration.facts or request.configuration.gain_map == wire.GAIN_MAP_KEEP
        request.image = await reader.read_exactly(_MESSAGE_BYTES if needs_all else WHOLE_BYTES)
        inspection: wire.InspectImageResponse
        try:
            inspection = await self._call(lambda worker: worker.inspect, request, retries)
        except ImageError as error:
            # An AVIF is inspected as a whole, and a preset may have facts.
            if error.reason != "TRUNCATED_IMAGE" or not (rest := await reader.read_exactly(_MESSAGE_BYTES)):
                raise
            request.image += rest
            inspection = await self._call(lambda worker: worker.inspect, request, retries)
        return inspection

    async def _result(
        self, image: Source, preset: str, timeout: float | None, fields: Mapping[str, object],
        auxiliary_images: Mapping[str, Overlay] = {}, memory: Callable[[], wire.SharedMemory] | None = None,
    ) -> Result:
        parts_ = self._parts(image, preset, timeout, configuration(fields), (), auxiliary_images, memory)
        async with aclosing(parts_) as parts:
            collector = Collector()
            async for part in parts:
                if (result := collector.add(part)) is not None:
                    return _unwrap(result)
        raise lost("the stream ended before the result")

    async def _parts(
        self, image: Source, preset: str, timeout: float | None, fields: wire.ProcessingConfiguration | None,
        renditions: Sequence[wire.Rendition] = (), auxiliary_images: Mapping[str, Overlay] = {},
        memory: Callable[[], wire.SharedMemory] | None = None,
    ) -> AsyncGenerator[Part, None]:
        """The parts of the result, of the first attempt that gives any."""
        retries = _Retries(self._workers, timeout)
        upload = await Upload.create(image, retries.deadline)
        start = wire.BatchItemStart(
            preset=preset, configuration=fields, renditions=renditions,
            auxiliary_images=await auxiliary_images_of(auxiliary_images, retries.deadline))
        while True:
            is_begun = False
            if memory:
                start.shared_memory.CopyFrom(memory())
            try:
                reader = await upload.open(retries.deadline)
                try:
                    head = await reader.read_exactly(WHOLE_BYTES + 1)
                    key = image_key(head) if self._workers.affinity else None
                    with self._workers.use(key) as worker:
                        attempt = self._attempt(worker, head, reader, key, retries.deadline.left(), start)
                        async with aclosing(attempt) as parts:
                            async for part in parts:
                                is_begun = True
                                yield part
                        self._workers.succeed(worker)
                        return
                finally:
                    await reader.close()
            except SourceError as error:
                raise error.error from None
            except (grpc.aio.AioRpcError, ImageWorkerError) as caught:
                error_ = retries.error(caught)
                if is_begun or not upload.can_start:
                    raise error_ from None
            await retries.wait(worker, error_)

    async def _attempt(
        self, worker: Worker, head: bytes, reader: Reader, key: str | None, timeout: float | None,
        start: wire.BatchItemStart,
    ) -> AsyncGenerator[Part, None]:
        options = {"timeout": timeout, "metadata": self._workers.metadata(key)}
        is_whole = len(head) <= WHOLE_BYTES
        call = worker.batch(**options) if not is_whole else worker.process(
            wire.ProcessImageRequest(
                image=head, preset=start.preset, renditions=start.renditions, auxiliary_images=start.auxiliary_images,
                configuration=start.configuration if start.HasField("configuration") else None,
                shared_memory=start.shared_memory if start.HasField("shared_memory") else None), **options)
        timer = StallTimer(call, self._workers.retry.stall_after)
        intake = Intake(self._workers.max_result_bytes, start)
        sender = None if is_whole else asyncio.create_task(_send(call, start, head, reader, timer))
        try:
            timer.start()
            while (response := await call.read()) is not grpc.aio.EOF:
                if not is_whole and response.WhichOneof("part") == "error" and not response.rendition_id:
                    raise from_status(response.error)  # as the call itself ends with the error of a whole image
                if intake.admits(response):
                    timer.stop()
                    yield response
                    timer.start()
        except asyncio.CancelledError:
            if timer.has_expired:
                raise timer.error from None
            self._workers.check_open()
            if not sender or not sender.done() or sender.cancelled() or not sender.exception():
                raise
        finally:
            timer.stop()
            call.cancel()
            if sender:
                sender.cancel()
                await asyncio.gather(sender, return_exceptions=True)
        if sender and not sender.cancelled() and isinstance(error := sender.exception(), SourceError):
            raise error

    async def _call(self, method: Callable[[Worker], Any], request: Any, retries: _Retries) -> Any:
        while True:
            with self._workers.use() as worker:
                left, stall_after = retries.deadline.left() or math.inf, self._workers.retry.stall_after
                try:
                    answer = await method(worker)(
                        request, timeout=checked(min(left, stall_after)), metadata=self._workers.metadata())
                    self._workers.succeed(worker)
                    return answer
                except grpc.aio.AioRpcError as caught:
                    error = retries.error(caught)
                    if stall_after < left and error.code is grpc.StatusCode.DEADLINE_EXCEEDED and not error.reason:
                        error = stalled(stall_after)
            await retries.wait(worker, error)


class _Retries:
    """The attempts of one call."""

    def __init__(self, workers: Workers, timeout: float | None) -> None:
        self.deadline = Deadline(timeout)
        self._workers = workers
        self._failures = 0

    def error(self, error: grpc.aio.AioRpcError | ImageWorkerError) -> ImageWorkerError:
        """The error of an attempt. At the deadline, gRPC may end a call with another code."""
        known = error if isinstance(error, ImageWorkerError) else from_rpc_error(error)
        return self.deadline.error if self.deadline.has_passed() and known.is_lost else known

    async def wait(self, worker: Worker, error: ImageWorkerError) -> None:
        """Waits before the next attempt. Raises the error if there is none."""
        self._failures += 1
        if not error.is_retryable or self._failures >= self._workers.retry.attempts:
            raise error
        self._workers.fail(worker, error.retry_after)
        # Another address may be tried at once, but when that fails too, the success of other calls says nothing about this one.
        own_delay = self._workers.retry.delay(self._failures - 1) if self._failures > 1 else 0.0
        delay = max(self._workers.delay(), own_delay)
        if self.deadline.has_passed(after=delay):
            raise error
        await asyncio.sleep(delay)


async def _send(call: Any, start: wire.BatchItemStart, head: bytes, reader: Reader, timer: StallTimer) -> None:
    try:
        await call.write(wire.BatchProcessRequest(item_id="1", start=start))
        for offset in range(0, len(head), CHUNK_BYTES):
            await call.write(wire.BatchProcessRequest(item_id="1", chunk=head[offset:offset + CHUNK_BYTES]))
        while chunk := await reader.read(CHUNK_BYTES):
            await call.write(wire.BatchProcessRequest(item_id="1", chunk=chunk))
            timer.note()
        await call.write(wire.BatchProcessRequest(item_id="1", end=wire.BatchItemEnd()))
        await call.done_writing()
    except SourceError:
        call.cancel()
        raise
    except (grpc.aio.AioRpcError, grpc.aio.UsageError, asyncio.InvalidStateError):
        pass  # the reader of the call sees why


async def _items(source: AsyncIterator[Item[Key] | tuple[Key, Source]]) -> AsyncIterator[Item[Key]]:
    number = 0
    async for item in source:
        if not isinstance(item, Item) and not (isinstance(item, (tuple, list)) and len(item) == 2):
            raise TypeError(
                f"items[{number}]: an item is a pair of a key and an image, or an Item, not {_shown(item)}; for a path, write "
                "(path, path)")
        yield item if isinstance(item, Item) else Item(item[0], item[1])
        number += 1


def _shown(value: object) -> str:
    size = f" of {len(value)}" if isinstance(value, (tuple, list)) else ""
    return f"a {type(value).__name__}{size}"


def _unwrap(outcome: Result | ImageWorkerError) -> Result:
    if isinstance(outcome, ImageWorkerError):
        raise outcome
    return outcome
