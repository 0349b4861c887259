"""The playground: its HTTP requests, and the page in a headless Chromium."""

import http.client
import json
import os
import re
import shutil
import struct
import subprocess
import threading
import time
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from browser import Browser, chromium
from conftest import Client, Worker, fixture_bytes, wait_until
from python_client import environment, python, run, tools, wheel  # noqa: F401

ROOT = Path(__file__).parent.parent.parent
needs_chromium = pytest.mark.skipif(chromium() is None, reason="chromium is not installed")


class Playground:
    """A worker with a playground."""

    def __init__(self, *options: str):
        self.worker = Worker("--playground-port", "0", "--log-format", "json", *options)
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


# MARK: Requests


def test_it_is_off_unless_asked_for(worker):
    assert wait_until(lambda: any("serving" in line for line in worker.log))
    assert not any("playground" in line for line in worker.log)


def test_the_command_serves_the_page_and_the_service(tmp_path):
    process = subprocess.Popen(
        [os.environ["IMAGE_WORKER"], "playground", "--port", "0", "--playground-port", "0", "--log-format", "json"],
        stderr=subprocess.PIPE, text=True)
    lines = []
    for line in process.stderr:
        lines.append(line)
        if sum(word in "".join(lines) for word in ('"serving"', '"playground"')) == 2:
            break
    port = int(re.search(r'"playground".*http://127\.0\.0\.1:(\d+)/', "".join(lines))[1])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", "/")
    assert b"playground" in connection.getresponse().read()
    process.terminate()
    assert process.wait(timeout=30) == 0


@pytest.mark.parametrize("headers", [
    {"Host": "attacker.example"}, {"Host": "attacker.example:80"}, {"Host": "127.0.0.1.attacker.example"},
    {"Host": "192.168.1.7"}, {"Origin": "http://attacker.example"}, {"Origin": "null"}, {"Sec_Fetch_Site": "cross-site"},
])
def test_requests_of_other_sites_are_refused(playground, headers):
    """DNS rebinding shows in Host, other sites in Origin, which browsers send with each request that can change something."""
    response, contents = playground.send("GET", "/api/contract", **headers)
    assert response.status == 403, contents
    response, _ = playground.send("POST", "/api/images", fixture_bytes("photo-420.jpg"), **headers)
    assert response.status == 403
    assert playground.state["uploadCount"] == 0


def test_requests_without_an_origin_change_nothing(playground):
    response, _ = playground.send("POST", "/api/images", fixture_bytes("photo-420.jpg"), Origin=None)
    assert response.status == 403
    assert playground.state["uploadCount"] == 0


@pytest.mark.parametrize("path", ["/", "/main.js", "/api/contract", "/nothing"])
def test_every_response_restricts_the_page(playground, path):
    response, _ = playground.send("GET", path)
    policy = response.getheader("Content-Security-Policy")
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy
    assert response.getheader("X-Content-Type-Options") == "nosniff"
    assert response.getheader("Referrer-Policy") == "no-referrer"
    assert response.getheader("Cross-Origin-Resource-Policy") == "same-origin"
    assert response.getheader("Access-Control-Allow-Origin") is None


def test_the_page_refers_to_nothing_elsewhere(playground):
    names = re.findall(r'(?:src|href)="(/[^"]*)"', playground.send("GET", "/")[1].decode())
    files = {name: playground.send("GET", name) for name in names}
    modules = set(re.findall(r'from "(/\w+\.js)"', "".join(contents.decode() for _, contents in files.values())))
    for name in modules:
        files[name] = playground.send("GET", name)
    assert len(files) >= 10
    for name, (response, contents) in files.items():
        assert response.status == 200, name
        addresses = set(re.findall(r"https?://[^\s\"'`]*", contents.decode()))
        assert addresses <= {"http://www.w3.org/2000/svg"}, name


@pytest.mark.parametrize("path", ["/../etc/passwd", "/%2e%2e/etc/passwd", "//etc/passwd", "/Resources/index.html"])
def test_no_files_are_served(playground, path):
    assert playground.send("GET", path)[0].status == 404


