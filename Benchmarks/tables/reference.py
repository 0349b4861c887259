"""Computes an ideal resize and the difference of a result from it.

The reference is the image decoded at full size and resized with a Lanczos-3 kernel in double precision, directly to the
size of the result, without shrinking on load and without intermediate rounding. Alpha is premultiplied.
"""

import functools
import hashlib
import json
from pathlib import Path

import numpy as np
from PIL import Image
from ssimulacra2.ssimulacra2 import compute_ssimulacra2_with_alpha

from photographs import pixels

BAND_ROWS = 256


def lanczos3(x: np.ndarray) -> np.ndarray:
    return np.where(np.abs(x) < 3, np.sinc(x) * np.sinc(x / 3), 0)


def taps(length: int, target: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the source samples and weights of each sample of the result; edges are repeated."""
    scale = length / target
    support = 3 * max(scale, 1)
    centers = (np.arange(target) + 0.5) * scale
    first = np.floor(centers - support).astype(int)
    indices = first[:, None] + np.arange(int(np.ceil(2 * support)) + 2)[None, :]
    weights = lanczos3((indices + 0.5 - centers[:, None]) / max(scale, 1))
    inside = (indices >= 0) & (indices < length)
    weights = np.where(inside, weights, 0)
    return np.clip(indices, 0, length - 1), weights / weights.sum(axis=1, keepdims=True)


def resize_rows(rows: np.ndarray, target: int) -> np.ndarray:
    """Resamples the first axis."""
    indices, weights = taps(rows.shape[0], target)
    result = np.zeros((target, *rows.shape[1:]))
    for tap in range(indices.shape[1]):
        result += rows[indices[:, tap]] * weights[:, tap].reshape(-1, *[1] * (rows.ndim - 1))
    return result


def resize(image: Image.Image, size: tuple[int, int]) -> np.ndarray:
    """Returns levels from 0 to 255 in double precision, not clipped; premultiplied if there is alpha."""
    narrow = []
    for top in range(0, image.height, BAND_ROWS):
        band = np.asarray(image.crop((0, top, image.width, min(top + BAND_ROWS, image.height))), dtype=np.float64)
        if band.shape[2] == 4:
            band[:, :, :3] *= band[:, :, 3:] / 255
        narrow.append(resize_rows(band.swapaxes(0, 1), size[0]).swapaxes(0, 1))
    return resize_rows(np.concatenate(narrow), size[1])


def reference(path: Path, size: tuple[int, int], keeps_alpha: bool, cache: Path) -> Path:
    """Returns the reference as a PNG, computed once per image and size; flattened on white unless alpha is kept."""
    result = cache / f"{path.stem}-{size[0]}x{size[1]}{'-alpha' if keeps_alpha else ''}.png"
    if result.exists():
        return result
    cache.mkdir(parents=True, exist_ok=True)
    image = pixels(path)
    image = image.convert("RGBA" if image.mode in ("RGBA", "LA", "PA") else "RGB")
    levels = resize(image, size)
    if image.mode == "RGBA" and keeps_alpha:
        levels[:, :, :3] *= 255 / np.maximum(levels[:, :, 3:], 1e-9)
    elif image.mode == "RGBA":
        levels = levels[:, :, :3] + 255 - levels[:, :, 3:]
    Image.fromarray(np.clip(np.rint(levels), 0, 255).astype(np.uint8)).save(result)
    return result


class Scores:
    """SSIMULACRA2 scores, cached by the compared bytes."""

    def __init__(self, cache: Path):
        self.cache = cache
        self.path = cache / "scores.json"
        self.known = json.loads(self.path.read_text()) if self.path.exists() else {}

    def score(self, path: Path, result: Path) -> float:
        key = f"{path.stem} {hashlib.sha256(result.read_bytes()).hexdigest()}"
        if key not in self.known:
            with Image.open(result) as image:
                size, keeps_alpha = image.size, "A" in image.getbands()
            expected = reference(path, size, keeps_alpha, self.cache)
            self.known[key] = float(compute_ssimulacra2_with_alpha(str(expected), str(result)))
            self.path.write_text(json.dumps(self.known))
        return self.known[key]


@functools.cache
def scores(cache: Path) -> Scores:
    return Scores(cache)
