"""Batches: every item ends once, whatever happens to workers, streams and items."""

import asyncio
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from fake import Break, FakeWorker, status
from image_worker import (
    AsyncClient, AuthenticationError, Client, DeadlineError, ImageError, ImageWorkerError, InvalidRequestError, Item,
    OverloadedError, RetryPolicy, UnavailableError)
from image_worker._errors import from_status
from image_worker._generated import image_worker_pb2 as wire

QUICK = RetryPolicy(initial_delay=0.01, max_delay=0.05, give_up_after=1)


def images(count: int) -> list[tuple[int, bytes]]:
    return [(number, b"image %d" % number) for number in range(count)]


def check(results: list[object], count: int) -> None:
    """Every item ended once, with its own result."""
    assert Counter(result.key for result in results) == Counter(range(count))  # type: ignore[attr-defined]
    for result in results:
        assert result.unwrap().data == (b"image %d" % result.key)[::-1]  # type: ignore[attr-defined]


@pytest.mark.parametrize("streams, window", [(1, 1), (1, 16), (3, 4)])
def test_every_item_ends_once(streams: int, window: int) -> None:
    with FakeWorker() as worker, Client(worker.address) as client:
        check(list(client.batch(images(200), streams=streams, window=window)), 200)
        assert set(worker.seen.values()) == {1}
        assert list(client.batch([])) == []


def test_a_long_batch_uses_several_streams() -> None:
    with FakeWorker() as worker, Client(worker.address) as client:
        check(list(client.batch(images(2500))), 2500)
        assert [request.item_id for request in worker.requests].count("1001") == 1


def test_a_batch_that_ends_waits_for_the_status_of_its_streams() -> None:
    """One that is cancelled instead counts as a cancelled call at its worker."""
    class Slow(FakeWorker):
        def _batch(self, requests: Iterator[wire.BatchProcessRequest], context: Any) -> Iterator[wire.BatchProcessResponse]:
            yield from super()._batch(requests, context)
            time.sleep(0.2)
            active.append(context.is_active())
            ended.set()

    active: list[bool] = []
    ended = threading.Event()
    with Slow() as worker, Client(worker.address) as client:
        check(list(client.batch(images(3), streams=1)), 3)
        assert ended.wait(10)
    assert active == [True]


def test_streams_that_break_lose_no_item() -> None:
    lock, received, broken = threading.Lock(), [0], [0]

    def behavior(image: bytes, time: int) -> None:
        with lock:
            received[0] += 1
            if received[0] % 17 == 0:
                broken[0] += 1
                raise Break

    with FakeWorker(behavior) as worker, Client(worker.address, retry=QUICK) as client:
        check(list(client.batch(images(400), streams=2, window=4)), 400)
    assert broken[0] >= 400 // 17


def test_items_outlive_a_proxy_that_refuses_some_streams_for_a_while() -> None:
    """It sends streams to a worker that is gone, until it finds out; those to the others go on meanwhile."""
    class Proxy(FakeWorker):
        opened, refused, first = 0, 0, 0.0

        def _batch(self, requests: Iterator[wire.BatchProcessRequest], context: Any) -> Iterator[wire.BatchProcessResponse]:
            self.opened += 1
            if self.opened > 2 and (not self.refused or time.monotonic() < self.first + 1):
                self.first = self.first or time.monotonic()
                self.refused += 1
                context.abort(grpc.StatusCode.UNAVAILABLE, "Received http2 header with status: 503")
            return super()._batch(requests, context)

    def behavior(image: bytes, times: int) -> None:
        time.sleep(0.005)

    proxy = Proxy(behavior)
    with proxy, Client(proxy.address) as client:
        check(list(client.batch(images(800), streams=4, window=4)), 800)
        assert 0 < proxy.refused < 20 and proxy.opened >= 5


def test_an_image_that_breaks_streams_takes_no_other_with_it() -> None:
    def behavior(image: bytes, time: int) -> None:
        if b"poison" in image:
            raise Break

    items = images(60)
    items[7] = (7, b"poison")
    with FakeWorker(behavior) as worker, Client(worker.address, retry=QUICK) as client:
        outcomes = {result.key: result for result in client.batch(items, window=8)}
        assert worker.seen[b"poison"] == QUICK.attempts == outcomes[7].attempts
    assert isinstance(outcomes[7].error, UnavailableError) and len(outcomes) == 60
    assert all(outcomes[key].error is None for key in range(60) if key != 7)


