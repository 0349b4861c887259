"""Tests of clients that ask for more than the worker can do: others are served, and refusals come early and with a delay.

How long a call waits is counted in large images that end meanwhile: other load makes both slower alike.
"""

import random
import struct
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO

import grpc
import pytest
from conftest import UNLIMITED, Client, Worker, fixture_bytes, metric, wait_until
from google.rpc import error_details_pb2, status_pb2
from PIL import Image

# A third of a second of work, whose result is sent at its end.
LARGE = {"max_width": 1500, "preferred_format": 4, "always_encode": True, "webp": {"method": 6}}


@pytest.fixture(scope="module")
def photo():
    buffer = BytesIO()
    Image.open(BytesIO(fixture_bytes("photo-420.jpg"))).resize((5000, 3500)).save(buffer, "JPEG", quality=90)
    return buffer.getvalue()


def overloaded(*options: str) -> Worker:
    return Worker(
        "--cache-memory-mib", "0", "--threads", "1", "--metrics-port", "0", "--max-queue-seconds", "600", *options)


def own_client(worker: Worker, like: Client | None = None) -> Client:
    channel = grpc.insecure_channel(
        worker.address, options=[*UNLIMITED, ("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)])
    client = Client(worker, channel)
    client.pool = like.pool if like else client.pool
    client.message("ProcessImageRequest")
    return client


def end(call) -> tuple[str, float]:
    """Returns how a call ends, and the seconds after which its client may try again."""
    delay = 0.0
    try:
        kind = [response.WhichOneof("part") for response in call][-1]
    except grpc.RpcError as error:
        kind = error.code().name
        details = dict(error.trailing_metadata() or ()).get("grpc-status-details-bin", b"")
        for detail in status_pb2.Status.FromString(details).details:
            info = error_details_pb2.RetryInfo()
            if detail.Unpack(info):
                delay = info.retry_delay.ToNanoseconds() / 1e9
    return kind, delay


class Flood:
    """Calls of one connection that keep at least `waiting` large images waiting until the end of the context."""

    def __init__(self, client: Client, image: bytes, count: int, waiting: int):
        self.client, self.image, self.count, self.waiting = client, image, count, waiting
        self.is_over, self.ends, self.lock = False, [], threading.Lock()

    def repeat(self):
        while not self.is_over:
            kind, _ = end(self.client.process(self.image, timeout=600, **LARGE))
            with self.lock:
                self.ends.append(kind)
            if kind != "report":
                time.sleep(0.05)

    @property
    def done(self) -> int:
        """The number of its images that are done."""
        return self.ends.count("report")

    def __enter__(self):
        for _ in range(2):  # so that it is known what they cost
            assert end(self.client.process(self.image, timeout=600, **LARGE))[0] == "report"
        self.began = time.monotonic()
        for _ in range(self.count):
            threading.Thread(target=self.repeat, daemon=True).start()
        assert wait_until(
            lambda: self.done and metric(self.client.worker, "imageworker_queue_length") >= self.waiting, 120)
        return self

    def __exit__(self, *_):
        self.is_over = True
        self.seconds_of_one = (time.monotonic() - self.began) / self.done


def test_favicons_of_others_do_not_wait_for_a_flood_of_large_images(photo):
    worker = overloaded()
    client, icon = own_client(worker), fixture_bytes("photo-420.jpg")
    for _ in range(3):
        assert end(client.process(icon, preset="favicon"))[0] == "report"
    with Flood(own_client(worker, client), photo, 60, waiting=50) as flood:
        before = flood.done
        ends = [end(client.process(icon, preset="favicon"))[0] for _ in range(60)]
        large_count = flood.done - before
    worker.process.kill()
    assert ends == ["report"] * 60
    # Without the express lane, each waits for the rest of a large image.
    assert large_count < 30
    assert set(flood.ends) == {"report"}


def test_a_small_image_passes_large_ones_of_the_same_connection(photo):
    """As behind a proxy, whose clients share a connection. The kind of the small image is not known, so it has no lane."""
    worker = overloaded()
    client = own_client(worker)
    assert end(client.process(photo, **LARGE))[0] == "report"
    with ThreadPoolExecutor(12) as pool:
        calls = [pool.submit(lambda: end(client.process(photo, timeout=600, **LARGE))) for _ in range(11)]
        assert wait_until(lambda: metric(worker, "imageworker_queue_length") + sum(call.done() for call in calls) >= 9, 60)
        before = sum(call.done() for call in calls)
        kind, _ = end(client.process(fixture_bytes("photo-420.jpg"), preset="thumbnail"))
        assert kind == "report" and sum(call.done() for call in calls) <= before + 4
        assert before <= 4, "the large images did not wait"
        assert {call.result()[0] for call in calls} == {"report"}
    worker.stop()


def test_calls_without_a_chance_are_refused_early_with_the_time_to_wait(photo):
    worker = overloaded()
    client = own_client(worker)
    with Flood(client, photo, 30, waiting=25) as flood:
        before, seconds = flood.done, (time.monotonic() - flood.began) / flood.done
        refusals = [end(client.process(photo + bytes(8 << 20), timeout=6 * seconds, **LARGE)) for _ in range(20)]
        refused_during = flood.done - before
        # The client of another connection has a share of its own.
        before = flood.done
        other, _ = end(own_client(worker, client).process(photo, timeout=600, **LARGE))
        other_during = flood.done - before
    worker.process.kill()
    assert [kind for kind, _ in refusals] == ["RESOURCE_EXHAUSTED"] * 20
    # Neither when the deadline has passed, nor after 8 MiB were sent at the pace of the queue.
    assert refused_during < 20
    assert other == "report" and other_during < 15
    # The queue of the connection: about 30 images.
    assert all(5 * flood.seconds_of_one < delay < 90 * flood.seconds_of_one for _, delay in refusals), (
        flood.seconds_of_one, refusals)


def bomb() -> bytes:
    """Returns a PNG of 268 megapixels in 33 KB."""
    side, compressor = 1 << 14, zlib.compressobj(9)
    data = b"".join(compressor.compress(bytes((1 + side // 8) * 256)) for _ in range(side // 256)) + compressor.flush()

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def test_images_that_cost_much_do_not_change_what_those_of_others_are_expected_to_cost():
    worker, large, small = overloaded(), bomb(), BytesIO()
    noise = Image.frombytes("RGB", (192, 120), random.Random(29).randbytes(192 * 120 * 3))
    noise.quantize(200).save(small, "PNG")
    client, ends = own_client(worker), []
    other = own_client(worker, client)
    with ThreadPoolExecutor(6) as pool:
        # The first has taught what images of this kind cost.
        assert end(client.process(large, timeout=600, max_width=100))[0] == "report"
        calls = [pool.submit(lambda: end(client.process(large, timeout=600, max_width=100))[0]) for _ in range(6)]
        assert wait_until(lambda: metric(worker, "imageworker_queue_length") + sum(call.done() for call in calls) >= 4)
        while not all(call.done() for call in calls):
            # One that has no time left is not refused because of the estimate.
            ends.append(end(other.process(small.getvalue(), timeout=5, max_width=100))[0])
        assert {call.result() for call in calls} == {"report"}
    worker.process.kill()
    # The worker itself may be slow, as under a sanitizer; but it refuses none.
    assert set(ends) <= {"report", "DEADLINE_EXCEEDED"} and ends.count("report") > len(ends) / 2, ends


def test_a_flood_fills_the_queue_only_for_itself(photo):
    worker = overloaded("--max-waiting-images", "8")
    client, ends, counts = own_client(worker), [], []
    with Flood(own_client(worker, client), photo, 30, waiting=6) as flood:
        for _ in range(5):
            before = flood.done
            ends.append(end(client.process(photo, timeout=600, **LARGE))[0])
            counts.append(flood.done - before)
    worker.process.kill()
    assert ends == ["report"] * 5
    assert set(flood.ends) == {"report", "RESOURCE_EXHAUSTED"}
    # In turn with the flood, after the image that has begun and the one that is next.
    assert sorted(counts)[2] < 6, counts


def test_a_batch_of_many_items_leaves_half_of_the_time_to_calls(photo):
    worker = overloaded()
    client = own_client(worker)
    is_over, done = threading.Event(), []

    def requests():
        for number in range(1_000_000):
            if is_over.is_set():
                return
            start = client.start(str(number), "", photo)
            start.start.configuration.MergeFrom(type(start.start.configuration)(**LARGE))
            yield start

    def batch():
        try:
            for response in own_client(worker, client).batch(requests(), timeout=600):
                done.extend([response.item_id] if response.WhichOneof("part") == "report" else [])
        except grpc.RpcError:
            pass

    thread = threading.Thread(target=batch, daemon=True)
    thread.start()
    assert wait_until(lambda: len(done) >= 3, 120)
    before = len(done)
    with ThreadPoolExecutor(4) as pool:
        ends = list(pool.map(lambda _: end(client.process(photo, timeout=600, **LARGE))[0], range(12)))
    items = len(done) - before
    is_over.set()
    worker.process.kill()
    assert ends == ["report"] * 12
    assert 6 <= items <= 20, items
