"""Tests of resampling kernels over gRPC, compared with Pillow, whose sizes are changed horizontally and then vertically.

Pillow 13 chooses the order of both; a request for one after the other does not depend on it.
"""

import base64
import io

import numpy as np
import pytest
from conftest import fixture_bytes
from PIL import Image

KERNELS = ["LANCZOS3", "BICUBIC", "BILINEAR", "BOX", "NEAREST"]
SIZES = [(37, 29), (60, 40), (17, 80), (200, 133)]
# 32x24 pixels Luma has half of the rows and columns of chroma: written by cjpeg of
# libjpeg-turbo with -sample 1x1,2x2,2x2.
SMALL_LUMA = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAUDBAQEAwUEBAQFBQUGBwwIBwcHBw8LCwkMEQ8SEhEPERETFhwXExQaFRERGCEYGh0dHx8fExciJC"
    "IeJBweHx7/2wBDAQUFBQcGBw4ICA4eFBEUHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh7/wAARCAAY"
    "ACADAREAAiIBAyIB/8QAFgABAQEAAAAAAAAAAAAAAAAABwMG/8QAJRAAAAUEAQQDAQAAAAAAAAAAAQIEBREDBhITAAcUMUEVUoGR/8QAGgEBAA"
    "IDAQAAAAAAAAAAAAAAAAQFAgMGB//EAC4RAAEBAwkIAgMAAAAAAAAAAAACARIxBAURFRYyUWGBBhMUI0FTotEhYkOCwv/aAAwDAQACEQMRAD8A"
    "aOuV/vFig0C0pUKjvd2wFNM5ow1xjiYv3GfPrg1b5GJtJkxVVzKxydvZ03dIgv7Lzr2vJPsoD0zay0HJqX7PXMnb+sNehmulvV+5bpvhuY3BA1"
    "UUyrbmajRqFqBjSOcIETiHkoevHK7fIxM0rSqBOn2quXV2b17Ki9rAqZN1OSsvOva8k+yBLprlUgd4hDr1NHyxsIwa3E7zZO0HOrr6u3M3rmkd"
    "OpB25/B+38jC7srO76vlmlA4ap190nJVwmJjIBiYD+ByUatyjAA4Ev7UTr3fFPoAg32xbTcrIsb7eaUimnOFagipkOWQEBgwBISAiH7xuUYGaU"
    "JTAAWonXu+KfRAl06SqXu8Qt52mj4YyMYMZgAf/9k=")


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


@pytest.mark.parametrize("field", ["exact_resize", "resize_in_linear_light", "trim"])
@pytest.mark.parametrize("size", [(32, 24), (19, 31)])
def test_a_jpeg_with_less_luma_than_chroma_is_merged_at_its_size(client, size, field):
    fields = {"trim": {"color": {}, "threshold": 1}} if field == "trim" else {field: True}
    result = process(client, SMALL_LUMA, "BILINEAR", size, **fields)
    expected = by_pillow(Image.open(io.BytesIO(SMALL_LUMA)), "BILINEAR", size)
    difference = np.abs(np.asarray(result.convert("RGB"), int) - expected)
    assert difference.mean() < (1e-9 if field == "exact_resize" else 6)


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