@pytest.mark.parametrize("reason", ["OVERLOADED", "QUOTA_EXCEEDED"])
def test_items_that_find_no_room_come_again_after_the_delay(reason: str) -> None:
    full = status(grpc.StatusCode.RESOURCE_EXHAUSTED, reason, retry=0.05)
    with FakeWorker(lambda image, time: full if time < 3 else None) as worker, Client(worker.address, retry=QUICK) as client:
        check(list(client.batch(images(40))), 40)
        assert set(worker.seen.values()) == {3}
    never = RetryPolicy(initial_delay=0.01, overload_attempts=2)
    with FakeWorker(lambda image, time: full) as worker, Client(worker.address, retry=never) as client:
        assert [type(result.error) for result in client.batch(images(3))] == [OverloadedError] * 3


def test_a_quota_of_an_hour_is_not_waited_for() -> None:
    spent = status(grpc.StatusCode.RESOURCE_EXHAUSTED, "QUOTA_EXCEEDED", retry=3000)
    with FakeWorker(lambda image, time: spent) as worker, Client(worker.address, retry=QUICK) as client:
        errors = [result.error for result in client.batch(images(3))]
        assert [error.retry_after for error in errors if isinstance(error, ImageWorkerError)] == [3000.0] * 3
        assert set(worker.seen.values()) == {1}


def test_the_items_of_a_worker_that_shuts_down_go_to_others() -> None:
    draining = status(grpc.StatusCode.UNAVAILABLE, "DRAINING", retry=0.1)
    with FakeWorker(lambda image, time: draining) as leaving, FakeWorker() as other:
        with Client([leaving.address, other.address], retry=QUICK) as client:
            check(list(client.batch(images(100))), 100)
        assert set(other.seen.values()) == {1}


def test_workers_that_nobody_reaches_end_the_batch() -> None:
    with FakeWorker() as worker:
        pass
    with Client(worker.address, retry=QUICK) as client:
        began = time.monotonic()
        with pytest.raises(UnavailableError, match="no worker could be reached for 1 s"):
            list(client.batch(images(5)))
        assert 0.9 < time.monotonic() - began < 20


def test_errors_of_items_are_theirs_alone(tmp_path: Path) -> None:
    def broken() -> Iterator[bytes]:
        yield bytes(2 << 20)
        raise KeyError("gone")

    corrupt = status(grpc.StatusCode.INVALID_ARGUMENT, "CORRUPT_IMAGE")
    items: list[Item[int]] = [
        Item(0, b"image 0"), Item(1, tmp_path / "missing"), Item(2, broken()), Item(3, b"corrupt"),
        Item(4, b"image 4", fields={"max_widht": 1}), Item(5, b"image 5", preset="favicon", fields={"max_height": 9})]
    with FakeWorker(lambda image, time: corrupt if image == b"corrupt" else None) as worker:
        with Client(worker.address, retry=QUICK) as client:
            outcomes = {result.key: result.error for result in client.batch(items, preset="upload", max_width=8)}
        start = next(request.start for request in worker.requests if request.start.image == b"image 5")
        assert (start.preset, start.configuration.max_width, start.configuration.max_height) == ("favicon", 8, 9)
    kinds = [type(outcomes[key]) for key in range(6)]
    assert kinds == [type(None), FileNotFoundError, KeyError, ImageError, TypeError, type(None)]


def test_a_result_without_bytes_is_a_result() -> None:
    with FakeWorker() as worker, Client(worker.address) as client:
        assert client.process(b"").data == b""
        assert {result.key: result.unwrap().data for result in client.batch([(0, b""), (1, b"a")])} == {0: b"", 1: b"a"}


def test_a_mistake_in_the_fields_of_the_batch_is_raised() -> None:
    with FakeWorker() as worker, Client(worker.address) as client:
        with pytest.raises(TypeError, match="max_widht"):
            list(client.batch(images(2), max_widht=1))  # type: ignore[call-arg]
        with pytest.raises(ValueError, match="at least 1"):
            list(client.batch(images(2), window=0))


