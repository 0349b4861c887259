"""Tests of clients that ask for more than the worker can do: others are served, and refusals come early and with a delay."""

import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO

import grpc
import pytest
from conftest import UNLIMITED, Client, Worker, fixture_bytes
from google.rpc import error_details_pb2, status_pb2
from PIL import Image

# About half a second of work that begins no result before its end is near.
LARGE = {"max_width": 1500, "preferred_format": 3, "always_encode": True, "allow_upscale": True}


@pytest.fixture(scope="module")
def photo():
    buffer = BytesIO()
    Image.open(BytesIO(fixture_bytes("photo-420.jpg"))).resize((5000, 3500)).save(buffer, "JPEG", quality=90)
    return buffer.getvalue()


def overloaded(*options: str) -> Worker:
    return Worker("--cache-memory-mib", "0", "--threads", "1", *options)


def own_client(worker: Worker, like: Client | None = None) -> Client:
    channel = grpc.insecure_channel(
        worker.address, options=[*UNLIMITED, ("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)])
    client = Client(worker, channel)
    client.pool = like.pool if like else client.pool
    client.message("ProcessImageRequest")
    return client


def end(call) -> tuple[str, float, float]:
    """Returns how a call ends, its seconds, and the delay after which its client may try again."""
    began, delay = time.monotonic(), 0.0
    try:
        kind = [response.WhichOneof("part") for response in call][-1]
    except grpc.RpcError as error:
        kind = error.code().name
        details = dict(error.trailing_metadata() or ()).get("grpc-status-details-bin", b"")
        for detail in status_pb2.Status.FromString(details).details:
            info = error_details_pb2.RetryInfo()
            if detail.Unpack(info):
                delay = info.retry_delay.ToNanoseconds() / 1e9
    return kind, time.monotonic() - began, delay


class Flood:
    """Calls of one connection that keep the queue full until the end of the context."""

    def __init__(self, client: Client, image: bytes, count: int, **options):
        self.client, self.image, self.count, self.options = client, image, count, options
        self.is_over, self.ends, self.lock = False, [], threading.Lock()

    def repeat(self):
        while not self.is_over:
            outcome = end(self.client.process(self.image, **self.options, **LARGE))
            with self.lock:
                self.ends.append(outcome)
            if outcome[0] != "report":
                time.sleep(0.05)

    def __enter__(self):
        self.threads = [threading.Thread(target=self.repeat, daemon=True) for _ in range(self.count)]
        for thread in self.threads:
            thread.start()
        time.sleep(1.5)
        return self

    def __exit__(self, *_):
        self.is_over = True


def seconds_of_one(client: Client, photo: bytes) -> float:
    end(client.process(photo, **LARGE))
    kind, seconds, _ = end(client.process(photo, **LARGE))
    assert kind == "report"
    return seconds


def test_favicons_of_others_do_not_wait_for_a_flood_of_large_images(photo):
    worker = overloaded()
    client = own_client(worker)
    large, icon = seconds_of_one(client, photo), fixture_bytes("photo-420.jpg")
    for _ in range(3):
        end(client.process(icon, preset="favicon"))
    with Flood(own_client(worker, client), photo, 60) as flood:
        times = []
        for _ in range(60):
            kind, seconds, _ = end(client.process(icon, preset="favicon"))
            assert kind == "report"
            times.append(seconds)
    worker.process.kill()
    # Without the express lane, most of them wait for the rest of a large image.
    assert statistics.median(times) < large / 4, (large, sorted(times))
    assert sorted(times)[-6] < large, (large, sorted(times))
    assert {kind for kind, _, _ in flood.ends} <= {"report"}


def test_a_small_image_passes_large_ones_of_the_same_connection(photo):
    """As behind a proxy, whose clients share a connection. The kind of the small image is not known, so it has no lane."""
    worker = overloaded()
    client = own_client(worker)
    large = seconds_of_one(client, photo)
    with ThreadPoolExecutor(12) as pool:
        calls = [pool.submit(lambda: end(client.process(photo, **LARGE))) for _ in range(11)]
        time.sleep(large / 2)
        kind, seconds, _ = end(client.process(fixture_bytes("photo-420.jpg"), preset="thumbnail"))
        assert kind == "report" and sum(call.done() for call in calls) <= 4
        assert seconds < 5 * large
        assert {call.result()[0] for call in calls} == {"report"}
    worker.stop()


def test_calls_without_a_chance_are_refused_early_with_the_time_to_wait(photo):
    worker = overloaded("--metrics-port", "0")
    client = own_client(worker)
    large = seconds_of_one(client, photo)
    with Flood(client, photo, 30):
        # As soon as it is known what the caller's images cost.
        refusals = []
        for _ in range(20):
            kind, seconds, delay = end(client.process(photo + bytes(8 << 20), timeout=4 * large, **LARGE))
            assert kind == "RESOURCE_EXHAUSTED"
            refusals.append((seconds, delay))
        # The client of another connection has a share of its own.
        kind, seconds, _ = end(own_client(worker, client).process(photo, timeout=60 * large, **LARGE))
        assert kind == "report" and seconds < 15 * large
    worker.process.kill()
    # Neither when the deadline has passed, nor after 8 MiB were sent at the pace of the queue.
    assert statistics.median(seconds for seconds, _ in refusals) < large, (large, refusals)
    # The queue of the connection: about 30 images.
    assert all(5 * large < delay < 90 * large for _, delay in refusals), (large, refusals)


def test_a_flood_fills_the_queue_only_for_itself(photo):
    worker = overloaded("--max-waiting-images", "8")
    client = own_client(worker)
    large = seconds_of_one(client, photo)
    with Flood(own_client(worker, client), photo, 30) as flood:
        outcomes = [end(client.process(photo, timeout=60, **LARGE)) for _ in range(5)]
    worker.process.kill()
    assert [kind for kind, _, _ in outcomes] == ["report"] * 5, outcomes
    assert {kind for kind, _, _ in flood.ends} == {"report", "RESOURCE_EXHAUSTED"}
    # In turn with the flood, after the image that has begun and the one that is next.
    assert statistics.median(seconds for _, seconds, _ in outcomes) < 6 * large, (large, outcomes)


def test_a_batch_of_many_items_leaves_half_of_the_time_to_calls(photo):
    worker = overloaded()
    client = own_client(worker)
    large, is_over, done = seconds_of_one(client, photo), threading.Event(), []

    def requests():
        for number in range(1_000_000):
            if is_over.is_set():
                return
            start = client.start(str(number), "", photo)
            for name, value in LARGE.items():
                setattr(start.start.configuration, name, value)
            yield start

    def batch():
        try:
            for response in own_client(worker, client).batch(requests(), timeout=120):
                done.extend([time.monotonic()] if response.WhichOneof("part") == "report" else [])
        except grpc.RpcError:
            pass

    thread = threading.Thread(target=batch, daemon=True)
    thread.start()
    time.sleep(3 * large)
    began, before = time.monotonic(), len(done)
    with ThreadPoolExecutor(4) as pool:
        ends = list(pool.map(lambda _: end(client.process(photo, **LARGE)), range(12)))
    elapsed, items = time.monotonic() - began, len(done) - before
    is_over.set()
    worker.process.kill()
    assert [kind for kind, _, _ in ends] == ["report"] * 12
    assert 6 <= items <= 20, (items, elapsed, large)
