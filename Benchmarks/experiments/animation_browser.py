"""Compares every frame of animations, unresized, with the frames that Chromium shows of the original.

Processes each animation to lossless WebP, to APNG and, if it is one, to GIF, and decodes original and results with
Chromium's own decoders (ImageDecoder of WebCodecs), which report the durations with which it plays frames. Equal frames in
sequence count as one. A result of one frame may be a still image, which is shown for ever. A GIF is right only if its colors
are kept exactly, which more than 255 prevent.

Usage: animation_browser.py [FILE or DIRECTORY]...

Needs IMAGE_WORKER, Chromium, and the packages of the end-to-end tests. Prints each disagreement, then a summary, and fails
if there is one.
"""

import argparse
import functools
import http.server
import json
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from animation_frames import WORKER, collected, is_animation

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "Tests" / "EndToEnd"))
from browser import Browser  # noqa: E402
from PIL import Image  # noqa: E402

MAX_PIXELS = 25_000_000  # of all frames, which the page buffers
TYPES = {".gif": "image/gif", ".webp": "image/webp", ".png": "image/png", ".apng": "image/png"}

SCRIPT = """
async function framesOf(name, type) {
  const data = await (await fetch(name, {cache: 'no-store'})).arrayBuffer()
  const decoder = new ImageDecoder({data, type, preferAnimation: true})
  await decoder.completed
  await decoder.tracks.ready
  const frames = []
  for (let frameIndex = 0; frameIndex < decoder.tracks.selectedTrack.frameCount; frameIndex++) {
    const {image} = await decoder.decode({frameIndex})
    const canvas = new OffscreenCanvas(image.displayWidth, image.displayHeight)
    const context = canvas.getContext('2d', {willReadFrequently: true})
    context.fillStyle = '#808080'
    context.fillRect(0, 0, canvas.width, canvas.height)
    context.drawImage(image, 0, 0)
    const pixels = context.getImageData(0, 0, canvas.width, canvas.height).data
    const duration = (image.duration ?? 0) / 1000
    const last = frames.at(-1)
    if (last && difference(last.pixels, pixels) === 0) last.duration += duration
    else frames.push({pixels, duration})
    image.close()
  }
  decoder.close()
  return frames
}

function difference(a, b) {
  if (a.length !== b.length) return 256
  let largest = 0
  for (let i = 0; i < a.length; i++) largest = Math.max(largest, Math.abs(a[i] - b[i]))
  return largest
}

async function compare(original, type, result, resultType) {
  const [theirs, ours] = [await framesOf(original, type), await framesOf(result, resultType)]
  if (theirs.length !== ours.length) return `${ours.length} frames instead of ${theirs.length}`
  for (let i = 0; i < ours.length; i++) {
    const largest = difference(ours[i].pixels, theirs[i].pixels)
    if (largest > 1) return `frame ${i} differs by ${largest}`
    if (ours.length > 1 && Math.abs(ours[i].duration - theirs[i].duration) >= 10)
      return `frame ${i} lasts ${ours[i].duration} ms instead of ${theirs[i].duration}`
  }
  return ours.length
}
"""


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def is_small(path: Path) -> bool:
    with Image.open(path) as image:
        return image.width * image.height * image.n_frames <= MAX_PIXELS


def results_of(path: Path, folder: Path) -> list[Path]:
    """The results, without those that the worker refuses."""
    found = []
    for extension, options in ((".webp", ["--lossless"]), (".png", []), (".gif", [])):
        target = folder / f"result{extension}"
        if extension == ".gif" and path.suffix != ".gif":
            continue
        given = ["--max-frames", "0", "--quality", "1", "--always-encode", *options]
        command = [str(part) for part in (WORKER, "process", path, *given, "--out", target)]
        if subprocess.run(command, capture_output=True, timeout=120).returncode == 0:
            found.append(target)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", type=Path, nargs="+")
    paths = [path for path in collected(parser.parse_args().places) if is_animation(path) and is_small(path)]
    right = wrong = refused = frames = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "index.html").write_text(f"<script>{SCRIPT}</script>")
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=temporary))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser = Browser()
        try:
            page = browser.open(f"http://127.0.0.1:{server.server_port}/index.html")
            page.wait("typeof compare === 'function'")
            for path in paths:
                original = folder / f"original{path.suffix}"
                original.write_bytes(path.read_bytes())
                results = results_of(path, folder)
                refused += not results
                for result in results:
                    names = (original.name, TYPES[original.suffix], result.name, TYPES[result.suffix])
                    arguments = ", ".join(map(json.dumps, names))
                    found = page.run(f"compare({arguments}).catch(error => `Chromium: ${{error.message}}`)")
                    is_right = isinstance(found, (int, float))
                    right, wrong, frames = right + is_right, wrong + (not is_right), frames + (found if is_right else 0)
                    if not is_right:
                        print(f"{path.name}: {result.suffix}: {found}", flush=True)
        finally:
            browser.close()
            server.shutdown()
    print(f"{len(paths)} animations: {right} results with {frames:.0f} different frames are right, {wrong} are not; "
          f"{refused} animations were refused")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
