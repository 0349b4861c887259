"""Seeds with metadata in JPEG, PNG and WebP: EXIF, XMP, IPTC, content credentials and color profiles."""

import struct
import zlib

XMP = (
    b"<x:xmpmeta xmlns:x='adobe:ns:meta/'><rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>"
    b"<rdf:Description rdf:about='' exif:GPSLatitude='48,8N'/></rdf:RDF></x:xmpmeta>"
)
IPTC = b"\x1c\x02\x5a\x00\x04Dorf\x1c\x02\x05\x00\x03Old"


def exif():
    entries = [(0x0112, 3, 1, struct.pack("<HH", 6, 0)), (0x8298, 2, 4, b"me \0"), (0x8769, 4, 1, struct.pack("<I", 62))]
    first = struct.pack("<H", len(entries)) + b"".join(struct.pack("<HHI", *e[:3]) + e[3] for e in entries)
    second = struct.pack("<HHHI4sI", 1, 0xA431, 2, 4, b"SN1\0", 0)
    return (b"II*\0\x08\0\0\0" + first + bytes(4)).ljust(62, b"\0") + second


def jpeg(data, profile):
    def segment(marker, body):
        return struct.pack(">BBH", 0xFF, marker, 2 + len(body)) + body

    resource = b"8BIM\x04\x0c\0\0\0\0\0\x03abc\0" + b"8BIM\x04\x04\0\0" + struct.pack(">I", len(IPTC)) + IPTC
    credentials = b"JP\0\x01\0\0\0\x01" + struct.pack(">I4sI4s", 60, b"jumb", 40, b"jumd") + b"c2pa" + bytes(32)
    return (
        data[:2] + segment(0xE1, b"Exif\0\0" + exif()) + segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + XMP)
        + segment(0xED, b"Photoshop 3.0\0" + resource) + segment(0xEB, credentials)
        + segment(0xE2, b"ICC_PROFILE\0\x01\x01" + profile) + data[2:]
    )


def png(data, profile):
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    chunks = [
        (b"iCCP", b"ICC\0\0" + zlib.compress(profile)), (b"eXIf", exif()), (b"caBX", b"jumb"),
        (b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + XMP),
    ]
    return data[:33] + b"".join(chunk(*c) for c in chunks) + data[33:]


def webp(data, profile, width, height):
    def chunk(kind, body):
        return kind + struct.pack("<I", len(body)) + body + b"\0" * (len(body) % 2)

    size = struct.pack("<I", width - 1)[:3] + struct.pack("<I", height - 1)[:3]
    body = (
        chunk(b"VP8X", b"\x2c\0\0\0" + size) + chunk(b"ICCP", profile) + data[12:] + chunk(b"EXIF", exif())
        + chunk(b"XMP ", XMP) + chunk(b"C2PA", b"jumb")
    )
    return b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WEBP" + body


def seeds(fixtures):
    def read(name):
        return (fixtures / name).read_bytes()

    p3, gray, inks = read("display-p3.icc"), read("gray-gamma-1.8.icc"), read("inks.icc")
    for name, profile in (("photo-420.jpg", p3), ("photo-gray.jpg", gray), ("photo-cmyk.jpg", inks[:60000])):
        yield f"metadata-{name}", jpeg(read(name), profile)
    yield "metadata.png", png(read("photo.png"), p3)
    yield "metadata-gray.png", png(read("gray.png"), gray)
    yield "metadata.webp", webp(read("photo.webp"), p3, 120, 80)
