"""Writes the images and scores of ImageSimilarityTests, with the reference implementation of SSIMULACRA 2.

    pip install ssimulacra2==0.3.0 pillow
    python Tests/ImageKernelsTests/similarity.py PHOTOGRAPH...

The photographs in this folder are in the public domain, from the repository immich-app/test-assets:
albums/nature/ el_torcal_rocks.jpg, polemonium_reptans.jpg and prairie_falcon.jpg. Each file contains the red, the green
and the blue plane of an image, one above the other, as a gray JPEG: of that, every decoder returns the same samples.
"""

import sys
from io import BytesIO
from pathlib import Path

from PIL import Image
from ssimulacra2 import compute_ssimulacra2

FOLDER = Path(__file__).parent / "Similarity"
# Sizes with six scales, of odd and even sides, and one with four.
SIZES = [(257, 226), (231, 240), (97, 64)]
QUALITIES = [10, 40, 70, 90]


def stacked(image: Image.Image) -> Image.Image:
    width, height = image.size
    stack = Image.new("L", (width, 3 * height))
    for index, plane in enumerate(image.split()):
        stack.paste(plane, (0, index * height))
    return stack


def merged(path: Path) -> BytesIO:
    stack = Image.open(path)
    width, height = stack.width, stack.height // 3
    planes = [stack.crop((0, index * height, width, (index + 1) * height)) for index in range(3)]
    buffer = BytesIO()
    Image.merge("RGB", planes).save(buffer, "PNG")
    return buffer


def main() -> None:
    lines = []
    for photograph, size in zip(map(Path, sys.argv[1:]), SIZES):
        reference = FOLDER / f"{photograph.stem}.jpg"
        image = Image.open(photograph).convert("RGB").resize(size, Image.LANCZOS)
        stacked(image).save(reference, quality=93, optimize=True)
        for quality in QUALITIES:
            result = FOLDER / f"{photograph.stem}-{quality}.jpg"
            Image.open(reference).save(result, quality=quality, optimize=True)
            lines.append(f"{result.stem} {compute_ssimulacra2(merged(reference), merged(result)):.3f}\n")
    (FOLDER / "scores.txt").write_text("".join(lines))


if __name__ == "__main__":
    main()
