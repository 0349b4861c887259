"""JPEG files with HDR gain maps, built as cameras and libultrahdr build them, and read with code that is not ours."""

import io
import json
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
from PIL import Image

sys.path.append(str(Path(__file__).resolve().parent.parent / "Fuzz"))
import seeds  # noqa: E402

XMP = b"http://ns.adobe.com/xap/1.0/\0"
ISO = b"urn:iso:std:iso:ts:21496:-1\0"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
HDRGM = 'xmlns:hdrgm="http://ns.adobe.com/hdr-gain-map/1.0/" hdrgm:Version="1.0"'


def packet(attributes: str, content: str = "") -> bytes:
    description = f'<rdf:Description rdf:about="" {attributes}>{content}</rdf:Description>'
    return XMP + f'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="{RDF}">{description}</rdf:RDF></x:xmpmeta>'.encode()


MAP_XMP = packet(
    f'{HDRGM} hdrgm:GainMapMin="0" hdrgm:GainMapMax="2.5" hdrgm:Gamma="1" hdrgm:OffsetSDR="0.015625" '
    'hdrgm:OffsetHDR="0.015625" hdrgm:HDRCapacityMin="0" hdrgm:HDRCapacityMax="2.5" hdrgm:BaseRenditionIsHDR="False"')
# One channel; headrooms, gains, gamma and offsets as fractions.
MAP_ISO = ISO + struct.pack(">HHB14I", 0, 0, 0x40, 0, 1, 5, 2, 0, 1, 5, 2, 1, 1, 1, 64, 1, 64)


def segment(marker: int, body: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body


def gradient(width: int, height: int) -> np.ndarray:
    x, y = np.meshgrid(np.arange(width) / width, np.arange(height) / height)
    return (40 + 120 * x + 80 * y).astype(np.uint8)


def jpeg(pixels: np.ndarray, **options) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", **{"quality": 95, **options})
    return file.getvalue()


def ultra_hdr(image: bytes, gain_map: bytes, exif: bytes = b"", iso: bool = True, offset_error: int | None = 0) -> bytes:
    """Puts a map behind an image, described in XMP and, with `iso`, as ISO 21496-1.

    The offset in the multi-picture segment is wrong by `offset_error`; `None` leaves the segment out.
    """
    described = gain_map[:2] + segment(0xE1, MAP_XMP) + (segment(0xE2, MAP_ISO) if iso else b"") + gain_map[2:]
    item = '<rdf:li rdf:parseType="Resource"><Container:Item Item:Mime="image/jpeg" %s/></rdf:li>'
    items = item % 'Item:Semantic="Primary"' + item % f'Item:Semantic="GainMap" Item:Length="{len(described)}"'
    directory = packet(
        f'{HDRGM} xmlns:Container="http://ns.google.com/photos/1.0/container/" '
        'xmlns:Item="http://ns.google.com/photos/1.0/container/item/"',
        f"<Container:Directory><rdf:Seq>{items}</rdf:Seq></Container:Directory>")
    head = b"\xff\xd8" + (segment(0xE1, b"Exif\0\0" + exif) if exif else b"") + segment(0xE1, directory)
    head += segment(0xE2, ISO + bytes(4)) if iso else b""

    def pictures(total: int) -> bytes:
        start = len(head) + 8
        tags = struct.pack(">H", 3) + struct.pack(">HHI4s", 0xB000, 7, 4, b"0100") + struct.pack(">HHII", 0xB001, 4, 1, 2)
        tags += struct.pack(">HHII", 0xB002, 7, 32, 50) + bytes(4)
        entries = struct.pack(">IIIHH", 0x30000, total, 0, 0, 0)
        entries += struct.pack(">IIIHH", 0, len(described), (total - start + offset_error) & 0xFFFFFFFF, 0, 0)
        return segment(0xE2, b"MPF\0MM\0*" + struct.pack(">I", 8) + tags + entries)

    if offset_error is None:
        return head + image[2:] + described
    total = len(head) + len(pictures(len(head) + 8)) + len(image) - 2
    return head + pictures(total) + image[2:] + described


def stored(extension: str, **options) -> bytes:
    """Returns an HEIC or AVIF file of 120x80 with a map of this size; see `seeds.gain_map_file`."""
    image, gain_map = seeds.Coded("photo.heic" if extension == "heic" else "gray.avif"), seeds.Coded(f"gray.{extension}")
    return seeds.gain_map_file(extension, image, gain_map, **options).bytes()


def brightened(file: bytes, gain_map: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Returns linear rows of an image and of its HDR rendition, by ISO 21496-1, 5.2, at the full headroom."""
    numbers = struct.unpack_from(">14i", gain_map, gain_map.index(ISO) + len(ISO) + 5)
    base, _, low, high, gamma, offset, bright_offset = (a / b for a, b in zip(numbers[::2], numbers[1::2]))
    assert base == 0
    image = Image.open(io.BytesIO(file)).convert("RGB")
    levels = Image.open(io.BytesIO(gain_map)).convert("L").resize(image.size, Image.Resampling.BILINEAR)
    signal = np.asarray(image) / 255
    linear = np.where(signal <= 0.04045, signal / 12.92, ((signal + 0.055) / 1.055) ** 2.4)
    stops = low + (high - low) * (np.asarray(levels) / 255) ** (1 / gamma)
    bright = (linear + offset) * 2 ** stops[..., None] - bright_offset
    return linear, bright


def exiftool(file: Path, *options: str) -> dict:
    command = ["exiftool", "-json", "-struct", *options, str(file)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)[0]


def map_of(file: Path) -> bytes:
    """Returns the second picture of a file, as exiftool extracts it."""
    return subprocess.run(["exiftool", "-b", "-MPImage2", str(file)], capture_output=True, check=True).stdout
