"""Tests of crop, fill, padding and rotation over gRPC, compared with Pillow on the same image."""

import io

import grpc
import numpy as np
import pytest
from conftest import fixture_bytes
from PIL import Image

IMAGE = Image.open(io.BytesIO(fixture_bytes("photo.png"))).convert("RGB")  # 120x80


def process(client, image: bytes = fixture_bytes("photo.png"), **fields) -> Image.Image:
    configuration = client.message("ProcessingConfiguration")(preferred_format="OUTPUT_FORMAT_PNG", **fields)
    request = client.message("ProcessImageRequest")(image=image, configuration=configuration)
    parts = client.call("ProcessImage", "unary_stream")(request, timeout=60)
    return Image.open(io.BytesIO(b"".join(part.chunk for part in parts))).convert("RGB")


def assert_same(result: Image.Image, expected: Image.Image) -> None:
    assert result.size == expected.size
    assert np.array_equal(np.asarray(result), np.asarray(expected))


@pytest.mark.parametrize("crop", [
    {"x": 31, "y": 7, "width": 61, "height": 44},
    {"unit": "RECT_UNIT_FRACTIONS", "x": 0.25, "y": 0.5, "width": 0.5, "height": 0.5},
    {"x": 119, "y": 79, "width": 1, "height": 1},
])
def test_crop(client, crop):
    scale = np.array([120, 80] if "unit" in crop else [1, 1])
    left, top = (np.array([crop["x"], crop["y"]]) * scale).astype(int)
    width, height = (np.array([crop["width"], crop["height"]]) * scale).astype(int)
    assert_same(process(client, crop=crop), IMAGE.crop((left, top, left + width, top + height)))


@pytest.mark.parametrize("rotation, flips, transpositions", [
    (90, {}, [Image.Transpose.ROTATE_270]),
    (180, {}, [Image.Transpose.ROTATE_180]),
    (270, {"flip_horizontal": True}, [Image.Transpose.ROTATE_90, Image.Transpose.FLIP_LEFT_RIGHT]),
    (0, {"flip_vertical": True}, [Image.Transpose.FLIP_TOP_BOTTOM]),
])
def test_turning(client, rotation, flips, transpositions):
    expected = IMAGE
    for transposition in transpositions:
        expected = expected.transpose(transposition)
    assert_same(process(client, rotation=rotation, **flips), expected)


@pytest.mark.parametrize("gravity, share", [
    ("WEST", 0), ("NORTH_WEST", 0), ("CENTER", 0.5), ("SOUTH", 0.5), ("EAST", 1), ("SOUTH_EAST", 1)])
def test_fill(client, gravity, share):
    result = process(client, max_width=40, max_height=40, resize_mode="RESIZE_MODE_FILL", gravity=f"GRAVITY_{gravity}")
    left = 40 * share
    expected = IMAGE.crop((left, 0, left + 80, 80)).resize((40, 40), Image.Resampling.LANCZOS)
    assert result.size == (40, 40)
    difference = np.abs(np.asarray(result, int) - np.asarray(expected, int))
    # At the edges, Pillow ignores pixels outside the image, while the worker repeats the last pixel.
    assert difference[3:-3, 3:-3].max() <= 1 and difference.mean() < 0.5


@pytest.mark.parametrize("turn, undone", [
    ({"flip_horizontal": True}, Image.Transpose.FLIP_LEFT_RIGHT), ({"flip_vertical": True}, Image.Transpose.FLIP_TOP_BOTTOM),
    ({"rotation": 90}, Image.Transpose.ROTATE_90), ({"rotation": 180}, Image.Transpose.ROTATE_180),
    ({"rotation": 270}, Image.Transpose.ROTATE_270)])
@pytest.mark.parametrize("size", [(3, 7), (3, 25), (17, 3), (27, 3)])
def test_fill_keeps_the_same_part_of_a_turned_image(client, turn, undone, size):
    """Edges of the part are sums of fractions, whose rounding errors are of either sign."""
    file = io.BytesIO()
    IMAGE.transpose(undone).save(file, "PNG")
    fields = {"max_width": size[0], "max_height": size[1], "resize_mode": "RESIZE_MODE_FILL", "gravity": "GRAVITY_SOUTH_EAST"}
    result, expected = process(client, file.getvalue(), **turn, **fields), process(client, **fields)
    assert result.size == size
    assert np.abs(np.asarray(result, int) - np.asarray(expected, int)).max() <= 2


def test_focus_point(client):
    fields = {"max_width": 40, "max_height": 40, "resize_mode": "RESIZE_MODE_FILL"}
    near_the_edge = process(client, focus_point={"x": 0.01, "y": 0.5}, gravity="GRAVITY_EAST", **fields)
    assert_same(near_the_edge, process(client, gravity="GRAVITY_WEST", **fields))


def test_padding(client):
    result = process(
        client, max_width=60, max_height=60, pad=True, gravity="GRAVITY_SOUTH", background={"red": 9, "green": 8, "blue": 7})
    assert result.size == (60, 60)
    pixels = np.asarray(result)
    assert (pixels[:20] == [9, 8, 7]).all() and not (pixels[20:] == [9, 8, 7]).all(axis=2).any()
    assert_same(result.crop((0, 20, 60, 60)), process(client, max_width=60, max_height=60))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_crop_is_of_the_shown_image(client, orientation):
    image = fixture_bytes(f"orientation-{orientation}.png")
    shown = process(client, image)
    crop = {"x": 3, "y": 2, "width": 20, "height": 25}
    assert_same(process(client, image, crop=crop), shown.crop((3, 2, 23, 27)))


@pytest.mark.parametrize("fields, field", [
    ({"crop": {"x": 100, "width": 21, "height": 1}}, "configuration.crop.width"),
    ({"crop": {"y": 80, "width": 1, "height": 1}}, "configuration.crop.y"),
    ({"rotation": 1}, "configuration.rotation"),
    ({"focus_point": {"x": 2}}, "configuration.focus_point.x"),
    ({"resize_mode": "RESIZE_MODE_FILL", "max_width": 5}, "configuration.resize_mode"),
])
def test_out_of_range_is_refused_by_field(client, fields, field):
    with pytest.raises(grpc.RpcError) as raised:
        process(client, **fields)
    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert field.removeprefix("configuration.").split(".")[0] in raised.value.details()
    assert field.encode() in dict(raised.value.trailing_metadata())["grpc-status-details-bin"]
