"""What overload costs: useful results per second at twice the load that saturates the worker, and another client's wait.

Use: Tests/EndToEnd/python.sh Benchmarks/experiments/overload.py IMAGE WORKER... [--seconds 15] [--deadlines 3,10]

IMAGE is fitted in 1280x720. For each worker, a closed loop of 8 calls without deadlines finds the saturating rate. Then
calls begin at twice that rate, evenly spaced, each with a deadline; a result counts if it arrives before it. Meanwhile
another connection asks for one favicon after the other. Calls are made by a separate process for each of the two
connections; all processes share the machine's cores, so only rows of the same run can be compared.
"""

import argparse
import asyncio
import json
import os
import statistics
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
    channel = grpc.aio.insecure_channel(address, options=load_client.OPTIONS)
    began, calls = time.monotonic(), []
    for number in range(int(rate * seconds)):
        await asyncio.sleep(max(0, began + number / rate - time.monotonic()))
        calls.append(asyncio.create_task(call(channel, request, deadline)))
    ends = await asyncio.gather(*calls)
    refusals = sorted(took for status, took in ends if status == "RESOURCE_EXHAUSTED")
    print(json.dumps({
        "useful": sum(status == "OK" for status, _ in ends) / (time.monotonic() - began),
        "refused": len(refusals) / len(ends),
        "refusal_p50_ms": refusals[len(refusals) // 2] * 1000 if refusals else 0,
    }))


async def probe(address: str, path: str, seconds: float) -> None:
    """Makes one call after the other and prints their times."""
    request = Path(path).read_bytes()
    channel = grpc.aio.insecure_channel(address, options=load_client.OPTIONS)
    began, times = time.monotonic(), []
    while time.monotonic() - began < seconds:
        status, took = await call(channel, request, 60)
        times.append(took if status == "OK" else 60)
        await asyncio.sleep(0.02)
    times = sorted(times)
    print(json.dumps({"p50_ms": times[len(times) // 2] * 1000, "p99_ms": times[int(len(times) * 0.99)] * 1000}))


def start(*arguments: object) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, __file__, *map(str, arguments)], stdout=subprocess.PIPE, text=True)


def result(process: subprocess.Popen) -> dict:
    return json.loads(process.communicate(timeout=600)[0])


def saturating_rate(address: str, path: str) -> float:
    """Returns the calls per second of a closed loop."""
    rates = []
    for _ in range(3):
        output = subprocess.run(
            [sys.executable, load_client.__file__, address, path, "8", "200"], check=True, capture_output=True, text=True)
        rates.append(200 / json.loads(output.stdout)["elapsed"])
    return statistics.median(rates)


def measure(binary: str, image: bytes, folder: Path, arguments: argparse.Namespace) -> None:
    os.environ["IMAGE_WORKER"] = binary
    worker = Worker()
    client = Client(worker)
    (folder / "image").write_bytes(client.request(image, JOBS["T"]).SerializeToString())
    (folder / "icon").write_bytes(client.request(fixture_bytes("photo-420.jpg"), JOBS["F"]).SerializeToString())
    address = worker.address
    rate = saturating_rate(address, str(folder / "image"))
    for deadline in arguments.deadlines.split(","):
        offering = start("offer", address, folder / "image", 2 * rate, arguments.seconds, deadline)
        time.sleep(min(2, arguments.seconds / 4))
        probing = start("probe", address, folder / "icon", arguments.seconds / 2)
        ends, icons = result(offering), result(probing)
        print(f"| {Path(binary).name} | {rate:.0f} | {deadline} s | {ends['useful']:.1f} | {ends['useful'] / rate:.0%} |"
              f" {ends['refused']:.0%} | {ends['refusal_p50_ms']:.1f} | {icons['p50_ms']:.1f} | {icons['p99_ms']:.1f} |",
              flush=True)
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
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--deadlines", default="3,10")
    arguments = parser.parse_args()
    print("| worker | saturating calls/s | deadline | useful results/s | of the saturating rate | refused |"
          " refusal, median ms | favicon, median ms | p99 ms |\n|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for binary in arguments.workers:
            measure(binary, arguments.image.read_bytes(), Path(folder), arguments)


if __name__ == "__main__":
    main()
