"""Reference filters: those of Pillow, or numpy implementations of the specifications in double precision.

Each takes an image (Pillow, RGB) and the filter's parameters, and returns the result at full intensity: an array of
numbers from 0 to 255, not rounded, and not clamped unless Pillow clamps.
"""

import math

import numpy as np
from PIL import Image, ImageChops, ImageEnhance, ImageFilter, ImageOps

LUMINANCE = (0.2126, 0.7152, 0.0722)


def samples(image: Image.Image) -> np.ndarray:
    return np.asarray(image, dtype=np.float64)


def matrix(image, rows):
    """Returns Pillow's own matrix conversion, in single precision, rounded and clamped."""
    return samples(image.convert("RGB", [number for row in rows for number in row]))


def grayscale(image):
    return matrix(image, [(*LUMINANCE, 0)] * 3)


def sepia(image):
    """W3C Filter Effects, sepia(1)."""
    return matrix(image, [(0.393, 0.769, 0.189, 0), (0.349, 0.686, 0.168, 0), (0.272, 0.534, 0.131, 0)])


def invert(image):
    return samples(ImageOps.invert(image))


def brightness(image, amount=1.5):
    return samples(ImageEnhance.Brightness(image).enhance(amount))


def contrast(image, amount=1.5):
    """Blends with middle gray, as CSS defines contrast; Pillow's enhancement pivots on the image's mean."""
    return samples(Image.blend(Image.new("RGB", image.size, (128, 128, 128)), image, amount)) - 0.5 * (1 - amount)


def saturation(image, amount=1.5):
    """W3C Filter Effects, feColorMatrix of type saturate."""
    s = amount
    return matrix(image, [
        (0.213 + 0.787 * s, 0.715 - 0.715 * s, 0.072 - 0.072 * s, 0),
        (0.213 - 0.213 * s, 0.715 + 0.285 * s, 0.072 - 0.072 * s, 0),
        (0.213 - 0.213 * s, 0.715 - 0.715 * s, 0.072 + 0.928 * s, 0)])


def hue(image, angle=90):
    """W3C Filter Effects, feColorMatrix of type hueRotate."""
    c, s = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    return matrix(image, [
        (0.213 + c * 0.787 - s * 0.213, 0.715 - c * 0.715 - s * 0.715, 0.072 - c * 0.072 + s * 0.928, 0),
        (0.213 - c * 0.213 + s * 0.143, 0.715 + c * 0.285 + s * 0.140, 0.072 - c * 0.072 - s * 0.283, 0),
        (0.213 - c * 0.213 - s * 0.787, 0.715 - c * 0.715 + s * 0.715, 0.072 + c * 0.928 + s * 0.072, 0)])


def gamma(image, exponent=1 / 2.2, amplitude=1, offset=0):
    """W3C Filter Effects, feComponentTransfer of type gamma."""
    return 255 * (amplitude * (samples(image) / 255) ** exponent + offset)


def exposure(image, stops=1):
    """Multiplies light by 2^stops between the transfer functions of IEC 61966-2-1."""
    x = samples(image) / 255
    light = 2 ** stops * np.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4)
    return 255 * np.where(light <= 0.0031308, light * 12.92, 1.055 * light ** (1 / 2.4) - 0.055)


def tint(image, red=255, green=220, blue=180):
    return samples(ImageChops.multiply(image, Image.new("RGB", image.size, (red, green, blue))))


def duotone(image, dark=(20, 30, 90), light=(255, 220, 160)):
    return matrix(image, [(*(w * (high - low) / 255 for w in LUMINANCE), low) for low, high in zip(dark, light)])


def vignette(image, radius=0.5, softness=0.5):
    y, x = np.mgrid[0:image.height, 0:image.width] + 0.5
    distance = np.hypot(2 * x / image.width - 1, 2 * y / image.height - 1) / math.sqrt(2)
    t = np.clip((distance - radius) / softness, 0, 1)
    return samples(image) * (1 - t * t * (3 - 2 * t))[..., None]


def blur(image, radius=4):
    """W3C Filter Effects, feGaussianBlur with edgeMode duplicate: the Gaussian itself, sampled."""
    reach = math.ceil(5 * radius)
    weights = np.exp(-np.arange(-reach, reach + 1) ** 2 / (2 * radius ** 2))
    weights /= weights.sum()
    result = samples(image)
    for axis in (0, 1):
        padded = np.pad(result, [(reach, reach) if a == axis else (0, 0) for a in range(3)], mode="edge")
        result = np.apply_along_axis(lambda line: np.convolve(line, weights, mode="valid"), axis, padded)
    return result