@pytest.mark.parametrize("window", [4, 64])
def test_an_error_of_the_callers_iterator_follows_the_outcomes(window: int) -> None:
    def items() -> Iterator[tuple[int, bytes]]:
        yield from images(30)
        raise KeyError("no more")

    # The last items are in flight or wait when the iterator fails.
    results: list[object] = []
    with FakeWorker(lambda image, times: time.sleep(0.01)) as worker, Client(worker.address) as client:
        with pytest.raises(KeyError, match="no more"):
            for result in client.batch(items(), window=window):
                results.append(result)
    check(results, 30)


def test_a_stream_that_is_refused_ends_the_batch() -> None:
    class Refusing(FakeWorker):
        def _batch(self, requests, context):  # type: ignore[no-untyped-def]
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "no token")

    with Refusing() as worker, Client(worker.address, retry=QUICK) as client, pytest.raises(AuthenticationError):
        list(client.batch(images(5)))


def test_items_are_taken_as_results_are_consumed() -> None:
    taken = [0]

    def items() -> Iterator[tuple[int, bytes]]:
        for item in images(500):
            taken[0] += 1
            yield item

    with FakeWorker() as worker, Client(worker.address) as client:
        results = client.batch(items(), streams=2, window=5)
        for consumed in range(1, 50):
            next(results)
            time.sleep(0.002)
            assert taken[0] <= consumed + 2 * 5
        time.sleep(0.3)
        assert taken[0] <= 49 + 2 * 5
        results.close()


def test_a_program_that_fails_in_the_middle_of_a_batch_exits() -> None:
    program = """if True:
        import sys
        from image_worker import Client
        with Client(sys.argv[1]) as client:
            items = ((number, b"image") for number in range(500))
            keys = [1 / (250 - result.key) for result in client.batch(items)]
        """
    with FakeWorker() as worker:
        done = subprocess.run(
            [sys.executable, "-c", program, worker.address], stderr=subprocess.PIPE, text=True, timeout=120)
    assert done.returncode == 1 and "ZeroDivisionError" in done.stderr
    assert "Exception ignored" not in done.stderr


def test_an_item_that_takes_too_long_ends_and_the_others_go_on() -> None:
    ended = threading.Event()

    def behavior(image: bytes, times: int) -> None:
        if image == b"image 3" and times == 1:
            ended.wait(60)

    with FakeWorker(behavior) as worker, Client(worker.address, retry=QUICK) as client:
        outcomes = {result.key: result.error for result in client.batch(images(30), timeout=3, window=1)}
        ended.set()
    assert isinstance(outcomes.pop(3), DeadlineError) and len(outcomes) == 29
    assert set(outcomes.values()) == {None}


def test_a_stream_on_which_nothing_happens_is_replaced() -> None:
    ended = threading.Event()

    def behavior(image: bytes, times: int) -> None:
        if image == b"image 3" and times == 1:
            ended.wait(60)

    impatient = RetryPolicy(initial_delay=0.01, max_delay=0.05, stall_after=0.5)
    with FakeWorker(behavior) as worker, Client(worker.address, retry=impatient) as client:
        began = time.monotonic()
        check(list(client.batch(images(30), window=4, timeout=None)), 30)
        assert worker.seen[b"image 3"] >= 2 and time.monotonic() - began < 40
        ended.set()


def test_a_stream_of_bytes_is_sent_once() -> None:
    def behavior(image: bytes, time: int) -> None:
        raise Break

    with FakeWorker(behavior) as worker, Client(worker.address, retry=QUICK) as client:
        outcome = next(client.batch([(0, iter([b"image"]))]))
        assert isinstance(outcome.error, UnavailableError) and worker.seen[b"image"] == 1


