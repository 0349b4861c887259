"""Tests of color spaces over gRPC, compared with littlecms (through Pillow) and read by exiftool."""

import io
import json
import struct
import subprocess
import zlib

import numpy as np
import pillow_jxl  # noqa: F401 registers JPEG XL with Pillow
import pytest
from conftest import built_in, fixture_bytes
from PIL import Image, ImageCms

FORMATS = ["JPEG", "PNG", "WEBP", pytest.param("AVIF", marks=built_in("avif"))]
P3 = ImageCms.ImageCmsProfile(io.BytesIO(fixture_bytes("display-p3.icc")))
SRGB = ImageCms.createProfile("sRGB")
TO_XYZ = np.array([[0.43607, 0.38515, 0.14307], [0.22249, 0.71687, 0.06061], [0.01392, 0.09708, 0.71410]])


def process(client, image: bytes, space: str, output: str = "PNG", **fields):
    configuration = client.message("ProcessingConfiguration")(
        color_space=f"COLOR_SPACE_{space}", preferred_format=f"OUTPUT_FORMAT_{output}", **fields)
    request = client.message("ProcessImageRequest")(image=image, configuration=configuration)
    parts = list(client.call("ProcessImage", "unary_stream")(request, timeout=60))
    return b"".join(part.chunk for part in parts), next(p.report for p in parts if p.HasField("report"))


def saved(image: Image.Image, **options) -> bytes:
    file = io.BytesIO()
    image.save(file, **options)
    return file.getvalue()


def chart() -> Image.Image:
    """Colors of the whole cube, in blocks."""
    levels = np.linspace(0, 255, 9).round().astype(np.uint8)
    colors = np.stack(np.meshgrid(levels, levels, levels), -1).reshape(27, 27, 3)
    return Image.fromarray(colors.repeat(4, 0).repeat(4, 1))


def lab(samples: np.ndarray) -> np.ndarray:
    value = samples / 255
    light = np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)
    xyz = light @ TO_XYZ.T / TO_XYZ.sum(1)
    f = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.stack([116 * f[..., 1] - 16, 500 * (f[..., 0] - f[..., 1]), 200 * (f[..., 1] - f[..., 2])], -1)


