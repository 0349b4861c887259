"""Tests of several results of one upload, from a client that groups parts by their ids."""

import io
from collections import defaultdict

import grpc
import pytest
from conftest import fixture_bytes
from PIL import Image, ImageChops, ImageStat

PHOTO = fixture_bytes("photo-420.jpg")  # 240x160
SIZES = {"large": (200, 200, "OUTPUT_FORMAT_PNG"), "middle": (100, 50, "OUTPUT_FORMAT_JPEG"),
         "small": (20, 20, "OUTPUT_FORMAT_WEBP")}


def renditions(client, into) -> None:
    for name, (width, height, form) in SIZES.items():
        into.add(rendition_id=name, configuration=client.message("ProcessingConfiguration")(
            max_width=width, max_height=height, preferred_format=form, compression_quality=1))


def gather(parts, key) -> tuple[dict, dict]:
    """Returns each result's bytes, and the kinds of its parts."""
    results, kinds = defaultdict(bytes), defaultdict(list)
    for part in parts:
        kinds[key(part)].append(part.WhichOneof("part"))
        results[key(part)] += part.chunk
    return results, kinds


def test_one_image_becomes_three(client):
    request = client.message("ProcessImageRequest")(image=PHOTO)
    renditions(client, request.renditions)
    results, kinds = gather(
        client.call("ProcessImage", "unary_stream")(request, timeout=60), lambda part: part.rendition_id)
    assert set(results) == set(SIZES)
    for name, (width, height, form) in SIZES.items():
        image = Image.open(io.BytesIO(results[name]))
        factor = min(width / 240, height / 160)
        assert image.format == form.removeprefix("OUTPUT_FORMAT_")
        assert image.size == (round(240 * factor), round(160 * factor))
        assert kinds[name][0] == "header" and kinds[name][-1] == "report" and kinds[name].count("report") == 1
        alone = client.process(
            PHOTO, max_width=width, max_height=height, compression_quality=1,
            preferred_format=client.pool.FindEnumTypeByName("imageworker.v1.OutputFormat").values_by_name[form].number)
        # At another decode scale, the pixels differ slightly.
        alone = Image.open(io.BytesIO(b"".join(part.chunk for part in alone))).convert("RGB")
        difference = ImageChops.difference(alone, image.convert("RGB"))
        assert max(ImageStat.Stat(difference).mean) < 1.5


def test_chunked_uploads_of_a_batch_interleave(client):
    starts = []
    for item in ("a", "b"):
        start = client.message("BatchProcessRequest")(item_id=item)
        renditions(client, start.start.renditions)
        starts.append(start)
    chunks = [client.chunk(item, PHOTO[at:at + 999]) for at in range(0, len(PHOTO), 999) for item in ("a", "b")]
    parts = client.batch(iter(starts + chunks + [client.end("a"), client.end("b")]))
    results, kinds = gather(parts, lambda part: (part.item_id, part.rendition_id))
    assert set(results) == {(item, name) for item in ("a", "b") for name in SIZES}
    assert all(kind[-1] == "report" for kind in kinds.values())
    for name in SIZES:
        assert results["a", name] == results["b", name]


def test_one_that_can_not_be_made_leaves_the_others(client):
    request = client.message("ProcessImageRequest")(image=PHOTO)
    renditions(client, request.renditions)
    request.renditions[1].configuration.crop.SetInParent()
    request.renditions[1].configuration.crop.x = 1000
    request.renditions[1].configuration.crop.width = request.renditions[1].configuration.crop.height = 5
    _, kinds = gather(client.call("ProcessImage", "unary_stream")(request, timeout=60), lambda part: part.rendition_id)
    assert kinds["middle"] == ["error"] and kinds["large"][-1] == kinds["small"][-1] == "report"


def test_what_is_wrong_is_named_by_its_place(client):
    request = client.message("ProcessImageRequest")(image=PHOTO)
    renditions(client, request.renditions)
    request.renditions[2].configuration.compression_quality = 2
    with pytest.raises(grpc.RpcError) as raised:
        list(client.call("ProcessImage", "unary_stream")(request, timeout=60))
    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    detail = dict(raised.value.trailing_metadata())["grpc-status-details-bin"]
    assert b"renditions[2].configuration.compression_quality" in detail
