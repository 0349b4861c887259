"""Tests of HDR gain maps over gRPC and on the command line, read with exiftool and Pillow."""

import io
import json
import os
import shutil
import subprocess

import gain_maps
import numpy as np
import pytest
from conftest import Client, Worker, built_in
from PIL import Image, MpoImagePlugin

pytestmark = pytest.mark.skipif(shutil.which("exiftool") is None, reason="exiftool is not installed")


@pytest.fixture(scope="module")
def photo() -> bytes:
    random = np.random.default_rng(31)
    small = Image.fromarray(random.integers(0, 256, (30, 40, 3), np.uint8))
    image = gain_maps.jpeg(np.asarray(small.resize((1600, 1200), Image.Resampling.BICUBIC)), quality=92)
    return gain_maps.ultra_hdr(image, gain_maps.jpeg(gain_maps.gradient(400, 300)))


def process(client, image: bytes, **fields):
    message = client.message
    configuration = message("ProcessingConfiguration")(compression_quality=0.9, gain_map="GAIN_MAP_KEEP", **fields)
    request = message("ProcessImageRequest")(image=image, configuration=configuration)
    parts = list(client.call("ProcessImage", "unary_stream")(request, timeout=60))
    return b"".join(part.chunk for part in parts), parts[-1].report


def expected(width: int, height: int, *steps) -> np.ndarray:
    """The map of the photo after steps of Pillow, in the size of the result's map."""
    image = Image.fromarray(gain_maps.gradient(400, 300))
    for step in steps:
        image = step(image)
    return np.asarray(image.resize((width, height), Image.Resampling.LANCZOS), int)


@pytest.mark.parametrize("fields, size, steps", [
    ({"max_width": 800}, (200, 150), []),
    ({"max_width": 800, "rotation": 90}, (200, 267), [lambda image: image.transpose(Image.Transpose.ROTATE_270)]),
    ({"max_width": 400, "flip_horizontal": True}, (100, 75), [lambda image: image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)]),
    ({"max_width": 400, "crop": {"unit": "RECT_UNIT_FRACTIONS", "x": 0.5, "y": 0.25, "width": 0.5, "height": 0.5}},
     (100, 75), [lambda image: image.crop((200, 75, 400, 225))]),
    ({"max_width": 300, "max_height": 300, "resize_mode": "RESIZE_MODE_FILL"}, (75, 75),
     [lambda image: image.crop((50, 0, 350, 300))]),
])
def test_a_map_follows_its_image(client, photo, tmp_path, fields, size, steps):
    data, report = process(client, photo, **fields)
    file = tmp_path / "result.jpg"
    file.write_bytes(data)
    found = gain_maps.exiftool(file, "-XMP-Container:Directory", "-warning")
    directory = found["Directory"]
    assert "Warning" not in found
    assert [item["Item"]["Semantic"] for item in directory] == ["Primary", "GainMap"]
    gain_map = gain_maps.map_of(file)
    assert directory[1]["Item"]["Length"] == len(gain_map) == report.gain_map_bytes
    assert data.endswith(gain_map) and report.output_bytes == len(data)
    assert gain_maps.MAP_XMP in gain_map and gain_maps.MAP_ISO in gain_map
    assert not report.warning_details
    pixels = Image.open(io.BytesIO(gain_map))
    assert pixels.mode == "L" and pixels.size == size
    assert np.abs(np.asarray(pixels, int) - expected(*size, *steps)).mean() < 1
    with MpoImagePlugin.MpoImageFile(io.BytesIO(data)) as both:
        assert both.n_frames == 2 and both.mpinfo[0xB002][0]["Size"] == len(data) - len(gain_map)


