"""Tests of hidden regions over gRPC: results of images that differ only in a region are the same."""

import io
import json
import os
import subprocess

import grpc
import numpy as np
import pytest
from conftest import Client, Worker, built_in, fixture_bytes
from PIL import Image

AREA = {"x": 60, "y": 40, "width": 100, "height": 90}
REGION = {"area": AREA, "effect": "REGION_EFFECT_FILL", "color": {"red": 9, "green": 8, "blue": 7}}


def images(fmt: str = "PNG", **options) -> list[bytes]:
    """Two images with other pixels in the area."""
    pixels = np.random.default_rng(5).integers(0, 256, (200, 240, 3), np.uint8)
    other = pixels.copy()
    other[40:130, 60:160] = 255 - other[40:130, 60:160]
    files = []
    for array in (pixels, other):
        file = io.BytesIO()
        Image.fromarray(array).save(file, fmt, **options)
        files.append(file.getvalue())
    return files


def request(client, image: bytes, preview=False, **fields):
    configuration = client.message("ProcessingConfiguration")(**fields)
    return client.message("ProcessImageRequest")(image=image, configuration=configuration, preview=preview)


def parts(client, image: bytes, **fields):
    return list(client.call("ProcessImage", "unary_stream")(request(client, image, **fields), timeout=60))


def chunks(responses, is_preview=False) -> bytes:
    return b"".join(part.chunk for part in responses if part.is_preview == is_preview)


@pytest.mark.parametrize("fields", [
    {"preferred_format": "OUTPUT_FORMAT_JPEG", "compression_quality": 0.8},
    {"preferred_format": "OUTPUT_FORMAT_WEBP", "compression_quality": 0.8, "max_width": 71},
    {"preferred_format": "OUTPUT_FORMAT_PNG", "max_width": 50, "max_height": 50, "resize_mode": "RESIZE_MODE_FILL"},
    {"preferred_format": "OUTPUT_FORMAT_AUTO", "compression_quality": 0.8},
])
def test_results_and_previews_show_nothing_of_a_filled_region(client, fields):
    ours, theirs = (parts(client, image, preview=True, regions=[REGION], **fields) for image in images())
    assert chunks(ours) == chunks(theirs) and len(chunks(ours)) > 100
    assert chunks(ours, True) == chunks(theirs, True)
    rect = next(part for part in ours if part.HasField("report") and not part.is_preview).report.hidden_regions
    assert [(r.x, r.y, r.width, r.height) for r in rect] == [(59, 39, 102, 92)]
    assert chunks(parts(client, images()[0], **fields)) != chunks(parts(client, images()[1], **fields))


@pytest.mark.parametrize("fields", [
    {"trim": {}}, {"gravity": "GRAVITY_SMART", "max_width": 60, "max_height": 60, "resize_mode": "RESIZE_MODE_FILL"}])
def test_what_is_searched_in_an_image_is_not_beneath_a_region(client, fields):
    """The part that is chosen does not depend on it, and the region itself is part of the image."""
    for background, box in [(255, (250, 70)), (200, (220, 20))]:
        plain = np.full((100, 300, 3), background, np.uint8)
        plain[40:60, 40:60] = 0
        secret = plain.copy()
        secret[box[1]:box[1] + 20, box[0]:box[0] + 20] = np.random.default_rng(1).integers(0, 256, (20, 20, 3))
        area = {"x": box[0] - 10, "y": box[1] - 10, "width": 40, "height": 40}
        color = {"red": background, "green": background, "blue": background}
        found = []
        for pixels in plain, secret:
            file = io.BytesIO()
            Image.fromarray(pixels).save(file, "PNG")
            responses = parts(
                client, file.getvalue(), preferred_format="OUTPUT_FORMAT_PNG", regions=[{"area": area, "color": color}], **fields)
            crop = next(part.report.crop for part in responses if part.HasField("report"))
            found.append((crop.x, crop.y, crop.width, crop.height, chunks(responses)))
        assert found[0] == found[1]
    if "trim" in fields:
        # A region of the border's color is border.
        region = {"area": {"x": 210, "y": 10, "width": 40, "height": 40}, "color": {"red": 200, "green": 200, "blue": 200}}
        file = io.BytesIO()
        Image.fromarray(secret).save(file, "PNG")
        responses = parts(client, file.getvalue(), regions=[region], **fields)
        crop = next(part.report.crop for part in responses if part.HasField("report"))
        assert (crop.x, crop.y, crop.x + crop.width, crop.y + crop.height) == (40, 40, 60, 60)
        region = {"area": {"x": 240, "y": 60, "width": 40, "height": 35}, "color": {"red": 9}}
        file = io.BytesIO()
        Image.fromarray(plain).save(file, "PNG")
        responses = parts(client, file.getvalue(), regions=[region], **fields)
        crop = next(part.report.crop for part in responses if part.HasField("report"))
        assert (crop.x, crop.y, crop.x + crop.width, crop.y + crop.height) == (40, 40, 281, 96)


