"""Tests of metadata in results, read by exiftool."""

import io
import json
import subprocess

import pytest
from conftest import fixture_bytes
from PIL import Image, ImageCms
from PIL.PngImagePlugin import PngInfo
from test_calls import parts

FORMATS = {"JPEG": 2, "PNG": 3, "WEBP": 4}
STRIP, KEEP_COPYRIGHT = 1, 2
# Tags that exiftool reports for every file, for the pixels, and for their coding.
HARMLESS = {
    "SourceFile", "ExifTool:ExifToolVersion", "Composite:ImageSize", "Composite:Megapixels", "File:FileSize",
    "File:FileType", "File:FileTypeExtension", "File:MIMEType", "File:ImageWidth", "File:ImageHeight",
    "File:EncodingProcess", "File:BitsPerSample", "File:ColorComponents", "File:YCbCrSubSampling", "JFIF:JFIFVersion",
    "JFIF:ResolutionUnit", "JFIF:XResolution", "JFIF:YResolution", "PNG:ImageWidth", "PNG:ImageHeight", "PNG:BitDepth",
    "PNG:ColorType", "PNG:Compression", "PNG:Filter", "PNG:Interlace", "RIFF:VP8Version", "RIFF:ImageWidth",
    "RIFF:ImageHeight", "RIFF:HorizontalScale", "RIFF:VerticalScale", "RIFF:WebP_Flags", "RIFF:AlphaIsUsed",
    "RIFF:ImageSize",
}


def exif() -> Image.Exif:
    block = Image.Exif()
    block[0x010F], block[0x0110], block[0x0131] = "Maker", "Camera", "Software"
    block[0x013B], block[0x8298] = "Anna Beispiel", "(c) 2024 Anna Beispiel"
    block.get_ifd(0x8825)[1] = "N"
    block.get_ifd(0x8825)[2] = (48.0, 8.0, 14.0)
    block.get_ifd(0x8769)[0x9286] = b"ASCII\0\0\0a comment of the user"
    return block


def make_image(container: str, mode: str = "RGB") -> bytes:
    """Returns an image with every kind of metadata."""
    image = Image.open(io.BytesIO(fixture_bytes("photo.png"))).convert(mode)
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    xmp = b"<x:xmpmeta xmlns:x='adobe:ns:meta/'><rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'/></x:xmpmeta>"
    out = io.BytesIO()
    if container == "PNG":
        texts = PngInfo()
        texts.add_text("Comment", "a comment")
        texts.add_itxt("XML:com.adobe.xmp", xmp.decode())
        image.save(out, container, exif=exif(), icc_profile=profile, pnginfo=texts, dpi=(300, 300))
    elif container == "JPEG":
        image.save(out, container, exif=exif(), icc_profile=profile, comment=b"a comment", xmp=xmp, dpi=(300, 300))
        data = out.getvalue()
        iptc = b"Photoshop 3.0\x008BIM\x04\x04\0\0\0\0\0\x0c\x1c\x02\x74\0\x07Someone"
        return data[:2] + b"\xff\xed" + (len(iptc) + 2).to_bytes(2, "big") + iptc + data[2:]
    else:
        image.save(out, container, exif=exif(), icc_profile=profile, xmp=xmp)
    return out.getvalue()


def tags(path) -> dict:
    listed = subprocess.run(["exiftool", "-json", "-G", "-struct", "-unknown", str(path)], capture_output=True, check=True)
    found = json.loads(listed.stdout)[0]
    kept = {name: value for name, value in found.items() if name not in HARMLESS}
    return {name: value for name, value in kept.items() if not name.startswith(("File:File", "File:Directory"))}


def result(client, tmp_path, image: bytes, **configuration):
    responses = parts(client.process(image, **configuration))
    path = tmp_path / "result"
    path.write_bytes(b"".join(r.chunk for kind, r in responses if kind == "chunk"))
    return path


@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
@pytest.mark.parametrize("container", FORMATS)
@pytest.mark.parametrize("output", FORMATS)
def test_results_carry_nothing(client, tmp_path, container, output, mode):
    if container == "JPEG" and mode == "RGBA":
        return
    image = make_image(container, mode)
    source = tmp_path / "source"
    source.write_bytes(image)
    assert {"EXIF:Artist", "EXIF:GPSLatitude", "ICC_Profile:ProfileDescription"} <= set(tags(source))
    assert tags(result(client, tmp_path, image, preferred_format=FORMATS[output])) == {}
    assert tags(result(client, tmp_path, image, preferred_format=FORMATS[output], metadata=STRIP, max_width=20)) == {}


@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
@pytest.mark.parametrize("container", FORMATS)
@pytest.mark.parametrize("output", FORMATS)
def test_copyright_is_kept_alone(client, tmp_path, container, output, mode):
    if container == "JPEG" and mode == "RGBA":
        return
    kept = result(client, tmp_path, make_image(container, mode), preferred_format=FORMATS[output], metadata=KEEP_COPYRIGHT)
    found = tags(kept)
    found.pop("File:ExifByteOrder", None)
    assert found == {"EXIF:Artist": "Anna Beispiel", "EXIF:Copyright": "(c) 2024 Anna Beispiel"}
    with Image.open(kept) as image:
        image.load()
        assert dict(image.getexif()) == {0x013B: "Anna Beispiel", 0x8298: "(c) 2024 Anna Beispiel"}