def test_a_result_is_that_of_a_call(playground):
    image = photo(900, 600)
    client = Client(playground.worker)
    request = {"preset": "thumbnail", "configuration": {"max_width": 333, "preferred_format": "OUTPUT_FORMAT_WEBP"}}
    frames = playground.frames(playground.upload(image), {**request, "preview": True})
    assert [kind for kind, _ in frames if kind not in "cC"] == ["h", "r", "H", "R", "S"]
    expected = b"".join(
        part.chunk for part in client.process(image, preset="thumbnail", max_width=333, preferred_format=4))
    assert joined(frames, "C") == expected
    assert Image.open(BytesIO(joined(frames, "c"))).width == 333
    report = json.loads(joined(frames, "R"))
    assert report["output"]["width"] == 333 and report["output_bytes"] == len(expected)
    spans = {span["name"]: span for span in json.loads(joined(frames, "S"))}
    assert {"playground", "queue", "decode", "resize", "encode"} <= set(spans)
    call = spans["playground"]
    assert all(call["start"] <= span["start"] <= span["end"] <= call["end"] for span in spans.values())


def test_errors_are_those_of_a_call(playground):
    image = playground.upload(photo(300, 200))
    frames = playground.frames(image, {"configuration": {"max_width": 70000}})
    error = json.loads(joined(frames, "E"))
    assert error["reason"] == "INVALID_FIELD" and error["field"] == "configuration.max_width" and "65500" in error["message"]
    assert playground.send("POST", f"/api/results?image={image}&view=x", b'{"no_field": 1}')[0].status == 400
    assert playground.send("POST", f"/api/results?image={image}&view=x", b'{"image": "AAAA"}')[0].status == 400
    assert playground.send("POST", "/api/results?image=none&view=x", b"{}")[0].status == 410
    response, contents = playground.send("POST", "/api/images", b"no image")
    assert response.status == 422 and json.loads(contents)["reason"] == "UNKNOWN_FORMAT"


def test_the_newest_request_of_a_view_cancels_the_one_before(playground):
    image = playground.upload(photo(5000, 4000))
    slow = {"configuration": {"filters": [{"name": "blur", "intensity": 1, "parameters": {"radius": 50}}] * 8}}
    ended = {}

    def first():
        began = time.monotonic()
        frames = playground.frames(image, slow, view="slider")
        ended["error"], ended["seconds"] = json.loads(joined(frames, "E"))["code"], time.monotonic() - began

    thread = threading.Thread(target=first)
    thread.start()
    time.sleep(0.4)
    frames = playground.frames(image, {"preset": "favicon"}, view="slider")
    assert joined(frames, "R")
    thread.join(timeout=60)
    assert ended["error"] == "cancelled"


def test_a_page_that_leaves_stops_the_work(playground):
    image = playground.upload(photo(5000, 4000))
    slow = {"configuration": {"filters": [{"name": "blur", "intensity": 1, "parameters": {"radius": 50}}] * 32}}
    connection = http.client.HTTPConnection("127.0.0.1", playground.port, timeout=60)
    connection.request(
        "POST", f"/api/results?image={image}&view=leaver", json.dumps(slow).encode(),
        {"Host": playground.authority, "Origin": f"http://{playground.authority}"})
    assert wait_until(lambda: playground.state["memoryUsed"] > 0)
    connection.sock.shutdown(2)
    connection.close()
    assert wait_until(lambda: playground.state["memoryUsed"] == 0, seconds=8)


