"""Tests of encoder options and byte limits, with Pillow reading the results."""

import io
import struct
import tempfile
import zlib

import grpc
import numpy as np
import pillow_jxl  # registers JPEG XL with Pillow
import pytest
from conftest import FIXTURES, Client, Worker, built_in, fixture_bytes
from google.rpc import error_details_pb2
from PIL import Image
from test_calls import details

IMAGES = ["photo-420.jpg", "photo-odd.jpg", "photo.png", "alpha.png", "gray.png", "orientation-6.jpg"]
FORMATS = [
    "JPEG", "WEBP", pytest.param("AVIF", marks=built_in("avif")), pytest.param("JXL", marks=built_in("jxl"))]
HALVED = {"CHROMA_SUBSAMPLING_444": (1, 1), "CHROMA_SUBSAMPLING_422": (2, 1), "CHROMA_SUBSAMPLING_420": (2, 2)}


def process(client, source: str | bytes, preset: str = "", **fields) -> tuple[Image.Image, bytes, object]:
    configuration = client.message("ProcessingConfiguration")(**{"always_encode": True, **fields})
    file = fixture_bytes(source) if isinstance(source, str) else source
    request = client.message("ProcessImageRequest")(image=file, preset=preset, configuration=configuration)
    parts = list(client.call("ProcessImage", "unary_stream")(request, timeout=60))
    data = b"".join(part.chunk for part in parts)
    image = Image.open(io.BytesIO(data))
    image.load()
    return image, data, parts[-1].report


def jpeg(client, name, quality=0.8, **options):
    return process(client, name, preferred_format="OUTPUT_FORMAT_JPEG", compression_quality=quality, jpeg=options)


def png(client, name, **options):
    return process(client, name, preferred_format="OUTPUT_FORMAT_PNG", png=options)


def webp(client, name, **options):
    return process(client, name, preferred_format="OUTPUT_FORMAT_WEBP", webp=options)


def png_filters(data: bytes, row_bytes: int) -> list[int]:
    """Returns the filter of each row of a PNG."""
    at, body = 8, b""
    while at < len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        body += data[at + 8:at + 8 + length] if kind == b"IDAT" else b""
        at += 12 + length
    return list(zlib.decompress(body)[::row_bytes + 1])


def best_filter(row: np.ndarray, above: np.ndarray, step: int) -> int:
    """Returns the first filter with the minimum sum of absolute differences (PNG specification, section 12.7)."""
    left, corner = (np.concatenate([np.zeros(step, int), line])[:len(row)] for line in (row, above))
    estimate = left + above - corner
    a, b, c = (abs(estimate - one) for one in (left, above, corner))
    paeth = np.where((a <= b) & (a <= c), left, np.where(b <= c, above, corner))
    differences = [(row - guess) % 256 for guess in (0, left, above, (left + above) // 2, paeth)]
    return int(np.argmin([np.minimum(one, 256 - one).sum() for one in differences]))


def segments(data: bytes) -> dict[int, bytes]:
    """Returns the segments of a JPEG before its first scan, by marker."""
    found, at = {}, 2
    while data[at + 1] != 0xDA:
        length = struct.unpack(">H", data[at + 2:at + 4])[0]
        found[data[at + 1]] = data[at + 4:at + 2 + length]
        at += 2 + length
    return found


@pytest.mark.parametrize("name", IMAGES)
def test_progressive_and_optimized(client, name):
    plain, plain_data, _ = jpeg(client, name)
    progressive, _, _ = jpeg(client, name, progressive=True)
    optimized, optimized_data, _ = jpeg(client, name, optimize_huffman=True)
    assert progressive.info.get("progressive") and not plain.info.get("progressive")
    # All symbols of a small image decide about its tables anyway.
    assert not optimized.info.get("progressive") and optimized_data == plain_data
    for other in (progressive, optimized):
        assert np.array_equal(np.asarray(other), np.asarray(plain))


@pytest.mark.parametrize("chroma", HALVED)
@pytest.mark.parametrize("name", [name for name in IMAGES if name != "gray.png"])
def test_chroma_subsampling(client, name, chroma):
    _, data, _ = jpeg(client, name, chroma_subsampling=chroma)
    components = segments(data)[0xC0][6:]
    across, down = HALVED[chroma]
    assert list(components[1::3]) == [across << 4 | down, 0x11, 0x11]


@pytest.mark.parametrize("quality, factors", [(0.89, 0x22), (0.9, 0x11)])
def test_chroma_goes_with_quality(client, quality, factors):
    assert segments(jpeg(client, "photo.png", quality)[1])[0xC0][7] == factors


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"optimize_huffman": True}])
@pytest.mark.parametrize("rows", [1, 2])
def test_restart_markers(client, rows, options):
    image, data, _ = jpeg(client, "photo-420.jpg", restart_rows=rows, **options)
    plain, plain_data, _ = jpeg(client, "photo-420.jpg")
    across, down = (image.width + 15) // 16, (image.height + 15) // 16
    # In a progressive file, scans of a single component count blocks.
    interval = struct.unpack(">H", segments(data)[0xDD])[0]
    assert interval % across == 0
    markers = sum(data.count(bytes([0xFF, 0xD0 + i])) for i in range(8))
    assert markers >= (down - 1) // rows if options.get("progressive") else markers == (down - 1) // rows
    assert 0xDD not in segments(plain_data) and np.array_equal(np.asarray(image), np.asarray(plain))


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA"])
def test_png_rows_have_the_best_filter(client, mode):
    """Rows that equal the one above, or are zero, are not tried in every way; their filter is the same."""
    random, channels = np.random.default_rng(7), len(mode)
    rows, row = [], np.zeros(70 * channels, np.uint8)
    for y in range(64):
        if y % 8 == 0:
            row = np.zeros_like(row)
        elif y % 8 == 3:
            row = np.full_like(row, 77)
        elif y % 8 == 5:
            row = random.integers(0, 256, row.shape, np.uint8)
        elif y % 8 == 7:
            row = row.copy()
            row[y] += 1
        rows.append(row)
    samples = np.array(rows)
    file = io.BytesIO()
    Image.fromarray(samples.reshape(64, 70, channels).squeeze(), mode).save(file, "PNG")
    image, data, _ = png(client, file.getvalue())
    assert np.array_equal(np.asarray(image).reshape(64, -1), samples)
    above = np.vstack([np.zeros_like(samples[:1]), samples[:-1]]).astype(int)
    expected = [best_filter(one.astype(int), other, channels) for one, other in zip(samples, above)]
    assert png_filters(data, samples.shape[1]) == expected and len(set(expected)) > 2


