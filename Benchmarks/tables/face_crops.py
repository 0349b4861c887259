"""Compares crops of GRAVITY_FACES with those of SMART, of libvips, and centered ones, on images with annotated faces.

Usage: Tests/EndToEnd/python.sh Benchmarks/tables/face_crops.py DETECTOR IMAGES BOXES, with IMAGE_WORKER=path/to/image-worker

BOXES has a line for each face of an image in the directory IMAGES: its name, then left, top, right and bottom in pixels.
"""

import io
import sys
from pathlib import Path

import numpy as np
from PIL import Image
from smart_crops import ROOT, Client, Worker, centered, vips_crop

RATIOS = {"1:1": (240, 240), "16:9": (320, 180), "9:16": (180, 320)}
REPEATS = 20


def read(images: Path, boxes: Path):
    """The images that can be read, in color and at most 600 pixels large, as libvips gets them, and faces in fractions."""
    faces: dict[str, list[tuple[float, ...]]] = {}
    for line in boxes.read_text().splitlines():
        name, *edges = line.split()
        if len(edges) == 4:
            faces.setdefault(name, []).append(tuple(map(float, edges)))
    for name, found in sorted(faces.items()):
        path = images / name
        if not path.exists():
            continue
        image = Image.open(path).convert("RGB")
        size = 2 * image.size
        fractions = [[min(1, max(0, edge / length)) for edge, length in zip(face, size, strict=True)] for face in found]
        image.thumbnail((600, 600))
        file = io.BytesIO()
        image.save(file, "PNG")
        yield file.getvalue(), fractions


def worker_crop(client, gravity: str, data: bytes, width: int, height: int):
    parts = client.process(
        data, max_width=width, max_height=height, resize_mode="RESIZE_MODE_FILL", gravity=gravity, allow_upscale=True)
    report = list(parts)[-1].report
    crop, size = report.crop, (report.input.width, report.input.height)
    return (crop.x / size[0], crop.y / size[1], (crop.x + crop.width) / size[0], (crop.y + crop.height) / size[1])


def whole(face, crop) -> bool:
    """Whether a crop keeps at least 95 % of a face on both axes."""
    return all(
        min(face[axis + 2], crop[axis + 2]) - max(face[axis], crop[axis]) >= 0.95 * (face[axis + 2] - face[axis])
        for axis in (0, 1))


def fits(faces, data: bytes, size) -> bool:
    """Whether some crop of this size keeps all faces."""
    crop = centered(data, *size)
    return all(
        max(face[axis + 2] for face in faces) - min(face[axis] for face in faces) <= crop[axis + 2] - crop[axis] + 1e-6
        for axis in (0, 1))


def crops(client, cases) -> None:
    methods = {
        "GRAVITY_FACES": lambda data, *size: worker_crop(client, "GRAVITY_FACES", data, *size),
        "GRAVITY_SMART": lambda data, *size: worker_crop(client, "GRAVITY_SMART", data, *size),
        "libvips attention": lambda data, *size: vips_crop(data, *size, "attention"),
        "libvips entropy": lambda data, *size: vips_crop(data, *size, "entropy"),
        "centered": centered,
    }
    fitting = {ratio: [case for case in cases if fits(case[1], case[0], size)] for ratio, size in RATIOS.items()}
    heads = [f"{ratio}, {sum(len(faces) for _, faces in fitting[ratio])} faces" for ratio in RATIOS]
    print("| crop | " + " | ".join(heads) + " |\n|---|" + "---|" * len(RATIOS))
    for name, method in methods.items():
        cells = []
        for ratio, size in RATIOS.items():
            kept = []
            for data, faces in fitting[ratio]:
                crop = method(data, *size)
                kept += [whole(face, crop) for face in faces]
            cells.append(f"{100 * np.mean(kept):.1f} %")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def detection(client, cases) -> None:
    found = extra = 0
    for data, faces in cases:
        parts = client.process(data, regions=[{"shape": "REGION_SHAPE_FACES"}])
        report = list(parts)[-1].report
        width, height = report.input.width, report.input.height
        hits = set()
        for rect in report.faces:
            x, y = (rect.x + rect.width / 2) / width, (rect.y + rect.height / 2) / height
            hit = [i for i, face in enumerate(faces) if face[0] <= x <= face[2] and face[1] <= y <= face[3]]
            hits.update(hit[:1])
            extra += not hit
        found += len(hits)
    total = sum(len(faces) for _, faces in cases)
    print(f"\n{found} of {total} faces found in {len(cases)} images, and {extra} places that are none")


def cpu_time(detector: str) -> None:
    """The CPU time that faces add to a thumbnail of a photograph with 12 megapixels."""
    photograph = next((ROOT.parent / "shared/corpus/12-photos").glob("immich--prairie*"))
    image = Image.open(photograph).convert("RGB").resize((4000, 3000))
    file = io.BytesIO()
    image.save(file, "JPEG", quality=90)
    for gravity in ("GRAVITY_SMART", "GRAVITY_FACES"):
        worker = Worker("--cache-memory-mib", "0", "--isolation", "none", "--face-detector", detector)
        try:
            client = Client(worker)
            worker_crop(client, gravity, file.getvalue(), 200, 200)
            before = worker.cpu_seconds()
            for _ in range(REPEATS):
                worker_crop(client, gravity, file.getvalue(), 200, 200)
            print(f"{gravity}: {1000 * (worker.cpu_seconds() - before) / REPEATS:.1f} ms of CPU time")
        finally:
            worker.stop()


def main() -> None:
    detector, images, boxes = sys.argv[1:]
    cases = list(read(Path(images), Path(boxes)))
    worker = Worker("--cache-memory-mib", "0", "--isolation", "none", "--face-detector", detector)
    try:
        client = Client(worker)
        print(f"{len(cases)} images, {sum(len(faces) for _, faces in cases)} faces\n")
        crops(client, cases)
        detection(client, cases)
    finally:
        worker.stop()
    cpu_time(detector)


if __name__ == "__main__":
    main()
