"""Measures the health check until its input ends, and prints the milliseconds of each: health.py ADDRESS [AUTHORITY]"""

import json
import select
import sys
import time
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

TIMEOUT = 10


def main(address: str, authority: str = "") -> None:
    if authority:
        channel = grpc.secure_channel(address, grpc.ssl_channel_credentials(Path(authority).read_bytes()))
    else:
        channel = grpc.insecure_channel(address)
    check = health_pb2_grpc.HealthStub(channel).Check
    check(health_pb2.HealthCheckRequest(), timeout=TIMEOUT, wait_for_ready=True)
    print("ready", flush=True)
    times = []
    while not select.select([sys.stdin], [], [], 0.02)[0]:
        began = time.monotonic()
        try:
            check(health_pb2.HealthCheckRequest(), timeout=TIMEOUT)
            times.append(1000 * (time.monotonic() - began))
        except grpc.RpcError as error:
            # A worker that is replaced says so; the next check finds its successor.
            if error.code() != grpc.StatusCode.UNAVAILABLE:
                times.append(1000.0 * TIMEOUT)
    channel.close()
    print(json.dumps(times))


if __name__ == "__main__":
    main(*sys.argv[1:])
