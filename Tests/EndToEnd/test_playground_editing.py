"""What a person moves on the image in the playground: overlays, regions, the focus point; and what is outlined there."""

import io
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from PIL import Image, ImageDraw

from conftest import is_built_in
from playground import Playground, browser, needs_chromium, opened  # noqa: F401
from test_faces import DETECTOR, FACES
from test_faces import image as image_of_faces
from test_playground_handover import STAND_IN

pytestmark = needs_chromium

IDLE = """Boolean(playground.variant.result && !playground.variant.isBusy && playground.variant.runner.phase === 'idle')"""
COLOR = """(([x, y]) => {{ const {{canvas}} = playground.variant.result;
  return [...canvas.getContext('2d').getImageData(x, y, 1, 1).data].slice(0, 3); }})([{0}, {1}])"""


@pytest.fixture(scope="module")
def playground(tmp_path_factory):
    overlays = tmp_path_factory.mktemp("overlays")
    Image.new("RGB", (60, 30), (255, 0, 0)).save(overlays / "mark.png")
    playground = Playground("--cache-memory-mib", "0", "--face-detector", DETECTOR, "--overlays", str(overlays))
    playground.overlays = overlays
    yield playground
    assert playground.worker.stop() == 0, "".join(playground.worker.log)


@pytest.fixture
def page(browser, playground, tmp_path):
    """A page with an image of 600 by 400 pixels, whose left half is green and whose right half is blue."""
    path = tmp_path / "halves.png"
    halves = Image.new("RGB", (600, 400), (0, 128, 0))
    ImageDraw.Draw(halves).rectangle((300, 0, 600, 400), (0, 0, 255))
    halves.save(path)
    page = opened(browser, playground, path)
    # The requests as they are sent.
    page.run("""(() => { globalThis.requests = []; const send = fetch; globalThis.fetch = (...call) => {
      if (String(call[0]).startsWith('/api/results')) requests.push(JSON.parse(call[1].body)); return send(...call); }; })()""")
    yield page
    assert page.problems == []
    page.close()


def settle(page):
    """Waits for the result of the fields that are set now."""
    page.wait("""JSON.stringify(requests.findLast(({preview}) => preview)?.configuration ?? playground.overrides)
      === JSON.stringify(playground.overrides) && """ + IDLE)


def sent(page, field: str):
    return page.run(f"requests.findLast(({{preview}}) => preview).configuration.{field}")


def color(page, x: int, y: int) -> str:
    """The name of a pixel's color in the result."""
    red, green, blue = page.run(COLOR.format(x, y))
    return "black" if max(red, green, blue) < 40 else "red" if red > 150 else "blue" if blue > 150 else "green"


def drag(page, start: str, across: float, down: float):
    """Drags an element by its middle to a place in fractions of the image or result."""
    page.box(".overlay")
    points = page.run(f"""[['{start}', 0.5, 0.5], ['.overlay', {across}, {down}]].map(([selector, across, down]) => {{
      const {{x, y, width, height}} = document.querySelector(selector).getBoundingClientRect();
      return [x + width * across, y + height * down]; }})""")
    page.drag(*map(tuple, points))


def edit_mark(page, **fields):
    """Begins to edit an overlay, the image of 60 by 30 pixels."""
    page.run("playground.set(['preferred_format'], 'OUTPUT_FORMAT_PNG')")
    page.run(f"playground.set(['overlays'], [{{image: 'mark', ...{fields!r}}}])")
    settle(page)
    page.click("#tools [data-path=overlays]")
    page.wait("playground.editing === 'overlays.0' && Boolean(document.querySelector('.overlay .area'))")


