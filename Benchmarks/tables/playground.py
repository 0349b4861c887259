"""Measures the playground in a headless Chromium: the time from a slider's movement to its preview, and the memory of the
worker while ten pages are open.

Use: playground.py WORKER IMAGE_OF_12_MP IMAGE_OF_24_MP
"""

import os
import re
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "Tests/EndToEnd"))
os.environ["IMAGE_WORKER"], photo, large = (str(Path(path).resolve()) for path in sys.argv[1:4])

from browser import Browser, Page  # noqa: E402
from conftest import Worker, wait_until  # noqa: E402

MOVES = 100
PAGES = 10
# The limit in MiB of the worker whose memory is measured.
LIMIT = 512
READY = "Boolean(playground.variant.result && !playground.variant.isBusy)"


def start(*options: str) -> tuple[Worker, str]:
    worker = Worker("--isolation", "none", "--playground-port", "0", *options)
    found = lambda: re.search(r"(http://127\.0\.0\.1:\d+/)", "".join(worker.log))  # noqa: E731
    assert wait_until(lambda: found() is not None)
    return worker, found()[1]


def opened(browser: Browser, address: str, image: str) -> Page:
    page = browser.open(address)
    page.wait("globalThis.playground !== undefined")
    page.drop("#stage", Path(image))
    page.wait(READY, 120)
    return page


def peak_mib(worker: Worker) -> float:
    status = Path(f"/proc/{worker.process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024


def move(page: Page, count: int) -> list[float]:
    """Moves the slider of the quality by mouse, each time to another place, and waits for its preview."""
    slider = ".field[data-path=compression_quality] input[type=range]"
    times = []
    for index in range(count):
        before = page.run("playground.latencies.length")
        x, y = page.point(slider, 0.1 + 0.8 * ((index * 37) % 100) / 100)
        page.mouse("mousePressed", x, y, button="left", buttons=1, clickCount=1)
        page.mouse("mouseReleased", x, y, button="left", buttons=1, clickCount=1)
        page.wait(f"playground.latencies.length > {before}")
        times.append(page.run("playground.latencies.at(-1)"))
        time.sleep(0.05)
    return times


def main():
    # A cached result comes at once, without a preview.
    worker, address = start("--cache-memory-mib", "0")
    browser = Browser()
    try:
        page = opened(browser, address, photo)
        page.run("playground.set(['max_width'], 1280)")
        page.wait(READY)
        move(page, 5)
        before = worker.cpu_seconds()
        times = sorted(move(page, MOVES))
        cost = (worker.cpu_seconds() - before) / MOVES * 1000
        p95 = times[int(len(times) * 0.95) - 1]
        print(f"slider to preview, {MOVES} moves: median {statistics.median(times):.0f} ms, p95 {p95:.0f} ms, max {times[-1]:.0f} ms; "
              f"{cost:.0f} ms of CPU in the worker for a preview and its result")
        page.close()
    finally:
        browser.close()
        worker.stop()

    worker, address = start("--memory-limit-mib", str(LIMIT))
    browser = Browser()
    try:
        empty = worker.rss_mib()
        pages = [opened(browser, address, large) for _ in range(PAGES)]
        uploads = pages[0].run("fetch('/api/state').then((response) => response.json()).then((state) => state.uploadBytes)") / 2**20
        print(f"{PAGES} pages with one image each, a limit of {LIMIT} MiB: worker {worker.rss_mib():.0f} MiB resident, peak {peak_mib(worker):.0f} MiB; "
              f"{empty:.0f} MiB without pages; uploads {uploads:.0f} MiB")
        for page in pages:
            page.run("playground.set(['max_width'], 1000)")
        for page in pages:
            page.wait(READY, 120)
        print(f"after a change in each page: {worker.rss_mib():.0f} MiB resident, peak {peak_mib(worker):.0f} MiB")
        for page in pages:
            page.call("Page.navigate", url="about:blank")
        time.sleep(5)
        print(f"after the pages were closed: {worker.rss_mib():.0f} MiB resident")
    finally:
        browser.close()
        worker.stop()


main()
