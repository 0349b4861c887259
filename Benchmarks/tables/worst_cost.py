#!/usr/bin/env python3
"""Makes the table of the worst CPU seconds per uploaded kilobyte of each format.

    Benchmarks/tables/worst_cost.py WORKER

For each format that holds any number of pixels in a few bytes it writes files that ask for as much as the worker gives for
their size, from 25 megapixels up, lets WORKER's `process` make JPEG and PNG of them, and takes the CPU time of that, less
that of a picture of one pixel. Fails when a file costs more than ALLOWED_SECONDS and SECONDS_PER_KB for each kilobyte.
Needs nothing but Python.
"""

import pathlib
import resource
import struct
import subprocess
import sys
import tempfile
import zlib

# What 25 megapixels, which any file may hold, cost at most; and each kilobyte beyond.
ALLOWED_SECONDS = 1.0
SECONDS_PER_KB = 1.0


def bmp(side):
    info = struct.pack("<IiiHHIIiiII", 40, side, side, 1, 8, 1, 0, 0, 0, 2, 0)
    return b"BM" + bytes(8) + struct.pack("<I", 62) + info + bytes([9, 9, 9, 0, 1, 2, 3, 0]) + bytes([0, 1])


def gif(side):
    head = b"GIF89a" + struct.pack("<HH", side, side) + bytes([0x80, 0, 0, 1, 2, 3, 4, 5, 6])
    control = bytes([0x21, 0xF9, 4, 1, 0, 0, 0, 0])
    frame = bytes([0x2C]) + struct.pack("<HHHH", 0, 0, 1, 1) + bytes([0, 2, 2, 0x44, 1, 0, 0x3B])
    return head + control + frame


def hdr(side):
    rows = bytearray()
    runs = bytes([255, 7]) * (side // 127) + (bytes([128 + side % 127, 7]) if side % 127 else b"")
    for _ in range(side):
        rows += bytes([2, 2, side >> 8, side & 255]) + runs * 4
    return f"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y {side} +X {side}\n".encode() + rows


def old_hdr(side):
    # Runs of old: a pixel of 1, 1, 1 and how often; four in a row count up to 2^32.
    width = 5_000_000
    count = side * side // width
    row = bytes([9, 9, 9, 9])
    left, shift, units = width - 1, 0, []
    while left:
        units.append(bytes([1, 1, 1, left & 255]))
        left >>= 8
    return f"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y {count} +X {width}\n".encode() + (row + b"".join(units)) * count


def tga(side):
    head = struct.pack("<BBBHHBHHHHBB", 0, 0, 11, 0, 0, 0, 0, 0, side, side, 8, 0x20)
    return head + bytes([255, 7]) * ((side * side + 127) // 128)


def png(side):
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    compressor = zlib.compressobj(9)
    row = bytes(1 + (side + 7) // 8)
    data = b"".join(compressor.compress(row) for _ in range(side)) + compressor.flush()
    size = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def webp(side):
    side = min(side, 16383)
    bits = (side - 1) | (side - 1) << 14
    body = bytes([0x2F]) + struct.pack("<I", bits) + bytes([0x88, 0x88, 0x08])
    return b"RIFF" + struct.pack("<I", 12 + len(body)) + b"WEBPVP8L" + struct.pack("<I", len(body)) + body


def tiff(side):
    # Group 4: each white row is one bit.
    data = b"\xff" * ((side + 7) // 8) + bytes.fromhex("001001")
    entries = [(256, side), (257, side), (258, 1), (259, 4), (262, 0), (273, 8), (277, 1), (278, side), (279, len(data))]
    directory = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in entries)
    return b"II*\0" + struct.pack("<I", 8 + len(data)) + data + struct.pack("<H", len(entries)) + directory + bytes(4)


FORMATS = {
    "bmp": bmp, "gif": gif, "hdr": hdr, "hdr, old runs": old_hdr, "tga": tga, "png": png, "webp": webp, "tiff": tiff,
}
SIDES = (5000, 8000, 10000, 14000, 20000)


def cpu_seconds(worker, path, folder, kind):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [worker, "process", str(path), "--format", kind, "--out", str(folder)], stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.returncode


def measure(worker, folder, name, make, idle):
    """Yields seconds, kilobytes, side, kind of the result and whether there is one."""
    for side in SIDES:
        data = make(side)
        path = folder / f"picture.{name.split(',')[0]}"
        path.write_bytes(data)
        for kind in ("jpeg", "png"):
            seconds, code = cpu_seconds(worker, path, folder / "results", kind)
            yield max(0, seconds - idle), len(data) / 1000, side, kind, code == 0


def main(worker):
    failures = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "pixel.bmp").write_bytes(bmp(1))
        idle = min(cpu_seconds(worker, folder / "pixel.bmp", folder / "results", "jpeg")[0] for _ in range(5))
        print("| format | bytes | pixels | to | CPU seconds | allowed |\n|---|---|---|---|---|---|")
        for format_name, make in FORMATS.items():
            runs = list(measure(worker, folder, format_name, make, idle))
            worst = max(runs, key=lambda run: run[0] / (ALLOWED_SECONDS + SECONDS_PER_KB * run[1]))
            seconds, kilobytes, side, kind, is_made = worst
            allowed = ALLOWED_SECONDS + SECONDS_PER_KB * kilobytes
            failures += seconds > allowed
            outcome = kind if is_made else f"{kind}, refused"
            print(f"| {format_name} | {kilobytes * 1000:.0f} | {side}² | {outcome} | {seconds:.2f} | {allowed:.2f} |")
    return 1 if failures else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
