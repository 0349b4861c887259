"""Prints the cost of a preview for the server compared with the result alone, and how much earlier it arrives.

Processes a photograph to 1280x720 (T) and to 1920x1080 at full quality (H), in interleaved rounds. Needs
IMAGE_WORKER, the path of the worker, and the packages of requirements.txt.
"""

import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tables"))
from worker import Client, Worker  # noqa: E402

JOBS = {"T": (1280, 720, 0.8), "H": (1920, 1080, 1)}
ROUNDS, CALLS = 9, 10


def call(client: Client, image: bytes, job: tuple[int, int, float], preview: bool) -> dict[bool, float]:
    """Returns the seconds until the reports of the result and of the preview."""
    width, height, quality = job
    request = client.message("ProcessImageRequest")(
        image=image, preview=preview, configuration=client.message("ProcessingConfiguration")(
            max_width=width, max_height=height, compression_quality=quality, preferred_format=2))
    began = time.perf_counter()
    parts = client.call("ProcessImage", "unary_stream")(request, timeout=60)
    return {part.is_preview: time.perf_counter() - began for part in parts if part.WhichOneof("part") == "report"}


def main() -> None:
    image = Path(sys.argv[1]).read_bytes()
    worker = Worker("--threads", "1")
    client = Client(worker)
    for name, job in JOBS.items():
        costs, waits = {False: [], True: []}, {False: [], True: []}
        for _ in range(ROUNDS):
            for preview, measured in costs.items():
                before = worker.cpu_seconds()
                reports = [call(client, image, job, preview) for _ in range(CALLS)]
                measured.append((worker.cpu_seconds() - before) * 1000 / CALLS)
                waits[preview].append(statistics.median(times[preview] for times in reports) * 1000)
        alone, both = (statistics.median(measured) for measured in costs.values())
        result, first = (statistics.median(measured) for measured in waits.values())
        print(f"{name}: CPU ms alone {alone:.1f}, with a preview {both:.1f}, ratio {both / alone:.2f}; "
              f"ms to the whole result alone {result:.1f}, to the whole preview {first:.1f}")
    worker.stop()


if __name__ == "__main__":
    main()
