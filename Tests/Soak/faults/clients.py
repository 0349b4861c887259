"""Clients that leave, or that send or read too slowly."""

import asyncio
import os
import random

from conftest import fixture_bytes
from fault import Fault, has_setting, is_before
from frames import Rude, connections
from raw import bmp, message, process_request

PHOTO = fixture_bytes("photo-420.jpg")
REQUEST = message(process_request(PHOTO))


class Vanishing(Fault):
    name = "clients that vanish"

    def trouble(self, worker, until):
        async def vanish(stage: int) -> None:
            rude = await Rude(worker).open(speaks=stage > 0)
            if stage > 1:
                await asyncio.sleep(0.01)
                stream = rude.begin("ProcessImage")
                parts = {2: b"", 3: REQUEST[:3], 4: REQUEST[:len(REQUEST) // 2], 5: REQUEST, 6: REQUEST}
                rude.data(stream, parts[stage], ends=stage > 4)
                await rude.flush()
            if stage == 6:
                await asyncio.sleep(random.random() / 50)
            rude.vanish()

        async def run() -> int:
            tries = 0
            while is_before(until):
                await asyncio.gather(*(vanish(stage) for stage in range(7)), return_exceptions=True)
                tries += 7
                await asyncio.sleep(0.02)
            return tries

        return asyncio.run(run())


class HalfOpen(Fault):
    name = "half-open connections"

    # At once; each takes memory and a descriptor until the worker misses it.
    COUNT = 100

    def missing(self):
        if os.geteuid() != 0:
            return "only root can abandon a connection without a packet"
        return "" if has_setting("--keepalive-seconds") else "the worker has no --keepalive-seconds"

    def trouble(self, worker, until):
        async def abandon(stage: int) -> None:
            rude = await Rude(worker).open(speaks=stage > 0)
            await asyncio.sleep(0.05)
            if stage > 1:
                rude.data(rude.begin("ProcessImage"), REQUEST[:1000 if stage == 2 else 5])
                await rude.flush()
            rude.fall_silent()

        async def run() -> int:
            tries = 0
            while is_before(until):
                await asyncio.gather(*(abandon(number % 4) for number in range(self.COUNT)))
                tries += self.COUNT
                await asyncio.sleep(6)
            return tries

        return asyncio.run(run())


class SilentConnections(Fault):
    name = "connections that say nothing"

    COUNT = 150

    def trouble(self, worker, until):
        async def run() -> int:
            tries = 0
            while is_before(until):
                rudes = [await Rude(worker).open(speaks=number % 2 == 0) for number in range(self.COUNT)]
                tries += len(rudes)
                await asyncio.sleep(5)
                for rude in rudes:
                    rude.close()
            return tries

        return asyncio.run(run())


class SlowUploads(Fault):
    name = "uploads of 500 bytes a second"

    def trouble(self, worker, until):
        slow = message(process_request(b"\0" * 500_000))

        async def drip(rude: Rude) -> int:
            tries = 0
            while is_before(until) and not rude.closed:
                stream, sent = rude.begin("ProcessImage"), 0
                tries += 1
                while is_before(until) and not rude.closed and stream not in rude.ends:
                    rude.data(stream, slow[sent:sent + 100])
                    sent += 100
                    await rude.flush()
                    await asyncio.sleep(0.2)
            return tries

        async def run() -> int:
            rudes = await connections(worker, 4)
            tries = await asyncio.gather(*(drip(rude) for rude in rudes for _ in range(25)))
            for rude in rudes:
                rude.close()
            return sum(tries)

        return asyncio.run(run())


class UnfinishedMessages(Fault):
    name = "messages of 20 MB without their end"

    def trouble(self, worker, until):
        half = message(b"\0" * 20_000_000)[:-1]

        async def run() -> int:
            rudes = await connections(worker, 3)
            tasks = [asyncio.create_task(rude.send(rude.begin("ProcessImage"), half)) for rude in rudes for _ in range(30)]
            while is_before(until):
                await asyncio.sleep(0.1)
            for task in tasks:
                task.cancel()
            for rude in rudes:
                rude.vanish()
            return len(tasks)

        return asyncio.run(run())


class SlowReaders(Fault):
    name = "results that nobody reads"

    def trouble(self, worker, until):
        request = message(process_request(bmp(300)))

        async def ignore(rude: Rude) -> int:
            tries = 0
            while is_before(until) and not rude.closed:
                stream = rude.begin("ProcessImage")
                await rude.send(stream, request, ends=True)
                tries += 1
                while is_before(until) and not rude.closed and stream not in rude.ends:
                    await asyncio.sleep(0.1)
            return tries

        async def run() -> int:
            rudes = await connections(worker, 5, reads_results=False)
            tries = await asyncio.gather(*(ignore(rude) for rude in rudes for _ in range(10)))
            for rude in rudes:
                rude.close()
            return sum(tries)

        return asyncio.run(run())
