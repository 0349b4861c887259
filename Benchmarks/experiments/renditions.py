"""Prints the cost of several renditions of one image in one call, compared with one call for each.

Produces three sizes of a photograph of 12 megapixels, passed as a file, in interleaved rounds. Needs IMAGE_WORKER, the
path of the worker, and the packages of requirements.txt.
"""

import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tables"))
from worker import Client, Worker  # noqa: E402

SIZES = [(1280, 720), (300, 300), (64, 64)]
ROUNDS, CALLS = 9, 10


def configuration(client: Client, width: int, height: int):
    return client.message("ProcessingConfiguration")(
        max_width=width, max_height=height, compression_quality=0.8, preferred_format=2)


def together(client: Client, image: bytes) -> int:
    request = client.message("ProcessImageRequest")(image=image)
    for width, height in SIZES:
        request.renditions.add(rendition_id=str(width), configuration=configuration(client, width, height))
    parts = client.call("ProcessImage", "unary_stream")(request, timeout=60)
    return sum(part.WhichOneof("part") == "report" for part in parts)


def alone(client: Client, image: bytes) -> int:
    reports = 0
    for width, height in SIZES:
        request = client.message("ProcessImageRequest")(image=image, configuration=configuration(client, width, height))
        parts = client.call("ProcessImage", "unary_stream")(request, timeout=60)
        reports += sum(part.WhichOneof("part") == "report" for part in parts)
    return reports


def main() -> None:
    image = Path(sys.argv[1]).read_bytes()
    worker = Worker("--threads", "1")
    client = Client(worker)
    costs = {together: [], alone: []}
    for _ in range(ROUNDS):
        for way, measured in costs.items():
            before = worker.cpu_seconds()
            assert all(way(client, image) == len(SIZES) for _ in range(CALLS))
            measured.append((worker.cpu_seconds() - before) * 1000 / CALLS)
    worker.stop()
    one, three = (statistics.median(measured) for measured in costs.values())
    print(f"CPU ms: one call {one:.1f}, three calls {three:.1f}, ratio {three / one:.2f}")


if __name__ == "__main__":
    main()
