"""Prints the cost of telemetry: CPU time of small jobs with all traces exported and without, in rounds A B A B.

With --metrics, metrics are exported too. Each side has several servers, because two servers of the same kind may differ
by more than telemetry costs. Needs the packages of Tests/EndToEnd. The arguments are images; the default is a small
fixture.
"""

import statistics
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "Tests" / "EndToEnd"), str(ROOT / "Benchmarks" / "tables")]
from worker import Client, Worker, fixture_bytes  # noqa: E402
from telemetry import Collector, environment  # noqa: E402

ROUNDS = 60
WORKERS = 3  # of each side
CALLS = 100  # per round: many short rounds spread other load on the machine evenly over both sides


def cpu_milliseconds(worker: Worker) -> float:
    """Returns the CPU time of the process, with nanosecond resolution."""
    tasks = Path(f"/proc/{worker.process.pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e6


def cost(client: Client, worker: Worker, image: bytes) -> float:
    """Returns the server's CPU time for one job in milliseconds."""
    request = client.message("ProcessImageRequest")(image=image, preset="favicon")
    method = client.call("ProcessImage", "unary_stream")
    before = cpu_milliseconds(worker)
    for _ in range(CALLS):
        for _ in method(request, timeout=60):
            pass
    return (cpu_milliseconds(worker) - before) / CALLS


def compare(image: bytes, collector: Collector, has_metrics: bool) -> tuple[float, float, list[float]]:
    traces = environment(
        collector, OTEL_METRICS_EXPORTER="otlp" if has_metrics else "none", OTEL_BSP_SCHEDULE_DELAY="5000",
        OTEL_METRIC_EXPORT_INTERVAL="10000")
    workers = [Worker(environment=traces if is_traced else None) for _ in range(WORKERS) for is_traced in (False, True)]
    clients = [Client(worker) for worker in workers]

    def round_of_costs() -> tuple[float, float]:
        """Returns the cost of a call without telemetry and with it, averaged over the servers."""
        costs = [cost(client, worker, image) for client, worker in zip(clients, workers)]
        return sum(costs[::2]) / WORKERS, sum(costs[1::2]) / WORKERS

    for _ in range(3):
        round_of_costs()
    pairs = [round_of_costs() for _ in range(ROUNDS)]
    assert all(worker.stop() == 0 for worker in workers)
    off, on = (statistics.median(column) for column in zip(*pairs))
    return off, on, [b / a - 1 for a, b in pairs]


def main() -> None:
    has_metrics = "--metrics" in sys.argv
    paths = [argument for argument in sys.argv[1:] if argument != "--metrics"]
    images = {path: Path(path).read_bytes() for path in paths} or {"photo-420.jpg": fixture_bytes("photo-420.jpg")}
    print("| image | CPU ms off | CPU ms on | overhead, median (quartiles) |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        collector = Collector(Path(folder))
        for name, image in images.items():
            off, on, shares = compare(image, collector, has_metrics)
            low, middle, high = statistics.quantiles(shares, n=4)
            print(f"| {Path(name).name} | {off:.3f} | {on:.3f} | {middle:.1%} ({low:.1%}, {high:.1%}) |", flush=True)
        collector.kill()


if __name__ == "__main__":
    main()