@pytest.mark.parametrize("name", IMAGES)
def test_png_level_filter_and_interlace(client, name):
    plain, plain_data, _ = png(client, name)
    sizes = {}
    for level in (0, 3, 6, 9):
        image, data, _ = png(client, name, compression_level=level)
        sizes[level] = len(data)
        assert np.array_equal(np.asarray(image), np.asarray(plain))
    assert sizes[3] == len(plain_data) and sizes[9] <= sizes[6] < sizes[0]
    for filter in ("ADAPTIVE", "NONE", "SUB", "UP", "AVERAGE", "PAETH"):
        image, data, _ = png(client, name, filter=f"PNG_FILTER_{filter}", interlaced=filter == "SUB")
        assert np.array_equal(np.asarray(image), np.asarray(plain))
        assert (data == plain_data) == (filter == "ADAPTIVE")
        assert bool(image.info.get("interlace")) == (filter == "SUB")


@pytest.mark.parametrize("name", IMAGES)
@pytest.mark.parametrize("colors", [2, 16, 256])
def test_palette(client, name, colors):
    plain, plain_data, _ = png(client, name)
    image, data, _ = png(client, name, palette_colors=colors, interlaced=colors == 16)
    assert image.mode == "P" and len(image.getpalette()) // 3 <= colors
    # Gray takes no more bytes per pixel than a palette, and the smallest image has one color.
    assert len(data) < len(plain_data) or name in ("gray.png", "orientation-6.jpg")
    assert ("transparency" in image.info) == (plain.mode == "RGBA")
    if colors == 256:
        # In front of black, and alpha: colors that are hardly visible may differ.
        shown = [np.asarray(one.convert("RGBA"), float) for one in (image, plain)]
        difference = [np.dstack([pixels[..., :3] * pixels[..., 3:] / 255, pixels[..., 3:]]) for pixels in shown]
        assert np.abs(difference[0] - difference[1]).mean() < 3.5


@pytest.mark.parametrize("name", IMAGES)
def test_lossless_webp(client, name):
    plain = np.asarray(png(client, name)[0].convert("RGBA"))
    for method in (0, 4, 6):
        image, data, report = webp(client, name, lossless=True, method=method)
        assert b"VP8L" in data[:48] and not report.HasField("compression_quality")
        if name.endswith(".png"):
            assert np.array_equal(np.asarray(image.convert("RGBA")), plain)
    near, data, _ = webp(client, name, near_lossless=40)
    assert b"VP8L" in data[:48]
    assert np.abs(np.asarray(near.convert("RGBA"), int) - plain).mean() < 3
    assert b"VP8L" not in webp(client, name, method=6)[1][:16]


