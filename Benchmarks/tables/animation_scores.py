"""The similarity of an animation to its original: the mean SSIMULACRA2 score of its frames.

The reference is each frame of the original as Pillow composes it, in front of gray, resized by Pillow with Lanczos to the
size of the result. The frame of the result is the one that is shown at that time. The score is computed by the kernel of the
worker, which `ImageSimilarityTests` compares with the reference implementation.
"""

import ctypes
import functools
import subprocess
import tempfile
from pathlib import Path

from PIL import GifImagePlugin, Image

GifImagePlugin.LOADING_STRATEGY = GifImagePlugin.LoadingStrategy.RGB_ALWAYS
ROOT = Path(__file__).resolve().parents[2]
MAX_FRAMES = 20  # of longer animations as many are compared, at equal distances
GRAY = (128, 128, 128, 255)


class Options(ctypes.Structure):
    """cpixels_similarity_options."""

    _fields_ = [("width", ctypes.c_uint32), ("height", ctypes.c_uint32), ("channels", ctypes.c_uint8),
                ("background", ctypes.c_double), ("isa", ctypes.c_int)]


@functools.cache
def kernel() -> ctypes.CDLL:
    pixels, instructions = ROOT / "Sources" / "CPixels", ROOT / "Sources" / "CInstructions"
    files = [*instructions.glob("*.c"), pixels / "isa.c", pixels / "resize_axis.c", *pixels.glob("similarity*.c")]
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "similarity.so"
        subprocess.run(["clang", "-std=gnu11", "-O2", "-DNDEBUG", "-fPIC", "-shared", f"-I{pixels}/include",
                        f"-I{instructions}/include", *files, "-lm", "-o", library], check=True)
        code = ctypes.CDLL(str(library))
    code.cpixels_similarity_init.restype = ctypes.c_void_p
    code.cpixels_similarity_score.restype = ctypes.c_double
    code.cpixels_similarity_score.argtypes = [ctypes.c_void_p]
    code.cpixels_similarity_push.argtypes = [
        ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_size_t]
    return code


def similarity(reference: Image.Image, result: Image.Image) -> float:
    width, height = reference.size
    options, size = Options(width, height, 3, 0, 0), ctypes.c_size_t()
    if not kernel().cpixels_similarity_measure(ctypes.byref(options), ctypes.byref(size)):
        raise ValueError(f"no score of {width}x{height}")
    memory = ctypes.create_string_buffer(size.value + 64)
    aligned = -(-ctypes.addressof(memory) // 64) * 64
    comparison = kernel().cpixels_similarity_init(ctypes.byref(options), ctypes.c_void_p(aligned))
    kernel().cpixels_similarity_push(
        comparison, reference.tobytes(), 3 * width, result.tobytes(), 3 * width, height)
    return kernel().cpixels_similarity_score(comparison)


def frames_of(path: Path) -> list[tuple[int, Image.Image]]:
    """The frames in front of gray, each with the time at which it appears."""
    found, now = [], 0
    with Image.open(path) as image:
        for index in range(getattr(image, "n_frames", 1)):
            image.seek(index)
            image.load()
            frame = Image.new("RGBA", image.size, GRAY)
            frame.alpha_composite(image.convert("RGBA"))
            found.append((now, frame.convert("RGB")))
            now += image.info.get("duration") or 0
    return found


@functools.lru_cache(maxsize=4)
def references(path: Path, size: tuple[int, int]) -> list[tuple[int, Image.Image]]:
    frames = frames_of(path)
    count = min(len(frames), MAX_FRAMES)
    chosen = [frames[index * len(frames) // count] for index in range(count)]
    return [(now, frame if frame.size == size else frame.resize(size, Image.LANCZOS)) for now, frame in chosen]


def score(source: Path, target: Path) -> float:
    results = frames_of(target)
    scores, place = [], 0
    for now, reference in references(source, results[0][1].size):
        while place + 1 < len(results) and results[place + 1][0] <= now + 5:
            place += 1
        scores.append(similarity(reference, results[place][1]))
    return sum(scores) / len(scores)
