"""Sends calls in a closed loop: load_client.py ADDRESS REQUEST-FILE CONCURRENCY CALLS. Prints the measurements as JSON.

It is a separate process that repeats one serialized request and does not parse the responses, so that it uses as little
as possible of the two cores that the server also needs.
"""

import asyncio
import json
import sys
import time
from pathlib import Path

import grpc

METHOD = "/imageworker.v1.ImageWorkerService/ProcessImage"
OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1),
           ("grpc.use_local_subchannel_pool", 1)]


async def main() -> None:
    address, path, concurrency, calls = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    request = Path(path).read_bytes()
    latencies, refusals = [], []
    left = iter(range(calls))
    channels = [grpc.aio.insecure_channel(address, options=OPTIONS) for _ in range(min(concurrency, 8))]

    async def caller(number: int) -> None:
        call = channels[number % len(channels)].unary_stream(METHOD)
        for _ in left:
            began = time.monotonic()
            try:
                async for _ in call(request, timeout=600):
                    pass
                latencies.append(time.monotonic() - began)
            except grpc.aio.AioRpcError as error:
                refusals.append(error.code().name)

    began = time.monotonic()
    await asyncio.gather(*(caller(number) for number in range(concurrency)))
    elapsed = time.monotonic() - began
    print(json.dumps({"elapsed": elapsed, "latencies": latencies, "refusals": refusals, "cpu": time.process_time()}))


if __name__ == "__main__":
    asyncio.run(main())