@built_in("jxl")
@pytest.mark.parametrize("name", [*IMAGES, "photo-gray.jpg"])
def test_jpeg_xl_is_lossy_or_lossless(client, name):
    def jxl(**fields):
        return process(client, name, preferred_format="OUTPUT_FORMAT_JXL", **fields)

    plain = process(client, name, preferred_format="OUTPUT_FORMAT_PNG")[0]
    exact, _, report = jxl(jxl={"lossless": True})
    assert exact.mode == plain.mode and np.array_equal(np.asarray(exact), np.asarray(plain))
    assert report.output.format == "jxl" and not report.HasField("compression_quality")
    fast, slow = (len(jxl(jxl={"lossless": True, "effort": effort})[1]) for effort in (1, 7))
    assert slow < fast
    sizes, differences = [], []
    for quality in (0.3, 0.6, 0.9, 1):
        image, data, report = jxl(compression_quality=quality)
        assert image.mode == plain.mode and report.compression_quality == quality
        sizes.append(len(data))
        differences.append(np.abs(np.asarray(image, int) - np.asarray(plain, int)).mean())
    assert sizes == sorted(sizes) and differences == sorted(differences, reverse=True)
    assert differences[-1] < 1.5 < differences[0] < 12


@built_in("jxl")
@pytest.mark.parametrize("name", ["photo-420.jpg", "photo-444.jpg", "photo-progressive.jpg", "photo-gray.jpg"])
def test_a_jpeg_is_recompressed_and_can_be_reconstructed(client, name):
    """The foreign decoder gives the bytes of the JPEG, as they are without metadata."""
    _, jpeg, _ = process(client, name, always_encode=False)
    options = {"preferred_format": "OUTPUT_FORMAT_JXL", "jxl": {"lossless": True}}
    _, data, report = process(client, name, always_encode=False, **options)
    assert report.passthrough and report.output.format == "jxl" and len(data) < 0.96 * len(jpeg)
    is_jpeg, _, reconstructed, *_ = pillow_jxl.Decoder()(data)
    assert is_jpeg and bytes(reconstructed) == jpeg
    _, pixels, report = process(client, name, **options)
    assert not report.passthrough and len(pixels) > 2 * len(data)


@built_in("jxl")
def test_a_jpeg_is_recompressed_with_its_profile(client):
    file, profile = io.BytesIO(), fixture_bytes("display-p3.icc")
    Image.open(FIXTURES / "photo-420.jpg").save(file, "JPEG", quality="keep", icc_profile=profile)
    configuration = client.message("ProcessingConfiguration")(
        preferred_format="OUTPUT_FORMAT_JXL", jxl={"lossless": True}, color_space="COLOR_SPACE_KEEP")
    request = client.message("ProcessImageRequest")(image=file.getvalue(), configuration=configuration)
    responses = list(client.call("ProcessImage", "unary_stream")(request, timeout=60))
    data = b"".join(part.chunk for part in responses)
    is_jpeg, _, reconstructed, *_ = pillow_jxl.Decoder()(data)
    assert is_jpeg and responses[-1].report.passthrough
    assert b"Display P3" in Image.open(io.BytesIO(bytes(reconstructed))).info["icc_profile"].replace(b"\0", b"")


WHOLE = {
    "color_space": "COLOR_SPACE_KEEP", "metadata": "METADATA_POLICY_SELECTED",
    **{f"keep_{part}": True for part in ("exif", "xmp", "iptc", "location", "serial_numbers")}}


def foreign_jpeg():
    """Returns a JPEG with metadata, a comment, and bytes after its end."""
    exif = Image.Exif()
    exif[0x013B] = "Anna Beispiel"
    file = io.BytesIO()
    Image.open(FIXTURES / "photo-odd.jpg").convert("RGB").save(
        file, "JPEG", quality=91, subsampling=1, exif=exif, comment=b"A comment", progressive=True,
        xmp=b"<x:xmpmeta xmlns:x='adobe:ns:meta/'/>")
    return file.getvalue() + b"bytes after the end"


def foreign_jxl(jpeg):
    """Returns what the encoder of the other program makes of a JPEG."""
    file = io.BytesIO()
    with tempfile.NamedTemporaryFile(suffix=".jpg") as source:
        source.write(jpeg)
        source.flush()
        Image.open(source.name).save(file, "JXL", lossless_jpeg=True)
    return file.getvalue()


