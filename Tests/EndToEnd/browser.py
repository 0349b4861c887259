"""A headless Chromium, driven over the DevTools protocol."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path

from websockets.sync.client import connect

BUTTON = {"button": "left", "buttons": 1, "clickCount": 1}


def chromium() -> str | None:
    """The path of Chromium; `None` if it is not installed."""
    names = [os.environ.get("CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome"]
    return next((path for name in names if name and (path := shutil.which(name))), None)


class Browser:
    """A browser process with a profile of its own."""

    def __init__(self):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.process = subprocess.Popen(
            [chromium(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
             "--no-first-run", "--force-color-profile=srgb", "--remote-debugging-port=0",
             f"--user-data-dir={self.profile.name}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        ready = Path(self.profile.name) / "DevToolsActivePort"
        deadline = time.monotonic() + 120
        while not (ready.exists() and ready.read_text().count("\n")):
            assert self.process.poll() is None, "chromium ended before it was ready"
            assert time.monotonic() < deadline, "chromium was not ready in time"
            time.sleep(0.05)
        self.port = int(ready.read_text().splitlines()[0])

    def open(self, address: str, width: int = 1440, height: int = 900) -> "Page":
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/json/new?about:blank", method="PUT")
        with urllib.request.urlopen(request, timeout=60) as response:
            target = json.load(response)
        page = Page(target["webSocketDebuggerUrl"], f"http://127.0.0.1:{self.port}/json/close/{target['id']}")
        page.resize(width, height)
        page.call("Page.navigate", url=address)
        return page

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.profile.cleanup()


class Page:
    """One page. Problems that it reports, such as exceptions and violations of its policy, are in `problems`."""

    def __init__(self, address: str, end: str):
        self.end = end
        self.connection = ExitStack()
        self.socket = self.connection.enter_context(connect(address, max_size=None, open_timeout=60))
        self.count = 0
        self.problems: list[str] = []
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters) -> dict:
        self.count += 1
        self.socket.send(json.dumps({"id": self.count, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.recv(timeout=120))
            self.note(message)
            if message.get("id") == self.count:
                assert "error" not in message, f"{method}: {message['error']}"
                return message["result"]

    def note(self, message: dict):
        parameters = message.get("params", {})
        if message.get("method") == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.problems.append(details.get("exception", {}).get("description", details["text"]))
        elif message.get("method") == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.problems.append(f"{parameters['entry']['text']} {parameters['entry'].get('url', '')}")

    def run(self, script: str):
        """Returns the value of an expression, which is awaited if it is a promise."""
        result = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True, userGesture=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]["exception"].get("description")
        return result["result"].get("value")

    def wait(self, condition: str, seconds: float = 120):
        """Waits until an expression is true, and returns its value."""
        deadline = time.monotonic() + seconds
        while True:
            value = self.run(condition)
            if value:
                return value
            assert time.monotonic() < deadline, f"not within {seconds} s: {condition}; {self.problems}"
            time.sleep(0.02)

    def resize(self, width: int, height: int, scale: float = 1):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False)

    def color_scheme(self, name: str):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def screenshot(self, path: str | Path, whole: bool = False):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        Path(path).write_bytes(base64.b64decode(data))

    # Elements are found by their selector, and brought into view.

    def box(self, selector: str) -> dict:
        return self.run(
            f"(() => {{ const element = document.querySelector({json.dumps(selector)}); "
            "element.scrollIntoView({block: 'center', behavior: 'instant'}); "
            "const {x, y, width, height} = element.getBoundingClientRect(); return {x, y, width, height}; })()")

    def point(self, selector: str, across: float = 0.5, down: float = 0.5) -> tuple[float, float]:
        box = self.box(selector)
        return box["x"] + box["width"] * across, box["y"] + box["height"] * down

    def mouse(self, kind: str, x: float, y: float, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, selector: str):
        x, y = self.point(selector)
        self.mouse("mousePressed", x, y, **BUTTON)
        self.mouse("mouseReleased", x, y, **BUTTON)

    def drag(self, start: tuple[float, float], end: tuple[float, float], steps: int = 8):
        self.mouse("mousePressed", *start, **BUTTON)
        for step in range(1, steps + 1):
            self.mouse("mouseMoved", *(a + (b - a) * step / steps for a, b in zip(start, end)), **BUTTON)
        self.mouse("mouseReleased", *end, **BUTTON)

    def key(self, name: str, code: int, modifiers: int = 0):
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=code, modifiers=modifiers)

    def enter(self):
        """Presses Enter, which a button in focus takes for a click."""
        for kind, text in [("keyDown", {"text": "\r"}), ("keyUp", {})]:
            self.call("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", windowsVirtualKeyCode=13, **text)

    def drop(self, selector: str, *files: Path):
        """Drops files on an element, as from a file manager."""
        x, y = self.point(selector)
        data = {"items": [], "files": [str(file) for file in files], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            self.call("Input.dispatchDragEvent", type=kind, x=x, y=y, data=data)

    def close(self):
        self.connection.close()
        urllib.request.urlopen(self.end, timeout=60).close()
