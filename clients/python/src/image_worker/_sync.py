"""The client for code without asyncio. Its calls run on one event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from ._batch import BatchResult, Item
from ._client import AsyncClient
from ._errors import ImageWorkerError
from ._fork import check_fork
from ._generated import image_worker_pb2 as wire
from ._options import MAX_RESULT_BYTES, TLS, RetryPolicy
from ._requests import Overlay
from ._results import Result
from ._sources import Source
from ._tensors import TensorBatch, TensorOptions, TensorsOptions

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Self, Unpack

    from ._generated.fields import Fields

Key = TypeVar("Key")
Value = TypeVar("Value")


class Client:
    """A client of one or several workers. It may be used from several threads, and must be closed.

    No client works in a process that was forked after the first one was created: use "spawn" or "forkserver".

    - `addresses`: `"host:port"`, or several of them. Calls go to the address with the fewest open calls, and avoid those
      that failed just now.
    - `tls`: `True` or a `TLS` for an encrypted connection.
    - `token`: sent as `authorization: Bearer`, or a function that returns it for each call. Tokens are not sent without TLS,
      except to this machine.
    - `connections`: connections per address. A balancer that distributes connections needs several.
    - `retry`: when requests are sent again.
    - `affinity`: sends the same image to the same worker, whose cache may have its result, instead of the one with the fewest
      open calls; the next one serves its images while it fails. The header `x-image-key` does the same for a proxy that is set
      up for it. Not for batches.
    - `max_result_bytes`: the maximum size of a result; a larger one is a `LimitExceededError`. Default: 128 MiB.
    """

    def __init__(
        self, addresses: str | Sequence[str], *, tls: bool | TLS = False, token: str | Callable[[], str] | None = None,
        connections: int = 1, retry: RetryPolicy = RetryPolicy(), affinity: bool = False,
        max_result_bytes: int = MAX_RESULT_BYTES,
    ) -> None:
        async def create() -> AsyncClient:
            return AsyncClient(
                addresses, tls=tls, token=token, connections=connections, retry=retry, affinity=affinity,
                max_result_bytes=max_result_bytes)

        check_fork()
        self._loop = _Loop.shared()
        self._client = self._loop.run(create())
        self._is_closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes all connections and ends their calls."""
        if not self._is_closed:
            self._is_closed = True
            self._loop.run(self._client.close())

    def process(
        self, image: Source, *, preset: str = "", timeout: float | None = 60,
        auxiliary_images: Mapping[str, Overlay] = {}, **fields: Unpack[Fields],
    ) -> Result:
        """Processes one image. Raises `ImageWorkerError`.

        `timeout` is for reading the image and all attempts together, in seconds. `auxiliary_images` are the images that `overlays` name, as bytes or
        paths, which are read at once. `fields` override those of the preset; `image_worker.Fields` lists them.
        """
        return self._loop.run(self._client.process(
            image, preset=preset, timeout=timeout, auxiliary_images=auxiliary_images, **fields))

    def stream(
        self, image: Source, *, preset: str = "", timeout: float | None = 60,
        auxiliary_images: Mapping[str, Overlay] = {}, **fields: Unpack[Fields],
    ) -> Generator[wire.ImageInfo | bytes | wire.ProcessingReport, None, None]:
        """Processes one image, and returns the parts of the result as they arrive: a header, chunks, and a report.

        The call is not sent again after the first part. If it fails then, the chunks that have arrived are worthless.

        Close the iterator, or read it to its end.
        """
        return self._loop.iterate(self._client.stream(
            image, preset=preset, timeout=timeout, auxiliary_images=auxiliary_images, **fields))

    def renditions(
        self, image: Source, renditions: Mapping[str, Mapping[str, object]], *, timeout: float | None = 60,
        auxiliary_images: Mapping[str, Overlay] = {},
    ) -> dict[str, Result | ImageWorkerError]:
        """Processes one image to several results. It is uploaded and decoded once.

        Each rendition has a name, and a dictionary of fields with an optional `preset`. A rendition that fails has its error
        as value. An error of the whole image is raised.
        """
        return self._loop.run(self._client.renditions(
            image, renditions, timeout=timeout, auxiliary_images=auxiliary_images))

    def tensor(self, image: Source, **options: Unpack[TensorOptions]) -> NDArray[Any]:
        """Processes one image to an array for a model, of the shape [channels, height, width].

        Samples are as `normalize` names: 0 to 1 by default. Needs NumPy; torch.from_numpy and others take the array without a
        copy.

        - `width`, `height`: the exact size in pixels, to which images are also enlarged; without both, that of the image.
        - `dtype`: the type of the elements: "float32" (the default), "float16", "bfloat16" (with the package ml_dtypes) or
          "uint8".
        - `layout`: "chw" (the default), or "hwc" for the shape [height, width, channels].
        - `normalize`: "none" (0 to 255), "unit" (0 to 1), "half" (-1 to 1), "imagenet" or "clip"; for others, set
          `tensor={"scale": ..., "mean": [...], "standard_deviation": [...]}`.
        - `mode`: "fill" (the default) covers the size and crops the rest, "fit" pads the image (letterbox), "stretch" distorts
          it.
        - `channels`: "rgb" (the default), "bgr" or "gray".
        - `shared_memory`: whether the worker writes the array into memory that it shares with this process, instead of sending
          it. Needs a worker of the same user on this host that runs with `--shared-memory`, and `width` and `height`.
        - `preset`: if it has a `tensor`, what the options above leave unset is as it says; otherwise they are as without it.
        - `timeout`, `auxiliary_images` and fields as for `process`. For models that were trained with images that
          Pillow resized: `exact_resize=True, resampling_kernel="bicubic"`.
        """
        return self._loop.run(self._client.tensor(image, **options))

    def tensors(
        self, images: Iterable[Source | Item[Any]], **options: Unpack[TensorsOptions],
    ) -> Generator[TensorBatch, None, None]:
        """Processes many images to arrays of one size, stacked in the order of the images.

        Images are what `process` takes, or `Item`s, whose keys, such as labels, are in `TensorBatch.keys`. They are taken while
        batches are consumed, and iterated in another thread unless they are a list or a tuple. An error of `images` is raised after
        the batches of the images before it, of which the last one may have fewer.

        - `batch_size`: the number of images of a batch: 32 by default. The last one may have fewer.
        - `errors`: what becomes of an image that fails. "mask" (the default): its array is zero, `errors` has its error, and
          `mask` is false. "skip": it is left out, and the next one takes its place. "raise": its error is raised.
        - `prefetch`: the number of batches that are prepared before they are asked for, in memory: none by default. A training
          loop needs one or two, so that images are processed during its steps.
        - Others as for `tensor`, where `width` and `height` are required, and `timeout`, `streams` and `window` as for `batch`.

        Close the iterator, or read it to its end.
        """
        return self._loop.iterate(self._client.tensors(images, **options))

    def inspect(
        self, image: Source, *, preset: str = "", timeout: float | None = 60,
        auxiliary_images: Mapping[str, Overlay] = {}, **fields: Unpack[Fields],
    ) -> wire.InspectImageResponse:
        """Returns the properties of an image and of the result that the fields would give.

        The first mebibyte of the file is sent, and the rest if the worker needs it: an AVIF is inspected as a whole. With
        `facts=True` or `gain_map="keep"` the whole file is sent at once, up to the worker's `--max-message-mib`: without them, the
        gain map of a JPEG is only found if it begins in the first mebibyte, as it follows the image.
        """
        return self._loop.run(self._client.inspect(
            image, preset=preset, timeout=timeout, auxiliary_images=auxiliary_images, **fields))

    def presets(self, *, timeout: float | None = 60) -> list[wire.Preset]:
        """Returns the presets that the worker has."""
        return self._loop.run(self._client.presets(timeout=timeout))

    def batch(
        self, items: Iterable[Item[Key] | tuple[Key, Source]], *, preset: str = "", timeout: float | None = 300,
        streams: int | None = None, window: int = 8, auxiliary_images: Mapping[str, Overlay] = {},
        **fields: Unpack[Fields],
    ) -> Generator[BatchResult[Key], None, None]:
        """Processes many images, and returns their results as they are ready, in any order.

        Items are `(key, image)` or `Item`s; keys name the results. Each item has exactly one result, which contains its error
        if it failed; the others go on. Errors of a worker or a connection are retried, on other workers if there are any. If
        no worker can be reached for `RetryPolicy.give_up_after`, or none accepts the token, that error is raised. An error of
        `items` is raised after the results of the items before it.

        Items are taken while results are consumed: at most `streams * window` items are open at a time, and the memory of a
        batch is that of so many results, each of at most `max_result_bytes`.

        - `timeout`: seconds for one item, from when it is read to be sent first.
        - `streams`: the number of streams, on each of which a worker processes several images at the same time. Default: one
          for each address. Behind a balancer, use at least one for each worker.
        - `window`: items in flight on a stream. A worker processes 8 at the same time (`--max-images-per-stream`) and reads
          no further; more would only fill the buffers of proxies.
        - `auxiliary_images`: the images that the overlays of all items name, which are sent with each item.

        `items` is iterated in another thread, unless it is a list or a tuple. Close the iterator, or read it to its end.
        """
        return self._loop.iterate(self._client.batch(
            items, preset=preset, timeout=timeout, streams=streams, window=window,
            auxiliary_images=auxiliary_images, **fields))


