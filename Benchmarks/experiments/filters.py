"""Prints the difference of each filter from an independent implementation, and the cost of filters and filter chains.

  IMAGE_WORKER=.build/release/image-worker Tests/EndToEnd/python.sh Benchmarks/experiments/filters.py [PICTURE]

The differences are between PNG results over gRPC and those of Pillow or numpy, in levels of 255. The cost is the filter
stage's busy time reported by the worker for a JPEG fitted in 1280x720, the minimum of 15 interleaved rounds. Needs the
packages of Tests/EndToEnd, and an image of at least that size; the default is one of ../shared/corpus.
"""

import sys
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "Tests" / "EndToEnd"))
from conftest import FIXTURES, Client, Worker, fixture_bytes  # noqa: E402
from filter_references import CASES, distances  # noqa: E402
from test_filters import filtered  # noqa: E402

PHOTO = ROOT.parent / "shared/corpus/12-photos/mei--Issue_525.jpg"
JPEG, PNG, ROUNDS = 2, 3, 15
FUSED = ["grayscale", "tint", "invert", "duotone", "grayscale", "tint"]
CURVES = ["gamma", "brightness", "contrast", "exposure", "invert", "gamma"]
CLAMPED = ["saturation", "hue", "sepia", "saturation", "hue", "sepia"]


def print_distances(client: Client) -> None:
    source = Image.open(FIXTURES / "photo.png").convert("RGB")
    print("| filter | parameters | beside | largest | mean |\n|---|---|---|---|---|")
    for case in CASES:
        name, parameters, _, origin, *_ = case
        result, _ = filtered(client, fixture_bytes("photo.png"), [(name, 1, parameters)], preferred_format=PNG)
        largest, mean = distances(result, source, case)
        given = ", ".join(f"{key} {value:.4g}" for key, value in parameters.items()) or "defaults"
        print(f"| {name} | {given} | {origin} | {largest:.2f} | {mean:.2f} |")


def print_costs(client: Client, image: bytes) -> None:
    singles = dict.fromkeys(name for name, *_ in CASES)
    chains = {name: [name] for name in singles}
    chains |= {"six matrices, fused": FUSED, "six curves, fused": CURVES, "six matrices that clamp": CLAMPED}
    times = {label: [] for label in chains}
    for _ in range(ROUNDS):
        for label, names in chains.items():
            _, report = filtered(
                client, image, [(name, 1, {}) for name in names], max_width=1280, max_height=720,
                preferred_format=JPEG, compression_quality=0.8)
            times[label].append(report.timings.filter.ToNanoseconds() / 1e6)
    pixels = report.output.width * report.output.height / 1e6
    print(f"\n| filters, {report.output.width}x{report.output.height} | ms | ns a pixel |\n|---|---|---|")
    for label, found in times.items():
        print(f"| {label} | {min(found):.2f} | {min(found) / pixels:.2f} |")


def main() -> None:
    image = Path(sys.argv[1]) if len(sys.argv) > 1 else PHOTO
    worker = Worker("--isolation", "none")
    client = Client(worker)
    print_distances(client)
    print_costs(client, image.read_bytes())
    worker.stop()


if __name__ == "__main__":
    main()
