#!/usr/bin/env python3
"""Opens JPEGs as images of a page in headless Chromium, whose console must stay empty:

    Tests/JPEGEncoder/run.sh 100 1 DIRECTORY && Tests/JPEGEncoder/browser.py DIRECTORY

Each image is decoded and drawn to a canvas. Its size must be Pillow's, and so must the mean of each channel, within 3
levels: browsers scale up chroma in other ways. Without Chromium, the exit code is 77. The end-to-end tests call this
with a few files.
"""

import http.server
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading

import numpy as np
from PIL import Image

NOT_INSTALLED = 77

PAGE = """<!doctype html><link rel="icon" href="data:,"><script>
(async () => {
  const defects = [];
  for (const file of await (await fetch("files")).json()) {
    try {
      const image = new Image();
      image.src = file.name;
      await image.decode();
      const [width, height] = [image.naturalWidth, image.naturalHeight];
      if (width != file.width || height != file.height) throw `is ${width}x${height}`;
      const canvas = Object.assign(document.createElement("canvas"), {width, height});
      const context = canvas.getContext("2d", {willReadFrequently: true});
      context.drawImage(image, 0, 0);
      const samples = context.getImageData(0, 0, width, height).data;
      for (let channel = 0; channel < 3; channel++) {
        let sum = 0;
        for (let i = channel; i < samples.length; i += 4) sum += samples[i];
        const difference = sum / (width * height) - file.means[channel];
        if (Math.abs(difference) > 3) throw `channel ${channel} differs by ${difference}`;
      }
    } catch (error) { defects.push(`${file.name}: ${error}`); }
  }
  await fetch("defects", {method: "POST", body: JSON.stringify(defects)});
})();
</script>"""


def describe(path: pathlib.Path) -> dict:
    with Image.open(path) as image:
        samples = np.asarray(image.convert("RGB"), dtype=float)
    means = samples.reshape(-1, 3).mean(axis=0).tolist()
    return {"name": path.name, "width": samples.shape[1], "height": samples.shape[0], "means": means}


class Handler(http.server.BaseHTTPRequestHandler):
    directory = pathlib.Path(sys.argv[1])
    files = sorted(directory.glob("*.jpg"))
    defects: list[str] | None = None
    done = threading.Event()

    def do_GET(self):
        name = self.path.lstrip("/")
        if name == "files":
            body = json.dumps([describe(path) for path in self.files]).encode()
        else:
            body = (self.directory / name).read_bytes() if name else PAGE.encode()
        self.send_response(200)
        self.send_header("Content-Type", "image/jpeg" if name.endswith(".jpg") else "text/html")
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        Handler.defects = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(204)
        self.end_headers()
        self.done.set()

    def log_message(self, *_):
        pass


def main() -> int:
    names = [os.environ.get("CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome"]
    chromium = next((path for name in names if name and (path := shutil.which(name))), None)
    if chromium is None:
        print("chromium is not installed")
        return NOT_INSTALLED
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile, tempfile.TemporaryFile("w+") as log:
        browser = subprocess.Popen(
            [chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
             f"--user-data-dir={profile}", f"http://127.0.0.1:{server.server_port}/"], stdout=log, stderr=log)
        Handler.done.wait(timeout=120)
        browser.terminate()
        browser.wait()
        log.seek(0)
        console = [line.strip() for line in log if "CONSOLE" in line]
    defects = ["chromium did not finish"] if Handler.defects is None else Handler.defects
    for line in [*defects, *console]:
        print(line)
    print(f"chromium: {len(Handler.files)} files, {len(defects)} defects, {len(console)} lines in the console")
    return 1 if defects or console or not Handler.files else 0


if __name__ == "__main__":
    sys.exit(main())