class _Loop:
    """An event loop in a daemon thread, shared by all clients of the process."""

    _lock: ClassVar[threading.Lock] = threading.Lock()
    _shared: ClassVar[_Loop | None] = None

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._process = os.getpid()
        self._is_stopped = False
        # So that the garbage collector leaves their end to `iterate`.
        self._iterated: set[AsyncGenerator[Any, None]] = set()
        self._thread = threading.Thread(target=self._serve, name="image-worker-client", daemon=True)
        self._thread.start()
        atexit.register(self._stop)

    def _serve(self) -> None:
        while True:
            try:
                return self._loop.run_forever()
            except (SystemExit, KeyboardInterrupt):
                # What an image or an iterable raised also ends the loop. The task has the error, for its caller.
                continue

    def _stop(self) -> None:
        # Before the interpreter freezes the thread, as gRPC waits for it when its last object goes.
        self._is_stopped = True
        if self._process == os.getpid():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(timeout=2)

    @classmethod
    def shared(cls) -> _Loop:
        with cls._lock:
            if cls._shared is None or cls._shared._process != os.getpid():
                cls._shared = cls()
            return cls._shared

    def run(self, work: Coroutine[Any, Any, Value]) -> Value:
        try:
            check_fork()
            if self._is_stopped:
                raise RuntimeError("a client does not work while the interpreter exits")
        except RuntimeError:
            work.close()
            raise
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:  # such as KeyboardInterrupt
            future.cancel()
            raise

    def iterate(self, values: AsyncGenerator[Value, None]) -> Generator[Value, None, None]:
        following: asyncio.Task[Any] | None = None

        async def follow() -> tuple[Value] | None:
            nonlocal following
            following = asyncio.current_task()
            # StopAsyncIteration cannot pass through a future.
            try:
                return (await anext(values),)
            except StopAsyncIteration:
                return None

        async def close() -> None:
            if following:  # It may not have ended, after KeyboardInterrupt.
                await asyncio.gather(following, return_exceptions=True)
            await values.aclose()
            self._iterated.discard(values)

        self._iterated.add(values)
        try:
            while (value := self.run(follow())) is not None:
                yield value[0]
        finally:
            if threading.current_thread() is self._thread:
                # The garbage collector found an abandoned iterator in this thread, which cannot wait for itself.
                asyncio.run_coroutine_threadsafe(close(), self._loop)
            elif not self._is_stopped:
                # A traceback can keep an iterator until the interpreter exits; nothing is left to close then.
                self.run(close())
