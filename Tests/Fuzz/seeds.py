#!/usr/bin/env python3
"""Writes structured seeds for the fuzzers: images with several items, tiles, strips and layers, metadata, and frames of palettes.

    Tests/Fuzz/seeds.py FOLDER

Byte mutations rarely create such structures from a plain image: reference graphs of AVIF and HEIC, TIFF files whose
blocks share data, and so on. The coded data comes from the fixtures. Needs only Python.
"""

import pathlib
import struct
import sys

import animations
import metadata

FIXTURES = pathlib.Path(__file__).resolve().parent.parent / "TestSupport" / "Fixtures"


# MARK: AVIF and HEIC


def box(kind, *parts):
    body = b"".join(parts)
    return struct.pack(">I4s", 8 + len(body), kind.encode()) + body


def full_box(kind, version, flags, *parts):
    return box(kind, struct.pack(">I", version << 24 | flags), *parts)


def boxes(data, start=0):
    """Yields type and body of each box."""
    while start + 8 <= len(data):
        (size,) = struct.unpack_from(">I", data, start)
        size = size or len(data) - start
        yield data[start + 4 : start + 8].decode("latin1"), data[start + 8 : start + size]
        start += size


class Coded:
    """The primary image of a fixture: its data, and the boxes of its properties."""

    def __init__(self, name):
        data = (FIXTURES / name).read_bytes()
        meta = dict(boxes(dict(boxes(data))["meta"], 4))
        (self.number,) = struct.unpack_from(">H", meta["pitm"], 4)
        self.kind = next(
            body[8:12].decode()
            for kind, body in boxes(meta["iinf"], 6)
            if struct.unpack_from(">H", body, 4)[0] == self.number
        )
        containers = list(boxes(meta["iprp"]))
        properties = list(boxes(dict(containers)["ipco"]))
        self.properties = [properties[k - 1] for k in self.associations(dict(containers)["ipma"])]
        self.data = self.extent(data, meta["iloc"])

    def associations(self, ipma):
        at = 8
        while at < len(ipma):
            number, count = struct.unpack_from(">HB", ipma, at)
            if number == self.number:
                return [k & 0x7F for k in ipma[at + 3 : at + 3 + count]]
            at += 3 + count
        return []

    def extent(self, data, iloc):
        version, sizes = iloc[0], iloc[4]
        at = 8
        for _ in range(struct.unpack_from(">H", iloc, 6)[0]):
            number = struct.unpack_from(">H", iloc, at)[0]
            at += 6 if version else 4
            base = int.from_bytes(iloc[at : at + (iloc[5] >> 4)], "big")
            at += iloc[5] >> 4
            count = struct.unpack_from(">H", iloc, at)[0]
            at += 2
            if number == self.number:
                offset = base + int.from_bytes(iloc[at : at + (sizes >> 4)], "big")
                at += sizes >> 4
                return data[offset : offset + int.from_bytes(iloc[at : at + (sizes & 15)], "big")]
            at += count * ((sizes >> 4) + (sizes & 15))
        return b""


def ispe(width, height):
    return "ispe", struct.pack(">III", 0, width, height)


def grid(rows, columns, width, height):
    return struct.pack(">BBBBHH", 0, 0, rows - 1, columns - 1, width, height)


def overlay(width, height, places):
    head = struct.pack(">BBHHHHHH", 0, 0, 0, 0, 0, 65535, width, height)
    return head + b"".join(struct.pack(">hh", x, y) for x, y in places)


