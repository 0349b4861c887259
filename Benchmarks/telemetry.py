"""Prints what full telemetry costs the server: CPU of small jobs with traces and metrics exported, and without, in rounds
A B A B.

Needs the packages of Tests/ForeignClientTests. Pictures are given as arguments; without any, a small one of the fixtures.
"""

import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "Tests" / "ForeignClientTests"))
from conftest import Client, Worker, fixture_bytes  # noqa: E402
from telemetry import Collector, environment  # noqa: E402

ROUNDS = 9
SECONDS = 2.0  # of CPU in a round, so that the clock's ticks of 10 ms do not matter


def cost(client: Client, worker: Worker, image: bytes, count: int) -> float:
    """CPU milliseconds of the server for one job."""
    request = client.message("ProcessImageRequest")(image=image, preset="favicon")
    method = client.call("ProcessImage", "unary_stream")
    before = worker.cpu_seconds()
    for _ in range(count):
        for _ in method(request, timeout=60):
            pass
    return (worker.cpu_seconds() - before) * 1000 / count


def compare(image: bytes, collector: Collector) -> tuple[float, float, list[float]]:
    plain = Worker()
    traced = Worker(environment=environment(
        collector, OTEL_METRICS_EXPORTER="otlp", OTEL_BSP_SCHEDULE_DELAY="5000", OTEL_METRIC_EXPORT_INTERVAL="10000"))
    clients = Client(plain), Client(traced)
    count = max(20, int(SECONDS * 1000 / cost(clients[0], plain, image, 50)))
    pairs = [(cost(clients[0], plain, image, count), cost(clients[1], traced, image, count)) for _ in range(ROUNDS)]
    assert plain.stop() == 0 and traced.stop() == 0
    off, on = (statistics.median(column) for column in zip(*pairs))
    return off, on, [b / a - 1 for a, b in pairs]


def main() -> None:
    pictures = {path: Path(path).read_bytes() for path in sys.argv[1:]} or {"photo-420.jpg": fixture_bytes("photo-420.jpg")}
    print("| picture | CPU ms off | CPU ms on | overhead, median (least, most) |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        collector = Collector(Path(folder))
        for name, image in pictures.items():
            off, on, shares = compare(image, collector)
            print(f"| {Path(name).name} | {off:.3f} | {on:.3f} | {statistics.median(shares):.1%} "
                  f"({min(shares):.1%}, {max(shares):.1%}) |", flush=True)
        collector.kill()


if __name__ == "__main__":
    main()
