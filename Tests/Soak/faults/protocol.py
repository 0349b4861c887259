"""Messages, frames and images that break their rules."""

import asyncio
import gzip
import random
import socket
import struct
import zlib
from pathlib import Path

import grpc
from bystanders import connect
from conftest import FIXTURES, Client, fixture_bytes
from fault import Fault, check, is_before
from frames import CONTINUATION, Rude, connections, field
from raw import DATA, HEADERS, PING, SETTINGS, WINDOW_UPDATE, message, process_request

METHODS = ("ProcessImage", "BatchProcess", "InspectImage", "ListPresets")
PHOTO = fixture_bytes("photo-420.jpg")
CRASHERS = Path(__file__).resolve().parents[2] / "Fuzz" / "crashers"


class WrongMessages(Fault):
    name = "wrong protobuf"

    def trouble(self, worker, until):
        chance = random.Random(1)

        def payload() -> bytes:
            whole = bytearray(process_request(PHOTO[:chance.randrange(2000)]) + chance.randbytes(chance.randrange(60)))
            for _ in range(chance.randrange(4)):
                whole[chance.randrange(len(whole))] = chance.randrange(256)
            kind = chance.randrange(5)
            if kind == 0:
                return message(chance.randbytes(chance.randrange(300)))
            if kind == 1:  # another length than that of the message
                return struct.pack(">BI", 0, chance.choice([1, len(whole) + 1, 2**32 - 1])) + whole
            if kind == 2:  # a flag that says compressed, or anything
                return struct.pack(">BI", chance.randrange(1, 256), len(whole)) + whole
            if kind == 3:  # much in little
                bomb = gzip.compress(bytes(4_000_000), 9)
                return struct.pack(">BI", 1, len(bomb)) + bomb
            return message(bytes(whole))

        async def run() -> int:
            tries = 0
            while is_before(until):
                [rude] = await connections(worker, 1)
                for _ in range(50):
                    compressed = field(b"grpc-encoding", b"gzip") if chance.random() < 0.3 else b""
                    stream = rude.begin(chance.choice(METHODS), compressed)
                    rude.data(stream, payload(), ends=chance.random() < 0.9)
                    tries += 1
                    if not await rude.flush():
                        break
                await asyncio.sleep(0.05)
                rude.close()
            return tries

        return asyncio.run(run())


class WrongBytes(Fault):
    name = "bytes that are no HTTP/2"

    def trouble(self, worker, until):
        chance, tries = random.Random(2), 0
        preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\4" + bytes(5)
        while is_before(until):
            for start in (b"", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00", preface, preface[:9]):
                with socket.create_connection(("127.0.0.1", worker.port), timeout=10) as connection:
                    try:
                        connection.sendall(start + chance.randbytes(chance.randrange(3000)))
                        connection.settimeout(0.02)
                        connection.recv(1000)
                    except OSError:
                        pass
                tries += 1
        return tries


class GiantMetadata(Fault):
    name = "giant metadata"

    def trouble(self, worker, until):
        many = b"".join(field(b"x-%d" % number, b"v" * 20) for number in range(2000))
        # One field in the table of the worker's decoder, and then one byte for each of its copies.
        copies = b"\x40" + field(b"x-copied", b"v" * 3000)[1:] + b"\xbe" * 20_000

        async def endless(rude: Rude) -> None:
            rude.frame(HEADERS, 0, 1, b"\x83\x86")
            for _ in range(200):
                rude.frame(CONTINUATION, 0, 1, field(b"x-more", b"v" * 10_000))
                if not await rude.flush():
                    return

        async def run() -> int:
            tries = 0
            while is_before(until):
                for fields in (field(b"x-large", b"v" * 20_000), field(b"x-large", b"v" * 1_000_000), many, copies):
                    [rude] = await connections(worker, 1)
                    for _ in range(4):
                        rude.begin("ProcessImage", fields, ends=True)
                        await rude.flush()
                        tries += 1
                    await asyncio.sleep(0.02)
                    rude.close()
                [rude] = await connections(worker, 1)
                await endless(rude)
                rude.close()
                tries += 1
            return tries

        return asyncio.run(run())


class ManyStreams(Fault):
    name = "10,000 streams at once"

    COUNT = 10_000

    def trouble(self, worker, until):
        async def run() -> int:
            tries = 0
            while is_before(until):
                [rude] = await connections(worker, 1)
                for number in range(self.COUNT):
                    rude.begin("ProcessImage", ends=number % 2 == 0)
                    tries += 1
                    if number % 100 == 0 and not await rude.flush():
                        break
                await asyncio.sleep(0.2)
                rude.close()
            return tries

        return asyncio.run(run())


class RapidReset(Fault):
    name = "rapid reset"

    def trouble(self, worker, until):
        request = message(process_request(PHOTO))

        async def run() -> int:
            tries = 0
            while is_before(until):
                [rude] = await connections(worker, 1)
                while is_before(until):
                    stream = rude.begin("ProcessImage")
                    rude.data(stream, request if tries % 4 == 0 else b"", ends=tries % 4 == 0)
                    rude.reset(stream)
                    tries += 1
                    if tries % 20 == 0 and not await rude.flush():
                        break
                rude.close()
            return tries

        return asyncio.run(run())


class ControlFrames(Fault):
    name = "floods of control frames"

    def trouble(self, worker, until):
        def empty_settings(rude: Rude) -> None:
            rude.frame(SETTINGS, 0, 0, b"")

        def ping(rude: Rude) -> None:
            rude.frame(PING, 0, 0, bytes(8))

        def empty_data(rude: Rude) -> None:
            if rude.next_stream == 1:
                rude.begin("BatchProcess")
            rude.frame(DATA, 0, 1, b"")

        def window(rude: Rude) -> None:
            rude.frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1))

        def priority(rude: Rude) -> None:
            rude.frame(2, 0, 3, struct.pack(">IB", 0, 1))

        def unknown(rude: Rude) -> None:
            rude.frame(77, 0, 0, bytes(50))

        async def run() -> int:
            tries = 0
            while is_before(until):
                for flood in (empty_settings, ping, empty_data, window, priority, unknown):
                    [rude] = await connections(worker, 1)
                    for number in range(5000):
                        flood(rude)
                        tries += 1
                        if number % 50 == 0 and not await rude.flush():
                            break
                    rude.close()
            return tries

        return asyncio.run(run())


class HostileImages(Fault):
    name = "damaged and hostile images"

    def trouble(self, worker, until):
        chance = random.Random(3)
        files = [path.read_bytes() for path in sorted(CRASHERS.rglob("*")) if path.is_file()]
        names = [path.name for path in sorted(FIXTURES.iterdir()) if path.suffix not in (".json", ".icc")]
        client, tries = Client(worker, connect(worker.address, None)), 0
        allowed = (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.FAILED_PRECONDITION,
                   grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.RESOURCE_EXHAUSTED)
        while is_before(until):
            if tries % 3 == 0:
                image = chance.choice(files)
            else:
                image = bytearray(fixture_bytes(chance.choice(names)))
                for _ in range(chance.randrange(1, 20)):
                    image[chance.randrange(len(image))] = chance.randrange(256)
                image = bytes(image[:chance.randrange(1, 2 * len(image))])
            try:
                list(client.process(image, preset="favicon"))
            except grpc.RpcError as error:
                check(error.code() in allowed, f"{error.code()}: {error.details()}, CRC {zlib.crc32(image)}")
            tries += 1
        client.channel.close()
        return tries