@pytest.mark.parametrize("fmt, options", [
    ("JPEG", {"quality": 95, "subsampling": 2}), ("JPEG", {"quality": 60, "subsampling": 1}), ("TIFF", {"compression": "jpeg", "quality": 75})])
@pytest.mark.parametrize("shape", ["REGION_SHAPE_RECTANGLE", "REGION_SHAPE_ELLIPSE"])
def test_decoders_that_enlarge_chroma_mix_nothing_of_a_region_with_what_is_around_it(client, fmt, options, shape):
    area = {"x": 33, "y": 33, "width": 30, "height": 30}
    for size in 96, 24:
        results = []
        for color in (0, 0, 0), (255, 255, 255), (255, 0, 0):
            pixels = np.full((96, 96, 3), 128, np.uint8)
            inside = pixels[33:63, 33:63]
            y, x = np.mgrid[-14.5:15, -14.5:15]
            inside[(x ** 2 + y ** 2 <= 225) | (shape == "REGION_SHAPE_RECTANGLE")] = color
            file = io.BytesIO()
            image = Image.fromarray(pixels)
            (image.convert("CMYK") if fmt == "JPEG" else image).save(file, fmt, **options)
            responses = parts(
                client, file.getvalue(), preferred_format="OUTPUT_FORMAT_PNG", max_width=size, always_encode=True,
                regions=[{"area": area, "shape": shape, "effect": "REGION_EFFECT_FILL"}])
            results.append(chunks(responses))
        assert results[0] == results[1] == results[2], size


@pytest.mark.parametrize("space, level", [("COLOR_SPACE_SRGB", 128), ("COLOR_SPACE_KEEP", 109)])
def test_a_region_of_a_gray_image_has_its_color_whatever_the_profile(client, space, level):
    file = io.BytesIO()
    Image.new("L", (60, 40), 200).save(file, "PNG", icc_profile=fixture_bytes("gray-gamma-1.8.icc"))
    gray = {"area": AREA | {"x": 10, "y": 10, "width": 20}, "color": {"red": 128, "green": 128, "blue": 128}}
    result = chunks(parts(client, file.getvalue(), color_space=space, regions=[gray]))
    assert Image.open(io.BytesIO(result)).getpixel((20, 20)) == level
    file = io.BytesIO()
    Image.new("LA", (60, 40), (200, 90)).save(file, "PNG", icc_profile=fixture_bytes("gray-gamma-1.8.icc"))
    color = gray | {"color": {"red": 255, "green": 128, "blue": 0}}
    result = chunks(parts(client, file.getvalue(), color_space=space, regions=[color]))
    assert Image.open(io.BytesIO(result)).getpixel((20, 20)) == (255, 128, 0, 255)


def test_commands_print_what_is_hidden(tmp_path, client, worker):
    image = tmp_path / "image.png"
    image.write_bytes(images()[0])
    for place in ([], ["--to", worker.address]):
        command = [os.environ["IMAGE_WORKER"], "batch", str(image), "--region", "60,40,100x90", "--json",
                   "--out", str(tmp_path / f"hidden{len(place)}"), *place]
        lines = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout.splitlines()
        rects = [line["hidden_regions"] for line in map(json.loads, lines) if "hidden_regions" in line]
        assert rects == [[{"x": 59, "y": 39, "width": 102, "height": 92}]]