def test_an_overlay_is_dragged_on_the_result(page):
    edit_mark(page)
    box = page.run("playground.overlay.items[0].value")
    assert box == {"x": 0.45, "y": 185 / 400, "width": 0.1, "height": 0.075}

    # To the lower right: gravity and offsets follow, in pixels.
    drag(page, ".overlay .area", 0.85, 0.9)
    settle(page)
    [overlay] = sent(page, "overlays")
    assert overlay["gravity"] == "GRAVITY_SOUTH_EAST"
    assert abs(overlay["x"] - 60) <= 2 and abs(overlay["y"] - 25) <= 2 and isinstance(overlay["x"], int)
    assert [color(page, *at) for at in [(510, 360), (300, 200), (475, 360), (545, 360)]] == ["red", "blue", "blue", "blue"]
    # Its mark is where it is.
    mark, sheet = page.box(".overlay .area"), page.box(".sheet")
    assert abs((mark["x"] - sheet["x"]) / sheet["width"] * 600 - (540 - overlay["x"])) < 2

    # Near a corner it lies in it exactly.
    drag(page, ".overlay .area", 30 / 600 + 0.004, 15 / 400 + 0.004)
    settle(page)
    [overlay] = sent(page, "overlays")
    assert (overlay["gravity"], overlay["x"], overlay["y"]) == ("GRAVITY_NORTH_WEST", 0, 0)
    assert [color(page, *at) for at in [(0, 0), (59, 29), (60, 30)]] == ["red", "red", "green"]

    # Arrow keys move it by a hundredth of the result, and by a tenth of that with Control.
    page.key("ArrowRight", 39)
    page.key("ArrowDown", 40)
    settle(page)
    assert [sent(page, "overlays")[0][name] for name in "xy"] == [6, 4]
    assert [color(page, *at) for at in [(5, 4), (6, 4)]] == ["green", "red"]
    assert "from the left" in page.run("document.querySelector('.overlay [role=status]').textContent")


def test_an_overlay_in_fractions_keeps_its_unit(page):
    edit_mark(page, unit="RECT_UNIT_FRACTIONS")
    drag(page, ".overlay .area", 0.2, 0.5)
    settle(page)
    [overlay] = sent(page, "overlays")
    assert overlay["unit"] == "RECT_UNIT_FRACTIONS" and overlay["gravity"] == "GRAVITY_WEST"
    assert abs(overlay["x"] - 0.15) < 0.005 and overlay["y"] == 0
    assert [color(page, *at) for at in [(120, 200), (300, 200)]] == ["red", "blue"]

    # Another size is measured again, and the mark follows.
    page.run("playground.set(['overlays', '0', 'scale'], 0.5)")
    page.wait("playground.overlay.items[0]?.value.width === 0.5")

    # Two of them: Tab goes from one to the next, and Delete removes the chosen one.
    page.run("playground.set(['overlays'], [...playground.overrides.overlays, {image: 'mark', gravity: 'GRAVITY_SOUTH'}])")
    page.wait("document.querySelectorAll('.overlay .area').length === 2")
    page.run("document.querySelectorAll('.overlay .area')[1].focus()")
    assert page.run("playground.editing") == "overlays.1"
    page.key("Delete", 46)
    assert page.run("playground.overrides.overlays.length") == 1
    page.key("Delete", 46)
    assert page.run("playground.overrides.overlays === undefined && playground.editing === undefined")
    # The focus is where the work began.
    assert page.run("document.activeElement.dataset.path") == "overlays"


