"""What overload costs: useful results per second at twice the load that saturates the worker, and another client's wait.

Use: Tests/EndToEnd/python.sh Benchmarks/experiments/overload.py IMAGE WORKER... [--seconds 10] [--deadlines 3,10]

Each worker has the first core and one image thread to itself; all clients share the second core, and their use of it is
reported, because a client that is busy measures itself. IMAGE is fitted in 1280x720. A closed loop of 8 calls without
deadlines finds the saturating rate. Then calls begin at twice that rate, evenly spaced, from two processes with four
connections each, and each call has a deadline; a result counts if it arrives before it. Meanwhile another connection asks
for one favicon after the other.
"""

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tables"))
import grpc  # noqa: E402
import load_client  # noqa: E402
from peers import JOBS  # noqa: E402
from worker import Client, Worker, fixture_bytes  # noqa: E402


WORKER_CORE, CLIENT_CORE = 0, 1
# Processes, and the connections of each.
OFFERERS, CONNECTIONS = 2, 4


async def call(channel: grpc.aio.Channel, request: bytes, deadline: float) -> tuple[str, float]:
    """Makes one call and returns its status and seconds."""
    began = time.monotonic()
    try:
        async for _ in channel.unary_stream(load_client.METHOD)(request, timeout=deadline):
            pass
        status = "OK"
    except grpc.aio.AioRpcError as error:
        status = error.code().name
    return status, time.monotonic() - began


async def offer(address: str, path: str, rate: float, seconds: float, deadline: float) -> None:
    """Begins calls at a fixed rate and prints how they ended."""
    request = Path(path).read_bytes()
    channels = [grpc.aio.insecure_channel(address, options=load_client.OPTIONS) for _ in range(CONNECTIONS)]
    began, calls = time.monotonic(), []
    for number in range(int(rate * seconds)):
        await asyncio.sleep(max(0, began + number / rate - time.monotonic()))
        calls.append(asyncio.create_task(call(channels[number % CONNECTIONS], request, deadline)))
    ends = await asyncio.gather(*calls)
    use = resource.getrusage(resource.RUSAGE_SELF)
    print(json.dumps({"ends": ends, "elapsed": time.monotonic() - began, "cpu": use.ru_utime + use.ru_stime}))


async def probe(address: str, path: str, seconds: float) -> None:
    """Makes one call after the other and prints their times."""
    request = Path(path).read_bytes()
    channel = grpc.aio.insecure_channel(address, options=load_client.OPTIONS)
    began, times = time.monotonic(), []
    while time.monotonic() - began < seconds:
        status, took = await call(channel, request, 60)
        times.append(took if status == "OK" else 60)
        await asyncio.sleep(0.02)
    print(json.dumps(times))


def start(*arguments: object) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, __file__, *map(str, arguments)], stdout=subprocess.PIPE, text=True)


def result(process: subprocess.Popen):
    return json.loads(process.communicate(timeout=600)[0])


def quantiles(values: list[float]) -> str:
    """Returns the median and the 99th percentile in milliseconds."""
    return " / ".join(f"{sorted(values)[int(len(values) * share)] * 1000:.0f}" for share in [0.5, 0.99]) if values else ""


def saturating_rate(address: str, path: str, seconds: float) -> float:
    """Returns the calls per second of a closed loop, after one to warm up."""
    count, rate = 16, 0.0
    for _ in range(2):
        output = subprocess.run(
            [sys.executable, load_client.__file__, address, path, "8", str(count)], check=True, capture_output=True,
            text=True)
        rate = count / json.loads(output.stdout)["elapsed"]
        count = max(16, int(rate * seconds))
    return rate


def measure(binary: str, image: bytes, folder: Path, arguments: argparse.Namespace) -> None:
    os.environ["IMAGE_WORKER"] = binary
    os.sched_setaffinity(0, {WORKER_CORE})
    worker = Worker("--threads", "1")
    os.sched_setaffinity(0, {CLIENT_CORE})
    client = Client(worker)
    (folder / "image").write_bytes(client.request(image, JOBS["T"]).SerializeToString())
    (folder / "icon").write_bytes(client.request(fixture_bytes("photo-420.jpg"), JOBS["F"]).SerializeToString())
    address = worker.address
    rate = saturating_rate(address, str(folder / "image"), arguments.seconds / 2)
    for deadline in arguments.deadlines.split(","):
        offers = [start("offer", address, folder / "image", 2 * rate / OFFERERS, arguments.seconds, deadline)
                  for _ in range(OFFERERS)]
        time.sleep(min(2, arguments.seconds / 4))
        icons = result(start("probe", address, folder / "icon", arguments.seconds / 2))
        outcomes = [result(process) for process in offers]
        ends = [end for outcome in outcomes for end in outcome["ends"]]
        useful = [took for status, took in ends if status == "OK"]
        refused = [took for status, took in ends if status == "RESOURCE_EXHAUSTED"]
        # What still waits when the last call has begun is done afterwards, within the deadline.
        elapsed = max(outcome["elapsed"] for outcome in outcomes)
        busy = sum(outcome["cpu"] for outcome in outcomes) / elapsed
        print(
            f"| {Path(binary).name} | {rate:.1f} | {deadline} s | {len(useful) / elapsed:.1f} |"
            f" {len(useful) / elapsed / rate:.0%} | {quantiles(useful)} | {len(refused) / len(ends):.0%} |"
            f" {quantiles(refused)} | {1 - (len(useful) + len(refused)) / len(ends):.1%} | {quantiles(icons)} |"
            f" {busy:.0%} |", flush=True)
    worker.stop()


def main() -> None:
    if sys.argv[1:2] == ["offer"]:
        address, path, rate, seconds, deadline = sys.argv[2:]
        return asyncio.run(offer(address, path, float(rate), float(seconds), float(deadline)))
    if sys.argv[1:2] == ["probe"]:
        return asyncio.run(probe(sys.argv[2], sys.argv[3], float(sys.argv[4])))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("image", type=Path)
    parser.add_argument("workers", nargs="+")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--deadlines", default="3,10")
    arguments = parser.parse_args()
    print("| worker | saturating calls/s | deadline | useful results/s | of the saturating rate | their median / p99 ms |"
          " refused | median / p99 ms | late | favicon, median / p99 ms | clients' core |\n"
          "|---|---|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for binary in arguments.workers:
            measure(binary, arguments.image.read_bytes(), Path(folder), arguments)


if __name__ == "__main__":
    main()
