"""A client that breaks the rules of HTTP/2, or of good manners."""

import asyncio
import socket
import struct

from raw import DATA, HEADERS, PATH, RESET, Raw, varint

CONTINUATION = 9
TCP_REPAIR = 19


def text(data: bytes) -> bytes:
    """A string of a header block."""
    return (bytes([len(data)]) if len(data) < 127 else b"\x7f" + varint(len(data) - 127)) + data


def field(name: bytes, value: bytes) -> bytes:
    """A field of a header block that is in no table."""
    return b"\0" + text(name) + text(value)


class Rude(Raw):
    """A connection that sends what it likes."""

    def begin(self, method: str, fields: bytes = b"", ends: bool = False) -> int:
        """Begins a call whose header block ends with `fields`, in as many frames as it needs."""
        stream, self.next_stream = self.next_stream, self.next_stream + 2
        block = b"\x83\x86" + field(b":path", (PATH + method).encode()) + field(b":authority", b"x")
        block += field(b"te", b"trailers") + field(b"content-type", b"application/grpc") + fields
        self.windows[stream] = self.initial_window
        for at in range(0, len(block), 16_384):
            flags = (1 if ends and at == 0 else 0) | (4 if at + 16_384 >= len(block) else 0)
            self.frame(HEADERS if at == 0 else CONTINUATION, flags, stream, block[at:at + 16_384])
        return stream

    def data(self, stream: int, payload: bytes, ends: bool = False) -> None:
        """Sends bytes at once, whatever flow control says."""
        for at in range(0, max(1, len(payload)), 16_384):
            self.frame(DATA, 1 if ends and at + 16_384 >= len(payload) else 0, stream, payload[at:at + 16_384])

    def reset(self, stream: int) -> None:
        self.frame(RESET, 0, stream, struct.pack(">I", 8))

    async def flush(self) -> bool:
        """Waits until the kernel has taken what was written; returns whether the connection is still open."""
        try:
            await self.writer.drain()
        except ConnectionError:
            self.closed = True
        await asyncio.sleep(0)
        return not self.closed

    def close(self) -> None:
        """Closes in good order."""
        self.forget()
        self.writer.close()

    def vanish(self) -> None:
        """Closes with a reset, as a client that crashed."""
        self.forget()
        raw = self.writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    def fall_silent(self) -> None:
        """Leaves without a word, as a machine that lost its power. Only root may."""
        self.forget()
        self.writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
        self.writer.transport.abort()

    def forget(self) -> None:
        self.closed = True
        if self.task:
            self.task.cancel()


async def connections(worker, count: int, **options) -> list[Rude]:
    """Opens connections and waits until the worker's settings have arrived."""
    opened = []
    for _ in range(count):
        try:
            opened.append(await Rude(worker, **options).open())
        except ConnectionError:
            pass
    await asyncio.sleep(0.05)
    return opened
