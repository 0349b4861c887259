"""Tests of facts, compared with the Python packages imagehash, blurhash and thumbhash on what Pillow makes of results."""

import io
import json
import os
import subprocess

import blurhash
import grpc
import imagehash
import numpy as np
import pytest
from conftest import FIXTURES, Client, Worker, built_in, fixture_bytes
from google.rpc import error_details_pb2
from PIL import Image
from test_calls import details
from thumbhash.encode import rgba_to_thumbhash

PNG = "OUTPUT_FORMAT_PNG"
NAMES = [
    "photo.png", "alpha.png", "gray.png", "photo-420.jpg", "photo-gray.jpg", "photo-odd.jpg", "photo-cmyk.jpg",
    "orientation-6.jpg", "text.ppm", "deep-alpha.png", "photo.bmp",
]


def reports(client, image: bytes, facts=True, **fields):
    """Returns the result and its report."""
    configuration = client.message("ProcessingConfiguration")(facts=facts, **fields)
    request = client.message("ProcessImageRequest")(image=image, configuration=configuration)
    parts = list(client.call("ProcessImage", "unary_stream")(request, timeout=60))
    return b"".join(part.chunk for part in parts), parts[-1].report


def thumbnail(image: bytes) -> Image.Image:
    result = Image.open(io.BytesIO(image))
    result = result.convert("RGBA" if result.mode in ("RGBA", "LA", "P") else "RGB")
    side = -(-max(result.size) // 100)
    side += side % 2 if side > 1 else 0
    if side > 1:
        return result.reduce(side)
    # Cells of one pixel, too, are means of colors times alpha.
    return result.convert("RGBa").convert("RGBA") if result.mode == "RGBA" else result


def expected(image: Image.Image) -> dict:
    pixels = np.asarray(image.convert("RGB"))
    rgba = np.asarray(image.convert("RGBA")).astype(float)
    weights = rgba[..., 3:]
    across, down = (3, 4) if image.height > image.width else (4, 3)
    return {
        "thumb_hash": bytes(rgba_to_thumbhash(*image.size, list(image.convert("RGBA").tobytes()))),
        "blur_hash": blurhash.encode(pixels, across, down),
        "detailed_blur_hash": blurhash.encode(pixels, 9, 9),
        "perceptual_hash": int(str(imagehash.phash(image)), 16),
        "difference_hash": int(str(imagehash.dhash(image)), 16),
        "mean_color": np.floor((rgba[..., :3] * weights).sum((0, 1)) / weights.sum() + 0.5).astype(int).tolist(),
    }


def shown(facts) -> dict:
    color = facts.mean_color
    names = ["thumb_hash", "blur_hash", "detailed_blur_hash", "perceptual_hash", "difference_hash"]
    return {name: getattr(facts, name) for name in names} | {"mean_color": [color.red, color.green, color.blue]}


def without_ties(facts: dict) -> dict:
    """Replaces the lower one of the two steps next to 0 in a ThumbHash by the higher one.

    The alpha of these fixtures rises evenly, so that most of its waves are 0, which rounding errors turn into either.
    """
    head, steps = facts["thumb_hash"][:6], facts["thumb_hash"][6:].hex().replace("7", "8")
    return facts | {"thumb_hash": bytes(head) + bytes.fromhex(steps)}


@pytest.mark.parametrize("width", [None, 90, 33])
@pytest.mark.parametrize("name", NAMES)
def test_facts_are_those_of_the_packages(client, name, width):
    fields = {"max_width": width} if width else {}
    result, report = reports(client, fixture_bytes(name), preferred_format=PNG, always_encode=True, **fields)
    one, other = shown(report.facts), expected(thumbnail(result))
    if not report.facts.is_opaque:
        one, other = without_ties(one), without_ties(other)
    if name == "orientation-6.jpg":
        # Most of its waves are exactly 0, as is their median, with which they are compared: rounding errors decide.
        del one["perceptual_hash"], other["perceptual_hash"]
    assert one == other


@pytest.mark.parametrize("size", [(1280, 720), (1601, 1), (333, 517), (2000, 1999)])
def test_large_results_have_larger_cells(client, size):
    noise = np.random.default_rng(5).integers(0, 256, (9, 16, 3), np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(noise).resize(size, Image.Resampling.BICUBIC).save(buffer, "PPM")
    result, report = reports(client, buffer.getvalue(), preferred_format=PNG)
    assert shown(report.facts) == expected(thumbnail(result))


def test_dominant_colors_cover_the_image(client):
    _, report = reports(client, fixture_bytes("photo.png"), preferred_format=PNG, always_encode=True)
    colors = report.facts.dominant_colors
    shares = [color.share for color in colors]
    assert 1 < len(colors) <= 6 and shares == sorted(shares, reverse=True) and abs(sum(shares) - 1) < 1e-9
    means = np.array([[color.color.red, color.color.green, color.color.blue] for color in colors])
    facts = report.facts.mean_color
    assert np.abs(shares @ means - [facts.red, facts.green, facts.blue]).max() <= 2


def test_facts_are_absent_without_the_field(client):
    _, report = reports(client, fixture_bytes("photo.png"), facts=False, preferred_format=PNG, always_encode=True)
    assert not report.HasField("facts")
    assert reports(client, fixture_bytes("photo.png"))[1].passthrough  # nothing is decoded for them


def test_inspection_decodes_a_whole_image(client):
    request = client.message("InspectImageRequest")(image=fixture_bytes("photo-420.jpg"), facts=True)
    inspect = client.call("InspectImage", "unary_unary")
    facts = inspect(request, timeout=60).facts
    _, report = reports(client, fixture_bytes("photo-420.jpg"), preferred_format=PNG)
    assert (facts.perceptual_hash ^ report.facts.perceptual_hash).bit_count() <= 4
    assert facts.is_photographic and facts.is_opaque and not facts.is_gray
    request = client.message("InspectImageRequest")(image=fixture_bytes("photo-420.jpg"))
    assert not inspect(request, timeout=60).HasField("facts")


def test_inspection_of_a_beginning_has_no_facts(client):
    request = client.message("InspectImageRequest")(image=fixture_bytes("photo-420.jpg")[:2000], facts=True)
    with pytest.raises(grpc.RpcError) as error:
        client.call("InspectImage", "unary_unary")(request, timeout=60)
    [info] = details(error.value, error_details_pb2.ErrorInfo)
    assert error.value.code().name == "INVALID_ARGUMENT" and info.reason == "TRUNCATED_IMAGE"


def test_the_cache_keeps_facts():
    worker = Worker("--cache-memory-mib", "16")
    try:
        client = Client(worker)
        first, second = (reports(client, fixture_bytes("photo-420.jpg"), max_width=60)[1] for _ in range(2))
        assert second.cache_hit and second.facts == first.facts and first.HasField("facts")
    finally:
        worker.stop()


@built_in("isolation")
def test_helpers_report_facts(client):
    worker = Worker("--isolation", "process", "--cache-memory-mib", "0")
    try:
        image = fixture_bytes("photo-420.jpg")
        isolated = Client(worker)
        one, other = (reports(of, image, max_width=60)[1].facts for of in (isolated, client))
        assert one.SerializeToString(deterministic=True) == other.SerializeToString(deterministic=True)
        request = isolated.message("InspectImageRequest")(image=image, facts=True)
        assert isolated.call("InspectImage", "unary_unary")(request, timeout=60).HasField("facts")
    finally:
        worker.stop()


def test_commands_print_facts(tmp_path):
    def run(*arguments: str) -> list:
        command = [os.environ["IMAGE_WORKER"], *arguments]
        lines = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
        return [json.loads(line) for line in lines.splitlines()]

    photo = str(FIXTURES / "photo.png")
    line = run("process", photo, "--format", "png", "--always-encode", "--facts", "--out", "result.png", "--json")[0]
    image = thumbnail((tmp_path / "result.png").read_bytes())
    assert line["facts"]["perceptual_hash"] == str(imagehash.phash(image))
    assert line["facts"]["difference_hash"] == str(imagehash.dhash(image))
    assert line["facts"]["blur_hash"] == blurhash.encode(np.asarray(image), 4, 3)
    lines = run("batch", photo, "--format", "jpeg", "--facts", "--out", "results", "--json")
    assert [line["facts"]["is_photographic"] for line in lines if "facts" in line] == [True]
    journal = (tmp_path / "results/.image-worker/journal.jsonl").read_text()
    outputs = [output for line in journal.splitlines() for output in json.loads(line).get("outputs", [])]
    assert "perceptualHash" in outputs[0]["facts"] or "perceptual_hash" in outputs[0]["facts"]
    assert run("inspect", photo, "--facts", "--json")[0]["facts"]["mean_color"].startswith("#")