def test_an_image_of_the_page_is_an_overlay(page, playground, tmp_path):
    file = tmp_path / "my logo it's new.png"
    Image.new("RGB", (60, 40), (255, 0, 0)).save(file)
    page.run("playground.set(['preferred_format'], 'OUTPUT_FORMAT_PNG')")
    page.click("#tools [data-path=overlays]")
    # A file that is opened at the overlay is not shown itself.
    shown = page.run("playground.image.name")
    root = page.call("DOM.getDocument")["root"]["nodeId"]
    node = page.call("DOM.querySelector", nodeId=root, selector=".image-name input[type=file]")["nodeId"]
    page.call("DOM.setFileInputFiles", nodeId=node, files=[str(file)])
    page.wait("playground.overrides.overlays[0].image === \"my logo it's new\"")
    settle(page)
    assert color(page, 300, 200) == "red" and page.run("playground.image.name") == shown
    page.wait("Math.abs(playground.overlay.items[0]?.value.height - 0.1) < 1e-9")
    drag(page, ".overlay .area", 0.2, 0.2)
    settle(page)
    assert [color(page, *at) for at in [(120, 80), (300, 200)]] == ["red", "blue"]

    # It is sent again when the worker has forgotten it.
    playground.send("DELETE", "/api/images/" + page.run("playground.images[1].id"))
    page.run("playground.set(['overlays', '0', 'opacity'], 1)")
    settle(page)
    assert color(page, 120, 80) == "red"
    assert page.problems and all("status of 410" in problem for problem in page.problems)
    page.problems.clear()

    # The image itself may be one, too.
    page.run("playground.set(['overlays'], [...playground.overrides.overlays, {image: 'halves', width: 60, gravity: 'GRAVITY_EAST'}])")
    settle(page)
    assert page.run("playground.variant.error?.message ?? ''") == "" and color(page, 545, 200) == "green"

    # What is handed over has them, too.
    expected = bytes(page.run("playground.variant.result.blob.arrayBuffer().then((buffer) => [...new Uint8Array(buffer)])"))
    path = f"{Path(os.environ['IMAGE_WORKER']).parent}:{os.environ['PATH']}"
    forms = {"Command": "results/halves.png", **({"grpcurl": "result.png"} if shutil.which("jq") else {})}
    if not shutil.which("grpcurl"):
        (tmp_path / "grpcurl").write_text(STAND_IN)
        (tmp_path / "grpcurl").chmod(0o755)
    for form, result in forms.items():
        page.click(f"#languages [data-value={form}]")
        subprocess.run(["bash", "-euo", "pipefail", "-c", page.run("document.getElementById('code').textContent")], cwd=tmp_path,
                       env=os.environ | {"PATH": f"{tmp_path}:{path}"}, check=True)
        assert (tmp_path / result).read_bytes() == expected
    page.click("#languages [data-value=Python]")
    assert f'auxiliary_images={{"halves": "halves.png", "my logo it\'s new": "{file.name}"}}' in page.run("document.getElementById('code').textContent")


def test_a_first_overlay_is_a_text(page):
    page.click("#tools [data-path=overlays]")
    assert page.run("playground.overrides.overlays[0].text.text") == "Your text"
    # An image takes its place, and the other way round.
    page.run("playground.set(['overlays', '0', 'image'], 'mark')")
    assert page.run("'text' in playground.overrides.overlays[0]") is False
    settle(page)
    page.wait("playground.overlay.items[0]?.value.width === 0.1")
    page.run("playground.set(['overlays', '0', 'scale'], 0.2); playground.set(['overlays', '0', 'width'], 60)")
    assert page.run("playground.overrides.overlays[0].scale === undefined")
    page.run("playground.set(['overlays', '0', 'text', 'text'], 'Again')")
    assert page.run("['image', 'width'].some((name) => name in playground.overrides.overlays[0])") is False
    page.run("playground.set(['overlays', '0', 'text', 'relative_size'], 0.2); playground.set(['overlays', '0', 'text', 'size'], 30)")
    assert page.run("playground.overrides.overlays[0].text") == {"text": "Again", "size": 30}
    # Sliders of fractions have the range of fractions.
    slider = "document.querySelector('.field[data-path=overlays] input[type=range][aria-label=\"Outline width\"]')"
    page.run(f"{slider}.value = 1000; {slider}.dispatchEvent(new Event('input'))")
    assert page.run("playground.overrides.overlays[0].text.outline_width") == 0.5


def test_an_overlay_leads_to_its_text(page):
    page.click("#tools [data-path=overlays]")
    settle(page)
    # Its fields are in view, and Enter and a double click lead to its text.
    assert page.run("document.querySelector('.field[data-path=overlays]').closest('details').open")
    if not is_built_in("text"):
        return
    page.wait("document.activeElement.dataset.key === 'overlays.0'")
    page.key("Enter", 13)
    assert page.run("document.activeElement.value") == "Your text"
    page.run("document.activeElement.blur()")
    x, y = page.point(".overlay .area")
    for count in (1, 2):
        page.mouse("mousePressed", x, y, button="left", buttons=1, clickCount=count)
        page.mouse("mouseReleased", x, y, button="left", buttons=1, clickCount=count)
    assert page.run("document.activeElement.value") == "Your text"
    box = page.run("(({x, y, height}) => [y, y + height])(document.activeElement.getBoundingClientRect())")
    assert 0 < box[0] and box[1] < 900


