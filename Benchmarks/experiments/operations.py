"""Measures health, reflection and metrics until its input ends, and prints the milliseconds of each call as JSON.

Use: operations.py ADDRESS METRICS_PORT
"""

import json
import select
import sys
import time
import urllib.request

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

TIMEOUT = 10
PAUSE = 0.02
# The other calls take turns, one after each of so many checks of health.
CHECKS = 5


def measured(call) -> float:
    began = time.monotonic()
    try:
        call()
    except (grpc.RpcError, OSError):
        return 1000.0 * TIMEOUT
    return 1000 * (time.monotonic() - began)


def main(address: str, metrics_port: str) -> None:
    request = health_pb2.HealthCheckRequest()
    channel = grpc.insecure_channel(address)
    health = health_pb2_grpc.HealthStub(channel)
    reflection = reflection_pb2_grpc.ServerReflectionStub(channel)
    health.Check(request, timeout=TIMEOUT, wait_for_ready=True)

    def reflect() -> None:
        requests = iter([reflection_pb2.ServerReflectionRequest(list_services="")])
        list(reflection.ServerReflectionInfo(requests, timeout=TIMEOUT))

    def read_metrics() -> None:
        urllib.request.urlopen(f"http://127.0.0.1:{metrics_port}/metrics", timeout=TIMEOUT).read()

    def connect() -> None:
        with grpc.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)]) as own:
            health_pb2_grpc.HealthStub(own).Check(request, timeout=TIMEOUT, wait_for_ready=True)

    others = {"reflection": reflect, "metrics": read_metrics, "new connection": connect}
    times, names = {name: [] for name in ("health", *others)}, list(others)
    print("ready", flush=True)
    number = 0
    while not select.select([sys.stdin], [], [], PAUSE)[0]:
        number += 1
        times["health"].append(measured(lambda: health.Check(request, timeout=TIMEOUT)))
        if number % CHECKS == 0:
            name = names[number // CHECKS % len(names)]
            times[name].append(measured(others[name]))
    print(json.dumps(times))


if __name__ == "__main__":
    main(*sys.argv[1:])