def difference(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """CIEDE2000 of two images, whose samples are taken as sRGB. Source: Sharma, Wu and Dalal, 2005."""
    (l1, a1, b1), (l2, a2, b2) = (np.moveaxis(lab(image.astype(float)), -1, 0) for image in (first, second))
    mean = (np.hypot(a1, b1) + np.hypot(a2, b2)) / 2
    g = 1.5 - np.sqrt(mean**7 / (mean**7 + 25.0**7)) / 2
    c1, c2 = np.hypot(g * a1, b1), np.hypot(g * a2, b2)
    h1, h2 = (np.degrees(np.arctan2(b, g * a)) % 360 for a, b in ((a1, b1), (a2, b2)))
    turn = np.where(c1 * c2 == 0, 0, (h2 - h1 + 180) % 360 - 180)
    dh = 2 * np.sqrt(c1 * c2) * np.sin(np.radians(turn) / 2)
    l, c = (l1 + l2) / 2, (c1 + c2) / 2
    h = np.where(c1 * c2 == 0, h1 + h2, (h1 + turn / 2) % 360)
    t = (1 - 0.17 * np.cos(np.radians(h - 30)) + 0.24 * np.cos(np.radians(2 * h))
         + 0.32 * np.cos(np.radians(3 * h + 6)) - 0.20 * np.cos(np.radians(4 * h - 63)))
    sl = 1 + 0.015 * (l - 50) ** 2 / np.sqrt(20 + (l - 50) ** 2)
    sc, sh = 1 + 0.045 * c, 1 + 0.015 * c * t
    rt = -2 * np.sqrt(c**7 / (c**7 + 25.0**7)) * np.sin(np.radians(60 * np.exp(-(((h - 275) / 25) ** 2))))
    dl, dc = (l2 - l1) / sl, (c2 - c1) / sc
    return np.sqrt(np.maximum(0, dl**2 + dc**2 + (dh / sh) ** 2 + rt * dc * (dh / sh)))


def converted(image: Image.Image, source, target) -> np.ndarray:
    intent = ImageCms.Intent.RELATIVE_COLORIMETRIC
    return np.asarray(ImageCms.profileToProfile(image, source, target, intent, outputMode="RGB"))


def photograph() -> Image.Image:
    return Image.open(io.BytesIO(fixture_bytes("photo.png"))).convert("RGB")


@pytest.mark.parametrize("make", [chart, photograph])
def test_conversions_equal_those_of_littlecms(client, make):
    image = make()
    for space, source, target in [("DISPLAY_P3", SRGB, P3), ("SRGB", P3, SRGB)]:
        tagged = saved(image, format="PNG", icc_profile=None if source is SRGB else P3.tobytes())
        result, _ = process(client, tagged, space)
        found = np.asarray(Image.open(io.BytesIO(result)).convert("RGB"))
        assert np.percentile(difference(found, converted(image, source, target)), 99) <= 0.5


def test_code_points_that_specify_nothing_leave_the_profile(client):
    image = saved(photograph(), format="PNG", icc_profile=P3.tobytes())
    codes = b"cICP\x02\x02\x00\x01"
    coded = image[:33] + struct.pack(">I", 4) + codes + struct.pack(">I", zlib.crc32(codes)) + image[33:]
    results = [process(client, file, "SRGB") for file in (image, coded)]
    assert [report.input.gamut for _, report in results] == ["display_p3"] * 2
    assert results[0][0] == results[1][0]


def tags(tmp_path, file: bytes) -> dict:
    path = tmp_path / "result"
    path.write_bytes(file)
    listed = subprocess.run(["exiftool", "-json", "-G", str(path)], capture_output=True, check=True)
    return json.loads(listed.stdout)[0]


@pytest.mark.parametrize("output", FORMATS)
def test_readers_find_the_profile(client, tmp_path, output):
    result, report = process(client, saved(photograph(), format="PNG"), "DISPLAY_P3", output)
    assert report.output.gamut == "display_p3"
    found = tags(tmp_path, result)
    assert found["ICC_Profile:ProfileDescription"] == "Display P3"
    assert "ExifTool:Warning" not in found
    with Image.open(io.BytesIO(result)) as image:
        profile = ImageCms.ImageCmsProfile(io.BytesIO(image.info["icc_profile"]))
        assert len(image.info["icc_profile"]) < 500
        shown = converted(image.convert("RGB"), profile, SRGB)
    # A color-managed reader finds the image itself, apart from the loss of the format, which that in sRGB has, too.
    plain, _ = process(client, saved(photograph(), format="PNG"), "SRGB", output)
    loss = np.median(difference(np.asarray(Image.open(io.BytesIO(plain)).convert("RGB")), np.asarray(photograph())))
    assert np.median(difference(shown, np.asarray(photograph()))) <= 1.15 * loss + 0.2


@pytest.mark.parametrize("output", FORMATS)
def test_the_profile_of_the_image_is_kept(client, tmp_path, output):
    wide = bytearray(P3.tobytes())
    entry = wide.index(b"rXYZ")
    red = int.from_bytes(wide[entry + 4 : entry + 8], "big")
    wide[red + 8 : red + 12] = (0x9C18).to_bytes(4, "big")  # beyond that of P3
    image = saved(photograph(), format="PNG", icc_profile=bytes(wide))
    result, report = process(client, image, "KEEP", output)
    assert report.output.gamut == "other"
    with Image.open(io.BytesIO(result)) as kept:
        assert kept.info["icc_profile"] == bytes(wide)
        if output == "PNG":
            assert np.array_equal(np.asarray(kept.convert("RGB")), np.asarray(photograph()))


def test_a_copied_jpeg_keeps_its_colors(client, tmp_path):
    image = saved(photograph(), format="JPEG", quality=85, icc_profile=P3.tobytes())
    result, report = process(client, image, "KEEP", "ORIGINAL", compression_quality=1)
    assert report.passthrough and report.output.gamut == "display_p3"
    assert tags(tmp_path, result)["ICC_Profile:ProfileDescription"] == "Display P3"
    with Image.open(io.BytesIO(result)) as copy, Image.open(io.BytesIO(image)) as original:
        assert np.array_equal(np.asarray(copy), np.asarray(original))


@built_in("jxl")
def test_jpeg_xl_has_the_colors_and_the_profile_of_a_png(client):
    image = fixture_bytes("photo-420.jpg")
    png = Image.open(io.BytesIO(process(client, image, "DISPLAY_P3")[0]))
    jxl = Image.open(io.BytesIO(process(client, image, "DISPLAY_P3", "JXL", jxl={"lossless": True})[0]))
    assert np.array_equal(np.asarray(png), np.asarray(jxl))
    assert jxl.info["icc_profile"] == png.info["icc_profile"]