def test_the_focus_point_is_dragged_on_the_original(page):
    page.run("""for (const [name, value] of Object.entries({
      max_width: 100, max_height: 100, resize_mode: 'RESIZE_MODE_FILL', preferred_format: 'OUTPUT_FORMAT_PNG'}))
      playground.set([name], value)""")
    settle(page)
    page.click("#tools [data-path=focus_point]")
    page.wait("Boolean(playground.source)")
    drag(page, ".overlay .focus", 0.9, 0.5)
    settle(page)
    assert abs(sent(page, "focus_point.x") - 0.9) < 0.01
    assert [color(page, *at) for at in [(30, 50), (98, 50)]] == ["blue", "blue"]
    # The part that is kept is outlined meanwhile.
    assert page.run("playground.findings.kept") == {"x": 200, "y": 0, "width": 400, "height": 400}
    drag(page, ".overlay .focus", 0.5, 0.5)
    settle(page)
    assert [color(page, *at) for at in [(30, 50), (98, 50)]] == ["green", "blue"]
    page.key("Delete", 46)
    assert page.run("playground.overrides.focus_point === undefined && playground.editing === 'focus_point'")


def test_regions_are_drawn_moved_resized_and_removed(page):
    page.run("playground.set(['preferred_format'], 'OUTPUT_FORMAT_PNG')")
    page.click("#tools [data-path=regions]")
    page.wait("Boolean(playground.source) && document.querySelectorAll('.overlay .area').length === 1")
    # The first one is in the middle. Another one is drawn next to it.
    page.drag(page.point(".overlay", 0.02, 0.03), page.point(".overlay", 0.2, 0.2))
    settle(page)
    first, second = sent(page, "regions")
    assert first["area"]["x"] == 0.25 and abs(second["area"]["x"] - 0.02) < 0.01 and abs(second["area"]["width"] - 0.18) < 0.01
    assert page.run("playground.editing") == "regions.1.area"
    assert [color(page, *at) for at in [(60, 40), (130, 40), (300, 200)]] == ["black", "green", "black"]

    # The first one is chosen and moved in one go, and resized by its corner.
    page.drag(page.point(".overlay", 0.5, 0.5), page.point(".overlay", 0.7, 0.7))
    settle(page)
    assert page.run("playground.editing") == "regions.0.area"
    assert [color(page, *at) for at in [(200, 150), (400, 300)]] == ["green", "black"]
    drag(page, ".area.is-chosen [data-edge=nw]", 0.6, 0.8)
    settle(page)
    area = sent(page, "regions")[0]["area"]
    assert all(abs(area[name] - value) < 0.02 for name, value in {"x": 0.6, "y": 0.8, "width": 0.35, "height": 0.15}.items())
    assert [color(page, *at) for at in [(340, 300), (400, 350)]] == ["blue", "black"]

    # A press without a movement draws nothing.
    page.drag(page.point(".overlay", 0.5, 0.3), page.point(".overlay", 0.5, 0.3))
    assert page.run("playground.overrides.regions.length") == 2

    # Keys resize and remove, and Escape ends.
    page.key("ArrowLeft", 37, modifiers=8)
    assert abs(page.run("playground.overrides.regions[0].area.width") - (area["width"] - 0.01)) < 0.001
    page.click("#remove")
    settle(page)
    assert len(sent(page, "regions")) == 1 and color(page, 400, 350) == "blue"
    page.key("Escape", 27)
    assert page.run("playground.editing === undefined && document.activeElement.dataset.path") == "regions"
    assert page.run("playground.overrides.regions.length") == 1


def test_a_finger_draws_a_region(page):
    page.call("Emulation.setTouchEmulationEnabled", enabled=True)
    page.click("#tools [data-path=regions]")
    page.wait("Boolean(playground.source) && document.querySelectorAll('.overlay .area').length === 1")
    start, end = page.point(".overlay", 0.8, 0.05), page.point(".overlay", 0.95, 0.2)
    touch = lambda kind, *points: page.call(
        "Input.dispatchTouchEvent", type=kind, touchPoints=[{"x": x, "y": y} for x, y in points])
    touch("touchStart", start)
    for step in (0.3, 0.6, 1):
        touch("touchMove", tuple(a + (b - a) * step for a, b in zip(start, end)))
    touch("touchEnd")
    area = page.run("playground.overrides.regions[1].area")
    assert abs(area["x"] - 0.8) < 0.01 and abs(area["width"] - 0.15) < 0.01