def test_images_are_charged_limited_and_forgotten():
    playground = Playground("--memory-limit-mib", "64", "--max-message-mib", "10")
    try:
        before = playground.state
        assert before["uploadBytes"] == before["memoryBuffered"] == 0
        image = photo(3000, 2000)
        id = playground.upload(image)
        state = playground.state
        assert state["uploadBytes"] == state["memoryBuffered"] == len(image)
        # Refused by its announced size, before any of it is received.
        response, contents = playground.send("POST", "/api/images", b"", Content_Length=str(11 << 20))
        assert response.status == 413 and b"max_message_bytes" in contents
        ids = [id]
        while True:
            response, contents = playground.send("POST", "/api/images", image)
            if response.status != 200:
                break
            ids.append(json.loads(contents)["id"])
            assert len(ids) < 64
        assert response.status == 507
        assert len(ids) * len(image) <= (64 << 20) // 4
        assert playground.json("POST", "/api/images/keep", ids + ["unknown"]) == ids
        for id in ids:
            assert playground.send("DELETE", f"/api/images/{id}")[0].status == 204
        assert playground.json("POST", "/api/images/keep", ids) == []
        state = playground.state
        assert state["uploadBytes"] == state["memoryBuffered"] == state["uploadCount"] == 0
    finally:
        assert playground.worker.stop() == 0


def failed_start(*options: str) -> str:
    done = subprocess.run(
        [os.environ["IMAGE_WORKER"], "serve", "--port", "0", "--playground-port", "0", *options], capture_output=True,
        text=True, timeout=30)
    assert done.returncode != 0
    return done.stderr


def test_it_is_not_served_to_others_by_mistake(tmp_path):
    assert "--insecure" in failed_start("--playground-host", "0.0.0.0")
    identities = tmp_path / "identities.yaml"
    identities.write_text("identities: {}\n")
    assert "cannot be combined" in failed_start("--identities", str(identities))


# MARK: The page


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


@needs_chromium
def test_every_field_has_a_control(browser, playground):
    page = browser.open(f"http://{playground.authority}/")
    page.wait("globalThis.playground !== undefined")
    contract = playground.json("GET", "/api/contract")
    names = {field["name"] for field in contract["messages"]["ProcessingConfiguration"]}
    shown = set(page.run("[...document.querySelectorAll('.field')].map((field) => field.dataset.path)"))
    nested = {path for path in shown if "." in path}
    assert names - {path.split(".")[0] for path in nested} <= shown
    assert {"jpeg.progressive", "png.compression_level", "webp.method"} <= nested
    # Each can be reached and has a name.
    unnamed = page.run("""[...document.querySelectorAll('#fields :is(input, select, textarea, button)')].filter((element) =>
      !element.closest('[hidden]') && !element.ariaLabel && !element.textContent.trim() && !element.labels?.length)
      .map((element) => element.outerHTML)""")
    assert unnamed == []
    assert page.problems == []
    page.close()