@pytest.mark.parametrize("fields", [{"rotation": 90}, {"rotation": 180}, {"flip_horizontal": True}])
def test_a_map_that_has_no_room_to_be_rotated_without_loss_is_decoded(client, fields):
    pixels = np.zeros((1200, 1600, 3), np.uint8)
    pixels[:, :, 0] = np.arange(1600) // 8
    colors = io.BytesIO()
    Image.fromarray(pixels).save(colors, "JPEG", subsampling=0, quality=90)
    image = gain_maps.ultra_hdr(gain_maps.jpeg(pixels, quality=90), colors.getvalue())
    result, report = process(client, image, **fields)
    assert report.passthrough and report.gain_map_bytes > 1000 and not report.warnings
    frames = MpoImagePlugin.MpoImageFile(io.BytesIO(result))
    frames.seek(1)
    assert frames.size == ((1200, 1600) if fields == {"rotation": 90} else (1600, 1200))


def test_the_image_is_that_without_a_map(client, photo):
    data, _ = process(client, photo, max_width=800)
    configuration = client.message("ProcessingConfiguration")(compression_quality=0.9, max_width=800)
    request = client.message("ProcessImageRequest")(image=photo, configuration=configuration)
    plain = b"".join(part.chunk for part in client.call("ProcessImage", "unary_stream")(request, timeout=60))
    assert b"MPF\0" not in plain and len(plain) < len(data)
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(plain))), np.asarray(Image.open(io.BytesIO(data))))


def test_a_result_that_cannot_have_it_warns(client, photo):
    sepia = [{"name": "sepia", "intensity": 1}]
    for fields, cause in [({"preferred_format": "OUTPUT_FORMAT_PNG"}, "format"), ({"filters": sepia}, "filters")]:
        data, report = process(client, photo, max_width=100, **fields)
        assert [(detail.code, detail.parameters["cause"]) for detail in report.warning_details] == [(33, cause)]
        assert report.gain_map_bytes == 0 and b"MPF\0" not in data


@built_in("isolation")
def test_a_helper_process_returns_the_same_and_a_cache_the_same_again(client, photo):
    worker = Worker("--isolation", "process")
    try:
        isolated = Client(worker)
        for fields in [{"max_width": 1500}, {"max_width": 800, "rotation": 90}]:
            data, report = process(client, photo, **fields)
            for is_cached in [False, True]:
                other, other_report = process(isolated, photo, **fields)
                assert other == data and other_report.gain_map_bytes == report.gain_map_bytes > 0
                assert other_report.cache_hit == is_cached
    finally:
        assert worker.stop() == 0, "".join(worker.log)


def test_renditions_keep_it_each_on_its_own(client, photo):
    message = client.message
    configurations = {"large": {"max_width": 800, "gain_map": "GAIN_MAP_KEEP"}, "plain": {"max_width": 400},
                      "small": {"max_width": 200, "rotation": 90, "gain_map": "GAIN_MAP_KEEP"}}
    configuration = message("ProcessingConfiguration")
    request = message("ProcessImageRequest")(image=photo, renditions=[
        message("Rendition")(rendition_id=name, configuration=configuration(compression_quality=0.9, **fields))
        for name, fields in configurations.items()])
    data, reports = {name: b"" for name in configurations}, {}
    for part in client.call("ProcessImage", "unary_stream")(request, timeout=60):
        data[part.rendition_id] += part.chunk
        if part.HasField("report"):
            reports[part.rendition_id] = part.report
    assert [name for name, report in reports.items() if report.gain_map_bytes == 0] == ["plain"]
    for name, size in {"large": (200, 150), "small": (50, 67)}.items():
        assert Image.open(io.BytesIO(data[name][-reports[name].gain_map_bytes:])).size == size


def test_chunked_batches_have_it(client, photo):
    message = client.message
    configuration = message("ProcessingConfiguration")(compression_quality=0.9, gain_map="GAIN_MAP_KEEP", max_width=800)
    requests = [message("BatchProcessRequest")(item_id="a", start=message("BatchItemStart")(configuration=configuration))]
    requests += [message("BatchProcessRequest")(item_id="a", chunk=photo[at:at + 5000]) for at in range(0, len(photo), 5000)]
    requests.append(message("BatchProcessRequest")(item_id="a", end=message("BatchItemEnd")()))
    parts = list(client.call("BatchProcess", "stream_stream")(iter(requests), timeout=60))
    chunked = b"".join(part.chunk for part in parts)
    assert chunked == process(client, photo, max_width=800)[0] and parts[-1].report.gain_map_bytes > 0


