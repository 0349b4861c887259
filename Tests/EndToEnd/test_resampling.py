"""Tests of resampling kernels over gRPC, compared with Pillow, whose sizes are changed horizontally and then vertically.

Pillow 13 chooses the order of both; a request for one after the other does not depend on it.
"""

import io

import numpy as np
import pytest
from conftest import fixture_bytes
from PIL import Image

KERNELS = ["LANCZOS3", "BICUBIC", "BILINEAR", "BOX", "NEAREST"]
SIZES = [(37, 29), (60, 40), (17, 80), (200, 133)]


def process(client, image: bytes, kernel: str, size: tuple[int, int], **fields) -> Image.Image:
    configuration = client.message("ProcessingConfiguration")(
        preferred_format="OUTPUT_FORMAT_PNG", resize_mode="RESIZE_MODE_STRETCH", allow_upscale=True, max_width=size[0],
        max_height=size[1], resampling_kernel=f"RESAMPLING_KERNEL_{kernel}", **fields)
    request = client.message("ProcessImageRequest")(image=image, configuration=configuration)
    parts = client.call("ProcessImage", "unary_stream")(request, timeout=60)
    return Image.open(io.BytesIO(b"".join(part.chunk for part in parts)))


def by_pillow(image: Image.Image, kernel: str, size: tuple[int, int]) -> np.ndarray:
    resampling = Image.Resampling[kernel.replace("3", "")]
    if kernel == "NEAREST" or image.mode != "RGBA":
        mode = image.mode
    else:
        mode, image = "RGBA", image.convert("RGBa")
    width, height = size
    resized = image.resize((width, image.height), resampling).resize((width, height), resampling)
    return np.asarray(resized.convert(mode), int)


def saved(image: Image.Image, **options) -> bytes:
    file = io.BytesIO()
    image.save(file, **options)
    return file.getvalue()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA"])
def test_exact_results_of_png_equal_those_of_pillow(client, mode, kernel, size):
    image = Image.open(io.BytesIO(fixture_bytes("photo.png"))).convert(mode)
    if mode == "RGBA":
        image.putalpha(Image.linear_gradient("L").resize(image.size))
    result = process(client, saved(image, format="PNG"), kernel, size, exact_resize=True)
    assert np.array_equal(np.asarray(result.convert(mode), int), by_pillow(image, kernel, size))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("size", [(120, 80), (119, 79), (5, 80), (4, 3), (2, 2)])
@pytest.mark.parametrize("subsampling", ["4:4:4", "4:2:2", "4:2:0"])
@pytest.mark.parametrize("progressive", [False, True])
def test_exact_results_of_jpeg_equal_those_of_pillow(client, progressive, subsampling, size, kernel):
    image = Image.open(io.BytesIO(fixture_bytes("photo.png"))).convert("RGB").resize(size)
    image = saved(image, format="JPEG", quality=92, subsampling=subsampling, progressive=progressive)
    result = process(client, image, kernel, (51, 37), exact_resize=True)
    assert np.array_equal(np.asarray(result.convert("RGB"), int), by_pillow(Image.open(io.BytesIO(image)), kernel, (51, 37)))


@pytest.mark.parametrize("kernel", [*KERNELS, "LANCZOS2", "MITCHELL"])
def test_kernels_look_alike_without_exact_resize(client, kernel):
    image = Image.open(io.BytesIO(fixture_bytes("photo.png"))).convert("RGB")
    result = np.asarray(process(client, fixture_bytes("photo.png"), kernel, (60, 40)).convert("RGB"), int)
    expected = by_pillow(image, kernel if kernel in KERNELS else "BICUBIC", (60, 40))
    difference = np.abs(result - expected)[4:-4, 4:-4]
    assert difference.max() <= 1 if kernel in KERNELS else difference.mean() < 4
    default = np.asarray(process(client, fixture_bytes("photo.png"), "UNSPECIFIED", (60, 40)).convert("RGB"), int)
    assert np.array_equal(result, default) == (kernel == "LANCZOS3")


def test_a_crop_is_resized_exactly(client):
    image = Image.open(io.BytesIO(fixture_bytes("photo.png"))).convert("RGB")
    crop = {"x": 31, "y": 7, "width": 61, "height": 44}
    result = process(client, fixture_bytes("photo.png"), "BICUBIC", (30, 20), exact_resize=True, crop=crop)
    expected = by_pillow(image.crop((31, 7, 92, 51)), "BICUBIC", (30, 20))
    assert np.array_equal(np.asarray(result.convert("RGB"), int), expected)
