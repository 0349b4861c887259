"""Tests of clients that flood the worker, or that send or read too slowly."""

import asyncio
import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from conftest import Client, Worker, fixture_bytes, metric, wait_until
from grpc_health.v1 import health_pb2, health_pb2_grpc
from raw import WINDOW_UPDATE, Raw, bmp, message, process_request, varint

LIMIT_MIB = 64


def peak_mib(worker: Worker) -> float:
    status = Path(f"/proc/{worker.process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024



async def until(condition, seconds: float = 60) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        await asyncio.sleep(0.1)
    return condition()


@pytest.mark.parametrize("encoding", [b"identity", b"gzip"])
def test_unfinished_messages_wait_at_their_client(encoding):
    worker = Worker("--cache-memory-mib", "0", "--memory-limit-mib", str(LIMIT_MIB))

    async def flood():
        raws = [await Raw(worker).open() for _ in range(3)]
        await asyncio.sleep(0.5)
        half = message(b"\0" * 12_000_000)[:-1]

        async def send(raw):
            # A message of a call with an encoding need not be compressed itself.
            await raw.send(raw.call("ProcessImage", (b"grpc-encoding", encoding)), half)

        tasks = [asyncio.create_task(send(raw)) for raw in raws for _ in range(40)]
        await asyncio.wait(tasks, timeout=8)
        # What is small is served meanwhile.
        client = Client(worker)
        responses = await asyncio.to_thread(lambda: list(client.process(fixture_bytes("photo.png"), preset="favicon")))
        assert responses[-1].WhichOneof("part") == "report"
        for task in tasks:
            task.cancel()
        for raw in raws:
            raw.writer.close()

    asyncio.run(flood())
    assert peak_mib(worker) < LIMIT_MIB + 64
    assert worker.stop() == 0


@pytest.mark.parametrize("encoding", [b"identity", b"gzip"])
def test_messages_without_bytes_take_little_more_than_their_prefixes(encoding):
    """A client may send as much of each call as its window allows, before anything is charged."""
    worker = Worker("--memory-limit-mib", str(LIMIT_MIB))
    before = peak_mib(worker)

    async def flood():
        raws = [await Raw(worker, reads_results=False).open() for _ in range(5)]
        await asyncio.sleep(0.5)
        tasks = [
            asyncio.create_task(raw.send(raw.call("BatchProcess", (b"grpc-encoding", encoding)), message(b"") * 200_000))
            for raw in raws for _ in range(40)]
        await asyncio.wait(tasks, timeout=5)
        for task in tasks:
            task.cancel()
        for raw in raws:
            raw.writer.close()

    asyncio.run(flood())
    assert peak_mib(worker) < before + LIMIT_MIB
    assert worker.stop() == 0


@pytest.mark.parametrize("compression", [grpc.Compression.NoCompression, grpc.Compression.Gzip], ids=["plain", "gzip"])
def test_each_message_of_a_burst_is_answered(compression):
    """Few of them are cut from the bytes ahead, and a turn of the event loop passes on a limited number."""
    worker = Worker()
    client = Client(worker, grpc.insecure_channel(worker.address, compression=compression))
    for count in (1, 16, 17, 256, 257, 272, 5000):
        parts = (client.chunk(f"no item {number}", b"x") for number in range(count))
        assert len(list(client.batch(parts, timeout=60))) == count
    assert worker.stop() == 0


def test_ids_of_refused_items_take_little_memory():
    """A stream remembers some thousand ids, so that it can ignore late parts."""
    worker = Worker("--memory-limit-mib", str(LIMIT_MIB))
    before = peak_mib(worker)

    def chunk_of_no_item(number: int) -> bytes:
        name = str(number).ljust(256, "x").encode()
        return message(b"\x0a" + varint(len(name)) + name + b"\x1a\x01x")

    async def flood():
        raw = await Raw(worker).open()
        await asyncio.sleep(0.5)
        raw.frame(WINDOW_UPDATE, 0, 0, (1 << 30).to_bytes(4, "big"))  # reads all errors

        async def send():
            stream = raw.call("BatchProcess")
            raw.frame(WINDOW_UPDATE, 0, stream, (1 << 30).to_bytes(4, "big"))
            await raw.send(stream, b"".join(map(chunk_of_no_item, range(16_000))))

        await asyncio.gather(*(send() for _ in range(4)))
        await asyncio.sleep(1)
        raw.writer.close()

    asyncio.run(flood())
    assert peak_mib(worker) < before + 20
    assert worker.stop() == 0


def test_large_messages_at_once_wait_for_each_other():
    worker = Worker("--cache-memory-mib", "0", "--memory-limit-mib", str(LIMIT_MIB))
    client, image = Client(worker), bmp(1300)  # 5 MB
    client.message("ProcessImageRequest")
    with ThreadPoolExecutor(60) as pool:
        ends = list(pool.map(lambda _: list(client.process(image, preset="favicon"))[-1].WhichOneof("part"), range(60)))
    assert ends == ["report"] * 60
    assert peak_mib(worker) < LIMIT_MIB + 64
    assert worker.stop() == 0


def test_a_message_that_can_never_fit_is_refused_at_once():
    worker = Worker("--cache-memory-mib", "0", "--memory-limit-mib", str(LIMIT_MIB))
    client = Client(worker)
    with pytest.raises(grpc.RpcError) as caught:
        list(client.process(bmp(2700)))  # 22 MB
    assert caught.value.code() == grpc.StatusCode.FAILED_PRECONDITION and "memory_limit" in caught.value.details()
    assert worker.stop() == 0


def test_trickling_messages_end():
    worker = Worker("--upload-timeout-seconds", "2", "--metrics-port", "0")

    async def trickle():
        raw = await Raw(worker).open()
        await asyncio.sleep(0.5)
        stream = raw.call("ProcessImage")
        await raw.send(stream, message(b"\0" * 1_000_000)[:1000])
        assert await until(lambda: metric(worker, "imageworker_messages_received_bytes") > 900_000)
        end = time.monotonic() + 60
        while stream not in raw.ends and time.monotonic() < end:
            await raw.send(stream, b"\0")
            await asyncio.sleep(0.2)
        assert stream in raw.ends

    asyncio.run(trickle())
    assert wait_until(lambda: any("upload_timeout_seconds" in line for line in worker.log))
    assert wait_until(lambda: metric(worker, "imageworker_messages_received_bytes") == 0)
    assert worker.stop() == 0


def test_results_that_are_not_read_end_their_calls():
    worker = Worker("--download-timeout-seconds", "2", "--metrics-port", "0")

    async def ignore():
        raw = await Raw(worker, reads_results=False).open()
        await asyncio.sleep(0.5)
        streams = [raw.call("ProcessImage") for _ in range(8)]
        for stream in streams:
            await raw.send(stream, message(process_request(bmp(300))), ends=True)
        assert await until(lambda: raw.ends >= set(streams))
        raw.writer.close()

    asyncio.run(ignore())
    assert wait_until(lambda: metric(worker, "imageworker_memory_budget_used_bytes") == 0)
    assert wait_until(lambda: sum("reads its results too slowly" in line for line in worker.log) == 8)
    assert worker.stop() == 0


def refusals(worker: Worker, calls: int) -> int:
    """Makes calls on new connections, and returns how many fail with UNAVAILABLE within a second."""
    count = 0
    for _ in range(calls):
        options = [("grpc.use_local_subchannel_pool", 1)]
        with grpc.insecure_channel(worker.address, options=options) as channel:
            try:
                health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=1)
            except grpc.RpcError as error:
                count += error.code() == grpc.StatusCode.UNAVAILABLE
    return count


