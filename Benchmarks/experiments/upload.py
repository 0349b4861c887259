"""Prints the cost of an upload for the server by HTTP/2 window and frame size, in interleaved rounds.

The upload is a small image followed by bytes that the worker receives and ignores, so that only transport is measured.
Needs IMAGE_WORKER, the path of the worker, and the packages of requirements.txt.
"""

import os
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tables"))
from worker import Client, Worker, fixture_bytes  # noqa: E402

MIB = 1 << 20


def cost(client: Client, worker: Worker, chunk: int) -> tuple[float, float]:
    """Returns the server's CPU time and the wall time in milliseconds for 100 MiB in chunks."""
    data = b"\0" * chunk
    requests = [client.start("a", "favicon"), client.chunk("a", fixture_bytes("photo-420.jpg"))]
    requests += [client.chunk("a", data)] * (100 * MIB // chunk) + [client.end("a")]
    cpu, wall = worker.cpu_seconds(), time.monotonic()
    assert list(client.batch(iter(requests)))[-1].WhichOneof("part") == "report"
    return (worker.cpu_seconds() - cpu) * 1000, (time.monotonic() - wall) * 1000


def main() -> None:
    settings = [(64, 16), (256, 64), (1024, 16), (1024, 256), (8192, 1024)]
    runs = {(setting, chunk): [] for setting in settings for chunk in (64, 256, 1024)}
    workers = {}
    for window, frame in settings:
        os.environ["IMAGE_WORKER_WINDOW_KIB"], os.environ["IMAGE_WORKER_FRAME_KIB"] = str(window), str(frame)
        workers[window, frame] = Worker()
    clients = {setting: Client(worker) for setting, worker in workers.items()}
    for _ in range(5):
        for setting, chunk in runs:
            runs[setting, chunk].append(cost(clients[setting], workers[setting], chunk << 10))
    print("| window KiB | frame KiB | chunk KiB | server CPU ms / 100 MiB | wall ms / 100 MiB |\n|---|---|---|---|---|")
    for ((window, frame), chunk), results in runs.items():
        cpu, wall = (statistics.median(column) for column in zip(*results))
        print(f"| {window} | {frame} | {chunk} | {cpu:.0f} | {wall:.0f} |")
    for worker in workers.values():
        worker.stop()


if __name__ == "__main__":
    main()
