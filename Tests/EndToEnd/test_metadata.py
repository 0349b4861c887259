"""Tests of metadata in results, read by exiftool."""

import io
import json
import os
import struct
import subprocess
import time

import pillow_jxl  # noqa: F401 registers JPEG XL with Pillow
import pytest
from conftest import built_in, fixture_bytes
from PIL import Image, ImageCms, TiffImagePlugin
from PIL.PngImagePlugin import PngInfo
from test_calls import parts

FORMATS = {"JPEG": 2, "PNG": 3, "WEBP": 4}
OUTPUTS = [2, 3, 4, pytest.param(5, marks=built_in("avif")), pytest.param(7, marks=built_in("jxl"))]
STRIP, KEEP_COPYRIGHT, KEEP_ALL, SELECTED = 1, 2, 3, 4
# Tags that exiftool reports for every file, for the pixels, and for their coding.
HARMLESS = {
    "SourceFile", "ExifTool:ExifToolVersion", "Composite:ImageSize", "Composite:Megapixels", "File:FileSize",
    "File:FileType", "File:FileTypeExtension", "File:MIMEType", "File:ImageWidth", "File:ImageHeight",
    "File:EncodingProcess", "File:BitsPerSample", "File:ColorComponents", "File:YCbCrSubSampling", "JFIF:JFIFVersion",
    "JFIF:ResolutionUnit", "JFIF:XResolution", "JFIF:YResolution", "PNG:ImageWidth", "PNG:ImageHeight", "PNG:BitDepth",
    "PNG:ColorType", "PNG:Compression", "PNG:Filter", "PNG:Interlace", "RIFF:VP8Version", "RIFF:ImageWidth",
    "RIFF:ImageHeight", "RIFF:HorizontalScale", "RIFF:VerticalScale", "RIFF:WebP_Flags", "RIFF:AlphaIsUsed",
    "RIFF:ImageSize", "File:ExifByteOrder", "File:CurrentIPTCDigest",
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


def kept_copyright(container: str, output: str) -> dict[str, str]:
    """Returns the tags of `make_image` with KEEP_COPYRIGHT."""
    kept = {"EXIF:Artist": "Anna Beispiel", "EXIF:Copyright": "(c) 2024 Anna Beispiel"}
    return kept | ({"IPTC:CopyrightNotice": "Someone"} if container == output == "JPEG" else {})


@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
@pytest.mark.parametrize("container", FORMATS)
@pytest.mark.parametrize("output", FORMATS)
def test_copyright_is_kept_alone(client, tmp_path, container, output, mode):
    if container == "JPEG" and mode == "RGBA":
        return
    kept = result(client, tmp_path, make_image(container, mode), preferred_format=FORMATS[output], metadata=KEEP_COPYRIGHT)
    found = tags(kept)
    assert found == kept_copyright(container, output)
    with Image.open(kept) as image:
        image.load()
        assert dict(image.getexif()) == {0x013B: "Anna Beispiel", 0x8298: "(c) 2024 Anna Beispiel"}


# What a camera and an editor write, in every container.
WRITTEN = [
    "-Make=Acme", "-Model=Cam 1", "-Orientation#=6", "-Artist=Anna", "-Copyright=(c) Anna", "-GPSLatitude=48.1",
    "-GPSLatitudeRef=N", "-EXIF:SerialNumber=SN12345", "-LensSerialNumber=LS99", "-OwnerName=Anna B.", "-ISO=100",
    "-ExposureTime=1/250", "-DateTimeOriginal=2024:01:02 03:04:05", "-ExifImageWidth=4000", "-ExifImageHeight=3000",
    "-LensModel=L 50", "-XMP-dc:Title=Old title", "-XMP-dc:Creator=Anna", "-XMP-exif:GPSLatitude=48.1",
    "-XMP-aux:SerialNumber=SN12345", "-XMP-tiff:Orientation#=6", "-XMP-photoshop:City=Dorf",
    "-XMP-GPano:FullPanoWidthPixels=4000",
]
CAMERA = {
    "EXIF:Make": "Acme", "EXIF:Model": "Cam 1", "EXIF:Artist": "Anna", "EXIF:Copyright": "(c) Anna", "EXIF:ISO": 100,
    "EXIF:ExposureTime": "1/250", "EXIF:DateTimeOriginal": "2024:01:02 03:04:05", "EXIF:LensModel": "L 50",
}
PRIVATE = ("GPS", "Serial", "Owner", "Orientation", "Thumbnail", "GPano", "FullPano")


def photographed(container: str, tmp_path, *more: str) -> bytes:
    image = Image.open(io.BytesIO(fixture_bytes("photo.png"))).convert("RGB")
    path = tmp_path / f"source.{container.lower()}"
    image.save(path, container)
    subprocess.run(["exiftool", "-q", "-overwrite_original", "-api", "PNGEarlyXMP=1", *WRITTEN, *more, str(path)], check=True)
    return path.read_bytes()


@pytest.mark.parametrize(
    "container",
    [*FORMATS, pytest.param("AVIF", marks=built_in("avif")), pytest.param("TIFF", marks=built_in("tiff"))])
@pytest.mark.parametrize("output", OUTPUTS)
def test_all_is_kept_without_what_is_private(client, tmp_path, container, output):
    image = photographed(container, tmp_path, *(["-IPTC:City=Dorf"] if container in ("JPEG", "TIFF") else []))
    path = result(client, tmp_path, image, preferred_format=output, metadata=KEEP_ALL, max_width=50)
    found = tags(path)
    assert CAMERA.items() <= found.items()
    assert found["XMP:Title"] == "Old title" and found["XMP:City"] == "Dorf"
    assert (found["EXIF:ExifImageWidth"], found["EXIF:ExifImageHeight"]) == Image.open(path).size
    assert found.get("IPTC:City") == ("Dorf" if container in ("JPEG", "TIFF") and output == 2 else None)
    assert [name for name in found if any(word in name for word in PRIVATE)] == []
    assert "ExifTool:Warning" not in found


@pytest.mark.parametrize(
    "container",
    [*FORMATS, pytest.param("AVIF", marks=built_in("avif")), pytest.param("TIFF", marks=built_in("tiff"))])
@pytest.mark.parametrize("output", OUTPUTS)
def test_rights_of_xmp_and_iptc_are_kept_alone(client, tmp_path, container, output):
    has_iptc = container in ("JPEG", "TIFF")
    rights = ["-XMP-xmpRights:WebStatement=https://example.com/terms", "-XMP-plus:LicensorURL=https://example.com/buy"]
    more = ["-IPTC:By-line=Anna", "-IPTC:CopyrightNotice=(c) Anna", "-IPTC:City=Dorf"] if has_iptc else []
    image = photographed(container, tmp_path, *rights, *more)
    found = tags(result(client, tmp_path, image, preferred_format=output, metadata=KEEP_COPYRIGHT, max_width=50))
    kept = {"EXIF:Artist": "Anna", "EXIF:Copyright": "(c) Anna", "XMP:Creator": ["Anna"]}
    kept |= {"XMP:WebStatement": "https://example.com/terms", "XMP:Licensor": [{"LicensorURL": "https://example.com/buy"}]}
    if has_iptc and output == 2:
        kept |= {"IPTC:By-line": "Anna", "IPTC:CopyrightNotice": "(c) Anna"}
    assert {name: value for name, value in found.items() if name.startswith(("EXIF:", "XMP:", "IPTC:"))} == kept


@built_in("jxl")
@pytest.mark.parametrize("policy", [KEEP_ALL, 2])
def test_metadata_of_a_jpeg_xl_is_kept(client, tmp_path, policy):
    stored = result(client, tmp_path, photographed("JPEG", tmp_path), preferred_format=7, metadata=KEEP_ALL).read_bytes()
    found = tags(result(client, tmp_path, stored, preferred_format=2, metadata=policy, max_width=50))
    assert found["EXIF:Copyright"] and found["EXIF:Artist"]
    assert found.get("XMP:Title") == ("Old title" if policy == KEEP_ALL else None)


@built_in("tiff")
@pytest.mark.parametrize("policy", [KEEP_COPYRIGHT, KEEP_ALL])
def test_metadata_of_a_tiff_is_that_of_its_page(client, tmp_path, policy):
    for order in "<>":
        image = tiff(order, [{0x013B: "Anna", 0x8298: "(c) Anna"}, {0x013B: "Ben"}])
        found = [
            tags(result(client, tmp_path, image, preferred_format=2, metadata=policy, frame_index=page)) for page in (0, 1)]
        assert [each["EXIF:Artist"] for each in found] == ["Anna", "Ben"]
        assert [each.get("EXIF:Copyright") for each in found] == ["(c) Anna", None]
        assert not any("Strip" in name or "Photometric" in name for each in found for name in each)


@built_in("tiff")
@pytest.mark.parametrize("is_big", [False, True])
def test_metadata_of_a_tiff_includes_its_directories(client, tmp_path, is_big):
    stored = tiff_with_directories(is_big)
    options = {"metadata": SELECTED, "keep_exif": True, "keep_location": True}
    found = tags(result(client, tmp_path, stored, preferred_format=2, **options))
    assert found["EXIF:Artist"] == "Anna"
    assert found["EXIF:DateTimeOriginal"] == "2020:01:02 03:04:05"
    assert found["EXIF:GPSLatitudeRef"] == "North"


def tiff_with_directories(is_big: bool) -> bytes:
    """Returns a TIFF of 8x8 gray pixels with directories of EXIF and GPS data, which have the widest type of pointers."""
    size, count = ("Q", "Q") if is_big else ("I", "H")
    width = struct.calcsize(size)
    data = bytearray((b"II+\0\x08\0\0\0" if is_big else b"II*\0") + bytes(width))
    pixels = len(data)
    data += bytes(range(64))

    def append(entries: dict[int, bytes | int]) -> int:
        rows = b""
        for tag, value in sorted(entries.items()):
            is_pointer = tag in (0x8769, 0x8825)
            kind = 2 if isinstance(value, bytes) else 18 if is_pointer and is_big else 4
            values = value if isinstance(value, bytes) else struct.pack("<Q" if kind == 18 else "<I", value)
            inline = values.ljust(width, b"\0")
            if len(values) > width:
                inline = struct.pack("<" + size, len(data))
                data.extend(values)
            rows += struct.pack("<HH" + size, tag, kind, len(values) if kind == 2 else 1) + inline
        data.extend(struct.pack("<" + count, len(entries)) + rows + bytes(width))
        return len(data) - width - len(rows) - struct.calcsize(count)

    shape = {0x100: 8, 0x101: 8, 0x102: 8, 0x103: 1, 0x106: 1, 0x111: pixels, 0x115: 1, 0x116: 8, 0x117: 64}
    directories = {0x8769: append({0x9003: b"2020:01:02 03:04:05\0"}), 0x8825: append({1: b"N\0"})}
    first = append({**shape, 0x13B: b"Anna\0", **directories})
    data[pixels - width:pixels] = struct.pack("<" + size, first)
    return bytes(data)


def tiff(order: str, pages: list[dict[int, str]]) -> bytes:
    """Returns a TIFF of gray pages of 8x8 pixels with texts, in the byte order of `struct`."""
    data = {"<": b"II", ">": b"MM"}[order] + struct.pack(order + "HI", 42, 8)
    for number, texts in enumerate(pages):
        entries = {0x100: 8, 0x101: 8, 0x102: 8, 0x103: 1, 0x106: 1, 0x111: 0, 0x115: 1, 0x116: 8, 0x117: 64, **texts}
        values = len(data) + 2 + 12 * len(entries) + 4
        directory, rest = struct.pack(order + "H", len(entries)), b""
        for tag, value in sorted(entries.items()):
            text = value.encode() + b"\0" if isinstance(value, str) else b""
            if len(text) > 4:
                value, rest = values + len(rest), rest + text + b"\0" * (len(text) % 2)
            elif text:
                value = int.from_bytes(text.ljust(4, b"\0"), "little" if order == "<" else "big")
            elif tag == 0x111:
                value = -1
            directory += struct.pack(order + "HHIi", tag, 2 if text else 4, len(text) or 1, value)
        pixels = values + len(rest)
        directory = directory.replace(struct.pack(order + "i", -1), struct.pack(order + "i", pixels))
        following = pixels + 64 if number + 1 < len(pages) else 0
        data += directory + struct.pack(order + "I", following) + rest + bytes(range(64))
    return data


def credentialed(container: str) -> bytes:
    """Returns an image with what contains credentials of C2PA in its format; they are not valid."""
    image, out = Image.open(io.BytesIO(fixture_bytes("photo.png"))).convert("RGB"), io.BytesIO()
    if container == "TIFF":
        tags = TiffImagePlugin.ImageFileDirectory_v2()
        tags[0xCD41], tags.tagtype[0xCD41] = b"manifest", 7
        image.save(out, container, tiffinfo=tags)
        return out.getvalue()
    image.save(out, container)
    data = out.getvalue()
    if container == "GIF":
        head = 13 + 3 * 2 ** ((data[10] & 7) + 1)
        return data[:head] + b"\x21\xff\x0bC2PA_GIF\x01\0\0\x04test\0" + data[head:]
    content = (48).to_bytes(4, "big") + b"jumdc2pa" + bytes(36)
    return boxed([(b"jumb", content), (b"jxlc", data)])


def boxed(boxes: list[tuple[bytes, bytes]]) -> bytes:
    """Returns a JPEG XL with boxes behind its signature and its type."""
    assert dict(boxes)[b"jxlc"][:2] == b"\xff\x0a"
    head = b"\0\0\0\x0cJXL \r\n\x87\n\0\0\0\x14ftypjxl \0\0\0\0jxl "
    return head + b"".join((len(body) + 8).to_bytes(4, "big") + kind + body for kind, body in boxes)


@pytest.mark.parametrize(
    "container", ["GIF", pytest.param("TIFF", marks=built_in("tiff")), pytest.param("JXL", marks=built_in("jxl"))])
def test_credentials_that_were_removed_are_reported(client, container):
    image = credentialed(container)
    removed = 30  # WARNING_CODE_CREDENTIALS_REMOVED
    for policy in (KEEP_ALL, STRIP):
        responses = parts(client.process(image, preferred_format=2, metadata=policy, max_width=50))
        kind, last = responses[-1]
        assert kind == "report" and not any(b"manifest" in part.chunk for kind, part in responses if kind == "chunk")
        assert (removed in [each.code for each in last.report.warning_details]) == (policy == KEEP_ALL)


@built_in("jxl")
def test_metadata_behind_a_jpeg_xl_is_kept_however_it_arrives(client, tmp_path):
    plain = result(client, tmp_path, fixture_bytes("photo.png"), preferred_format=7).read_bytes()
    xmp = b"""<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<rdf:Description xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title><rdf:Alt><rdf:li xml:lang="x-default">Behind</rdf:li></rdf:Alt>
</dc:title></rdf:Description></rdf:RDF></x:xmpmeta>"""
    stored = boxed([(b"jxlc", plain), (b"Exif", bytes(4) + exif().tobytes()[6:]), (b"xml ", xmp)])
    found = tags(result(client, tmp_path, stored, preferred_format=2, metadata=KEEP_ALL, max_width=50))
    assert found["EXIF:Artist"] == "Anna Beispiel" and found["XMP:Title"] == "Behind"
    command = [os.environ["IMAGE_WORKER"], "process", "-", "--format", "jpeg", "--max-width", "50", "--quality", "1", "--metadata", "keep-all",
               "--out", str(tmp_path / "piped.jpg")]
    run = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    for start in range(0, len(stored), 500):
        run.stdin.write(stored[start:start + 500])
        run.stdin.flush()
        time.sleep(0.01)
    run.stdin.close()
    assert run.wait(30) == 0 and (tmp_path / "piped.jpg").read_bytes() == (tmp_path / "result").read_bytes()


def test_the_format_of_the_original_is_not_that_of_the_result(client, tmp_path):
    image = photographed("JPEG", tmp_path, "-XMP-dc:Format=image/jpeg")
    found = tags(result(client, tmp_path, image, preferred_format=3, metadata=KEEP_ALL, max_width=50))
    assert "XMP:Format" not in found and found["XMP:Title"] == "Old title"


@pytest.mark.parametrize("output", OUTPUTS)
def test_only_what_is_named_is_selected(client, tmp_path, output):
    image = photographed("JPEG", tmp_path)

    def selected(**parts) -> dict:
        return tags(result(client, tmp_path, image, preferred_format=output, metadata=SELECTED, max_width=50, **parts))

    assert not any(name.startswith(("EXIF:", "XMP:")) for name in selected())
    named = selected(keep_exif=True, keep_location=True)
    assert CAMERA.items() <= named.items() and "EXIF:GPSLatitude" in named
    assert not any("Serial" in name or name.startswith("XMP:") for name in named)
    named = selected(keep_exif=True, keep_xmp=True, keep_serial_numbers=True)
    assert named["EXIF:SerialNumber"] == named["XMP:SerialNumber"] == "SN12345"
    assert named["EXIF:LensSerialNumber"] == "LS99" and not any("GPS" in name for name in named)


@pytest.mark.parametrize("policy", [STRIP, KEEP_ALL])
@pytest.mark.parametrize("output", OUTPUTS)
def test_texts_of_the_request_are_written(client, tmp_path, output, policy):
    texts = {"metadata_title": "Über <uns>", "metadata_copyright": "© 2026 Verlag", "metadata_description": "Ein Dorf"}
    image = photographed("JPEG", tmp_path, "-IPTC:ObjectName=Old title")
    found = tags(result(client, tmp_path, image, preferred_format=output, metadata=policy, max_width=50, **texts))
    assert (found["XMP:Title"], found["XMP:Rights"], found["XMP:Description"]) == tuple(texts.values())
    assert (found["EXIF:Copyright"], found["EXIF:ImageDescription"]) == ("© 2026 Verlag", "Ein Dorf")
    if policy == KEEP_ALL and output == 2:
        assert found["IPTC:ObjectName"] == "Über <uns>"
    assert ("EXIF:Artist" in found) == (policy == KEEP_ALL)


def test_a_copied_jpeg_keeps_all(client, tmp_path):
    image = photographed("JPEG", tmp_path)
    responses = parts(client.process(image, metadata=KEEP_ALL, rotation=270))
    assert responses[-1][1].report.passthrough
    path = tmp_path / "copy"
    path.write_bytes(b"".join(r.chunk for kind, r in responses if kind == "chunk"))
    assert CAMERA.items() <= tags(path).items()


@pytest.mark.parametrize("options", [[], ["--lossless"]])
def test_an_opaque_webp_with_metadata_states_no_alpha(tmp_path, options):
    source, result = tmp_path / "opaque.png", tmp_path / "opaque.webp"
    Image.open(io.BytesIO(fixture_bytes("photo.png"))).convert("RGBA").save(source)
    subprocess.run([os.environ["IMAGE_WORKER"], "process", source, "--format", "webp", "--metadata-title", "Title", *options,
                    "--out", result, "--quiet"], check=True)
    data = result.read_bytes()
    assert data[12:16] == b"VP8X" and data[20] & 0x10 == 0 and b"ALPH" not in data


def test_no_long_value_is_left_of_an_image_with_a_hidden_region(tmp_path):
    """It could be an image of what is hidden."""
    block = exif()
    secret = b"secret" * 500
    block[0x8298] = secret.decode()
    block.get_ifd(0x8825)[0x001B] = secret
    source = tmp_path / "secret.png"
    Image.open(io.BytesIO(fixture_bytes("photo.png"))).save(source, exif=block)
    for name in ("result.png", "result.jpg", "result.webp"):
        for options in (["--metadata", "keep-copyright"], ["--metadata", "selected", "--keep-exif", "--keep-location"]):
            result = tmp_path / name
            subprocess.run([os.environ["IMAGE_WORKER"], "process", source, "--region", "10,10,50x50", *options, "--out", result,
                            "--quiet"], check=True)
            assert secret[:60] not in result.read_bytes(), (name, options)
