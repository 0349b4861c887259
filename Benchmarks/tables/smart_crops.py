"""Compares crops of GRAVITY_SMART with libvips' and with centered ones, on photographs of the corpus with a marked subject.

Usage: Tests/EndToEnd/python.sh Benchmarks/tables/smart_crops.py, with IMAGE_WORKER=path/to/image-worker
"""

import sys
from pathlib import Path

import numpy as np
import pyvips

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "Tests/EndToEnd"))
from conftest import Client, Worker  # noqa: E402

PHOTOS = ROOT.parent / "shared/corpus/12-photos"
# The subject, as fractions of the displayed image: left, top, right, bottom. Marked by hand before anything was measured.
SUBJECTS = {
    "avif--dog_exif_extended_xmp_icc.jpg": (0.24, 0.26, 0.84, 0.73),
    "immich--craft-beer.jpg": (0.43, 0.18, 0.55, 0.42),
    "immich--cyclamen_persicum.jpg": (0.17, 0.14, 0.73, 0.79),
    "immich--el_torcal_rocks.jpg": (0.32, 0.24, 0.57, 0.56),
    "immich--notocactus_minimus.jpg": (0.39, 0.32, 0.60, 0.62),
    "immich--orychophragmus_violaceus.jpg": (0.10, 0.12, 0.84, 0.63),
    "immich--polemonium_reptans.jpg": (0.28, 0.09, 0.81, 0.94),
    "immich--prairie_falcon.jpg": (0.27, 0.36, 0.61, 0.62),
    "mei--Apple_iPhone_4.jpg": (0.18, 0.29, 0.91, 0.78),
    "mei--Android_Depth_Map.jpg": (0.08, 0.45, 0.96, 0.81),
}
RATIOS = {"1:1": (240, 240), "16:9": (320, 180), "9:16": (180, 320), "3:1": (360, 120)}
# The space that is left beside a subject at an edge, as a fraction of the photograph.
MARGIN = 0.04


def load(data: bytes):
    return pyvips.Image.thumbnail_buffer(data, 1000, height=1000).colourspace("srgb")[0:3].copy_memory()


def at_the_edges(data: bytes, box):
    """Copies that are cut at one side so that the subject is at that edge."""
    image = load(data)
    for side in range(4):
        part = [0, 0, 1, 1]
        part[side] = max(0, box[side] - MARGIN) if side < 2 else min(1, box[side] + MARGIN)
        width, height = part[2] - part[0], part[3] - part[1]
        if min(width, height) > 0.85:
            continue
        cut = image.crop(
            int(part[0] * image.width), int(part[1] * image.height), int(width * image.width), int(height * image.height))
        place = [(box[i] - part[i % 2]) / (width, height)[i % 2] for i in range(4)]
        yield cut.write_to_buffer(".png"), place


def worker_crop(client, data: bytes, width: int, height: int):
    parts = client.process(
        data, max_width=width, max_height=height, resize_mode="RESIZE_MODE_FILL", gravity="GRAVITY_SMART", allow_upscale=True)
    report = list(parts)[-1].report
    crop, size = report.crop, (report.input.width, report.input.height)
    return (crop.x / size[0], crop.y / size[1], (crop.x + crop.width) / size[0], (crop.y + crop.height) / size[1])


def vips_crop(data: bytes, width: int, height: int, interesting: str):
    """The place of libvips' crop, found by comparing it with each part of the image."""
    image = load(data)
    scale = max(width / image.width, height / image.height)
    size = (min(image.width, round(width / scale)), min(image.height, round(height / scale)))
    cropped, whole = image.smartcrop(*size, interesting=interesting).numpy(), image.numpy()
    for top in range(image.height - size[1] + 1):
        for left in range(image.width - size[0] + 1):
            if np.array_equal(whole[top:top + size[1], left:left + size[0]], cropped):
                return (
                    left / image.width, top / image.height, (left + size[0]) / image.width, (top + size[1]) / image.height)
    raise AssertionError("the crop is no part of the image")


def centered(data: bytes, width: int, height: int):
    image = load(data)
    scale = max(width / image.width, height / image.height)
    across, down = width / scale / image.width, height / scale / image.height
    return (0.5 - across / 2, 0.5 - down / 2, 0.5 + across / 2, 0.5 + down / 2)


def kept(subject, crop) -> float:
    """The share of the subject that a crop keeps, of what a crop of this size could keep."""
    def overlap(first: int) -> float:
        length = min(subject[first + 2], crop[first + 2]) - max(subject[first], crop[first])
        return max(0, length) / min(subject[first + 2] - subject[first], crop[first + 2] - crop[first])
    return overlap(0) * overlap(1)


def table(methods, cases) -> None:
    print("| crop | " + " | ".join(RATIOS) + " | all | at least 90 % kept |\n|---|" + "---|" * (len(RATIOS) + 2))
    for name, method in methods.items():
        shares = {ratio: [kept(box, method(data, *size)) for data, box in cases] for ratio, size in RATIOS.items()}
        every = [share for one in shares.values() for share in one]
        cells = [f"{100 * np.mean(one):.0f} %" for one in (*shares.values(), every)]
        print(f"| {name} | " + " | ".join(cells) + f" | {sum(share >= 0.9 for share in every)} of {len(every)} |")


def main() -> None:
    worker = Worker("--cache-memory-mib", "0", "--isolation", "none")
    client = Client(worker)
    methods = {
        "GRAVITY_SMART": lambda data, *size: worker_crop(client, data, *size),
        "libvips attention": lambda data, *size: vips_crop(data, *size, "attention"),
        "libvips entropy": lambda data, *size: vips_crop(data, *size, "entropy"),
        "centered": centered,
    }
    photographs = [((PHOTOS / name).read_bytes(), box) for name, box in SUBJECTS.items()]
    try:
        table(methods, photographs)
        print()
        table(methods, [case for data, box in photographs for case in at_the_edges(data, box)])
    finally:
        worker.stop()


if __name__ == "__main__":
    main()
