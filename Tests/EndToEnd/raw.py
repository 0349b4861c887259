"""A client that writes HTTP/2 frames itself, and so can do what client libraries do not."""

import asyncio
import struct

PATH = "/imageworker.v1.ImageWorkerService/"
DATA, HEADERS, RESET, SETTINGS, PING, WINDOW_UPDATE = 0, 1, 3, 4, 6, 8


def bmp(side: int) -> bytes:
    """An uncompressed image, so that its size is known."""
    row = bytes(x * 7 & 255 for x in range(side * 3)) + b"\0" * (-side * 3 % 4)
    size = len(row) * side
    return (b"BM" + struct.pack("<IIIIiiHHIIiiII", 54 + size, 0, 54, 40, side, side, 1, 24, 0, size, 2835, 2835, 0, 0)
            + row * side)


class Raw:
    """A connection that respects flow control and nothing else."""

    def __init__(self, worker, reads_results: bool = True):
        self.worker, self.next_stream, self.window, self.closed = worker, 1, 65_535, False
        self.initial_window, self.windows, self.changed = 65_535, {}, asyncio.Event()
        self.reads_results, self.ends, self.task = reads_results, set(), None

    async def open(self, speaks: bool = True):
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.worker.port)
        if speaks:
            settings = b"" if self.reads_results else struct.pack(">HI", 4, 0)
            self.writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            self.frame(SETTINGS, 0, 0, settings)
            self.task = asyncio.create_task(self.read())
        return self

    def frame(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        self.writer.write(struct.pack(">IBI", len(payload) << 8 | kind, flags, stream) + bytes(payload))

    def call(self, method: str, *headers: tuple[bytes, bytes]) -> int:
        stream, self.next_stream = self.next_stream, self.next_stream + 2
        block = b"\x83\x86"  # POST, http
        path = method if method.startswith("/") else PATH + method
        for name, value in ((b":path", path.encode()), (b":authority", b"x"), (b"te", b"trailers"),
                            (b"content-type", b"application/grpc"), *headers):
            block += b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value
        self.windows[stream] = self.initial_window
        self.frame(HEADERS, 4, stream, block)
        return stream

    async def read(self) -> None:
        try:
            while True:
                head = await self.reader.readexactly(9)
                length, flags = int.from_bytes(head[:3], "big"), head[4]
                stream, payload = int.from_bytes(head[5:], "big"), await self.reader.readexactly(length)
                if head[3] == SETTINGS and not flags & 1:
                    for key, value in struct.iter_unpack(">HI", payload):
                        if key == 4:
                            for open_stream in self.windows:
                                self.windows[open_stream] += value - self.initial_window
                            self.initial_window = value
                    self.frame(SETTINGS, 1, 0, b"")
                elif head[3] == PING and not flags & 1:
                    self.frame(PING, 1, 0, payload)
                elif head[3] == WINDOW_UPDATE:
                    increment = int.from_bytes(payload, "big")
                    if stream:
                        self.windows[stream] = self.windows.get(stream, 0) + increment
                    else:
                        self.window += increment
                elif head[3] == RESET or head[3] == HEADERS and flags & 1:
                    self.ends.add(stream)
                self.changed.set()
        except (asyncio.IncompleteReadError, ConnectionError):
            self.closed = True
            self.changed.set()

    async def send(self, stream: int, payload: bytes, ends: bool = False) -> None:
        """Sends as much as flow control allows, and waits for the rest."""
        payload = memoryview(payload)
        while payload and not self.closed and stream not in self.ends:
            count = min(len(payload), 16_384, self.window, self.windows[stream])
            if count <= 0:
                self.changed.clear()
                await self.changed.wait()
                continue
            self.window -= count
            self.windows[stream] -= count
            part, payload = payload[:count], payload[count:]
            self.frame(DATA, 1 if ends and not payload else 0, stream, part)
            try:
                await self.writer.drain()
            except ConnectionError:
                self.closed = True


def message(body: bytes) -> bytes:
    """A message of gRPC."""
    return b"\0" + struct.pack(">I", len(body)) + body


def process_request(image: bytes) -> bytes:
    """A ProcessImageRequest with nothing but an image."""
    return b"\x0a" + varint(len(image)) + image


def varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])