class File:
    """Items by number from 1 on; the first is the primary one."""

    def __init__(self, brand):
        self.brand = brand
        self.items = []
        self.references = []

    def add(self, kind, data, properties, hidden=False):
        """`data` is bytes, or the number of the item whose data it shares."""
        self.items.append((kind, data, properties, hidden))
        return len(self.items)

    def coded(self, coded, data=None, without=()):
        properties = [p for p in coded.properties if p[0] not in without]
        return self.add(coded.kind, coded.data if data is None else data, properties, hidden=False)

    def refer(self, kind, start, *ends):
        self.references.append((kind, start, ends))

    def bytes(self):
        ftyp = box("ftyp", self.brand.encode(), struct.pack(">I", 0), self.brand.encode(), b"mif1")
        meta = self.meta(0)
        return ftyp + self.meta(len(ftyp) + len(meta) + 8) + box("mdat", *self.data())

    def data(self):
        return [data for _, data, _, _ in self.items if isinstance(data, bytes)]

    def meta(self, start):
        distinct, shares = [], []
        for _, _, properties, _ in self.items:
            for p in properties:
                if p not in distinct:
                    distinct.append(p)
            shares.append([distinct.index(p) + 1 for p in properties])
        offsets = {}
        for number, (_, data, _, _) in enumerate(self.items, 1):
            if isinstance(data, bytes):
                offsets[number] = (start, len(data))
                start += len(data)
        places = [offsets[data if isinstance(data, int) else n] for n, (_, data, _, _) in enumerate(self.items, 1)]
        return full_box(
            "meta", 0, 0,
            full_box("hdlr", 0, 0, b"\0\0\0\0pict", bytes(13)),
            full_box("pitm", 0, 0, struct.pack(">H", 1)),
            full_box("iinf", 0, 0, struct.pack(">H", len(self.items)), *(
                full_box("infe", 2, int(hidden), struct.pack(">HH4sB", n, 0, kind.encode(), 0),
                         b"application/rdf+xml\0" if kind == "mime" else b"")
                for n, (kind, _, _, hidden) in enumerate(self.items, 1))),
            full_box("iref", 0, 0, *(
                box(kind, struct.pack(">HH", a, len(b)), *(struct.pack(">H", k) for k in b))
                for kind, a, b in self.references)),
            box("iprp",
                box("ipco", *(box(kind, body) for kind, body in distinct)),
                full_box("ipma", 0, 0, struct.pack(">I", len(self.items)), *(
                    struct.pack(">HB", n, len(s)) + bytes(s) for n, s in enumerate(shares, 1)))),
            full_box("iloc", 0, 0, struct.pack(">BBH", 0x44, 0, len(self.items)), *(
                struct.pack(">HHHII", n, 0, 1, *place) for n, place in enumerate(places, 1))),
        )


def heif_seeds(extension, name):
    coded = Coded(name)
    (width, height) = struct.unpack(">II", dict(coded.properties)["ispe"][4:12])
    alpha = ("auxC", bytes(4) + b"urn:mpeg:mpegB:cicp:systems:auxiliary:alpha\0")

    def grid_file(rows, columns, share):
        f = File(extension)
        f.add("grid", grid(rows, columns, width * columns - 3, height * rows - 5),
              [ispe(width * columns - 3, height * rows - 5)])
        tiles = [f.coded(coded, data=None if k == 0 or not share else 2) for k in range(rows * columns)]
        f.refer("dimg", 1, *tiles)
        return f

    yield "grid", grid_file(2, 3, share=False)
    yield "grid-shared", grid_file(4, 4, share=True)
    f = grid_file(2, 2, share=True)
    for k in (1, 2):
        f.add(*f.items[k - 1][:2], f.items[k - 1][2] + [alpha])
    f.refer("auxl", 6, 1)
    f.refer("dimg", 6, 2, 3, 4, 5)
    yield "grid-alpha", f
    f = File(extension)
    f.add("iovl", overlay(width * 2, height * 2, [(0, 0), (width, height), (-5, 9)]), [ispe(width * 2, height * 2)])
    f.coded(coded)
    f.refer("dimg", 1, 2, 2, 2)
    yield "overlay", f
    f = File(extension)
    f.add("iden", b"", [ispe(width, height), ("irot", b"\1"), ("imir", b"\0")])
    f.add("iovl", overlay(width, height, [(0, 0)]), [ispe(width, height)])
    f.add("grid", grid(1, 1, width, height), [ispe(width, height)])
    f.coded(coded)
    f.refer("dimg", 1, 2)
    f.refer("dimg", 2, 3)
    f.refer("dimg", 3, 4)
    yield "nested", f
    f = File(extension)
    f.add(coded.kind, coded.data, coded.properties + [
        ("irot", b"\1"), ("imir", b"\1"),
        ("clap", struct.pack(">IIIIiIiI", width - 10, 1, height - 8, 1, 1, 1, -1, 1))])
    f.add(coded.kind, 1, coded.properties + [alpha, ("irot", b"\1")])
    f.refer("auxl", 2, 1)
    f.refer("prem", 1, 2)
    f.add(coded.kind, 1, coded.properties)
    f.refer("thmb", 3, 1)
    f.add("Exif", b"\0\0\0\0II*\0\x08\0\0\0\0\0", [])
    f.refer("cdsc", 4, 1)
    yield "turned-alpha", f
    f = File(extension)
    f.add("grid", grid(1, 1, width, height), [ispe(width, height)])
    f.refer("dimg", 1, 1)
    yield "cycle", f
    yield "apple-gain-map", gain_map_file(extension, coded, Coded(f"gray.{extension}"), headroom="2.5")
    yield "tiled-gain-map", gain_map_file(extension, coded, Coded(f"gray.{extension}"), headroom="2.5", tiles=4)
    yield "shared-gain-map", gain_map_file(extension, coded, Coded(f"gray.{extension}"), tone_map=b"\0" + ISO_GAINS,
                                           exif=b"II*\0\x08\0\0\0\0\0\0\0\0\0", is_shared=True)
    yield "iso-gain-map", gain_map_file(extension, coded, Coded(f"gray.{extension}"), tone_map=b"\0" + ISO_GAINS)


