"""The photographs to measure: those of the shared corpus, scaled or converted once.

Metadata and profiles are removed from all of them. The comparison covers decoding, resizing and encoding; no peer
should rotate an image or convert its colors while another does not.
"""

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

Image.MAX_IMAGE_PIXELS = None

DOG, DJI, BMNG = "avif--dog_exif_extended_xmp_icc.jpg", "dji--DJI_0025.JPG", "bm--bmng.jpg"
BOOK, BEER, RELIEF = "immich--book-beside-flowers.jpg", "immich--craft-beer.jpg", "bm--shadedrelief.jpg"
DOGS = "mei--Issue_525.jpg"


@dataclass(frozen=True)
class Photograph:
    """One input file. Without a `size` it is the original file, as the camera or editor wrote it."""

    name: str
    megapixels: float
    kind: str  # baseline, progressive, 444, png, alpha, webp
    source: str
    size: tuple[int, int] | None = None

    @property
    def suffix(self) -> str:
        return {"png": ".png", "alpha": ".png", "webp": ".webp"}.get(self.kind, ".jpg")


PHOTOGRAPHS = [
    Photograph("0.3mp-dog", 0.3, "baseline", DOG, (640, 480)),
    Photograph("2mp-dog", 2, "baseline", DOG, (1632, 1224)),
    Photograph("12mp-dog", 12, "baseline", DOG),
    Photograph("12mp-dji", 12, "baseline", DJI, (4618, 2598)),
    Photograph("12mp-bmng", 12, "baseline", BMNG, (4898, 2449)),
    Photograph("12mp-book", 12, "baseline", BOOK, (3024, 4032)),
    Photograph("24mp-beer", 24, "baseline", BEER, (6000, 4000)),
    Photograph("100mp-relief", 100, "baseline", RELIEF, (14142, 7071)),
    Photograph("2mp-dog-progressive", 2, "progressive", DOG, (1632, 1224)),
    Photograph("12mp-book-progressive", 12, "progressive", BOOK),
    Photograph("24mp-beer-progressive", 24, "progressive", BEER),
    Photograph("100mp-relief-progressive", 100, "progressive", RELIEF, (14142, 7071)),
    Photograph("12mp-dogs-444", 12, "444", DOGS),
    Photograph("0.3mp-dog-png", 0.3, "png", DOG, (640, 480)),
    Photograph("2mp-dog-png", 2, "png", DOG, (1632, 1224)),
    Photograph("12mp-dog-png", 12, "png", DOG, (4032, 3024)),
    Photograph("100mp-relief-png", 100, "png", RELIEF, (14142, 7071)),
    Photograph("2mp-dog-alpha", 2, "alpha", DOG, (1632, 1224)),
    Photograph("12mp-dog-alpha", 12, "alpha", DOG, (4032, 3024)),
    Photograph("2mp-dog-webp", 2, "webp", DOG, (1632, 1224)),
    Photograph("12mp-dog-webp", 12, "webp", DOG, (4032, 3024)),
    Photograph("100mp-relief-webp", 100, "webp", RELIEF, (14142, 7071)),
]


def path_of(photograph: Photograph, photographs: Path, cache: Path) -> Path:
    """Returns the image's file, creating it if it is missing."""
    path = cache / (photograph.name + photograph.suffix)
    if not path.exists():
        print(f"making {path.name}", flush=True)
        cache.mkdir(parents=True, exist_ok=True)
        original = photographs / photograph.source
        data = without_metadata(original.read_bytes()) if photograph.size is None else made(photograph, original)
        part = path.with_suffix(".part")
        part.write_bytes(data)
        part.rename(path)
    return path


def made(photograph: Photograph, original: Path) -> bytes:
    image = Image.open(original).convert("RGB")
    if image.size != photograph.size:
        image = image.resize(photograph.size, Image.Resampling.LANCZOS)
    if photograph.kind == "alpha":
        image.putalpha(Image.fromarray(vignette(*photograph.size)))
    out = io.BytesIO()
    if photograph.suffix == ".png":
        image.save(out, "png", compress_level=6)
    elif photograph.kind == "webp":
        image.save(out, "webp", quality=85, method=2)
    else:
        is_progressive = photograph.kind == "progressive"
        image.save(out, "jpeg", quality=90, subsampling="4:2:0", progressive=is_progressive, optimize=True)
    return out.getvalue()


def vignette(width: int, height: int) -> np.ndarray:
    """Returns an alpha channel that is opaque in the center and fades to transparent in the corners."""
    x = np.linspace(-1, 1, width, dtype=np.float32)[None, :]
    y = np.linspace(-1, 1, height, dtype=np.float32)[:, None]
    return (np.clip(1.5 - np.hypot(x, y), 0, 1) * 255).round().astype(np.uint8)


def without_metadata(jpeg: bytes) -> bytes:
    """Returns the JPEG without application and comment segments, except JFIF's and Adobe's, which decoding needs."""
    kept, at = [jpeg[:2]], 2
    while jpeg[at + 1] != 0xDA:
        marker, length = jpeg[at + 1], int.from_bytes(jpeg[at + 2 : at + 4], "big")
        if not (0xE1 <= marker <= 0xEF and marker != 0xEE) and marker != 0xFE:
            kept.append(jpeg[at : at + 2 + length])
        at += 2 + length
    return b"".join(kept) + jpeg[at:]


def pixels(path: Path) -> Image.Image:
    """Returns the image as shown, with its orientation applied."""
    return ImageOps.exif_transpose(Image.open(path))
