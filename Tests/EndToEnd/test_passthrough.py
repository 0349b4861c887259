"""Tests of passthrough: images that meet their configuration are copied or rotated; Pillow and exiftool read them."""

import io
import random

import grpc
import numpy
import pytest
from conftest import fixture_bytes
from PIL import Image
from test_calls import parts
from test_metadata import KEEP_COPYRIGHT, kept_copyright, make_image, tags

# The operation that shows the stored image upright, by EXIF orientation.
UPRIGHT = {
    2: numpy.fliplr, 3: lambda a: numpy.rot90(a, 2), 4: numpy.flipud, 5: lambda a: numpy.swapaxes(a, 0, 1),
    6: lambda a: numpy.rot90(a, -1), 7: lambda a: numpy.rot90(numpy.swapaxes(a, 0, 1), 2), 8: numpy.rot90,
}


def run(client, image: bytes, **configuration):
    responses = parts(client.process(image, **configuration))
    return b"".join(r.chunk for kind, r in responses if kind == "chunk"), responses[-1][1].report


def samples(image: bytes) -> numpy.ndarray:
    with Image.open(io.BytesIO(image)) as opened:
        return numpy.asarray(opened).astype(int)


@pytest.mark.parametrize("name", [
    "photo-420.jpg", "photo-444.jpg", "photo-odd.jpg", "photo-gray.jpg", "photo-progressive.jpg", "photo-restart.jpg",
    "photo.png", "alpha.png", "palette.png", "bilevel.png", "gray.png", "photo.webp", "alpha.webp", "lossless.webp"])
def test_samples_stay(client, name):
    data, report = run(client, fixture_bytes(name))
    assert report.passthrough and report.output_bytes == len(data)
    assert numpy.array_equal(samples(data), samples(fixture_bytes(name)))
    encoded, report = run(client, fixture_bytes(name), always_encode=True)
    assert not report.passthrough and encoded != data


@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
@pytest.mark.parametrize("container", ["JPEG", "PNG", "WEBP"])
def test_metadata_goes(client, tmp_path, container, mode):
    if container == "JPEG" and mode == "RGBA":
        return
    image = make_image(container, mode)
    data, report = run(client, image)
    assert report.passthrough
    path = tmp_path / "result"
    path.write_bytes(data)
    assert tags(path) == {}
    assert numpy.array_equal(samples(data), samples(image))
    data, report = run(client, image, metadata=KEEP_COPYRIGHT)
    assert report.passthrough == (container != "PNG")  # which may have more metadata after its data
    path.write_bytes(data)
    found = tags(path)
    assert found == kept_copyright(container, container)
    assert numpy.array_equal(samples(data), samples(image))


@pytest.mark.parametrize("orientation", range(2, 9))
@pytest.mark.parametrize("progressive", [False, True])
@pytest.mark.parametrize("subsampling", [0, 2])
def test_turned_without_loss(client, orientation, progressive, subsampling):
    stored = Image.open(io.BytesIO(fixture_bytes("photo-444.jpg"))).convert("RGB")
    exif = Image.Exif()
    exif[0x0112] = orientation
    out = io.BytesIO()
    stored.save(out, "JPEG", quality=93, exif=exif, progressive=progressive, subsampling=subsampling)
    data, report = run(client, out.getvalue())
    assert report.passthrough and report.input.orientation == orientation and report.output.orientation == 1
    with Image.open(io.BytesIO(data)) as turned:
        assert not turned.getexif() and bool(turned.info.get("progressive")) == progressive
    # Luma only: Pillow upsamples chroma differently along rows and columns.
    def luma(jpeg):
        with Image.open(io.BytesIO(jpeg)) as opened:
            opened.draft("YCbCr", opened.size)
            return numpy.asarray(opened)[:, :, 0].astype(int)
    difference = numpy.abs(luma(data) - UPRIGHT[orientation](luma(out.getvalue())))
    # The inverse transform rounds differently for the rotated image.
    assert difference.max() <= 1


def damaged(image: bytes, way: str, numbers: random.Random) -> bytes:
    first, second = sorted(numbers.sample(range(len(image) // 20, len(image) - 64), 2))
    if way == "truncated":
        return image[:second]
    if way == "flipped":
        return image[:first] + bytes([image[first] ^ 1 << numbers.randrange(8)]) + image[first + 1:]
    if way == "zeroed":
        return image[:first] + bytes(32) + image[first + 32:]
    if way == "removed":
        return image[:first] + image[first + 32:]
    second = max(second, first + 32)
    return (image[:first] + image[second:second + 32] + image[first + 32:second] + image[first:first + 32]
            + image[second + 32:])


@pytest.mark.parametrize("options", [
    {"format": "JPEG", "quality": 70}, {"format": "JPEG", "quality": 70, "progressive": True}, {"format": "PNG"},
    {"format": "WEBP", "quality": 70}, {"format": "WEBP", "lossless": True}])
def test_damaged_images_that_pass_open(client, options):
    """Pillow opens whatever is delivered of damaged files, and the worker also encodes them."""
    image = Image.open(io.BytesIO(fixture_bytes("photo-444.jpg"))).convert("RGB").resize((420, 280))
    out = io.BytesIO()
    image.save(out, **options)
    numbers, refused = random.Random(26), 0
    for way in ["truncated", "flipped", "zeroed", "removed", "swapped"] * 4:
        file = damaged(out.getvalue(), way, numbers)
        try:
            data, _ = run(client, file)
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
            refused += 1
            continue
        samples(data)
        run(client, file, always_encode=True)
    assert refused > 0


def test_inspection_agrees(client):
    """InspectImage predicts the actual result."""
    for name, configuration in [("photo-420.jpg", {}), ("orientation-6.jpg", {}), ("palette.png", {}), ("photo.webp", {})]:
        request = client.message("InspectImageRequest")(image=fixture_bytes(name)[:4096])
        foretold = client.call("InspectImage", "unary_unary")(request)
        _, report = run(client, fixture_bytes(name), **configuration)
        assert report.passthrough and report.output == foretold.output
        assert report.peak_memory_bytes <= foretold.working_set_bytes