def pillow_blur(image, radius=4):
    """Returns Pillow's blur: three box blurs, which approximate a Gaussian."""
    return samples(image.filter(ImageFilter.GaussianBlur(radius)))


def sharpen(image, radius=1, amount=1, threshold=0):
    difference = samples(image) - blur(image, radius)
    return samples(image) + np.where(np.abs(difference) > 255 * threshold, amount * difference, 0)


def pillow_sharpen(image, radius=1, amount=1):
    return samples(image.filter(ImageFilter.UnsharpMask(radius, round(100 * amount), 0)))


def pixelate(image, size=8):
    blocks = image.reduce(size)
    large = blocks.resize((blocks.width * size, blocks.height * size), Image.Resampling.NEAREST)
    return samples(large.crop((0, 0, *image.size)))


def threshold(image, level=0.5):
    white = samples(image) @ np.array(LUMINANCE) / 255 >= level
    return np.repeat(white[..., None] * 255.0, 3, axis=2)


# Filter, parameters, the reference, its origin, and the maximum and mean difference allowed in levels: half a level for
# the worker's rounding, another half where Pillow rounds too, and more where Pillow approximates.
CASES = [
    ("grayscale", {}, grayscale, "Pillow matrix", 1, 0.1),
    ("sepia", {}, sepia, "Pillow matrix", 1, 0.1),
    ("invert", {}, invert, "Pillow", 0, 0),
    ("brightness", {}, brightness, "Pillow", 1, 0.6),
    ("brightness", {"amount": 0.4}, brightness, "Pillow", 1, 0.6),
    ("contrast", {"amount": 0.5}, contrast, "Pillow blend", 1, 0.6),
    ("saturation", {}, saturation, "Pillow matrix", 1, 0.1),
    ("saturation", {"amount": 0}, saturation, "Pillow matrix", 1, 0.1),
    ("hue", {}, hue, "Pillow matrix", 1, 0.1),
    ("hue", {"angle": -120}, hue, "Pillow matrix", 1, 0.1),
    ("gamma", {}, gamma, "numpy", 0.51, 0.3),
    ("gamma", {"exponent": 2.2, "amplitude": 1.1, "offset": -0.05}, gamma, "numpy", 0.51, 0.3),
    ("exposure", {}, exposure, "numpy", 0.51, 0.3),
    ("exposure", {"stops": -2}, exposure, "numpy", 0.51, 0.3),
    ("tint", {}, tint, "Pillow multiply", 1, 0.6),
    ("duotone", {}, duotone, "Pillow matrix", 1, 0.1),
    ("vignette", {}, vignette, "numpy", 0.51, 0.3),
    ("blur", {}, blur, "numpy", 1.05, 0.35),
    ("blur", {"radius": 1}, blur, "numpy", 1.05, 0.35),
    ("blur", {"radius": 20}, blur, "numpy", 1.05, 0.4),
    ("blur", {}, pillow_blur, "Pillow", 8, 1),
    ("sharpen", {}, sharpen, "numpy", 1.05, 0.35),
    ("sharpen", {"radius": 3, "amount": 2}, sharpen, "numpy", 1.5, 0.4),
    ("sharpen", {"radius": 3, "amount": 1}, pillow_sharpen, "Pillow", 12, 1.5),
    ("pixelate", {}, pixelate, "Pillow", 1, 0.6),
    ("pixelate", {"size": 13}, pixelate, "Pillow", 1, 0.6),
    ("threshold", {}, threshold, "numpy", 0, 0),
    ("threshold", {"level": 0.3}, threshold, "numpy", 0, 0),
]


def distances(result: Image.Image, image: Image.Image, case, intensity=1.0) -> tuple[float, float]:
    """Returns the maximum and the mean difference of a result from the case's reference."""
    _, parameters, reference, *_ = case
    source = samples(image)
    expected = np.clip(source + intensity * (reference(image, **parameters) - source), 0, 255)
    distance = np.abs(samples(result.convert("RGB")) - expected)
    return float(distance.max()), float(distance.mean())