def outlines(page, kind: str) -> list[list[float]]:
    """Rectangles in fractions of the image that lies behind them."""
    return page.run(f"""(() => {{
      const sheet = document.querySelector('.sheet canvas').getBoundingClientRect();
      return [...document.querySelectorAll('.outline-{kind}')].map((outline) => outline.getBoundingClientRect()).map(
        ({{x, y, width, height}}) => [(x - sheet.x) / sheet.width, (y - sheet.y) / sheet.height, width / sheet.width, height / sheet.height]);
    }})()""")


@pytest.mark.parametrize("rotation", [0, 90])
def test_faces_and_the_crop_are_outlined_on_the_original(browser, playground, tmp_path, rotation):
    path = tmp_path / "faces.png"
    upright = Image.open(io.BytesIO(image_of_faces()))
    upright.rotate(rotation, expand=True).save(path)
    page = opened(browser, playground, path)
    page.run(f"""for (const [name, value] of Object.entries({{rotation: {rotation}, gravity: 'GRAVITY_FACES',
      max_width: 200, max_height: 100, resize_mode: 'RESIZE_MODE_FILL'}})) playground.set([name], value)""")
    page.wait(IDLE + " && playground.variant.result.report.output.height === 100 && playground.variant.result.report.faces?.length === 2")
    page.click("#modes [data-value=original]")
    page.wait("document.querySelectorAll('.outline-face').length === 2")
    found = sorted(outlines(page, "face"))
    for (x, y, width, height), (left, top, side) in zip(found, sorted(FACES)):
        assert abs(x * 900 - left) < 14 and abs(y * 600 - top) < 14, (found, FACES)
        assert abs(width * 900 - side) < 28 and abs(height * 600 - side) < 28
    [kept] = outlines(page, "kept")
    crop = page.run("playground.variant.result.report.crop")
    wanted = [crop.get(name, 0) / side for name, side in zip(("x", "y", "width", "height"), (900, 600) * 2)]
    assert all(abs(one - other) < 0.004 for one, other in zip(kept, wanted)), (kept, wanted)
    # In words, too.
    assert "2 faces" in page.run("document.querySelector('.outlines').ariaLabel")
    assert "2 faces" in page.run("document.getElementById('caption').textContent")
    assert "2 faces found" in page.run("document.querySelector('.card-state').textContent")

    # They can be hidden, which the browser keeps, and are not shown on a result.
    page.click("#outlines")
    assert outlines(page, "face") == [] and page.run("localStorage.getItem('outlines')") == "hidden"
    page.click("#outlines")
    assert len(outlines(page, "face")) == 2
    page.run("playground.setMode('result')")
    assert outlines(page, "face") == [] and not page.run("document.getElementById('outlines').checkVisibility()")
    assert page.problems == []
    page.close()


@pytest.mark.parametrize("fields", [
    {"gravity": "GRAVITY_SOUTH_EAST"}, {"gravity": "GRAVITY_NORTH"}, {"focus_point": {"x": 0.7, "y": 0.2}},
    {"crop": {"unit": "RECT_UNIT_PIXELS", "x": 300, "y": 40, "width": 500, "height": 500}},
    {"crop": {"unit": "RECT_UNIT_FRACTIONS", "x": 0.1, "y": 0.2, "width": 0.8, "height": 0.8}, "gravity": "GRAVITY_WEST"},
    {"flip_horizontal": True, "gravity": "GRAVITY_WEST"}])