@built_in("jxl")
def test_the_jpeg_of_a_foreign_jpeg_xl_is_reconstructed(client):
    """The bytes are those of the JPEG, or of its copy without metadata."""
    jpeg = foreign_jpeg()
    stored = foreign_jxl(jpeg)
    _, data, report = process(client, stored, always_encode=False, **WHOLE)
    assert data == jpeg and report.passthrough and report.output.format == "jpeg"
    _, copied, copy = process(client, jpeg, always_encode=False)
    _, data, report = process(client, stored, always_encode=False)
    assert data == copied and copy.passthrough and report.passthrough
    assert b"Anna" not in data and b"comment" not in data and not data.endswith(b"after the end")
    for fields in ({"always_encode": True}, {"compression_quality": 0.9}, {"max_width": 50}):
        _, _, report = process(client, stored, **{"always_encode": False, **fields})
        assert not report.passthrough and report.output.format == "jpeg"
    damaged = bytearray(stored)
    at = stored.index(b"jbrd") + 40
    damaged[at:at + 40] = bytes(40)
    _, _, report = process(client, bytes(damaged), always_encode=True)
    assert not report.passthrough


@built_in("jxl")
@pytest.mark.parametrize("isolation", ["none", pytest.param("process", marks=built_in("isolation"))])
def test_a_jpeg_is_reconstructed_in_batches_and_helpers(isolation):
    """The image arrives in chunks."""
    jpeg = foreign_jpeg()
    stored = foreign_jxl(jpeg)
    worker = Worker("--isolation", isolation)
    try:
        client = Client(worker)
        message = client.message
        _, data, report = process(client, stored, always_encode=False, **WHOLE)
        assert data == jpeg and report.passthrough
        start = message("BatchItemStart")(configuration=message("ProcessingConfiguration")(**WHOLE))
        requests = [message("BatchProcessRequest")(item_id="a", start=start)]
        requests += [
            message("BatchProcessRequest")(item_id="a", chunk=stored[at:at + 100]) for at in range(0, len(stored), 100)]
        requests.append(message("BatchProcessRequest")(item_id="a", end=message("BatchItemEnd")()))
        parts = list(client.call("BatchProcess", "stream_stream")(iter(requests), timeout=60))
        assert b"".join(part.chunk for part in parts) == jpeg
    finally:
        worker.stop()


@built_in("jxl")
def test_jpeg_xl_is_a_format_of_results_only_on_request(client):
    _, _, report = process(client, "photo.jxl")
    assert report.output.format == "jpeg"
    with pytest.raises(grpc.RpcError) as caught:
        process(client, "photo.png", preferred_format="OUTPUT_FORMAT_JXL", jxl={"effort": 10})
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert details(caught.value, error_details_pb2.BadRequest)[0].field_violations[0].field == "configuration.jxl.effort"


@built_in("avif")
def test_more_effort_makes_an_avif_smaller(client):
    sizes = [
        len(process(client, "photo-odd.jpg", preferred_format="OUTPUT_FORMAT_AVIF", compression_quality=0.8, **fields)[1])
        for fields in ({"avif": {"effort": 5}}, {"avif": {"effort": 1}}, {})]
    assert sizes[0] < sizes[1] == sizes[2]


def test_sharp_chroma_of_webp(client):
    """Red lines of one pixel on white lose much of their color in planes of half the size."""
    lines = np.full((64, 64, 3), 255, np.uint8)
    lines[::4] = [255, 0, 0]
    file = io.BytesIO()
    Image.fromarray(lines).save(file, "PNG")
    errors = []
    for sharp in (False, True):
        image, _, _ = process(
            client, file.getvalue(), preferred_format="OUTPUT_FORMAT_WEBP", webp={"sharp_chroma": sharp})
        errors.append(np.abs(np.asarray(image.convert("RGB"), int) - lines).mean())
    assert errors[1] < 0.99 * errors[0], errors


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", IMAGES)
def test_a_limit_is_kept(client, name, format):
    # Above it, a limit changes a JPEG's chroma planes too.
    asked = 0.89 if format == "JPEG" else 1
    fields = {"preferred_format": f"OUTPUT_FORMAT_{format}", "compression_quality": asked}
    whole = len(process(client, name, **fields)[1])
    least = len(process(client, name, **{**fields, "compression_quality": 0.01})[1])
    qualities = []
    for share in (0.1, 0.3, 0.6, 0.9, 1):
        limit = int(least + (whole - least) * share)
        image, data, report = process(client, name, max_bytes=limit, **fields)
        assert len(data) <= limit and image.format == format
        qualities.append(report.compression_quality)
    assert qualities == sorted(qualities) and qualities[0] < qualities[-1] == asked
    if format == "JXL":  # sizes do not rise everywhere at the lowest qualities
        return
    with pytest.raises(grpc.RpcError) as caught:
        process(client, name, max_bytes=least - 1, **fields)
    assert caught.value.code() == grpc.StatusCode.FAILED_PRECONDITION
    violation = details(caught.value, error_details_pb2.PreconditionFailure)[0].violations[0]
    assert violation.subject == "max_bytes" and f"{least} bytes" in violation.description
    info = details(caught.value, error_details_pb2.ErrorInfo)[0]
    assert info.metadata["value"] == str(least) and info.metadata["limit"] == str(least - 1)


