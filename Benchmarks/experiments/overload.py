"""What overload costs: useful results per second at and above the load that saturates the worker, and another client's wait.

Use: Tests/EndToEnd/python.sh Benchmarks/experiments/overload.py WORKER... [--seconds 8] [--images small,photo]
    [--links loopback,200] [--deadlines 3,10] [--loads 1,2,5]

Each worker has the first core and one image thread to itself; all clients share the second core, and their use of it is
reported, because a client that is busy measures itself. Photographs of 184 KB and 3.3 MB are fitted in 1280x720. A link is the loopback, or the loopback of a network namespace with a token bucket of so many
Mbit/s for both directions, which needs root, `unshare` and `tc`.

A closed loop of 8 calls without deadlines finds the saturating rate. Then calls begin at a multiple of that rate, evenly spaced,
from two processes with four connections each, and each call has a deadline; a result is useful if it arrives before it.
Meanwhile another connection asks for the favicon of a photograph of 15 KB, one call after the other. The outcomes that the worker
has counted (`imageworker_images_total`) are compared with the calls of all clients.
"""

import argparse
import asyncio
import io
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tables"))
import grpc  # noqa: E402
import load_client  # noqa: E402
from PIL import Image  # noqa: E402
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


def saturating_rate(address: str, path: str, seconds: float) -> tuple[float, int]:
    """Returns the calls per second of a closed loop, after one to warm up, and the number of calls."""
    count, rate, calls = 16, 0.0, 0
    for _ in range(2):
        output = subprocess.run(
            [sys.executable, load_client.__file__, address, path, "8", str(count)], check=True, capture_output=True,
            text=True)
        calls += count
        rate = count / json.loads(output.stdout)["elapsed"]
        count = max(16, int(rate * seconds))
    return rate, calls


def photograph(name: str) -> tuple[bytes, object]:
    """Returns a JPEG of about the size that the images of this name have, and what is asked of it."""
    size, byte_count, job = {"small": ((1024, 768), 184_000, "T"), "photo": ((4000, 3000), 3_300_000, "T")}[name]
    image = Image.open(io.BytesIO(fixture_bytes("photo-420.jpg"))).convert("RGB").resize(size)
    # Film grain, of which a photograph has some.
    grain = Image.effect_noise(size, 40).convert("RGB")
    low, high = 0.0, 1.0
    for _ in range(7):
        share, buffer = (low + high) / 2, io.BytesIO()
        Image.blend(image, grain, share).save(buffer, "JPEG", quality=88)
        low, high = (share, high) if buffer.tell() < byte_count else (low, share)
    return buffer.getvalue(), JOBS[job]


def outcomes(worker: Worker) -> int:
    """Returns the number of images whose outcome the worker has counted."""
    address = json.loads(next(line for line in worker.log if '"metrics"' in line))["address"]
    with urllib.request.urlopen(f"http://127.0.0.1:{re.search(r':([0-9]+)[^0-9]*$', address)[1]}/metrics") as response:
        text = response.read().decode()
    return int(sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines()
                   if line.startswith("imageworker_images_total")))


def row(worker: Worker, folder: Path, rate: float, load: float, deadline: str, seconds: float) -> tuple[str, float]:
    """Measures one load; returns its cells, and the useful results per second."""
    before = outcomes(worker)
    offers = [start("offer", worker.address, folder / "image", load * rate / OFFERERS, seconds, deadline)
              for _ in range(OFFERERS)]
    time.sleep(min(2, seconds / 4))
    icons = result(start("probe", worker.address, folder / "icon", seconds / 2))
    ended = [result(process) for process in offers]
    time.sleep(0.5)
    ends = [end for outcome in ended for end in outcome["ends"]]
    useful = [took for status, took in ends if status == "OK"]
    refused = [took for status, took in ends if status == "RESOURCE_EXHAUSTED"]
    # What still waits when the last call has begun is done afterwards, within the deadline.
    elapsed = max(outcome["elapsed"] for outcome in ended)
    busy = sum(outcome["cpu"] for outcome in ended) / elapsed
    counted = outcomes(worker) - before
    return (
        f"{len(useful) / elapsed:.1f} | {len(useful) / elapsed / rate:.0%} | {quantiles(useful)} |"
        f" {len(refused) / len(ends):.0%} | {quantiles(refused)} | {1 - (len(useful) + len(refused)) / len(ends):.1%} |"
        f" {quantiles(icons)} | {counted} of {len(ends) + len(icons)} | {busy:.0%}"), len(useful) / elapsed


def measure(binary: str, name: str, link: str, arguments: argparse.Namespace) -> None:
    os.environ["IMAGE_WORKER"] = binary
    os.sched_setaffinity(0, {WORKER_CORE})
    worker = Worker("--threads", "1", "--metrics-port", "0")
    os.sched_setaffinity(0, {CLIENT_CORE})
    client = Client(worker)
    image, job = photograph(name)
    with tempfile.TemporaryDirectory() as path:
        folder = Path(path)
        (folder / "image").write_bytes(client.request(image, job).SerializeToString())
        icon = client.request(fixture_bytes("photo-420.jpg"), JOBS["F"])
        (folder / "icon").write_bytes(icon.SerializeToString())
        rate, _ = saturating_rate(worker.address, str(folder / "image"), arguments.seconds / 2)
        for deadline in arguments.deadlines.split(","):
            for load in arguments.loads.split(","):
                cells, _ = row(worker, folder, rate, float(load), deadline, arguments.seconds)
                print(
                    f"| {Path(binary).name} | {len(image) / 1000:.0f} KB | {link} | {rate:.1f} | {deadline} s | {load} |"
                    f" {cells} |", flush=True)
    worker.process.kill()


def main() -> None:
    if sys.argv[1:2] == ["offer"]:
        address, path, rate, seconds, deadline = sys.argv[2:]
        return asyncio.run(offer(address, path, float(rate), float(seconds), float(deadline)))
    if sys.argv[1:2] == ["probe"]:
        return asyncio.run(probe(sys.argv[2], sys.argv[3], float(sys.argv[4])))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("workers", nargs="+")
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--images", default="small,photo")
    parser.add_argument("--links", default="loopback,200")
    parser.add_argument("--deadlines", default="3,10")
    parser.add_argument("--loads", default="1,2,5")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if not arguments.inside:
        print("| worker | image | link | saturating calls/s | deadline | load | useful results/s | of the saturating rate |"
              " their median / p99 ms | refused | median / p99 ms | late | another client's favicon, median / p99 ms |"
              " outcomes in metrics | clients' core |\n" + "|---" * 15 + "|", flush=True)
    for link in arguments.links.split(","):
        if link != "loopback" and not arguments.inside:
            shell = (f"ip link set lo mtu 1500 up && tc qdisc add dev lo root tbf rate {link}mbit burst 256kb latency 10ms"
                     " && exec \"$@\"")
            subprocess.run(["unshare", "--net", "bash", "-c", shell, "bash", sys.executable, __file__, *sys.argv[1:],
                            f"--links={link}", "--inside=namespace"], check=True)
            continue
        for name in arguments.images.split(","):
            for binary in arguments.workers:
                measure(binary, name, f"{link} Mbit/s" if arguments.inside else link, arguments)


if __name__ == "__main__":
    main()
