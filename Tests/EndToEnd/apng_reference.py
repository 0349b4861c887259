"""The frames of an animated PNG, composed as its specification describes, one pixel after another.

Pillow decodes the image of each frame. Source: PNG specification (third edition), sections 11.3.6.2 and 4.9.
"""

import io
import struct
import zlib

from PIL import Image

SIGNATURE = b"\x89PNG\r\n\x1a\n"
KEEP, CLEAR, RESTORE = 0, 1, 2


def chunks(file: bytes):
    place = len(SIGNATURE)
    while place + 8 <= len(file):
        count, kind = struct.unpack(">I4s", file[place:place + 8])
        yield kind, file[place + 8:place + 8 + count]
        place += 12 + count


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def stored(file: bytes) -> list:
    """The fcTL fields and the image data of each frame."""
    frames, control = [], None
    for kind, body in chunks(file):
        if kind == b"fcTL":
            control = struct.unpack(">IIIIIHHBB", body)
            frames.append((control, bytearray()))
        elif kind == b"IDAT" and control:
            frames[-1][1].extend(body)
        elif kind == b"fdAT":
            frames[-1][1].extend(body[4:])
    return frames


def over(front: tuple, back: tuple) -> tuple:
    """A pixel blended with the one below it."""
    alpha, below = front[3] * 255, (255 - front[3]) * back[3]
    if alpha + below == 0:
        return (0, 0, 0, 0)
    colors = (round((a * alpha + b * below) / (alpha + below)) for a, b in zip(front[:3], back[:3]))
    return (*colors, round((alpha + below) / 255))


def frames_of(file: bytes) -> list:
    """The frames as RGBA images, each with its duration in ms."""
    head = [(kind, body) for kind, body in chunks(file) if kind in (b"IHDR", b"PLTE", b"tRNS")]
    width, height = struct.unpack(">II", head[0][1][:8])
    canvas, shown = Image.new("RGBA", (width, height)), []
    for index, ((_, w, h, x, y, delay, divisor, disposal, blending), data) in enumerate(stored(file)):
        alone = SIGNATURE + chunk(b"IHDR", struct.pack(">II", w, h) + head[0][1][8:])
        alone += b"".join(chunk(kind, body) for kind, body in head[1:]) + chunk(b"IDAT", bytes(data)) + chunk(b"IEND", b"")
        frame, before = Image.open(io.BytesIO(alone)).convert("RGBA"), canvas.copy()
        for row in range(h):
            for column in range(w):
                front = frame.getpixel((column, row))
                place = (x + column, y + row)
                canvas.putpixel(place, over(front, canvas.getpixel(place)) if blending else front)
        shown.append((canvas.copy(), 1000 * delay / (divisor or 100)))
        if disposal == CLEAR or (disposal == RESTORE and index == 0):
            canvas.paste((0, 0, 0, 0), (x, y, x + w, y + h))
        elif disposal == RESTORE:
            canvas = before
    return shown