# The metadata of ISO 21496-1: one channel; headrooms, gains, gamma and offsets as fractions.
ISO_GAINS = struct.pack(">HHB14I", 0, 0, 0x40, 0, 1, 5, 2, 0, 1, 5, 2, 1, 1, 1, 64, 1, 64)
APPLE = "urn:com:apple:photo:2020:aux:hdrgainmap"


def gain_map_file(brand, image, gain_map, headroom=None, tone_map=None, exif=None, tiles=0, turns=0,
                  is_shared=False):
    """A file with a gain map, as an auxiliary image of Apple, or with `tone_map` as ISO 21496-1 describes it.

    `headroom` is that of Apple's XMP, None without XMP. The map consists of `tiles` tiles in a row, 0 for none. With
    `is_shared`, EXIF and an auxiliary image are those of two images, as cameras write them.
    """
    f = File(brand)
    rotation = [("irot", bytes([turns]))] if turns else []
    f.add(image.kind, image.data, image.properties + rotation)
    (width, height) = struct.unpack(">II", dict(gain_map.properties)["ispe"][4:12])
    auxiliary = [] if tone_map else [("auxC", bytes(4) + APPLE.encode() + b"\0")]
    if tiles:
        place = f.add("grid", grid(1, tiles, width * tiles, height), [ispe(width * tiles, height)] + auxiliary + rotation)
        f.refer("dimg", place, *(f.add(gain_map.kind, gain_map.data, gain_map.properties, hidden=True) for _ in range(tiles)))
    else:
        place = f.add(gain_map.kind, gain_map.data, gain_map.properties + auxiliary + rotation, hidden=True)
    if tone_map:
        f.refer("dimg", f.add("tmap", tone_map, [ispe(width, height)]), 1, place)
    else:
        f.refer("auxl", place, 1)
    others = [len(f.items)] if is_shared else []
    if is_shared:
        matte = f.add(gain_map.kind, gain_map.data, gain_map.properties + [("auxC", bytes(4) + b"urn:matte\0")], hidden=False)
        f.refer("auxl", matte, 1, *others)
    if headroom:
        xmp = (f'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
               f'<rdf:Description rdf:about="" xmlns:HDRGainMap="http://ns.apple.com/HDRGainMap/1.0/">'
               f'<HDRGainMap:HDRGainMapVersion>131072</HDRGainMap:HDRGainMapVersion>'
               f'<HDRGainMap:HDRGainMapHeadroom>{headroom}</HDRGainMap:HDRGainMapHeadroom>'
               f'</rdf:Description></rdf:RDF></x:xmpmeta>')
        f.refer("cdsc", f.add("mime", xmp.encode(), []), place)
    if exif:
        f.refer("cdsc", f.add("Exif", bytes(4) + exif, []), 1, *others)
    return f