def test_surplus_connections_are_refused_at_once_and_leave_nothing():
    worker = Worker("--max-connections", "1", "--handshake-timeout-seconds", "600", "--cache-memory-mib", "0")

    async def refuse(count: int):
        for _ in range(count):
            raw = await Raw(worker).open(speaks=False)
            # Neither settings nor anything else.
            assert await raw.reader.read() == b""
            raw.writer.close()

    async def connect():
        first = await Raw(worker).open(speaks=False)
        await asyncio.sleep(0.5)
        # Clients on gRPC's C library that had received settings let up to a third of these calls wait.
        assert await asyncio.to_thread(refusals, worker, 40) == 40
        await refuse(2000)
        before = worker.rss_mib()
        await refuse(8000)
        assert worker.rss_mib() < before + 2
        first.writer.close()

    asyncio.run(connect())
    assert worker.stop() == 0


def test_silent_and_surplus_connections_are_closed():
    worker = Worker(
        "--max-connections", "5", "--max-connections-per-peer", "5", "--handshake-timeout-seconds", "5",
        "--connection-idle-seconds", "5", "--metrics-port", "0")

    async def connect():
        raws = [await Raw(worker).open(speaks=index % 2 == 0) for index in range(5)]
        assert await until(lambda: metric(worker, "imageworker_connections_active") == 5)
        surplus = await Raw(worker).open()
        assert await until(lambda: surplus.closed)
        assert await until(lambda: metric(worker, "imageworker_connections_refused_total") == 1)
        for raw in raws:
            await asyncio.wait_for(raw.reader.read() if raw.task is None else raw.task, 60)

    asyncio.run(connect())
    assert wait_until(lambda: metric(worker, "imageworker_connections_active") == 0)
    assert worker.stop() == 0