@needs_chromium
def test_a_person_tunes_a_result(browser, playground, image_file):
    page = opened(browser, playground, image_file)
    assert page.run("playground.image.name") == image_file.name
    assert page.run("playground.variant.result.report.output.width") == 2400

    # A slider: the preview comes first, then the result.
    before = page.run("playground.latencies.length")
    slider = ".field[data-path=max_width] input[type=range]"
    x, y = page.point(slider, 0.97)
    page.drag((x, y), page.point(slider, 0.5), steps=4)
    page.wait(f"playground.latencies.length > {before} && playground.overrides.max_width < 1000")
    page.wait(DONE)
    width = page.run("playground.overrides.max_width")
    assert page.run("playground.variant.result.report.output.width") == width
    assert page.run("playground.variant.result.canvas.width") == width

    # Arrow keys move it as well.
    page.run(f"document.querySelector('{slider}').focus()")
    page.key("ArrowLeft", 37)
    page.wait(f"playground.overrides.max_width < {width}")
    page.wait(DONE)

    # A crop, drawn on the image.
    page.click("#tools [data-path=crop]")
    page.wait("Boolean(playground.source) && document.querySelector('.overlay canvas, .overlay') !== null")
    page.drag(page.point(".overlay", 0.25, 0.2), page.point(".overlay", 0.75, 0.8))
    page.wait(DONE.replace("&& playground.reference", ""))
    crop = page.run("playground.overrides.crop")
    assert crop["unit"] == "RECT_UNIT_FRACTIONS"
    assert all(abs(crop[name] - value) < 0.02 for name, value in {"x": 0.25, "y": 0.2, "width": 0.5, "height": 0.6}.items())
    sides = page.run("(({width, height}) => [width, height])(playground.variant.result.report.output)")
    assert abs(sides[0] / sides[1] - 1.5 * 0.5 / 0.6) < 0.03
    page.key("Escape", 27)
    page.click("#tools [data-path=crop]") if page.run("playground.editing !== undefined") else None

    # A filter, with its intensity.
    page.run("document.querySelector('.field[data-path=filters] .plain').click()")
    page.run("[...document.querySelectorAll('.picker button')].find((button) => button.textContent === 'Sepia').click()")
    page.wait("playground.overrides.filters?.[0].name === 'sepia'")
    page.drag(page.point(".chain .dial input[type=range]", 0.97), page.point(".chain .dial input[type=range]", 0.4))
    page.wait("playground.overrides.filters[0].intensity < 0.6")
    page.wait(DONE)

    # Before and after: the divider moves by mouse and by keys.
    assert page.run("playground.stage.hasDivider")
    page.drag(page.point(".divider", 0.5, 0.5), page.point("#stage", 0.2, 0.5))
    assert abs(page.run("playground.stage.division") - 0.2) < 0.02
    page.key("ArrowRight", 39)
    assert abs(page.run("playground.stage.division") - 0.22) < 0.02

    # Zoom and difference.
    page.click("#zooms [data-zoom='8']")
    assert page.run("playground.stage.scale") == 8
    page.click("#modes [data-value=difference]")
    page.wait("Boolean(playground.difference)")
    assert 0 <= page.run("playground.difference.mean") < 20
    assert page.problems == []
    page.close()


@needs_chromium
def test_formats_are_compared_side_by_side(browser, playground, image_file):
    page = opened(browser, playground, image_file)
    page.run("playground.set(['max_width'], 320)")
    page.wait(DONE)
    page.click("#formats")
    page.wait("playground.variants.length >= 3 && playground.variants.every((variant) => (variant.result || variant.error) && !variant.isBusy)", 60)
    formats = page.run("playground.variants.filter(({result}) => result).map(({result}) => [result.report.output.format, result.blob.size])")
    assert {"jpeg", "webp"} <= {name for name, _ in formats}
    cards = page.run("[...document.querySelectorAll('.card-weight')].map((card) => card.textContent)")
    assert len(cards) >= 3 and all("%" in card for card in cards if "no result" not in card)
    assert page.run("document.querySelectorAll('.pane').length") >= 3
    assert page.problems == []
    page.close()


@needs_chromium
def test_a_closed_page_leaves_nothing_behind(browser, playground, image_file):
    page = opened(browser, playground, image_file)
    images = [page.run("playground.image.id")]
    assert playground.json("POST", "/api/images/keep", images) == images
    page.call("Page.navigate", url="about:blank")
    assert wait_until(lambda: playground.json("POST", "/api/images/keep", images) == [])
    page.close()


STAND_IN = """#!/bin/sh
# A stand-in for grpcurl where that is not installed: the same call by buf curl.
while [ $# -gt 2 ]; do shift; done
exec buf curl --http2-prior-knowledge --protocol grpc -d @- "http://$1/$2"
"""


