"""Structured seeds of animations: GIF, APNG and WebP with partial frames, all disposals and blendings, and bad ones.

Used by seeds.py.
"""

import struct
import zlib


# MARK: GIF


def gif_codes(pixels):
    """Codes of four bits for indices up to 7, with a clear code before every four."""
    codes = [code for at in range(0, len(pixels), 4) for code in [8, *pixels[at : at + 4]]] + [9, 0]
    data = bytes(codes[k] | codes[k + 1] << 4 for k in range(0, len(codes) - 1, 2))
    return b"".join(bytes([len(data[k : k + 255])]) + data[k : k + 255] for k in range(0, len(data), 255)) + b"\0"


def gif_frame(left, top, width, height, disposal=1, transparent=None, delay=4, interlaced=False, local=False, data=None):
    flags = disposal << 2 | (transparent is not None)
    table = bytes(range(24)) if local else b""
    pixels = [k % 8 for k in range(width * height)] if data is None else data
    return (
        struct.pack("<BBBBHBB", 0x21, 0xF9, 4, flags, delay, transparent or 0, 0)
        + struct.pack("<BHHHHB", 0x2C, left, top, width, height, (0x82 if local else 0) | (0x40 if interlaced else 0))
        + table + b"\x03" + gif_codes(pixels)
    )


def gif(width, height, *frames, loop=0):
    netscape = b"\x21\xff\x0bNETSCAPE2.0\x03\x01" + struct.pack("<H", loop) + b"\0"
    table = bytes(k * 9 % 256 for k in range(24))
    return b"GIF89a" + struct.pack("<HHBBB", width, height, 0x82, 0, 0) + table + netscape + b"".join(frames) + b";"


def gif_seeds():
    base = gif_frame(0, 0, 9, 7)
    for disposal in range(4):
        for interlaced in (False, True):
            frame = gif_frame(3, 2, 5, 4, disposal, 1, 7, interlaced, disposal % 2 == 0)
            yield f"disposal-{disposal}-{interlaced:d}.gif", gif(9, 7, base, frame, base, frame, loop=disposal)
    yield "outside.gif", gif(9, 7, base, gif_frame(7, 5, 9, 9), gif_frame(20, 20, 3, 3), gif_frame(0, 0, 30, 1, interlaced=True))
    yield "empty.gif", gif(4, 4, gif_frame(0, 0, 4, 4), gif_frame(0, 0, 0, 0), gif_frame(1, 1, 2, 2))
    yield "many.gif", gif(1, 1, *[gif_frame(0, 0, 1, 1, k % 4, delay=0) for k in range(300)])
    yield "huge.gif", gif(1, 1, gif_frame(0, 0, 1, 1), gif_frame(0, 0, 65535, 65535, data=[1] * 40))
    yield "short.gif", gif(9, 7, base, gif_frame(0, 0, 9, 7, data=[2] * 12), base)


# MARK: APNG


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def apng(width, height, frames, plays=0, count=None, color_type=6, depth=8, interlaced=0, hidden=False):
    """`frames`: left, top, width, height, disposal, blending, delay and divisor of each."""
    samples = {0: 1, 2: 3, 4: 2, 6: 4}[color_type] * depth // 8

    def data(columns, rows):
        return zlib.compress(b"".join(bytes([k % 3]) + bytes((k * 7 + x) % 256 for x in range(columns * samples)) for k in range(rows)))

    file = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color_type, 0, 0, interlaced))
    file += chunk(b"acTL", struct.pack(">II", len(frames) if count is None else count, plays))
    sequence = 0
    if hidden:
        file += chunk(b"IDAT", data(width, height))
    for index, (left, top, columns, rows, disposal, blending, delay, divisor) in enumerate(frames):
        control = struct.pack(">IIIIIHHBB", sequence, columns, rows, left, top, delay, divisor, disposal, blending)
        file += chunk(b"fcTL", control)
        sequence += 1
        if index == 0 and not hidden:
            file += chunk(b"IDAT", data(columns, rows))
        else:
            file += chunk(b"fdAT", struct.pack(">I", sequence) + data(columns, rows))
            sequence += 1
    return file + chunk(b"IEND", b"")


def apng_seeds():
    for disposal in range(3):
        for blending in range(2):
            frames = [(0, 0, 9, 7, disposal, blending, 1, 30), (3, 2, 5, 4, disposal, blending, 0, 0), (8, 6, 1, 1, 0, 1, 65535, 1)]
            for color_type, depth in ((6, 8), (2, 8), (0, 8), (6, 16)):
                yield f"frames-{disposal}{blending}-{color_type}-{depth}.png", apng(9, 7, frames, disposal, None, color_type, depth)
    frames = [(0, 0, 4, 4, 0, 0, 1, 10), (1, 1, 2, 2, 2, 1, 1, 10)]
    yield "hidden.png", apng(4, 4, frames, hidden=True)
    yield "more-than-said.png", apng(4, 4, frames * 3, count=2)
    yield "fewer-than-said.png", apng(4, 4, frames, count=0x7FFFFFFF)
    yield "outside.png", apng(4, 4, [frames[0], (3, 3, 2, 2, 0, 0, 1, 1)])
    yield "huge-frame.png", apng(4, 4, [frames[0], (0, 0, 0x7FFFFFFF, 1, 0, 0, 1, 1)][:1] + frames[:1])


# MARK: WebP


def riff(kind, body):
    return kind + struct.pack("<I", len(body)) + body + b"\0" * (len(body) & 1)


def le24(value):
    return struct.pack("<I", value)[:3]


def webp(width, height, frames, image, loop=0):
    """`frames`: left, top, width, height, duration and flags of each. `image`: the chunks of an image."""
    extension = riff(b"VP8X", struct.pack("<I", 0x12) + le24(width - 1) + le24(height - 1))
    body = b"WEBP" + extension + riff(b"ANIM", struct.pack("<IH", 0, loop))
    for left, top, columns, rows, duration, flags in frames:
        head = le24(left // 2) + le24(top // 2) + le24(columns - 1) + le24(rows - 1) + le24(duration) + bytes([flags])
        body += riff(b"ANMF", head + image)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def webp_seeds(fixtures):
    for name in ("lossless.webp", "photo.webp"):
        path = fixtures / name
        if not path.exists():
            continue
        file = path.read_bytes()
        at = file.find(b"VP8L") if b"VP8L" in file[:64] else file.find(b"VP8 ")
        image = file[at:]
        if image[:4] == b"VP8L":
            bits = struct.unpack_from("<I", image, 9)[0]
            width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        else:
            width, height = (value & 0x3FFF for value in struct.unpack_from("<HH", image, 14))
        if len(image) > 15000:
            continue
        frames = [(0, 0, width, height, 40, flags) for flags in (0, 1, 2, 3)]
        stem = name.partition(".")[0]
        yield f"{stem}-frames.webp", webp(width + 6, height + 4, frames + [(6, 4, width, height, 0xFFFFFF, 0)], image)
        yield f"{stem}-outside.webp", webp(width, height, [frames[0], (2, 0, width, height, 1, 0)], image)
        yield f"{stem}-wrong-size.webp", webp(width, height, [(0, 0, width - 1, height, 1, 0)], image)
