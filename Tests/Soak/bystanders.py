"""Clients that do nothing wrong, whose results must be those of the calm run."""

import contextlib
import hashlib
import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import grpc
from conftest import UNLIMITED, Client, fixture_bytes

# Small images, so that a hundred of them tell more than one large image.
CASES = [
    ("photo-420.jpg", "favicon", {}),
    ("photo-progressive.jpg", "compressedThumbnail", {}),
    ("orientation-6.jpg", "preview", {}),
    ("photo-cmyk.jpg", "", {"max_width": 90, "compression_quality": 0.6}),
    ("photo.png", "", {"max_width": 120, "preferred_format": 4}),
    ("gray-16.png", "", {"max_width": 100, "preferred_format": 2}),
    ("photo.webp", "favicon", {}),
    ("photo.gif", "", {"max_height": 60, "preferred_format": 3}),
    ("photo.bmp", "", {"max_width": 150, "preferred_format": 2, "scale_factor": 2}),
    ("rle.tga", "favicon", {}),
]
# What a client is asked to try again: no room, and a worker that shuts down.
TEMPORARY = (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE)
MAX_TRIES = 60
PAUSE = 0.03


def connect(address: str, credentials: grpc.ChannelCredentials | None) -> grpc.Channel:
    """Opens a connection of its own: without the option, channels to the same address share one."""
    options = [*UNLIMITED, ("grpc.use_local_subchannel_pool", 1)]
    if credentials:
        return grpc.secure_channel(address, credentials, options=options)
    return grpc.insecure_channel(address, options=options)


class Lost(Exception):
    """An image without a result."""


class Bystander(threading.Thread):
    """Sends the same images over and over, in one of three ways, and compares their results."""

    def __init__(self, worker, credentials, way: str, expected: dict[int, str], cost: str):
        super().__init__(daemon=True)
        self.cost = cost
        self.way, self.expected = way, expected
        self.worker, self.credentials = worker, credentials
        self.images = self.wrong = self.again = 0
        self.lost: list[str] = []
        self.stopping = threading.Event()
        self.client = Client(worker, connect(worker.address, credentials))
        # What later connections need of reflection.
        self.client.message("ProcessImageRequest")

    def run(self) -> None:
        number = 0
        while not self.stopping.wait(PAUSE):
            numbers = [(number + offset) % len(CASES) for offset in range(4 if self.way == "batch" else 1)]
            number += len(numbers)
            try:
                for case, result in self.attempt(numbers):
                    self.images += 1
                    self.wrong += self.expected.setdefault(case, result) != result
            except Lost as error:
                self.lost.append(str(error))

    def stop(self) -> None:
        self.stopping.set()
        self.join(timeout=60)
        if self.is_alive():
            self.lost.append(f"{self.way}: a call has not ended after 60 s")
        self.client.channel.close()

    def attempt(self, numbers: list[int]) -> list[tuple[int, str]]:
        """Returns a digest of each result, after as many tries as clients make."""
        error = ""
        for _ in range(MAX_TRIES):
            try:
                return {"whole": self.whole, "batch": self.batch, "newcomer": self.newcomer}[self.way](numbers)
            except grpc.RpcError as failure:
                error = f"{self.way}: {failure.code().name}: {failure.details()}"
                is_cost = bool(self.cost) and self.cost in failure.details()
                if failure.code() not in TEMPORARY and not is_cost:
                    break
            self.again += 1
            time.sleep(0.1)
        raise Lost(error)

    def whole(self, numbers: list[int], client: Client | None = None) -> list[tuple[int, str]]:
        """One image in one message."""
        name, preset, configuration = CASES[numbers[0]]
        responses = list((client or self.client).process(fixture_bytes(name), preset=preset, **configuration))
        if responses[-1].WhichOneof("part") != "report":
            raise Lost(f"{self.way}: {name} ended without a report")
        return [(numbers[0], digest(responses))]

    def newcomer(self, numbers: list[int]) -> list[tuple[int, str]]:
        """One image on a new connection."""
        with contextlib.closing(connect(self.worker.address, self.credentials)) as channel:
            client = Client(self.worker, channel)
            client.pool = self.client.pool
            return self.whole(numbers, client)

    def batch(self, numbers: list[int]) -> list[tuple[int, str]]:
        """Several images on one stream, in chunks that alternate."""
        uploads = []
        for number in numbers:
            name, preset, configuration = CASES[number]
            start = self.client.start(str(number), preset)
            for field, value in configuration.items():
                setattr(start.start.configuration, field, value)
            image = fixture_bytes(name)
            chunks = [self.client.chunk(str(number), image[at:at + 4096]) for at in range(0, len(image), 4096)]
            uploads.append([start, *chunks, self.client.end(str(number))])
        longest = max(map(len, uploads))
        requests = [upload[turn] for turn in range(longest) for upload in uploads if turn < len(upload)]
        parts: dict[str, list] = {}
        for response in self.client.batch(iter(requests)):
            if response.WhichOneof("part") == "error":
                raise ItemError(response.error)
            parts.setdefault(response.item_id, []).append(response)
        if any(str(number) not in parts for number in numbers):
            raise Lost("batch: an item was not answered")
        return [(number, digest(parts[str(number)])) for number in numbers]


class ItemError(grpc.RpcError):
    """The error of one item, as if it were that of a call."""

    def __init__(self, status):
        self.status = status

    def code(self) -> grpc.StatusCode:
        return next(code for code in grpc.StatusCode if code.value[0] == self.status.code)

    def details(self) -> str:
        return self.status.message


def digest(responses: list) -> str:
    return hashlib.sha256(b"".join(response.chunk for response in responses)).hexdigest()


class Bystanders:
    """One bystander of each way, and a probe of the health check; `new` for one that connects anew for each image."""

    def __init__(
            self, worker, credentials, authority: Path | None, expected: dict[int, str], new: bool, cost: str = ""):
        ways = ["whole", "batch", *(["newcomer"] if new else [])]
        self.members = [Bystander(worker, credentials, way, expected, cost) for way in ways]
        self.health = Health(worker.address, authority)
        for member in self.members:
            member.start()

    def stop(self) -> None:
        for member in self.members:
            member.stop()
        self.health.stop()

    @property
    def images(self) -> int:
        return sum(member.images for member in self.members)

    @property
    def wrong(self) -> int:
        return sum(member.wrong for member in self.members)

    @property
    def again(self) -> int:
        return sum(member.again for member in self.members)

    @property
    def lost(self) -> list[str]:
        return [error for member in self.members for error in member.lost]


class Health:
    """Measures the health check in a process of its own, so that nothing else here delays it."""

    def __init__(self, address: str, authority: Path | None):
        program = Path(__file__).with_name("health.py")
        self.process = subprocess.Popen(
            [sys.executable, program, address, *([str(authority)] if authority else [])], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()
        self.times: list[float] = []

    def stop(self) -> None:
        self.times = sorted(json.loads(self.process.communicate(timeout=60)[0]))

    def percentile(self, percent: int) -> float:
        return self.times[min(len(self.times) - 1, len(self.times) * percent // 100)]

