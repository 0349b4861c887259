"""Tests of uploads over a network that is slower than what clients send: some are refused, so that the others come in time.

The network is that of a namespace of its own with a token bucket, which needs root and the programs `unshare` and `tc`.
"""

import asyncio
import json
import subprocess
import sys
import time

import grpc
import pytest
from conftest import UNLIMITED, Client, Worker, fixture_bytes

BYTES_PER_SECOND, BYTES, DEADLINE, SECONDS = 8_000_000, 1_000_000, 3, 12
SHELL = (
    "ip link set lo mtu 1500 up && "
    f"tc qdisc add dev lo root tbf rate {BYTES_PER_SECOND * 8} burst 64kb latency 20ms && exec \"$@\"")


def in_slow_network(*command: str) -> subprocess.CompletedProcess:
    return subprocess.run(["unshare", "--net", "bash", "-c", SHELL, "bash", *command], capture_output=True, text=True)


def missing() -> str:
    """Returns why there is no slow network on this machine; empty if there is one."""
    try:
        return in_slow_network("true").stderr
    except FileNotFoundError as error:
        return str(error)


async def offer(worker: Worker, request: bytes, factor: float) -> list[str]:
    """Begins calls at `factor` times the rate that the network carries, and returns how they end."""
    method = "/imageworker.v1.ImageWorkerService/ProcessImage"
    channels = [
        grpc.aio.insecure_channel(worker.address, options=[*UNLIMITED, ("grpc.use_local_subchannel_pool", 1)])
        for _ in range(4)]
    interval, calls, began = BYTES / BYTES_PER_SECOND / factor, [], time.monotonic()

    async def call(channel: grpc.aio.Channel) -> str:
        try:
            async for _ in channel.unary_stream(method)(request, timeout=DEADLINE):
                pass
            return "OK"
        except grpc.aio.AioRpcError as error:
            return error.code().name

    for number in range(int(SECONDS / interval)):
        await asyncio.sleep(max(0, began + number * interval - time.monotonic()))
        calls.append(asyncio.create_task(call(channels[number % len(channels)])))
    return list(await asyncio.gather(*calls))


def main() -> None:
    worker = Worker("--cache-memory-mib", "0")
    client = Client(worker)
    image = fixture_bytes("photo-420.jpg")
    request = client.message("ProcessImageRequest")(image=image + bytes(BYTES - len(image)), preset="favicon")
    ends = {factor: asyncio.run(offer(worker, request.SerializeToString(), factor)) for factor in (0.5, 3)}
    worker.process.kill()
    print(json.dumps(ends))


@pytest.mark.skipif(bool(missing()), reason=f"no network namespace with a token bucket: {missing()}")
def test_uploads_that_cannot_arrive_in_time_are_refused_and_the_others_arrive():
    run = in_slow_network(sys.executable, __file__)
    assert run.returncode == 0, run.stderr
    calm, overload = json.loads(run.stdout.splitlines()[-1]).values()
    # A busy machine may be late for one or two.
    assert calm.count("OK") >= 0.95 * len(calm), calm
    capacity = SECONDS * BYTES_PER_SECOND / BYTES
    assert overload.count("OK") > 0.6 * capacity, (len(overload), overload.count("OK"), set(overload))
    assert overload.count("RESOURCE_EXHAUSTED") > capacity
    assert overload.count("DEADLINE_EXCEEDED") < overload.count("OK")


if __name__ == "__main__":
    main()
