#!/usr/bin/env python3
"""Prints the maximum CPU seconds per uploaded kilobyte for each format.

    Benchmarks/tables/worst_cost.py WORKER [FORMAT...]

For each format that can store any number of pixels in a few bytes, it writes files with the maximum number of pixels
that the worker accepts for their size, from 10 megapixels up. WORKER's `process` converts them to JPEG and PNG; the
cost is its CPU time less that of an image of one pixel. The check fails if a file costs more than ALLOWED_SECONDS plus
SECONDS_PER_KB for each kilobyte. JPEG XL files are written by libjxl if it is installed; AVIF and HEIC files are grids
of one of the tests' images, whose data all tiles share. No file is written if that takes longer than MAKING_SECONDS or
more memory than MAKING_BYTES.
"""

import ctypes
import multiprocessing
import pathlib
import resource
import struct
import subprocess
import sys
import tempfile
import zlib

# Maximum cost of 10 megapixels, which any file may have, and of each additional kilobyte.
ALLOWED_SECONDS = {"jxl": 1.3}
ALLOWED_SECONDS_OTHERWISE = 0.1
SECONDS_PER_KB = 1.0

# Limits of writing one file, and the maximum time to process it.
MAKING_SECONDS = 60
MAKING_BYTES = 3 << 30
PROCESSING_SECONDS = 120


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
    # Old-style runs: a pixel of 1, 1, 1 and a count; four in a row count up to 2^32.
    width = 5_000_000
    count = side * side // width
    row = bytes([9, 9, 9, 9])
    left, units = width - 1, []
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
    # Group 4: each white row takes one bit.
    data = b"\xff" * ((side + 7) // 8) + bytes.fromhex("001001")
    entries = [(256, side), (257, side), (258, 1), (259, 4), (262, 0), (273, 8), (277, 1), (278, side), (279, len(data))]
    directory = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in entries)
    return b"II*\0" + struct.pack("<I", 8 + len(data)) + data + struct.pack("<H", len(entries)) + directory + bytes(4)


def segment(marker, body):
    return bytes([0xFF, marker]) + struct.pack(">H", len(body) + 2) + body


