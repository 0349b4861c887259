"""Tests of resize_in_linear_light over gRPC, compared with Pillow, which resizes the light of each channel in floats."""

import io

import numpy as np
import pytest
from conftest import fixture_bytes
from PIL import Image
from test_resampling import KERNELS, SIZES, process, saved


def light(signal: np.ndarray) -> np.ndarray:
    return np.where(signal <= 0.04045, signal / 12.92, ((signal + 0.055) / 1.055) ** 2.4)


def signal(value: np.ndarray) -> np.ndarray:
    value = np.clip(value, 0, 1)
    return np.where(value <= 0.0031308, 12.92 * value, 1.055 * value ** (1 / 2.4) - 0.055)


def by_pillow(image: Image.Image, kernel: str, size: tuple[int, int]) -> np.ndarray:
    """Samples from 0 to 255, not rounded."""
    samples = np.atleast_3d(np.asarray(image, np.float64)) / 255
    has_alpha = image.mode == "RGBA"
    alpha = samples[..., 3:] if has_alpha else np.ones((*samples.shape[:2], 1))
    planes = np.concatenate([light(samples[..., :3 if has_alpha else None]) * alpha, alpha], axis=2)
    resampling = Image.Resampling[kernel.replace("3", "")]
    resized = [Image.fromarray(plane.astype(np.float32)).resize((size[0], image.height), resampling)
               .resize(size, resampling) for plane in np.moveaxis(planes, 2, 0)]
    planes = np.stack([np.asarray(plane, np.float64) for plane in resized], axis=2)
    alpha = np.clip(planes[..., -1:], 0, 1)
    colors = 255 * np.where(alpha < 0.5 / 255, 0, signal(planes[..., :-1] / np.maximum(alpha, 1e-9)))
    return np.concatenate([colors, 255 * alpha], axis=2) if has_alpha else colors


def differences(result: Image.Image, expected: np.ndarray) -> np.ndarray:
    return np.abs(np.atleast_3d(np.asarray(result, np.float64)) - expected)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kernel", KERNELS[:-1])
@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA"])
def test_results_of_png_are_light_that_pillow_resized(client, mode, kernel, size, exact):
    image = Image.open(io.BytesIO(fixture_bytes("photo.png"))).convert(mode)
    if mode == "RGBA":
        image.putalpha(Image.linear_gradient("L").resize(image.size))
    result = process(client, saved(image, format="PNG"), kernel, size, resize_in_linear_light=True, exact_resize=exact)
    assert differences(result.convert(mode), by_pillow(image, kernel, size)).max() < 0.6


@pytest.mark.parametrize("kernel", KERNELS[:-1])
@pytest.mark.parametrize("size", [(8, 20), (17, 10), (12, 16), (51, 100), (68, 60)])
def test_flipped_images_are_light_that_pillow_resized(client, kernel, size):
    # The edges of many boxes fall on the centers of pixels.
    samples = np.random.default_rng(1).integers(0, 256, (40, 34, 3)).astype(np.uint8)
    flipped = Image.fromarray(samples[::-1, ::-1].copy())
    result = process(
        client, saved(Image.fromarray(samples), format="PNG"), kernel, size, resize_in_linear_light=True, exact_resize=True,
        flip_horizontal=True, flip_vertical=True)
    assert differences(result.convert("RGB"), by_pillow(flipped, kernel, size)).max() < 0.6


@pytest.mark.parametrize("subsampling", ["4:4:4", "4:2:2", "4:2:0"])
@pytest.mark.parametrize("size", [(60, 40), (200, 133)])
def test_results_of_jpeg_are_light_that_pillow_resized(client, size, subsampling):
    image = Image.open(io.BytesIO(fixture_bytes("photo.png"))).convert("RGB").resize((480, 320))
    image = saved(image, format="JPEG", quality=92, subsampling=subsampling)
    result = process(client, image, "LANCZOS3", size, resize_in_linear_light=True)
    assert differences(result, by_pillow(Image.open(io.BytesIO(image)), "LANCZOS3", size)).max() < 1.6


def test_nearest_takes_samples_as_they_are(client):
    image = fixture_bytes("photo.png")
    result = process(client, image, "NEAREST", (37, 29), resize_in_linear_light=True)
    assert np.array_equal(np.asarray(result), np.asarray(process(client, image, "NEAREST", (37, 29))))


def test_sixteen_bits_are_resized_in_linear_light(client):
    samples = (np.indices((64, 64)).sum(axis=0) % 2 * 65535).astype(np.uint16)
    result = process(client, saved(Image.fromarray(samples), format="PNG"), "BOX", (16, 16), resize_in_linear_light=True)
    assert set(np.unique(np.asarray(result.convert("L")))) == {188}


@pytest.mark.parametrize("format", ["PNG", "JPEG"])
def test_a_checkerboard_keeps_its_brightness(client, format):
    samples = (np.indices((512, 512)).sum(axis=0) % 2 * 255).astype(np.uint8)
    image = saved(Image.fromarray(samples), format=format, **({"quality": 100} if format == "JPEG" else {}))
    assert np.abs(np.asarray(process(client, image, "BOX", (64, 64)).convert("L"), int) - 128).max() <= 2
    lit = process(client, image, "BOX", (64, 64), resize_in_linear_light=True)
    assert np.abs(np.asarray(lit.convert("L"), int) - 188).max() <= (0 if format == "PNG" else 1)


def test_a_crop_changes_no_sample(client):
    image = fixture_bytes("photo.png")
    options = {"crop": {"x": 3, "y": 5, "width": 60, "height": 40}, "exact_resize": True}
    cropped = process(client, image, "LANCZOS3", (60, 40), resize_in_linear_light=True, **options)
    assert np.array_equal(np.asarray(cropped), np.asarray(process(client, image, "LANCZOS3", (60, 40), **options)))


@pytest.mark.parametrize("subsampling", ["4:4:4", "4:2:0"])
@pytest.mark.parametrize("field", ["exact_resize", "resize_in_linear_light"])
def test_a_size_that_is_kept_is_not_resized(client, field, subsampling):
    image = Image.open(io.BytesIO(fixture_bytes("photo.png"))).convert("RGB").resize((65, 49))
    image = saved(image, format="JPEG", quality=92, subsampling=subsampling)
    decoded = np.asarray(Image.open(io.BytesIO(image)), int)
    result = process(client, image, "LANCZOS3", (65, 49), **{field: True})
    assert np.abs(np.asarray(result, int) - decoded).max() <= (0 if field == "exact_resize" else 2)
