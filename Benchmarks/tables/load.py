"""Measures images per second over gRPC at several numbers of concurrent calls, for the worker and a pyvips server."""

import json
import os
import statistics
import subprocess
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path

from peers import HERE, JOBS, ONE_THREAD, ROOT, Tools, cpu_seconds, resident_mib
from worker import Client, Worker

CONCURRENCIES = (1, 2, 8, 32, 256)
DESCRIPTORS = ROOT / "Sources" / "WorkerProtocol" / "Generated" / "descriptor_set.binpb"


def family(pid: int) -> list[int]:
    """Returns a process and its descendants."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid] + [one for child in children for one in family(int(child))]


class Server:
    """All processes of a server."""

    def cpu(self) -> float:
        return sum(cpu_seconds(pid) for pid in family(self.pid))

    def resident(self) -> float:
        return sum(resident_mib(pid, "VmRSS") for pid in family(self.pid))


class WorkerServer(Server):
    name = "image-worker"

    def __init__(self, tools: Tools):
        os.environ["IMAGE_WORKER"] = str(tools.worker)
        self.worker = Worker("--threads", "2")
        self.address, self.pid = self.worker.address, self.worker.process.pid

    def stop(self) -> None:
        self.worker.stop()


class PyvipsServer(Server):
    name = "pyvips, 2 processes"

    def __init__(self, tools: Tools):
        self.process = subprocess.Popen(
            [tools.python, HERE / "pyvips_server.py", DESCRIPTORS, "2"], stdout=subprocess.PIPE, text=True,
            env={**os.environ, **ONE_THREAD})
        self.pid = self.process.pid
        self.address = f"127.0.0.1:{int(self.process.stdout.readline())}"

    def stop(self) -> None:
        for pid in reversed(family(self.pid)):
            os.kill(pid, 15)
        self.process.wait()


class PeakSampler:
    """Samples the total memory of a server's processes twenty times per second and keeps the maximum."""

    def __init__(self, server: Server):
        self.server, self.peak = server, 0.0
        self.done = threading.Event()
        self.thread = threading.Thread(target=self.watch)

    def watch(self) -> None:
        while not self.done.wait(0.05):
            self.peak = max(self.peak, self.server.resident())

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()


@dataclass
class Load:
    """The measurements of one server at one concurrency, by round."""

    server: str
    concurrency: int
    rates: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)
    client_cpu_ms: list[float] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)
    peaks: list[float] = field(default_factory=list)
    refused: int = 0

    def row(self) -> str:
        ordered = sorted(self.latencies)
        p50, p99 = (ordered[min(int(len(ordered) * part), len(ordered) - 1)] * 1000 for part in (0.5, 0.99))
        middle = [statistics.median(values) for values in (self.rates, self.cpu_ms, self.client_cpu_ms)]
        return (f"| {self.concurrency} | {self.server} | {middle[0]:.1f} | {middle[1]:.1f} | {p50:.0f} | {p99:.0f} | "
                f"{max(self.peaks):.0f} | {self.refused} | {middle[2]:.1f} |")


def run_once(server: Server, load: Load, request: Path, calls: int, python: Path) -> None:
    began = server.cpu()
    with PeakSampler(server) as sampler:
        client = subprocess.run(
            [python, HERE / "load_client.py", server.address, request, str(load.concurrency), str(calls)],
            stdout=subprocess.PIPE, check=True)
    seen = json.loads(client.stdout)
    done = max(len(seen["latencies"]), 1)
    load.rates.append(len(seen["latencies"]) / seen["elapsed"])
    load.cpu_ms.append((server.cpu() - began) / done * 1000)
    load.client_cpu_ms.append(seen["cpu"] / done * 1000)
    load.latencies += seen["latencies"]
    load.peaks.append(sampler.peak)
    load.refused += len(seen["refusals"])


def measure(tools: Tools, photograph: Path, rounds: int, calls: int, concurrencies=CONCURRENCIES) -> list[Load]:
    """Returns the measurements of each server and concurrency. Each round starts new servers, which take turns."""
    loads = {(concurrency, kind.name): Load(kind.name, concurrency)
             for concurrency in concurrencies for kind in (WorkerServer, PyvipsServer)}
    with tempfile.NamedTemporaryFile() as request:
        for _ in range(rounds):
            for concurrency in concurrencies:
                for kind in (WorkerServer, PyvipsServer):
                    server = kind(tools)
                    if request.tell() == 0:
                        message = Client(server.worker).request(photograph.read_bytes(), JOBS["T"])
                        request.write(message.SerializeToString())
                        request.flush()
                    load = loads[concurrency, kind.name]
                    try:
                        run_once(server, load, Path(request.name), max(calls, 3 * concurrency), tools.python)
                    finally:
                        server.stop()
                    print(load.row(), flush=True)
    return list(loads.values())


def table(loads: list[Load]) -> list[str]:
    head = ["| calls | server | images/s | server CPU ms | p50 ms | p99 ms | peak MiB | refused | client CPU ms |",
            "|---|---|---|---|---|---|---|---|---|"]
    return head + [load.row() for load in loads]