def jpeg(side):
    # Each gray block takes two bits: no difference, and its end.
    tables = segment(0xC4, bytes([0x00, 1]) + bytes(15) + b"\0" + bytes([0x10, 1]) + bytes(15) + b"\0")
    frame = segment(0xC0, struct.pack(">BHHB", 8, side, side, 1) + bytes([1, 0x11, 0]))
    data = bytes(((side + 7) // 8) ** 2 // 4 + 1)
    scan = segment(0xDA, bytes([1, 1, 0, 0, 63, 0]))
    return b"\xff\xd8" + segment(0xDB, b"\0" + bytes([1] * 64)) + frame + tables + scan + data + b"\xff\xd9"


def progressive_jpeg(side):
    # One bit per block, and scans whose codes end 32767 blocks at once.
    blocks = ((side + 7) // 8) ** 2
    tables = segment(0xC4, bytes([0x00, 1]) + bytes(15) + b"\0" + bytes([0x10, 1]) + bytes(15) + b"\xe0")
    frame = segment(0xC2, struct.pack(">BHHB", 8, side, side, 1) + bytes([1, 0x11, 0]))
    file = b"\xff\xd8" + segment(0xDB, b"\0" + bytes([1] * 64)) + frame + tables
    file += segment(0xDA, bytes([1, 1, 0, 0, 0, 0])) + bytes(blocks // 8 + 1)
    runs = int("0" + "1" * 14, 2)
    count = blocks // 32767 + 1
    bits = "".join(f"{runs:015b}" for _ in range(count)) + "1" * (-15 * count % 8)
    data = int(bits, 2).to_bytes(len(bits) // 8, "big").replace(b"\xff", b"\xff\0")
    return file + (segment(0xDA, bytes([1, 1, 0, 1, 63, 0])) + data) * 99 + b"\xff\xd9"


def arithmetic_jpeg(side):
    frame = segment(0xC9, struct.pack(">BHHB", 8, side, side, 1) + bytes([1, 0x11, 0]))
    scan = segment(0xDA, bytes([1, 1, 0, 0, 63, 0])) + bytes(8)
    return b"\xff\xd8" + segment(0xDB, b"\0" + bytes([1] * 64)) + frame + scan + b"\xff\xd9"


def jxl(side):
    # Lossless, in groups of 1024² pixels.
    library = ctypes.CDLL("libjxl.so.0.7")
    for name in ("JxlEncoderCreate", "JxlEncoderFrameSettingsCreate"):
        getattr(library, name).restype = ctypes.c_void_p
    encoder = ctypes.c_void_p(library.JxlEncoderCreate(None))
    info = ctypes.create_string_buffer(512)
    library.JxlEncoderInitBasicInfo(info)
    struct.pack_into("<II", info, 4, side, side)
    struct.pack_into("<I", info, 36, 1)  # uses_original_profile, which lossless images must set
    library.JxlEncoderSetBasicInfo(encoder, info)
    colors = ctypes.create_string_buffer(512)
    library.JxlColorEncodingSetToSRGB(colors, 0)
    library.JxlEncoderSetColorEncoding(encoder, colors)
    settings = ctypes.c_void_p(library.JxlEncoderFrameSettingsCreate(encoder, None))
    library.JxlEncoderSetFrameLossless(settings, 1)
    effort, responsive, group_size = 0, 16, 26  # JxlEncoderFrameSettingId
    for option, value in ((effort, 3), (responsive, 0), (group_size, 3)):
        library.JxlEncoderFrameSettingsSetOption(settings, option, ctypes.c_int64(value))
    pixels = bytes(3 * side * side)
    layout = struct.pack("<IIIxxxxQ", 3, 2, 0, 0)
    if library.JxlEncoderAddImageFrame(settings, layout, pixels, ctypes.c_size_t(len(pixels))) != 0:
        raise OSError("libjxl rejects the frame")
    library.JxlEncoderCloseInput(encoder)
    out = ctypes.create_string_buffer(1 << 20)
    start = ctypes.addressof(out)
    place, left = ctypes.c_void_p(start), ctypes.c_size_t(len(out))
    library.JxlEncoderProcessOutput(encoder, ctypes.byref(place), ctypes.byref(left))
    library.JxlEncoderDestroy(encoder)
    return out.raw[: len(out) - left.value]


FIXTURES = pathlib.Path(__file__).resolve().parents[2] / "Tests/TestSupport/Fixtures"


def box(kind, body):
    return struct.pack(">I", len(body) + 8) + kind + body


def boxes(data, start=0):
    found, at = {}, start
    while at + 8 <= len(data):
        size = struct.unpack_from(">I", data, at)[0]
        found.setdefault(data[at + 4 : at + 8], data[at + 8 : at + size])
        at += size
    return found


def coded(name):
    """Returns the first item of a test image: its data, its type, its codec's configuration and its size."""
    file = (FIXTURES / name).read_bytes()
    meta = boxes(boxes(file)[b"meta"], 4)
    properties = boxes(boxes(meta[b"iprp"])[b"ipco"])
    places = meta[b"iloc"]
    base = places[5] >> 4
    offset, count = struct.unpack_from(">II", places, 8 + 2 + 2 + base + 2)
    offset += int.from_bytes(places[12 : 12 + base], "big")
    kind = b"av1C" if b"av1C" in properties else b"hvcC"
    return file[offset : offset + count], kind, properties[kind], struct.unpack_from(">II", properties[b"ispe"], 4)


def grid(name, side):
    """Returns a grid whose tiles are all the same item."""
    data, kind, configuration, (width, height) = coded(name)
    columns, rows = min(256, -(-side // width)), min(256, -(-side // height))
    across, down = min(side, columns * width), min(side, rows * height)
    canvas = struct.pack(">BBBBHH", 0, 0, rows - 1, columns - 1, across, down)
    size = lambda w, h: box(b"ispe", struct.pack(">III", 0, w, h))  # noqa: E731
    container = box(b"ipco", size(across, down) + size(width, height) + box(kind, configuration))
    properties = container + box(b"ipma", struct.pack(">IIHBBHBBB", 0, 2, 1, 1, 0x81, 2, 2, 0x82, 0x83))
    types = (b"grid", b"av01" if kind == b"av1C" else b"hvc1")
    entries = b"".join(box(b"infe", struct.pack(">IHH", 2 << 24, i + 1, 0) + t + b"\0") for i, t in enumerate(types))
    references = box(b"dimg", struct.pack(">HH", 1, rows * columns) + struct.pack(">H", 2) * (rows * columns))
    brand = b"avif" if kind == b"av1C" else b"heic"

    def meta(start):
        places = struct.pack(">IHH", 0, 0x4400, 2)
        places += struct.pack(">HHHII", 1, 0, 1, start, len(canvas))
        places += struct.pack(">HHHII", 2, 0, 1, start + len(canvas), len(data))
        return box(
            b"meta",
            bytes(4) + box(b"hdlr", bytes(8) + b"pict" + bytes(13)) + box(b"pitm", struct.pack(">IH", 0, 1))
            + box(b"iinf", struct.pack(">IH", 0, 2) + entries) + box(b"iref", bytes(4) + references)
            + box(b"iprp", properties) + box(b"iloc", places))

    head = box(b"ftyp", brand + bytes(4) + brand + b"mif1")
    return head + meta(len(head) + len(meta(0)) + 8) + box(b"mdat", canvas + data)


def avif(side):
    return grid("photo.avif", side)


def heic(side):
    return grid("photo.heic", side)


FORMATS = {
    "bmp": bmp, "gif": gif, "hdr": hdr, "hdr, old runs": old_hdr, "tga": tga, "png": png, "webp": webp, "tiff": tiff,
    "jpeg": jpeg, "jpeg, progressive": progressive_jpeg, "jpeg, arithmetic": arithmetic_jpeg, "avif": avif,
    "heic": heic, "jxl": jxl,
}
SIDES = (3162, 5000, 8000, 14000)


def allowed_seconds(name, kilobytes):
    return ALLOWED_SECONDS.get(name, ALLOWED_SECONDS_OTHERWISE) + SECONDS_PER_KB * kilobytes


def write(path, make, side):
    resource.setrlimit(resource.RLIMIT_CPU, (MAKING_SECONDS, MAKING_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MAKING_BYTES, MAKING_BYTES))
    path.write_bytes(make(side))


def is_written(path, make, side):
    """Writes a file in another process, which ends if it exceeds the limits or lacks a library."""
    path.unlink(missing_ok=True)
    writer = multiprocessing.get_context("fork").Process(target=write, args=(path, make, side))
    writer.start()
    writer.join()
    return writer.exitcode == 0


def cpu_seconds(worker, path, folder, kind):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [worker, "process", str(path), "--format", kind, "--quality", "1", "--out", str(folder)], stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, check=False, timeout=PROCESSING_SECONDS)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.returncode


def measure(worker, folder, name, make, idle):
    """Yields seconds, kilobytes, side, format of the result and whether there is a result."""
    for side in SIDES:
        path = folder / f"image.{name.split(',')[0]}"
        if not is_written(path, make, side):
            print(f"note: no {name} of {side}² could be written", file=sys.stderr)
            return
        for kind in ("jpeg", "png"):
            seconds, code = cpu_seconds(worker, path, folder / "results", kind)
            yield max(0, seconds - idle), path.stat().st_size / 1000, side, kind, code == 0


def main(worker):
    failures = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "pixel.bmp").write_bytes(bmp(1))
        idle = min(cpu_seconds(worker, folder / "pixel.bmp", folder / "results", "jpeg")[0] for _ in range(5))
        print("| format | bytes | pixels | to | CPU seconds | allowed |\n|---|---|---|---|---|---|")
        for format_name, make in FORMATS.items():
            runs = list(measure(worker, folder, format_name, make, idle))
            if not runs:
                continue
            worst = max(runs, key=lambda run: run[0] / allowed_seconds(format_name, run[1]))
            seconds, kilobytes, side, kind, has_result = worst
            allowed = allowed_seconds(format_name, kilobytes)
            failures += seconds > allowed
            outcome = kind if has_result else f"{kind}, refused"
            print(f"| {format_name} | {kilobytes * 1000:.0f} | {side}² | {outcome} | {seconds:.2f} | {allowed:.2f} |")
    return 1 if failures else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if len(sys.argv) > 2:
        FORMATS = {name: FORMATS[name] for name in sys.argv[2:]}
    sys.exit(main(sys.argv[1]))
