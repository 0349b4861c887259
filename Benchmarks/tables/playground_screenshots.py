"""Makes the screenshots of the playground in the documentation: a desktop, faces, a tablet, and a phone in the dark.

Use: playground_screenshots.py WORKER IMAGE FOLDER
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "Tests/EndToEnd"))
os.environ["IMAGE_WORKER"], image, folder = (str(Path(path).resolve()) for path in sys.argv[1:4])

from browser import Browser  # noqa: E402
from playground import DONE, Playground, opened  # noqa: E402

TUNED = """playground.change({preset: 'default', overrides: {
  max_width: 1000, max_height: 667, resize_mode: 'RESIZE_MODE_FILL', compression_quality: 0.7,
  preferred_format: 'OUTPUT_FORMAT_WEBP',
  filters: [{name: 'duotone', intensity: 0.75, parameters: {}}, {name: 'vignette', intensity: 0.4, parameters: {}}]}})"""
# A face is found in it with the detector of the package opencv-data.
FACES = """playground.change({preset: 'default', overrides: {
  max_width: 240, max_height: 135, resize_mode: 'RESIZE_MODE_FILL', gravity: 'GRAVITY_FACES', compression_quality: 0.8,
  overlays: [{unit: 'RECT_UNIT_FRACTIONS', gravity: 'GRAVITY_SOUTH_EAST', x: 0.04, y: 0.06,
    text: {text: 'Eileen Collins', relative_size: 0.12, outline_width: 0.06}}]}})"""
SCROLLED = "document.querySelector('.controls').scrollTop = document.querySelector('{}').offsetTop - 200"


def main():
    playground, browser = Playground("--cache-memory-mib", "0"), Browser()
    with tempfile.TemporaryDirectory() as made:
        def save(name: str):
            page.run("scrollTo(0, 0)")
            time.sleep(0.5)
            page.screenshot(Path(made) / f"{name}.png")

        try:
            page = opened(browser, playground, Path(image))
            page.resize(1280, 760)
            page.run(TUNED)
            page.wait(DONE)
            page.run("playground.stage.divide(0.45)")
            page.run(SCROLLED.format(".field[data-path=compression_quality]"))
            save("playground")

            page.drop("#stage", ROOT / "Tests/EndToEnd/astronaut.jpg")
            page.wait("playground.images.length === 2")
            page.run(FACES)
            page.wait(DONE + " && playground.variant.result.report.faces?.length === 1")
            page.run("playground.setMode('original')")
            page.wait("document.querySelectorAll('.outline-face').length === 1")
            page.run(SCROLLED.format(".field[data-path=max_width]"))
            save("playground-faces")
            page.run("playground.edit(['overlays', '0'])")
            page.wait("document.querySelectorAll('.overlay .area').length === 1")
            save("playground-overlay")
            page.run("playground.edit(undefined); playground.setMode('compare'); playground.forget(playground.images[1])")
            page.run(TUNED)
            page.wait(DONE)

            page.resize(820, 1060)
            page.run("playground.set(['filters'], undefined)")
            page.wait(DONE)
            # By script: the viewer, which stays in view, may cover the place that it is scrolled to.
            page.run("document.getElementById('formats').click()")
            page.wait("playground.variants.length >= 3 && playground.variants.every(({result, isBusy}) => result && !isBusy)", 60)
            page.run("playground.stage.setZoom(1, {x: 0.62, y: 0.4})")
            save("playground-tablet")

            page.color_scheme("dark")
            page.resize(390, 844, 2)
            page.run("while (playground.variants.length > 1) playground.remove(playground.variants.at(-1))")
            page.run("playground.setMode('compare'); playground.edit(['crop'])")
            page.wait("Boolean(playground.source)")
            page.run("playground.overlay.change({x: 0.15, y: 0.05, width: 0.7, height: 0.42})")
            page.wait("playground.variant.runner.phase === 'idle'")
            save("playground-phone")
            page.close()
        finally:
            browser.close()
            playground.worker.stop()
        subprocess.run(
            [os.environ["IMAGE_WORKER"], "process", *sorted(Path(made).glob("*.png")), "--format", "png",
             "--palette-colors", "256", "--out", folder], check=True)


main()
