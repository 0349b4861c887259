"""Animations that the tables of animations are measured with, made from a fixed seed.

A film is a pan over a photograph on which a disc moves, with noise in every frame; a cartoon has flat shapes with outlines
that move on a still background. Both are GIFs with a palette of their first frame and error diffusion in the film.
"""

import io
import math
from pathlib import Path

import numpy
from PIL import Image, ImageDraw

DISTINCT = 50  # longer animations repeat these frames
SEED = 30
MILLISECONDS = 40


def film(photograph: Path, size: tuple[int, int], count: int) -> list[Image.Image]:
    generator = numpy.random.default_rng(SEED)
    width, height = size
    with Image.open(photograph) as image:
        image.draft("RGB", (width * 2, height * 2))
        scale = 1.4 * max(width / image.width, height / image.height)
        image = image.convert("RGB").resize((round(image.width * scale), round(image.height * scale)), Image.LANCZOS)
    frames = []
    for index in range(count):
        left = (image.width - width) * index // count
        top = round((image.height - height) * (0.5 + 0.4 * math.sin(index / 9)))
        frame = image.crop((left, top, left + width, top + height))
        x, y, radius = width * (0.2 + 0.6 * index / count), height * (0.5 + 0.3 * math.cos(index / 5)), height / 8
        ImageDraw.Draw(frame).ellipse((x - radius, y - radius, x + radius, y + radius), fill=(200, 60, 40))
        levels = numpy.asarray(frame, float) + generator.normal(0, 3, (height, width, 1))
        frames.append(Image.fromarray(numpy.clip(levels, 0, 255).astype(numpy.uint8)))
    return frames


def cartoon(size: tuple[int, int], count: int) -> list[Image.Image]:
    generator = numpy.random.default_rng(SEED)
    width, height = size
    colors = [tuple(int(level) for level in generator.integers(40, 240, 3)) for _ in range(12)]
    double = (2 * width, 2 * height)  # reduced to half, for smooth edges
    ground = Image.new("RGB", double, (150, 200, 235))
    draw = ImageDraw.Draw(ground)
    draw.rectangle((0, round(1.4 * height), 2 * width, 2 * height), fill=(90, 160, 80))
    for index, color in enumerate(colors[:6]):
        left = 2 * width * index // 6
        draw.rectangle((left + 20, height * (8 + index % 3) // 10, left + width // 4, 1.4 * height), color, (20, 20, 20), 4)
    frames = []
    for index in range(count):
        frame, phase = ground.copy(), 2 * math.pi * index / count
        draw = ImageDraw.Draw(frame)
        for number, color in enumerate(colors[6:9]):
            x = width * (1 + 0.7 * math.sin(phase + 2 * number))
            y = height * (1 + 0.5 * math.cos((number + 1) * phase))
            radius = height // (6 + number)
            draw.ellipse((x - radius, y - radius, x + radius, y + radius), color, (20, 20, 20), 6)
            eye = radius / 4
            draw.ellipse((x - eye, y - 2 * eye, x + eye, y), (250, 250, 250), (20, 20, 20), 3)
        frames.append(frame.resize(size, Image.BOX))
    return frames


def gif(frames: list[Image.Image], is_dithered: bool) -> bytes:
    palette = frames[0].quantize(256)
    dither = Image.Dither.FLOYDSTEINBERG if is_dithered else Image.Dither.NONE
    first, *rest = [frame.quantize(palette=palette, dither=dither) for frame in frames]
    file = io.BytesIO()
    first.save(file, "GIF", save_all=True, append_images=rest, duration=MILLISECONDS, loop=0)
    return file.getvalue()


def repeated(path: Path, short: bytes, times: int) -> None:
    """Writes an animation whose frames are those of another one several times; the first one has the whole canvas."""
    frames = short.index(b"\x21\xf9\x04")
    with path.open("wb") as file:
        file.write(short[:frames])
        for _ in range(times):
            file.write(short[frames:-1])
        file.write(b";")


def made(folder: Path, kind: str, size: tuple[int, int], count: int, photograph: Path) -> Path:
    """The path of an animation of `count` frames, which is written unless it exists."""
    path = folder / f"{kind}-{size[0]}x{size[1]}-{count}.gif"
    if not path.exists():
        distinct = min(count, DISTINCT)
        frames = cartoon(size, distinct) if kind == "cartoon" else film(photograph, size, distinct)
        repeated(path, gif(frames, kind == "film"), count // distinct)
    return path