# MARK: TIFF


def tiff(entries, data, order="<"):
    """Returns a TIFF with one IFD after `data`, which starts at byte 8. Entries are tag, type, values."""
    codes = {1: "B", 3: "H", 4: "I"}
    directory, late = b"", b""
    at = 8 + len(data)
    end = at + 2 + 12 * len(entries) + 4
    for tag, kind, values in sorted(entries):
        body = struct.pack(order + str(len(values)) + codes[kind], *values)
        if len(body) > 4:
            directory += struct.pack(order + "HHII", tag, kind, len(values), end + len(late))
            late += body + bytes(len(body) % 2)
        else:
            directory += struct.pack(order + "HHI", tag, kind, len(values)) + body.ljust(4, b"\0")
    mark = b"II" if order == "<" else b"MM"
    head = mark + struct.pack(order + "HI", 42, at) + data
    return head + struct.pack(order + "H", len(entries)) + directory + bytes(4) + late


def tiff_pages(pages, data, last=0):
    """Returns a TIFF with an IFD for each of `pages`, lists of entries of up to 4 bytes; `last` is the offset after them."""
    file, place = b"II" + struct.pack("<HI", 42, 8 + len(data)) + data, 8 + len(data)
    for index, entries in enumerate(pages):
        directory = tiff(entries, b"")[8:-4]
        place += len(directory) + 4
        file += directory + struct.pack("<I", last if index == len(pages) - 1 else place)
    return file


def icon(pictures):
    """Returns an ICO of pictures: width, height, bits and bytes."""
    at, directory = 6 + 16 * len(pictures), struct.pack("<HHH", 0, 1, len(pictures))
    for width, height, bits, data in pictures:
        directory += struct.pack("<BBBBHHII", width, height, 0, 0, 1, bits, len(data), at)
        at += len(data)
    return directory + b"".join(data for *_, data in pictures)


def icon_seeds():
    def bitmap(side, bits):
        row = (side * bits + 31) // 32 * 4 + (side + 31) // 32 * 4
        palette = bytes(range(4 << bits)) if bits <= 8 else b""
        return struct.pack("<IiiHHIIiiII", 40, side, 2 * side, 1, bits, *[0] * 6) + palette + bytes(range(200))[:row] * side

    png = (FIXTURES / "bilevel.png").read_bytes()
    pictures = [(8, 8, 32, bitmap(8, 32)), (40, 40, 1, png), (16, 16, 1, bitmap(16, 1)), (8, 8, 24, bitmap(8, 24))]
    yield "pictures", icon(pictures)
    yield "equal", icon([pictures[0]] * 3 + [pictures[1]] * 2)
    yield "too-small", icon([(200, 200, 32, pictures[0][3][:41]), *pictures])