def test_the_command_keeps_it(photo, tmp_path):
    source = tmp_path / "photo.jpg"
    source.write_bytes(photo)
    command = [os.environ["IMAGE_WORKER"], "process", str(source), "--max-width", "400", "--gain-map", "keep", "--json",
               "--out", str(tmp_path / "small.jpg")]
    line = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0])
    assert line["gain_map_bytes"] == len(gain_maps.map_of(tmp_path / "small.jpg"))


# MARK: Directories


@pytest.fixture(scope="module")
def unlisted() -> list[bytes]:
    """Files whose map only the directory in XMP lists, or whose multi-picture segment is wrong, and one that is right."""
    image = gain_maps.jpeg(np.asarray(Image.open(io.BytesIO(gain_maps.seeds.FIXTURES.joinpath("photo-420.jpg").read_bytes()))))
    gain_map = gain_maps.jpeg(gain_maps.gradient(60, 40))
    return [gain_maps.ultra_hdr(image, gain_map, offset_error=error) for error in (None, -212, 90, 0)]


def test_a_map_that_only_the_directory_lists_is_kept_and_inspected(client, unlisted, tmp_path):
    *files, listed = unlisted
    expected, report = process(client, listed, max_width=80)
    assert report.gain_map_bytes > 0
    for file in files:
        data, report = process(client, file, max_width=80)
        assert data == expected and not report.warning_details
        found = client.call("InspectImage", "unary_unary")(client.message("InspectImageRequest")(image=file), timeout=60).info
        assert (found.gain_map.kind, found.gain_map.width, found.gain_map.height) == ("iso", 60, 40)
        (tmp_path / "photo.jpg").write_bytes(file)
        command = [os.environ["IMAGE_WORKER"], "inspect", str(tmp_path / "photo.jpg")]
        assert "iso 60x40" in subprocess.run(command, capture_output=True, text=True, check=True).stdout
    (tmp_path / "result.jpg").write_bytes(expected)
    assert "Warning" not in gain_maps.exiftool(tmp_path / "result.jpg", "-XMP-Container:Directory", "-warning")


@built_in("isolation")
def test_a_map_that_only_the_directory_lists_is_kept_with_isolation_and_in_small_chunks(client, unlisted):
    worker = Worker("--isolation", "process")
    try:
        isolated = Client(worker)
        message = isolated.message
        configuration = message("ProcessingConfiguration")(compression_quality=0.9, gain_map="GAIN_MAP_KEEP", max_width=80)
        requests = [message("BatchProcessRequest")(item_id="a", start=message("BatchItemStart")(configuration=configuration))]
        requests += [message("BatchProcessRequest")(item_id="a", chunk=unlisted[0][at:at + 97]) for at in range(0, len(unlisted[0]), 97)]
        requests.append(message("BatchProcessRequest")(item_id="a", end=message("BatchItemEnd")()))
        parts = list(isolated.call("BatchProcess", "stream_stream")(iter(requests), timeout=60))
        assert b"".join(part.chunk for part in parts) == process(client, unlisted[3], max_width=80)[0]
    finally:
        assert worker.stop() == 0, "".join(worker.log)


# MARK: HEIC and AVIF


STORED = [pytest.param("heic", marks=built_in("heic")), pytest.param("avif", marks=built_in("avif"))]


