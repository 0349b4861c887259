"""Tests of results with more than 8 bits per sample, which libvips reads."""

import struct
import zlib

import numpy as np
import pytest
import pyvips
from conftest import built_in

CAUSES = {
    "filters": {"filters": [{"name": "sepia", "intensity": 1}]},
    "palette": {"png": {"bit_depth": 16, "palette_colors": 16}},
    "search": {"max_bytes": 100_000},
}


def slope(width: int = 160, height: int = 60) -> np.ndarray:
    """A slope whose neighbors differ by less than a level of 8 bits."""
    y, x = np.mgrid[:height, :width]
    return np.stack([9000 + 61 * x + 17 * y + 5000 * channel for channel in range(3)], -1).astype(np.uint16)


def png(samples: np.ndarray, *chunks: bytes) -> bytes:
    file = pyvips.Image.new_from_array(samples).copy(interpretation="rgb16").pngsave_buffer(bitdepth=16)
    return file[:33] + b"".join(chunks) + file[33:]


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def process(client, image: bytes, output: str = "PNG", **fields):
    configuration = client.message("ProcessingConfiguration")(preferred_format=f"OUTPUT_FORMAT_{output}", **fields)
    request = client.message("ProcessImageRequest")(image=image, configuration=configuration)
    parts = list(client.call("ProcessImage", "unary_stream")(request, timeout=60))
    return b"".join(part.chunk for part in parts), next(p.report for p in parts if p.HasField("report"))


def read(file: bytes) -> np.ndarray:
    return pyvips.Image.new_from_buffer(file, "").numpy()


def test_the_samples_of_a_png(client):
    samples = slope()
    file, report = process(client, png(samples), png={"bit_depth": 16}, always_encode=True)
    assert report.output.bit_depth == 16 and not report.warnings
    assert np.array_equal(read(file), samples)


def test_a_reduced_image_is_that_of_libvips(client):
    file, report = process(client, png(slope()), png={"bit_depth": 16}, max_width=80)
    result = read(file)
    assert report.output.bit_depth == 16 and result.dtype == np.uint16
    expected = pyvips.Image.new_from_array(slope()).resize(0.5, kernel="lanczos3").numpy()
    inside = (slice(4, -4), slice(4, -4))
    assert np.abs(result[inside].astype(int) - expected[inside].astype(int)).max() <= 16


@built_in("avif")
def test_the_samples_of_an_avif(client):
    samples = slope()
    file, report = process(client, png(samples), "AVIF", avif={"bit_depth": 10}, compression_quality=1)
    image = pyvips.Image.new_from_buffer(file, "")
    assert report.output.bit_depth == 10 and image.get("heif-bitdepth") == 10
    levels = image.numpy().astype(float) / image.numpy().max() * samples.max()
    # 8 bits would be off by 64 in the mean.
    assert np.abs(levels - samples).mean() < 60


@built_in("jxl")
def test_the_samples_of_a_jxl(client):
    samples = slope()
    file, report = process(client, png(samples), "JXL", jxl={"bit_depth": 16, "lossless": True})
    assert report.output.bit_depth == 16
    back, _ = process(client, file, png={"bit_depth": 16}, color_space="COLOR_SPACE_KEEP")
    assert np.array_equal(read(back), samples)


@pytest.mark.parametrize(("output", "options", "stored"), [
    ("PNG", {"png": {"bit_depth": 16}}, chunk(b"cICP", b"\x09\x10\x00\x01")),
    pytest.param(
        "AVIF", {"avif": {"bit_depth": 10}}, b"nclx\x00\x09\x00\x10\x00\x09\x80", marks=built_in("avif")),
])
def test_pq_is_kept_as_code_points(client, output, options, stored):
    image = png(slope(), chunk(b"cICP", b"\x09\x10\x00\x01"))
    file, report = process(client, image, output, color_space="COLOR_SPACE_KEEP", max_width=100, **options)
    assert report.output.gamut == "hdr" and not report.warnings
    assert stored in file


@built_in("jxl")
@pytest.mark.parametrize("primaries", [1, 9, 11, 12])
def test_gray_pq_of_any_primaries_keeps_its_samples_in_a_lossy_jxl(client, primaries):
    samples = slope()[..., :1]
    image = pyvips.Image.new_from_array(samples).copy(interpretation="grey16").pngsave_buffer(bitdepth=16)
    image = image[:33] + chunk(b"cICP", bytes([primaries, 16, 0, 1])) + image[33:]
    file, _ = process(client, image, "JXL", jxl={"bit_depth": 16}, color_space="COLOR_SPACE_KEEP", compression_quality=1)
    back, _ = process(client, file, png={"bit_depth": 16}, color_space="COLOR_SPACE_KEEP")
    assert np.abs(read(back).reshape(*samples.shape[:2], -1)[..., :1].astype(int) - samples).mean() < 300


@built_in("jxl")
@pytest.mark.parametrize("is_lossless", [False, True])
def test_gray_of_a_jxl_is_srgb(client, is_lossless):
    image = pyvips.Image.new_from_array(slope()[..., :1]).copy(interpretation="grey16").pngsave_buffer(bitdepth=16)
    file, written = process(client, image, "JXL", jxl={"lossless": is_lossless})
    _, report = process(client, file, color_space="COLOR_SPACE_KEEP")
    assert written.output.gamut == report.input.gamut == report.output.gamut == "srgb"


@pytest.mark.parametrize("cause", CAUSES)
def test_what_has_only_8_bits_says_so(client, cause):
    _, report = process(client, png(slope()), **{"png": {"bit_depth": 16}, "max_width": 60, **CAUSES[cause]})
    assert report.output.bit_depth == 8
    reduced = 35  # WARNING_CODE_BIT_DEPTH_REDUCED
    assert [detail.parameters["cause"] for detail in report.warning_details if detail.code == reduced] == [cause]


def test_other_depths_are_refused(client):
    for group, depths in {"png": "8 or 16", "jxl": "8 or 16", "avif": "8 or 10"}.items():
        with pytest.raises(Exception, match=f"{group}.bit_depth is 12; it must be {depths}"):
            process(client, png(slope()), **{group: {"bit_depth": 12}})
