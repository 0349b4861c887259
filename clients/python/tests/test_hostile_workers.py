"""Workers that send results without end, or nothing at all: what a client takes has an end, in bytes and in time."""

import grpc
import pytest
from hostile import ATTACKS, HostileWorker
from image_worker import (
    Client, ImageInfo, ImageWorkerError, LimitExceededError, ProcessingReport, RetryPolicy, UnavailableError)

IMPATIENT = RetryPolicy(attempts=2, initial_delay=0.01, max_delay=0.02, stall_after=0.5)
LARGE = bytes(3 << 20)
ENDLESS = ["bytes without end", "single bytes without end"]
# Never reached: without one, a client that has lost its own limits would make the tests wait forever.
TIMEOUT = 40
# What is on its way: the windows of HTTP/2, and the buffers of the server.
UNDERWAY = 64 << 20


def limit_of(attack: str) -> int:
    return 1 << 12 if attack.startswith("single") else 1 << 20


def check(error: BaseException | None, attack: str) -> None:
    if attack in ENDLESS:
        assert isinstance(error, LimitExceededError) and error.reason == "" and not error.is_retryable
        assert (error.limit_name, error.limit) == ("max_result_bytes", limit_of(attack)) and "max_result_bytes" in str(error)
    elif attack == "a huge message":
        assert isinstance(error, ImageWorkerError) and error.code is grpc.StatusCode.RESOURCE_EXHAUSTED
    elif attack == "an end of bytes that it does not send":
        assert isinstance(error, ImageWorkerError) and error.code is grpc.StatusCode.DATA_LOSS and not error.is_retryable
    else:
        assert isinstance(error, UnavailableError)


@pytest.mark.parametrize("attack, image", [
    *((attack, b"image") for attack in ATTACKS), ("bytes without end", LARGE), ("nothing", LARGE)])
def test_a_call_ends(attack: str, image: bytes) -> None:
    worker = HostileWorker(attack)
    with worker:
        with Client(worker.address, retry=IMPATIENT, max_result_bytes=limit_of(attack)) as client:
            with pytest.raises(ImageWorkerError) as caught:
                client.process(image, timeout=TIMEOUT)
            check(caught.value, attack)
            with pytest.raises(ImageWorkerError) as caught:
                client.renditions(image, {"one": {}, "two": {}}, timeout=TIMEOUT)
            check(caught.value, attack)
            received = 0
            with pytest.raises(ImageWorkerError) as caught:
                for part in client.stream(image, timeout=TIMEOUT):
                    assert not isinstance(part, ProcessingReport)
                    received += 0 if isinstance(part, ImageInfo) else len(part)
            check(caught.value, attack)
            assert received <= limit_of(attack)
        assert attack not in ENDLESS or worker.sent < 3 * limit_of(attack) + UNDERWAY


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_item_of_a_batch_ends(attack: str) -> None:
    with HostileWorker(attack) as worker:
        with Client(worker.address, retry=IMPATIENT, max_result_bytes=limit_of(attack)) as client:
            [outcome] = client.batch([(0, b"image")], timeout=TIMEOUT)
            # A message that is no part of an item breaks its stream.
            check(outcome.error, "" if attack == "a huge message" else attack)


def test_other_items_of_a_batch_go_on() -> None:
    with HostileWorker("bytes without end") as worker, Client(worker.address, retry=IMPATIENT, max_result_bytes=1 << 20) as client:
        items = [(key, b"image" if key % 5 == 0 else b"good") for key in range(50)]
        outcomes = {outcome.key: outcome.error for outcome in client.batch(items, timeout=TIMEOUT)}
    assert len(outcomes) == 50
    for key, error in outcomes.items():
        assert isinstance(error, LimitExceededError if key % 5 == 0 else type(None))




def test_a_limit_below_a_byte_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="max_result_bytes is 0; it must be at least 1"):
        Client("127.0.0.1:50051", max_result_bytes=0)