@needs_chromium
def test_what_is_copied_gives_the_same_bytes(browser, playground, python, image_file, tmp_path):  # noqa: F811
    page = opened(browser, playground, image_file)
    page.run("""playground.change({preset: 'upload', overrides: {
      max_width: 400, max_height: 300, resize_mode: 'RESIZE_MODE_FILL', focus_point: {x: 0.2, y: 0.75}, pad: true,
      crop: {unit: 'RECT_UNIT_FRACTIONS', x: 0, y: 0.1, width: 1, height: 0.8}, background: {red: 12, green: 200, blue: 0},
      rotation: 90, flip_horizontal: true, compression_quality: 0.55, metadata: 'METADATA_POLICY_KEEP_COPYRIGHT',
      filters: [{name: 'sharpen', intensity: 0.75, parameters: {radius: 1.5}}, {name: 'sepia', intensity: 0.4, parameters: {}}],
      jpeg: {progressive: true, chroma_subsampling: 'CHROMA_SUBSAMPLING_444'}, allow_upscale: false}})""")
    page.wait(DONE)
    expected = bytes(page.run(
        "playground.variant.result.blob.arrayBuffer().then((buffer) => [...new Uint8Array(buffer)])"))
    assert Image.open(BytesIO(expected)).size == (400, 300)
    page.call("Browser.grantPermissions", origin=f"http://{playground.authority}",
              permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])

    def copied(form: str) -> str:
        page.click(f"#languages [data-value={form}]")
        page.click("#copy")
        page.wait("document.getElementById('toast').textContent === 'Copied.'")
        return page.run("navigator.clipboard.readText()")

    shutil.copy(image_file, tmp_path)
    if not shutil.which("grpcurl"):
        (tmp_path / "grpcurl").write_text(STAND_IN)
        (tmp_path / "grpcurl").chmod(0o755)
    path = f"{tmp_path}:{Path(os.environ['IMAGE_WORKER']).parent}:{os.environ['PATH']}"
    for form in ["grpcurl", "Command"]:
        if form == "grpcurl" and not shutil.which("jq"):
            continue
        run("bash", "-euo", "pipefail", "-c", copied(form), cwd=tmp_path, env=environment(PATH=path))
    assert not shutil.which("jq") or (tmp_path / "result.jpg").read_bytes() == expected
    assert (tmp_path / "results" / image_file.name).read_bytes() == expected
    (tmp_path / "result.jpg").unlink(missing_ok=True)

    (tmp_path / "code.py").write_text(copied("Python"))
    run(python, "code.py", cwd=tmp_path, env=environment())
    assert (tmp_path / "result.jpg").read_bytes() == expected

    (tmp_path / "presets.yaml").write_text(copied("Preset"))
    run(os.environ["IMAGE_WORKER"], "process", image_file.name, "--presets", "presets.yaml", "--preset", "tuned", "--out",
        "tuned", cwd=tmp_path, env=environment())
    assert (tmp_path / "tuned" / image_file.name).read_bytes() == expected
    assert page.problems == []
    page.close()


@needs_chromium
@pytest.mark.parametrize("width", [1440, 820, 390])
def test_it_fits_narrow_screens_and_both_schemes(browser, playground, image_file, width):
    page = opened(browser, playground, image_file)
    for scheme in ["light", "dark"]:
        page.color_scheme(scheme)
        page.resize(width, 900)
        time.sleep(0.2)
        assert page.run("document.documentElement.scrollWidth") <= width
        # Text is readable: 4.5 to 1, as WCAG asks for.
        poor = page.run(CONTRAST)
        assert poor == [], scheme
    page.close()


# The texts of the page whose contrast with the nearest opaque background is too low.
CONTRAST = """(() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const parsed = (color) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([red, green, blue]) => [red, green, blue].map((value) => value / 255)
    .map((value) => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4)
    .reduce((sum, value, index) => sum + value * [0.2126, 0.7152, 0.0722][index], 0);
  const behind = (element) => {
    for (; element; element = element.parentElement) {
      const color = parsed(getComputedStyle(element).backgroundColor);
      if (color[3] > 250) return color;
    }
    return parsed(getComputedStyle(document.documentElement).backgroundColor);
  };
  return [...document.querySelectorAll('label, .label, .note, p, h1, h2, button, code, .bar-name, .bar-value, .card-text span, .caption span')]
    .filter((element) => element.checkVisibility() && element.textContent.trim() && !element.disabled
      && !element.closest('.is-idle, .stage, pre'))
    .map((element) => {
      const [first, second] = [light(parsed(getComputedStyle(element).color)), light(behind(element))];
      const ratio = (Math.max(first, second) + 0.05) / (Math.min(first, second) + 0.05);
      return [element.textContent.trim().slice(0, 40), Number(ratio.toFixed(2))];
    }).filter(([, ratio]) => ratio < 4.5);
})()"""
