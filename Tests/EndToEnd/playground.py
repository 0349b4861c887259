"""A worker with a playground, and its page in a headless Chromium."""

import http.client
import json
import re
import struct
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from browser import Browser, chromium
from conftest import Worker, fixture_bytes, wait_until

needs_chromium = pytest.mark.skipif(chromium() is None, reason="chromium is not installed")


class Playground:
    """A worker with a playground."""

    def __init__(self, *options: str, port: int = 0):
        self.worker = Worker("--playground-port", str(port), "--log-format", "json", *options)
        pattern = r'"playground".*http://127\.0\.0\.1:(\d+)/'
        assert wait_until(lambda: any(re.search(pattern, line) for line in self.worker.log))
        self.port = next(int(found[1]) for line in self.worker.log if (found := re.search(pattern, line)))
        self.authority = f"127.0.0.1:{self.port}"

    def send(self, method: str, path: str, body: bytes | None = None, **headers):
        """Sends a request as the page does, and returns its response and the contents."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        given = {"Host": self.authority, **({} if method == "GET" else {"Origin": f"http://{self.authority}"})}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, {name: value for name, value in given.items() if value is not None})
        response = connection.getresponse()
        contents = response.read()
        connection.close()
        return response, contents

    def json(self, method: str, path: str, body=None, **headers):
        contents = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        return json.loads(self.send(method, path, contents, **headers)[1])

    def upload(self, image: bytes) -> str:
        return self.json("POST", "/api/images", image)["id"]

    def frames(self, image: str, request: dict, view: str = "test", side: int = 504) -> list[tuple[str, bytes]]:
        _, contents = self.send(
            "POST", f"/api/results?image={image}&view={view}&side={side}", json.dumps(request).encode())
        frames = []
        while contents:
            length = struct.unpack(">I", contents[1:5])[0]
            frames.append((chr(contents[0]), contents[5:5 + length]))
            contents = contents[5 + length:]
        return frames

    @property
    def state(self) -> dict:
        return self.json("GET", "/api/state")


def joined(frames, kind: str) -> bytes:
    return b"".join(contents for name, contents in frames if name == kind)


def photo(width: int, height: int) -> bytes:
    buffer = BytesIO()
    Image.open(BytesIO(fixture_bytes("photo-420.jpg"))).resize((width, height), Image.Resampling.BICUBIC).save(
        buffer, "JPEG", quality=88)
    return buffer.getvalue()


@pytest.fixture(scope="module")
def playground():
    playground = Playground("--cache-memory-mib", "0")
    yield playground
    assert playground.worker.stop() == 0, "".join(playground.worker.log)


@pytest.fixture(scope="module")
def browser():
    browser = Browser()
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def image_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("images") / "photo of a bird.jpg"
    path.write_bytes(photo(2400, 1600))
    return path


def opened(browser, playground, image_file: Path):
    page = browser.open(f"http://{playground.authority}/")
    page.wait("globalThis.playground !== undefined")
    page.drop("#stage", image_file)
    page.wait(DONE)
    return page


DONE = """Boolean(playground.variant.result && !playground.variant.isBusy && playground.variant.runner.phase === 'idle'
  && playground.reference)"""
