"""Tests of trimming over gRPC, compared with find_trim of libvips, and of crops that keep what attracts attention."""

import io

import grpc
import numpy as np
import pytest
import pyvips
from PIL import Image


def bordered(seed: int) -> bytes:
    """An image of soft shapes in a border, as PNG, JPEG or WebP."""
    random = np.random.default_rng(seed)
    width, height = (int(side) for side in random.integers(60, 400, 2))
    color = random.integers(0, 256, 3)
    pixels = np.empty((height, width, 3), np.uint8)
    pixels[:] = color
    left, right = np.sort(random.integers(0, width, 2))
    top, bottom = np.sort(random.integers(0, height, 2))
    content = random.integers(0, 256, (bottom - top + 1, right - left + 1, 3), np.uint8)
    shape = Image.fromarray(content).resize(content.shape[1::-1], Image.Resampling.BICUBIC, reducing_gap=None)
    if seed % 2:
        small = Image.fromarray(random.integers(0, 256, (5, 5, 3), np.uint8))
        shape = small.resize(content.shape[1::-1], Image.Resampling.BICUBIC)
    pixels[top:bottom + 1, left:right + 1] = np.asarray(shape)
    if seed % 3 == 0:  # dust
        for _ in range(20):
            pixels[random.integers(0, height), random.integers(0, width)] = random.integers(0, 256, 3)
    file = io.BytesIO()
    fmt, options = [("PNG", {}), ("JPEG", {"quality": 92}), ("WEBP", {"lossless": True})][seed % 3]
    Image.fromarray(pixels).save(file, fmt, **options)
    return file.getvalue()


def process(client, image: bytes, **fields):
    configuration = client.message("ProcessingConfiguration")(preferred_format="OUTPUT_FORMAT_PNG", **fields)
    request = client.message("ProcessImageRequest")(image=image, configuration=configuration)
    parts = list(client.call("ProcessImage", "unary_stream")(request, timeout=60))
    return Image.open(io.BytesIO(b"".join(part.chunk for part in parts))), parts[-1].report


def test_a_hundred_borders_are_those_of_libvips(client):
    differences = []
    for seed in range(100):
        image = bordered(seed)
        vips = pyvips.Image.new_from_buffer(image, "")
        threshold = [10, 25, 60][seed // 3 % 3]
        theirs = np.array(vips.find_trim(threshold=threshold, background=vips.getpoint(0, 0)[:3]))
        result, report = process(client, image, trim={"threshold": threshold})
        if theirs[2] == 0 or theirs[3] == 0:
            assert [detail.code for detail in report.warning_details] == [32] and not report.HasField("crop")
            continue
        ours = np.array([report.crop.x, report.crop.y, report.crop.width, report.crop.height])
        edges = [np.concatenate([rect[:2], rect[:2] + rect[2:]]) for rect in (ours, theirs)]
        differences.append(np.abs(edges[0] - edges[1]).max())
        assert result.size == (report.crop.width, report.crop.height)
    assert len(differences) > 80 and max(differences) <= 1, differences


def test_a_chunked_upload_is_trimmed_when_it_is_complete(client):
    message, image = client.message, bordered(1)
    _, report = process(client, image, trim={"threshold": 40}, max_width=50)
    configuration = message("ProcessingConfiguration")(
        preferred_format="OUTPUT_FORMAT_PNG", trim={"threshold": 40}, max_width=50)
    requests = [message("BatchProcessRequest")(item_id="a", start=message("BatchItemStart")(configuration=configuration))]
    requests += [message("BatchProcessRequest")(item_id="a", chunk=image[at:at + 700]) for at in range(0, len(image), 700)]
    requests.append(message("BatchProcessRequest")(item_id="a", end=message("BatchItemEnd")()))
    parts = list(client.call("BatchProcess", "stream_stream")(iter(requests), timeout=60))
    assert parts[-1].report.crop == report.crop and parts[-1].report.output == report.output


def test_transparent_borders_are_removed(client):
    pixels = np.zeros((90, 120, 4), np.uint8)
    pixels[:, :, :3] = np.random.default_rng(3).integers(0, 256, (90, 120, 3))  # colors that nobody sees
    pixels[20:70, 30:100, 3] = 255
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    result, report = process(client, file.getvalue(), trim={})
    assert result.size == (70, 50) and (report.crop.x, report.crop.y) == (30, 20)


def test_inspect_decodes_nothing(client):
    image = bordered(1)
    size = Image.open(io.BytesIO(image)).size
    configuration = client.message("ProcessingConfiguration")(trim={})
    request = client.message("InspectImageRequest")(image=image[:2000], configuration=configuration)
    response = client.call("InspectImage", "unary_unary")(request, timeout=60)
    assert (response.output.width, response.output.height) == size


def test_animations_are_refused(client):
    frames = [Image.new("RGB", (40, 40), color) for color in ("red", "blue")]
    file = io.BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:])
    with pytest.raises(grpc.RpcError) as raised:
        configuration = client.message("ProcessingConfiguration")(trim={}, max_frames=0)
        request = client.message("ProcessImageRequest")(image=file.getvalue(), configuration=configuration)
        list(client.call("ProcessImage", "unary_stream")(request, timeout=60))
    assert raised.value.code() == grpc.StatusCode.UNIMPLEMENTED and "trim" in raised.value.details()


@pytest.mark.parametrize("left", [0, 150, 300])
def test_smart_crops_keep_the_subject(client, left):
    pixels = np.full((100, 400, 3), 200, np.uint8)
    pixels[20:80, left + 20:left + 80] = np.random.default_rng(1).integers(0, 256, (60, 60, 3)) // [1, 2, 8]
    for fmt in ("PNG", "JPEG"):
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, fmt)
        result, report = process(
            client, file.getvalue(), max_width=50, max_height=50, resize_mode="RESIZE_MODE_FILL", gravity="GRAVITY_SMART")
        assert result.size == (50, 50)
        assert report.crop.x <= left + 22 and report.crop.x + report.crop.width >= left + 78


@pytest.mark.parametrize("size", [(101, 100), (1000, 10)])
def test_the_reported_crop_of_a_smart_one_is_in_the_image(client, size):
    pixels = np.full((size[1], size[0], 3), 128, np.uint8)
    pixels[:, -9:] = np.random.default_rng(1).integers(0, 256, (size[1], 9, 3))
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    fields = {"resize_mode": "RESIZE_MODE_FILL", "gravity": "GRAVITY_SMART", "allow_upscale": True}
    bounds = {"max_width": 199, "max_height": 200} if size == (101, 100) else {"max_width": 1, "max_height": 1000}
    _, report = process(client, file.getvalue(), **fields, **bounds)
    crop = {name: getattr(report.crop, name) for name in ("x", "y", "width", "height")}
    assert process(client, file.getvalue(), crop=crop)[0].size == (crop["width"], crop["height"])