@pytest.mark.parametrize("extension", STORED)
@pytest.mark.parametrize("tiles", [0, 1])
def test_a_map_of_apple_brightens_as_apple_documents(client, tmp_path, extension, tiles):
    headroom = 4.0
    image = gain_maps.stored(extension, headroom=headroom, tiles=tiles)
    data, report = process(client, image, preferred_format="OUTPUT_FORMAT_JPEG")
    assert not [detail for detail in report.warning_details if detail.code == 33] and report.gain_map_bytes > 0
    file = tmp_path / "result.jpg"
    file.write_bytes(data)
    gain_map = gain_maps.map_of(file)
    (tmp_path / "map.jpg").write_bytes(gain_map)
    found = gain_maps.exiftool(tmp_path / "map.jpg", "-XMP-hdrgm:all", "-warning")
    assert "Warning" not in found
    assert float(found["GainMapMax"]) == float(found["HDRCapacityMax"]) == 2 and float(found["Gamma"]) == 1
    linear, bright = gain_maps.brightened(data, gain_map)
    # The levels of the map are those of the gray fixture, which is also a file of its own.
    plain, _ = process(client, (gain_maps.seeds.FIXTURES / f"gray.{extension}").read_bytes(), preferred_format="OUTPUT_FORMAT_PNG")
    signal = np.asarray(Image.open(io.BytesIO(plain)).convert("L")) / 255
    level = np.where(signal < 0.081, signal / 4.5, ((signal + 0.099) / 1.099) ** (1 / 0.45))
    expected = linear * (1 + (headroom - 1) * level[..., None])
    difference = np.abs(np.log2(bright + 1e-3) - np.log2(expected + 1e-3))
    assert np.percentile(difference, 99) < 0.08 and difference.mean() < 0.02


@pytest.mark.parametrize("extension", STORED)
def test_a_stored_map_works_with_isolation_and_is_inspected(client, extension):
    description = {"headroom": 2.0} if extension == "heic" else {"tone_map": b"\0" + gain_maps.seeds.ISO_GAINS}
    # As iOS 18 writes it, which libheif 1.15 refuses.
    image = gain_maps.stored(extension, is_shared=True, exif=gain_maps.seeds.metadata.exif(), **description)
    worker = Worker("--isolation", "process")
    try:
        isolated = Client(worker)
        fields = {"preferred_format": "OUTPUT_FORMAT_JPEG", "max_width": 60}
        data, report = process(client, image, **fields)
        other, other_report = process(isolated, image, **fields)
        assert other == data and other_report.gain_map_bytes == report.gain_map_bytes
        for caller in (client, isolated):
            request = client.message("InspectImageRequest")(image=image)
            found = caller.call("InspectImage", "unary_unary")(request, timeout=60).info.gain_map
            assert (found.kind, found.width, found.height) == ("apple" if extension == "heic" else "iso", 120, 80)
            assert abs(found.headroom - (2 if extension == "heic" else 2 ** 2.5)) < 1e-3
    finally:
        assert worker.stop() == 0, "".join(worker.log)


def test_the_map_of_a_jpeg_is_inspected_if_its_bytes_were_sent(client, photo, tmp_path):
    def inspect(image):
        request = client.message("InspectImageRequest")(image=image)
        return client.call("InspectImage", "unary_unary")(request, timeout=60).info

    found = inspect(photo).gain_map
    assert (found.kind, found.width, found.height) == ("iso", 400, 300) and abs(found.headroom - 2 ** 2.5) < 1e-3
    assert not inspect(photo[:60000]).HasField("gain_map")
    only_xmp = gain_maps.ultra_hdr(gain_maps.jpeg(gain_maps.gradient(80, 60)), gain_maps.jpeg(gain_maps.gradient(40, 30)), iso=False)
    assert inspect(only_xmp).gain_map.kind == "ultra_hdr" and abs(inspect(only_xmp).gain_map.headroom - 2 ** 2.5) < 1e-3
    source = tmp_path / "photo.jpg"
    source.write_bytes(photo)
    command = [os.environ["IMAGE_WORKER"], "inspect", str(source)]
    assert "gain map" in (card := subprocess.run(command, capture_output=True, text=True, check=True).stdout) and "iso 400x300" in card
    line = json.loads(subprocess.run([*command, "--json"], capture_output=True, text=True, check=True).stdout)
    assert line["info"]["gain_map"]["width"] == 400 and line["info"]["gain_map"]["kind"] == "iso"