def test_chunked_uploads_and_renditions_show_nothing_of_it(client):
    message = client.message
    results = []
    for image in images():
        renditions = [
            message("Rendition")(rendition_id=str(width), configuration=message("ProcessingConfiguration")(
                preferred_format="OUTPUT_FORMAT_PNG", max_width=width, regions=[REGION]))
            for width in (200, 30)]
        start = message("BatchItemStart")(renditions=renditions)
        requests = [message("BatchProcessRequest")(item_id="a", start=start)]
        requests += [
            message("BatchProcessRequest")(item_id="a", chunk=image[at:at + 1000]) for at in range(0, len(image), 1000)]
        requests.append(message("BatchProcessRequest")(item_id="a", end=message("BatchItemEnd")()))
        results.append({"200": b"", "30": b""})
        for part in client.call("BatchProcess", "stream_stream")(iter(requests), timeout=60):
            assert not part.HasField("error"), part.error
            results[-1][part.rendition_id] += part.chunk
    assert results[0] == results[1] and all(results[0].values())


def test_the_color_fills_the_region_and_nothing_else(client):
    image = images()[0]
    result = chunks(parts(client, image, preferred_format="OUTPUT_FORMAT_PNG", regions=[REGION]))
    pixels, original = (np.asarray(Image.open(io.BytesIO(file)).convert("RGB")) for file in (result, image))
    assert (pixels[39:131, 59:161] == [9, 8, 7]).all()
    hidden = np.zeros(pixels.shape[:2], bool)
    hidden[39:131, 59:161] = True
    assert (pixels[~hidden] == original[~hidden]).all()


@pytest.mark.parametrize("effect", ["BLUR", "PIXELATE"])
def test_blocks_are_few(client, effect):
    region = {"area": AREA, "effect": f"REGION_EFFECT_{effect}"}
    result = chunks(parts(client, images()[0], preferred_format="OUTPUT_FORMAT_PNG", regions=[region]))
    hidden = np.asarray(Image.open(io.BytesIO(result)).convert("RGB"))[39:131, 59:161].astype(int)
    # Noise of all levels has become its mean.
    assert np.ptp(hidden) < 60
    if effect == "PIXELATE":
        assert len(np.unique(hidden.reshape(-1, 3), axis=0)) <= 16


def test_thumbnails_of_kept_metadata_are_removed(client):
    thumbnail = io.BytesIO()
    Image.open(io.BytesIO(images()[0])).resize((60, 50)).save(thumbnail, "JPEG")
    text = thumbnail.getvalue().hex()
    packet = (
        '<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
        f'<rdf:Description rdf:about="" xmlns:my="http://my/" my:small="kept" my:copy="{text}"><my:more>{text}</my:more>'
        "</rdf:Description></rdf:RDF></x:xmpmeta>").encode()
    image = images("JPEG", xmp=packet)[0]
    fields = {"metadata": "METADATA_POLICY_KEEP_ALL", "preferred_format": "OUTPUT_FORMAT_JPEG"}
    assert text[:200].encode() in chunks(parts(client, image, **fields))
    result = chunks(parts(client, image, regions=[REGION], **fields))
    assert b"kept" in result and text[:200].encode() not in result


@pytest.mark.parametrize("region, field", [
    ({"area": {"x": 240, "width": 5, "height": 5}}, "regions[0].area"),
    ({"area": {"x": 1, "y": 1, "width": 5}}, "regions[0].area.height"),
    ({}, "regions[0].area.width"),
])
def test_regions_that_hide_nothing_are_refused(client, region, field):
    with pytest.raises(grpc.RpcError) as raised:
        parts(client, images()[0], regions=[region])
    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert f"configuration.{field}".encode() in dict(raised.value.trailing_metadata())["grpc-status-details-bin"]


@built_in("isolation")
def test_a_helper_hides_and_trims_alike(client):
    worker = Worker("--isolation", "process", "--cache-memory-mib", "0")
    try:
        isolated = Client(worker)
        fields = {"preferred_format": "OUTPUT_FORMAT_PNG", "max_width": 90, "trim": {"threshold": 250}}
        for effect in ("FILL", "BLUR", "PIXELATE"):
            region = {"area": AREA, "shape": "REGION_SHAPE_ELLIPSE", "effect": f"REGION_EFFECT_{effect}"}
            here, there = (parts(one, images()[0], regions=[region], **fields) for one in (client, isolated))
            assert chunks(here) == chunks(there)
            reports = [responses[-1].report for responses in (here, there)]
            assert len(reports[0].hidden_regions) == 1
            assert str(reports[0].hidden_regions) == str(reports[1].hidden_regions)
            assert str(reports[0].crop) == str(reports[1].crop)
    finally:
        worker.stop()