def tiff_seeds():
    def entries(width, height, bits=8, samples=1, photometric=1, compression=1, **other):
        tags = {"rows": 278, "offsets": 273, "counts": 279, "tile_width": 322, "tile_height": 323,
                "tile_offsets": 324, "tile_counts": 325, "planar": 284, "format": 339, "extra": 338}
        base = [(256, 4, [width]), (257, 4, [height]), (258, 3, [bits] * samples), (259, 3, [compression]),
                (262, 3, [photometric]), (277, 3, [samples])]
        return base + [(tags[k], 3 if k in ("planar", "format", "extra") else 4, v) for k, v in other.items()]

    noise = bytes((k * 37 + k // 7) & 255 for k in range(64 * 64 * 4))
    yield "tiles", tiff(entries(100, 70, samples=3, photometric=2, tile_width=[64], tile_height=[64],
                                tile_offsets=[8] * 4, tile_counts=[64 * 64 * 3] * 4), noise)
    yield "shared-strips", tiff(entries(64, 640, rows=[8], offsets=[8] * 80, counts=[512] * 80), noise)
    yield "planes", tiff(entries(64, 64, samples=4, photometric=2, planar=[2], rows=[64], extra=[2],
                                 offsets=[8 + 4096 * k for k in range(4)], counts=[4096] * 4), noise)
    yield "samples", tiff(entries(16, 16, samples=9, rows=[16], offsets=[8], counts=[16 * 16 * 9]), noise)
    yield "float", tiff(entries(16, 16, bits=32, samples=3, photometric=2, format=[3, 3, 3], rows=[16], offsets=[8],
                                counts=[16 * 16 * 12]), noise)
    yield "lab", tiff(entries(32, 32, samples=3, photometric=8, rows=[32], offsets=[8], counts=[3072]), noise)
    jpeg = (FIXTURES / "photo-progressive.jpg").read_bytes()
    yield "shared-jpeg", tiff(entries(61, 43 * 4, samples=3, photometric=6, compression=7, rows=[43], offsets=[8] * 4,
                                      counts=[len(jpeg)] * 4), jpeg)
    packed = bytes([129, 7] * 400)
    yield "packbits", tiff(entries(128, 300, compression=32773, rows=[100], offsets=[8] * 3, counts=[len(packed)] * 3),
                           packed, order=">")
    pages = [entries(20, height, rows=[height], offsets=[8], counts=[20 * height]) for height in (9, 30, 5)]
    kinds = [pages[0], pages[1] + [(254, 4, [1])], pages[2] + [(254, 3, [2])], pages[1]]
    yield "pages", tiff_pages(kinds, noise[:600])
    yield "loop", tiff_pages(kinds, noise[:600], last=608)


# MARK: Palettes


def palette_seeds():
    """Options, as palette.c reads them, and the pixels of frames of 32x24."""
    width, height, frames = 32, 24, 3
    kinds = {
        "gradient": lambda x, y, f: (x * 8, y * 10, 128 + f * 8, 255),
        "flat": lambda x, y, f: (40, 90, 200, 255),
        "moving": lambda x, y, f: (255, 0, 0, 255) if 4 * f <= x < 4 * f + 6 else (x * 2, y * 2, 60, 255),
        "cutout": lambda x, y, f: (x * 7, 20, y * 9, 0 if (x - 16) ** 2 + (y - 12) ** 2 > 90 else 255),
        "shadow": lambda x, y, f: (0, 0, 0, x * 8),
        "noise": lambda x, y, f: tuple((x * 7919 + y * 104729 + f * 1299709 + c * 15485863) >> 7 & 255 for c in range(4)),
    }
    for name, color in kinds.items():
        for transparency in range(3):
            for colors in (0, 14, 254):
                options = bytes([colors, 2, transparency, width - 1, frames - 1, colors % 3, colors & 2, 255])
                pixels = (color(x, y, f) for f in range(frames) for y in range(height) for x in range(width))
                yield f"{name}-{transparency}-{colors}", options + b"".join(map(bytes, pixels))


def main(folder):
    folder = pathlib.Path(folder)
    for extension, name in (("avif", "photo.avif"), ("heic", "photo.heic")):
        for kind, file in heif_seeds(extension, name):
            write(folder / extension / f"{kind}.{extension}", file.bytes())
    for kind, data in tiff_seeds():
        write(folder / "tiff" / f"{kind}.tiff", data)
    for kind, data in icon_seeds():
        write(folder / "ico" / f"{kind}.ico", data)
    for kind, data in palette_seeds():
        write(folder / "palette" / f"{kind}.palette", data)
    for name, data in (*animations.gif_seeds(), *animations.apng_seeds(), *animations.webp_seeds(FIXTURES)):
        write(folder / "animations" / name, data)
    for name, data in metadata.seeds(FIXTURES):
        write(folder / "metadata" / name, data)


def write(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


if __name__ == "__main__":
    main(sys.argv[1])
