"""Makes arrays with one library in a separate process: tensor_peers.py LIBRARY FOLDER SIDE.

It reads the JPEGs of the folder, prints its version when it is ready, and answers each line of its input with the CPU seconds that
all of the images took, from their bytes to a normalized array of float16 in CHW. The part in the middle fills SIDE x SIDE pixels,
reduced with a filter that covers all pixels of the source. Each library has one thread, and does what its manual recommends;
"reduced" is with the reduced decoding that libraries of JPEGs have.
"""

import io
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

MEAN, DEVIATION = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
#: The element of each sample, by channel: faster than to compute and to round it.
ELEMENTS = ((np.arange(256) / 255 - MEAN[:, None]) / DEVIATION[:, None]).astype(np.float16)


def normalized(pixels: np.ndarray, order: tuple[int, int, int] = (0, 1, 2)) -> np.ndarray:
    return np.stack([ELEMENTS[channel][pixels[..., place]] for channel, place in enumerate(order)])


def middle(width: int, height: int) -> tuple[int, int, int, int]:
    """The largest square in the middle: its left, top, right and bottom."""
    side = min(width, height)
    left, top = (width - side) // 2, (height - side) // 2
    return left, top, left + side, top + side


def pillow(side: int, is_reduced: bool = False) -> tuple[str, Callable]:
    import PIL
    from PIL import Image

    def process(data: bytes) -> np.ndarray:
        image = Image.open(io.BytesIO(data))
        if is_reduced:
            image.draft("RGB", (2 * side, 2 * side))
        image = image.convert("RGB")
        return normalized(np.asarray(image.resize((side, side), Image.Resampling.BICUBIC, middle(*image.size))))

    return PIL.__version__, process


def opencv(side: int, is_reduced: bool = False) -> tuple[str, Callable]:
    import cv2
    import simplejpeg

    cv2.setNumThreads(1)
    flags = {1: cv2.IMREAD_COLOR, 2: cv2.IMREAD_REDUCED_COLOR_2, 4: cv2.IMREAD_REDUCED_COLOR_4, 8: cv2.IMREAD_REDUCED_COLOR_8}

    def process(data: bytes) -> np.ndarray:
        factor = 1
        if is_reduced:
            height, width, *_ = simplejpeg.decode_jpeg_header(data)
            factor = max(factor for factor in flags if min(width, height) >= factor * side or factor == 1)
        image = cv2.imdecode(np.frombuffer(data, np.uint8), flags[factor])
        left, top, right, bottom = middle(image.shape[1], image.shape[0])
        small = cv2.resize(image[top:bottom, left:right], (side, side), interpolation=cv2.INTER_AREA)
        return normalized(small, (2, 1, 0))

    return cv2.__version__, process


def simplejpeg(side: int) -> tuple[str, Callable]:
    import cv2
    import simplejpeg

    cv2.setNumThreads(1)

    def process(data: bytes) -> np.ndarray:
        image = simplejpeg.decode_jpeg(data, "RGB", min_height=side, min_width=side)
        left, top, right, bottom = middle(image.shape[1], image.shape[0])
        return normalized(cv2.resize(image[top:bottom, left:right], (side, side), interpolation=cv2.INTER_AREA))

    return simplejpeg.__version__ if hasattr(simplejpeg, "__version__") else version("simplejpeg"), process


def kornia(side: int) -> tuple[str, Callable]:
    from kornia_rs import imgproc
    from kornia_rs import io as files

    def process(data: bytes) -> np.ndarray:
        image = np.asarray(files.decode_image_jpegturbo(data, "rgb"))
        left, top, right, bottom = middle(image.shape[1], image.shape[0])
        part = np.ascontiguousarray(image[top:bottom, left:right])
        return normalized(np.asarray(imgproc.resize(part, (side, side), "bicubic", antialias=True)))

    return version("kornia-rs"), process


def torchvision(side: int) -> tuple[str, Callable]:
    import torch
    import torchvision
    from torchvision.transforms import v2

    torch.set_num_threads(1)

    def process(data: bytes) -> torch.Tensor:
        image = torchvision.io.decode_jpeg(torch.frombuffer(bytearray(data), dtype=torch.uint8))
        left, top, right, bottom = middle(image.shape[2], image.shape[1])
        small = v2.functional.resized_crop(
            image, top, left, bottom - top, right - left, [side, side], v2.InterpolationMode.BICUBIC, antialias=True)
        return v2.functional.normalize(v2.functional.to_dtype(small, torch.float32, scale=True), list(MEAN), list(DEVIATION)).half()

    return torchvision.__version__, process


def dali(side: int, images: list[bytes]) -> tuple[str, Callable]:
    """A pipeline with batches of 64, which takes all images at once."""
    import nvidia.dali as library
    from nvidia.dali import fn, pipeline_def, types

    size = min(64, len(images))
    batches = [[np.frombuffer(data, np.uint8) for data in images[start:start + size]] for start in range(0, len(images), size)]
    if len(batches) > 1 and len(batches[-1]) < size:
        batches[-1] += batches[0][:size - len(batches[-1])]

    @pipeline_def(batch_size=size, num_threads=1, device_id=None, prefetch_queue_depth=1)
    def prepare():
        files = fn.external_source(source=batches, cycle=True)
        decoded = fn.decoders.image(files, device="cpu", output_type=types.RGB)
        small = fn.resize(decoded, resize_shorter=side, interp_type=types.INTERP_CUBIC, antialias=True)
        return fn.crop_mirror_normalize(
            small, dtype=types.FLOAT16, output_layout="CHW", crop=(side, side), mean=list(255 * MEAN), std=list(255 * DEVIATION))

    pipeline = prepare()
    pipeline.build()

    def process_all() -> float:
        for _ in batches:
            pipeline.run()
        return len(images) / (size * len(batches))

    return library.__version__, process_all


def version(name: str) -> str:
    from importlib import metadata

    return metadata.version(name)


def cpu_seconds(action: Callable[[], object]) -> float:
    began = time.process_time()
    action()
    return time.process_time() - began


PEERS: dict[str, Callable] = {
    "Pillow": pillow, "Pillow, reduced": lambda side: pillow(side, True), "pillow-simd": pillow, "OpenCV": opencv,
    "OpenCV, reduced": lambda side: opencv(side, True), "simplejpeg, reduced": simplejpeg, "kornia-rs": kornia,
    "torchvision": torchvision}


def main() -> None:
    name, folder, side = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    images = [path.read_bytes() for path in sorted(folder.glob("*.jpg"))]
    if name == "DALI":
        number, process_all = dali(side, images)
        process_all()
    else:
        number, process = PEERS[name](side)
        for data in images[:8]:
            array = process(data)
            assert array.shape == (3, side, side), array.shape

        def process_all() -> float:
            for data in images:
                process(data)
            return 1.0

    print(number, flush=True)
    for _ in sys.stdin:
        shares: list[float] = []
        seconds = cpu_seconds(lambda: shares.append(process_all()))
        print(seconds * shares[0], flush=True)


if __name__ == "__main__":
    main()