def test_the_memory_of_many_connections_returns_to_the_system():
    worker = Worker("--cache-memory-mib", "0")
    floor = worker.rss_mib()

    async def connect():
        raws = [await Raw(worker).open() for _ in range(1400)]
        assert await until(lambda: peak_mib(worker) > floor + 30)
        for raw in raws:
            raw.writer.close()

    asyncio.run(connect())
    assert wait_until(lambda: worker.rss_mib() < floor + 20), f"{worker.rss_mib()} MiB, {floor} at its start"
    assert worker.stop() == 0


def test_the_memory_of_unfinished_messages_returns_to_the_system():
    worker = Worker("--cache-memory-mib", "0", "--memory-limit-mib", "256")
    floor = worker.rss_mib()
    half = message(b"\0" * 62_000_000)[:-1]

    async def flood():
        raws = [await Raw(worker).open() for _ in range(22)]
        await asyncio.sleep(0.5)
        tasks = [asyncio.create_task(raw.send(raw.call("ProcessImage"), half)) for raw in raws for _ in range(40)]
        # So long that the worker seems idle meanwhile.
        await asyncio.wait(tasks, timeout=8)
        assert await until(lambda: peak_mib(worker) > floor + 45)
        for task in tasks:
            task.cancel()
        for raw in raws:
            raw.writer.close()

    asyncio.run(flood())
    assert wait_until(lambda: worker.rss_mib() < floor + 20), f"{worker.rss_mib()} MiB, {floor} at its start"
    assert worker.stop() == 0


def test_connections_with_too_many_streams_leave_no_memory():
    worker = Worker("--cache-memory-mib", "0")

    async def flood(count: int) -> float:
        for _ in range(count):
            raw = await Raw(worker).open()
            for _ in range(200):
                raw.call("ProcessImage")
            assert await until(lambda: raw.closed)  # by the worker
            raw.task.cancel()
            raw.writer.close()
        return worker.rss_mib()

    before, after = asyncio.run(flood(50)), asyncio.run(flood(150))
    # It was a quarter of a megabyte for each, 37 in all.
    assert after - before < 12
    assert worker.stop() == 0