def test_asyncio() -> None:
    async def items() -> AsyncIterator[tuple[int, bytes]]:
        for item in images(50):
            await asyncio.sleep(0)
            yield item

    async def main(address: str) -> None:
        async with AsyncClient(address) as client:
            check([result async for result in client.batch(items(), streams=2)], 50)
            results = client.batch(images(10_000))
            assert (await anext(results)).error is None
            await results.aclose()
            with pytest.raises(InvalidRequestError):
                answer = [result async for result in client.batch([(0, b"bad")])]
                answer[0].unwrap()
        # gRPC's own tasks end a little later.
        for _ in range(200):
            if len(asyncio.all_tasks()) > 1:
                await asyncio.sleep(0.05)
        assert len(asyncio.all_tasks()) == 1

    invalid = status(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELD")
    with FakeWorker(lambda image, time: invalid if image == b"bad" else None) as worker:
        asyncio.run(main(worker.address))


@pytest.mark.parametrize("item, text", [
    ("a.jpg", r"items\[1\]: an item is .* not a str; for a path, write"),
    (Path("a.jpg"), "not a PosixPath"), ((1, b"image", 3), "not a tuple of 3"), (b"12", "bytes")])
def test_what_is_no_item_is_explained(item: Any, text: str) -> None:
    with FakeWorker() as worker, Client(worker.address) as client, pytest.raises(TypeError, match=text):
        list(client.batch([(0, b"image"), item]))


def test_an_abandoned_batch_holds_nothing_up() -> None:
    """The garbage collector may close its iterator in the thread of the event loop, which must not wait for itself."""
    program = """if True:
        import gc, sys
        from image_worker import Client
        from image_worker._sync import _Loop
        with Client(sys.argv[1]) as client:
            for count in range(3):
                results = client.batch((number, b"image") for number in range(500))
                next(results)
                cycle = [results]
                cycle.append(cycle)
                del results, cycle
                _Loop.shared()._loop.call_soon_threadsafe(gc.collect)
                assert client.process(b"image").data == b"egami"
        """
    with FakeWorker() as worker:
        done = subprocess.run([sys.executable, "-c", program, worker.address], stderr=subprocess.PIPE, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_batch_can_be_interrupted() -> None:
    program = """if True:
        import os, signal, sys, threading
        from image_worker import Client
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
        with Client(sys.argv[1]) as client:
            results = client.batch([(number, b"%d" % number) for number in range(50)])
            threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
            try:
                for result in results:
                    pass
            except KeyboardInterrupt:
                print("interrupted")
        """
    with FakeWorker(lambda image, times: time.sleep(1)) as worker:
        done = subprocess.run(
            [sys.executable, "-c", program, worker.address], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n", "")


@pytest.mark.parametrize("code", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INTERNAL])
def test_a_worker_that_drains_for_ever_ends_the_batch(code: grpc.StatusCode) -> None:
    retry = RetryPolicy(initial_delay=0.05, max_delay=0.1, give_up_after=1)
    with FakeWorker(lambda image, time: status(code, "DRAINING")) as worker, Client(worker.address, retry=retry) as client:
        with pytest.raises(UnavailableError, match="no worker could be reached"):
            list(client.batch([(number, b"image") for number in range(3)]))
        assert worker.seen[b"image"] < 300


def test_a_delay_of_a_day_is_not_waited_for() -> None:
    error = from_status(status(grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED", 86_400))
    assert error.retry_after == 86_400 and error.retry_delay == 60


class BrokenWorker(FakeWorker):
    """Ends each stream with a code."""

    code = grpc.StatusCode.UNIMPLEMENTED

    def _batch(self, requests: Iterator[wire.BatchProcessRequest], context: Any) -> Iterator[wire.BatchProcessResponse]:
        next(requests)
        context.abort(self.code, "it does not want to")
        yield wire.BatchProcessResponse()


@pytest.mark.parametrize("code", [
    grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.UNIMPLEMENTED])
def test_a_broken_worker_ends_no_batch_that_another_one_serves(code: grpc.StatusCode) -> None:
    retry = RetryPolicy(initial_delay=0.05, max_delay=0.1)
    broken = BrokenWorker()
    broken.code = code
    with FakeWorker() as worker, broken:
        with Client([worker.address, broken.address], retry=retry) as client:
            results = list(client.batch([(number, b"image") for number in range(30)]))
            assert len(results) == 30 and all(result.unwrap().data == b"egami" for result in results)