@pytest.mark.parametrize("format", FORMATS)
def test_a_similarity_is_reached(client, format):
    fields = {"preferred_format": f"OUTPUT_FORMAT_{format}"}
    sizes, reports = [], []
    for target in (40, 60, 80):
        image, data, report = process(client, "photo-420.jpg", target_similarity=target, **fields)
        assert image.format == format and report.similarity >= target and not report.warnings
        sizes.append(len(data))
        reports.append(report)
    assert sizes == sorted(sizes) and sizes[0] < sizes[2]
    assert reports[0].compression_quality < reports[2].compression_quality
    # With a limit on the size, the most similar result that fits is sent.
    _, data, report = process(client, "photo-420.jpg", target_similarity=80, max_bytes=sizes[1], **fields)
    assert len(data) <= sizes[1] and report.similarity < 80 and report.warnings
    # compression_quality is the highest quality.
    _, _, report = process(client, "photo-420.jpg", target_similarity=99, compression_quality=0.5, **fields)
    assert report.compression_quality == 0.5 and report.similarity < 99 and report.warnings


@pytest.mark.parametrize("preset", ["highDefinition", "thumbnail", "compressedThumbnail", "preview", "upload"])
def test_a_result_is_not_larger_than_its_image(client, preset):
    coarse = io.BytesIO()
    Image.open(io.BytesIO(fixture_bytes("photo-420.jpg"))).save(coarse, "JPEG", quality=35)
    source = coarse.getvalue()
    _, data, report = process(client, source, preset, max_width=220)
    assert len(data) == report.output_bytes <= report.input_bytes == len(source)
    assert 0.2 <= report.compression_quality < 0.8 and "never_larger" in report.warnings[0]
    _, larger, report = process(client, source, preset, max_width=220, never_larger=False)
    assert len(larger) > len(source) and "lower compression_quality" in report.warnings[0]
    assert report.warning_details[0].parameters["image_bytes"] == str(len(source))
    _, lossless, report = process(client, source, preset, max_width=220, preferred_format="OUTPUT_FORMAT_PNG")
    assert len(lossless) > len(source) and "lossless" in report.warnings[0]


def test_a_similarity_needs_a_lossy_format(client):
    with pytest.raises(grpc.RpcError) as caught:
        process(client, "photo.png", target_similarity=80)
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    violation = details(caught.value, error_details_pb2.BadRequest)[0].field_violations[0]
    assert violation.field == "configuration.target_similarity"


@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP"])
def test_smaller_dimensions_only_if_allowed(client, format):
    fields = {"preferred_format": f"OUTPUT_FORMAT_{format}", "max_bytes": 1500}
    if format == "PNG":
        with pytest.raises(grpc.RpcError):
            process(client, "photo.png", **fields)
    image, data, report = process(client, "photo.png", allow_smaller_dimensions=True, **fields)
    assert len(data) <= 1500 and image.size == (report.output.width, report.output.height)
    assert image.width < 120 and abs(image.width / image.height - 1.5) < 0.1 and report.warnings


def test_widget(client):
    for name in IMAGES:
        image, data, report = process(client, name, preset="widget", never_larger=False)
        assert image.format == "JPEG" and len(data) <= 1_000_000 and report.compression_quality == 0.8
        assert image.width <= 1024 and not image.info.get("exif")


@built_in("avif")
@pytest.mark.parametrize("target", [60, 68, 74])
def test_a_small_avif_is_not_much_better_than_its_target(client, target):
    _, _, report = process(
        client, "photo-444.jpg", preferred_format="OUTPUT_FORMAT_AVIF", compression_quality=0.97, target_similarity=target)
    assert target <= report.similarity < target + 2