def test_the_outlined_part_is_what_the_result_shows(browser, playground, tmp_path, fields):
    path = tmp_path / "faces.png"
    path.write_bytes(image_of_faces())
    page = opened(browser, playground, path)
    page.run(f"""playground.change({{overrides: {{max_width: 240, max_height: 100, resize_mode: 'RESIZE_MODE_FILL',
      preferred_format: 'OUTPUT_FORMAT_PNG', ...{str(fields).replace("True", "true")}}}}})""")
    page.wait(IDLE + " && playground.variant.result.report.output.height === 100")
    page.click("#modes [data-value=original]")
    page.wait("Boolean(playground.source) && document.querySelectorAll('.outline-kept').length === 1")
    # The outlined part of the original, at the size of the result, is the result.
    difference = page.run("""(() => {
      const {kept, sides} = playground.findings, {canvas} = playground.source, result = playground.variant.result.canvas;
      const scale = canvas.width / sides[0];
      const context = Object.assign(document.createElement('canvas'), {width: 240, height: 100}).getContext('2d');
      context.imageSmoothingQuality = 'high';
      context.drawImage(canvas, kept.x * scale, kept.y * scale, kept.width * scale, kept.height * scale, 0, 0, 240, 100);
      const [first, second] = [context, result.getContext('2d')].map((one) => one.getImageData(0, 0, 240, 100).data);
      return first.reduce((sum, value, index) => sum + Math.abs(value - second[index]), 0) / first.length; })()""")
    assert difference < 2.5
    page.close()


@pytest.mark.parametrize("width", [1440, 390, 320])
def test_nothing_moves_when_editing_begins(page, width):
    page.resize(width, 844)
    stage = lambda: page.run("(({x, y, width, height}) => [x, y, width, height])(document.getElementById('stage').getBoundingClientRect())")
    before = stage()
    for tool in ("crop", "focus_point", "regions", "overlays"):
        page.run(f"document.querySelector('#tools [data-path={tool}]').click()")
        settle(page)
        assert stage() == before, tool
        assert page.run("document.documentElement.scrollWidth") <= width
        # What is away cannot be reached by keys.
        assert not page.run("document.querySelector('#modes button').checkVisibility({visibilityProperty: true})")
        assert page.run("document.getElementById('done').checkVisibility({visibilityProperty: true})")
    page.run("document.getElementById('done').click()")
    assert page.run("playground.editing === undefined") and stage() == before


def test_the_command_has_regions_and_overlays(page, playground, tmp_path):
    text = {"text": {"text": "One, two\\three\nit's", "relative_size": 0.1, "color": {"red": 255, "blue": 16},
                     "alignment": "TEXT_ALIGNMENT_CENTER", "font": "Sans, Serif"}, "unit": "RECT_UNIT_FRACTIONS", "x": 0.25}
    overlays = [{"image": "mark", "gravity": "GRAVITY_SOUTH_EAST", "x": 12, "y": -3, "opacity": 0.5, "tile": False, "scale": 0.2},
                *([text] if is_built_in("text") else [])]
    area = {"unit": "RECT_UNIT_FRACTIONS", "x": 0, "y": 0.25, "width": 0.5, "height": 0.5}
    regions = [{"area": area, "color": {"red": 200, "green": 10}}, {"area": area | {"x": 0.5, "width": 0.25},
               "shape": "REGION_SHAPE_ELLIPSE", "effect": "REGION_EFFECT_PIXELATE"}, {"shape": "REGION_SHAPE_FACES"},
               {"area": {"unit": "RECT_UNIT_PIXELS", "x": 5, "y": 7, "width": 20, "height": 9}, "effect": "REGION_EFFECT_BLUR"}]
    page.run(f"playground.change({{overrides: {json.dumps({'preferred_format': 'OUTPUT_FORMAT_PNG', 'overlays': overlays, 'regions': regions})}}})")
    settle(page)
    assert page.run("playground.variant.error?.message ?? ''") == ""
    expected = bytes(page.run("playground.variant.result.blob.arrayBuffer().then((buffer) => [...new Uint8Array(buffer)])"))
    page.click("#languages [data-value=Command]")
    command = page.run("document.getElementById('code').textContent")
    path = f"{Path(os.environ['IMAGE_WORKER']).parent}:{os.environ['PATH']}"
    subprocess.run(["bash", "-euo", "pipefail", "-c", f"{command} --overlays {playground.overlays} --face-detector {DETECTOR}"],
                   cwd=tmp_path, env=os.environ | {"PATH": path}, check=True)
    assert (tmp_path / "results" / "halves.png").read_bytes() == expected
