"""A visit of the playground's page: from the first drop over phones and reloads to its end."""

import json
from urllib.parse import quote

import pytest

from conftest import wait_until
from playground import DONE, Browser, browser, image_file, needs_chromium, opened, photo, playground  # noqa: F401

ALL_DONE = "playground.variants.every((variant) => (variant.result || variant.error) && !variant.isBusy)"


def visited(browser, playground, fragment: str = "", width: int = 1440, height: int = 900):
    page = browser.open(f"http://{playground.authority}/{fragment}", width, height)
    page.wait("globalThis.playground !== undefined")
    return page


def touched(page, width: int, height: int = 844):
    """Makes the page one on a touch screen."""
    page.call("Emulation.setTouchEmulationEnabled", enabled=True)
    page.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=True)
    page.wait("matchMedia('(pointer: coarse)').matches")


@needs_chromium
def test_the_first_drop_shows_a_gain(browser, playground, image_file):
    page = opened(browser, playground, image_file)
    assert page.run("playground.effective.compression_quality") == 0.8
    assert page.run("playground.variant.result.blob.size < playground.image.bytes")
    assert "−" in page.run("document.getElementById('weight').textContent")
    # A preset with a quality of its own keeps it, and so does one that is chosen by hand.
    for chosen, quality in [("upload", None), ("default", 0.8)]:
        page.run(f"playground.choosePreset('{chosen}')")
        assert page.run("playground.overrides.compression_quality ?? null") == quality
    page.run("playground.set(['compression_quality'], 0.3); playground.choosePreset('upload')")
    assert page.run("playground.overrides.compression_quality") == 0.3
    page.close()


@needs_chromium
def test_an_upload_shows_its_progress_and_can_be_stopped(browser, playground, tmp_path):
    files = [tmp_path / f"{name}.jpg" for name in ("slow", "stopped", "next")]
    for file in files:
        file.write_bytes(photo(2400, 1600))
    page = visited(browser, playground)
    page.call("Network.enable")
    page.call("Network.emulateNetworkConditions", offline=False, latency=0, downloadThroughput=-1, uploadThroughput=150_000)
    page.drop("#stage", *files)
    page.wait("document.querySelectorAll('.upload').length === 3")
    page.wait("document.querySelector('.upload progress').value > 0 && document.querySelector('.upload progress').value < 1")
    assert "%" in page.run("document.querySelector('.upload .upload-text').textContent")
    assert page.run("document.querySelectorAll('.upload')[1].textContent").startswith("stopped.jpgwaiting")
    page.click(".upload:nth-child(2) .why")
    page.call("Network.emulateNetworkConditions", offline=False, latency=0, downloadThroughput=-1, uploadThroughput=-1)
    page.wait("document.querySelectorAll('.upload').length === 0", 60)
    assert page.run("playground.images.map(({name}) => name)") == ["slow.jpg", "next.jpg"]
    assert page.problems == []
    page.close()


@needs_chromium
def test_the_places_of_a_page_that_is_gone_are_given_back(playground, image_file):
    """Of a browser that was killed, too, which has no time to say so."""
    killed = Browser()
    try:
        before = playground.state["uploadCount"]
        page = opened(killed, playground, image_file)
        assert playground.state["uploadCount"] == before + 1
        killed.process.kill()
        assert wait_until(lambda: playground.state["uploadCount"] == before)
        page.connection.close()
    finally:
        killed.close()


@needs_chromium
def test_a_reload_keeps_the_fields(browser, playground, image_file):
    page = opened(browser, playground, image_file)
    page.run("playground.set(['max_width'], 640); document.getElementById('duplicate').click()")
    page.run("playground.set(['filters'], [{name: 'sepia', intensity: 0.5, parameters: {}}]); playground.setMode('side')")
    state = page.run("playground.state")
    page.wait("location.hash.includes('sepia')")
    page.call("Page.reload")
    page.wait("globalThis.playground?.variants.length === 2")
    assert page.run("playground.state") == state
    page.drop("#stage", image_file)
    page.wait(ALL_DONE)
    assert page.run("playground.variants.map(({result}) => result.report.output.width)") == [640, 640]
    # Another address in the same page.
    other = {"results": [{"preset": "favicon", "overrides": {"max_width": 33}}], "chosen": 0, "mode": "result"}
    page.run(f"location.hash = '#{quote(json.dumps(other))}'; 0")
    page.wait("playground.variant.result?.report.output.width === 33")
    assert page.run("playground.state") == other
    assert page.problems == []
    page.close()


@needs_chromium
def test_the_last_preset_is_remembered(browser, playground):
    page = visited(browser, playground)
    page.run("playground.choosePreset('banner')" if "banner" in page.run(
        "playground.contract.presets.map(({name}) => name)") else "playground.choosePreset('favicon')")
    chosen = page.run("playground.variant.preset")
    again = visited(browser, playground)
    assert again.run("playground.variant.preset") == chosen != "default"
    again.run("localStorage.removeItem('preset')")
    again.close()
    page.close()


@needs_chromium
@pytest.mark.parametrize("fragment", [
    "#%7B", "#[]", '#{"results":[]}', '#{"results":7}', '#{"results":[null,5,{"preset":{}}],"chosen":"x","mode":"__proto__"}',
    '#{"results":[{"preset":"none","overrides":{"filters":5,"compression_quality":"a","crop":7,"jpeg":[],"gravity":"no"}}]}',
    '#{"results":[{"preset":"default","overrides":{"filters":[null,{"name":3}],"constructor":1,"background":{"red":"x"}}}]}'])
def test_an_address_of_somebody_else_does_no_harm(browser, playground, image_file, fragment):
    page = visited(browser, playground, fragment)
    assert page.run("playground.variants.every(({preset}) => playground.contract.presets.some(({name}) => name === preset))")
    page.drop("#stage", image_file)
    page.wait(ALL_DONE)
    assert page.problems == []
    page.close()


@needs_chromium
def test_a_slider_from_zero_has_a_place_for_each_value(browser, playground, image_file):
    page = opened(browser, playground, image_file)
    page.run("for (const group of document.querySelectorAll('#fields > details')) group.open = true")
    slider = '.field[data-path="jpeg.restart_rows"] input[type=range]'
    assert page.run(f"document.querySelector('{slider}').style.getPropertyValue('--share')") == "0"
    page.drag(page.point(slider, 0.03), page.point(slider, 0.5), steps=4)
    rows = page.run("playground.overrides.jpeg.restart_rows")
    assert 50 < rows < 2000
    page.wait(DONE)
    assert page.run("playground.variant.error === undefined")
    assert abs(page.run(f"Number(document.querySelector('{slider}').value)") - 500) < 40
    page.close()


@needs_chromium
def test_formats_are_compared_at_equal_looks(browser, playground, image_file):
    page = opened(browser, playground, image_file)
    page.run("playground.set(['max_width'], 320)")
    page.wait(DONE)
    page.click("#formats")
    page.wait(f"playground.variants.length >= 3 && {ALL_DONE}", 120)
    compared = page.run("""playground.variants.filter(({result}) => result?.report.similarity !== undefined)
      .map(({result}) => [result.report.output.format, result.report.similarity])""")
    assert {"jpeg", "webp"} <= {name for name, _ in compared}
    assert all(80 <= similarity < 84 for _, similarity in compared), compared
    count = page.run("playground.variants.length")
    page.run("playground.select(playground.variants[1]); document.getElementById('formats').click()")
    assert page.run("playground.variants.length") == count
    page.close()


@needs_chromium
def test_either_side_of_the_divider_shows_any_result(browser, playground, image_file):
    page = opened(browser, playground, image_file)
    page.run("document.getElementById('duplicate').click(); playground.set(['compression_quality'], 0.1)")
    page.wait(ALL_DONE)

    def choose(side: str, index: int):
        page.run(f"""(() => {{ const list = document.getElementById('{side}'); list.selectedIndex = {index};
          list.dispatchEvent(new Event('change')); }})()""")

    layers = "playground.stage.panes[0].layers.map((layer) => playground.variants.findIndex(({result}) => result.canvas === layer))"
    assert page.run(layers) == [1, -1]
    choose("left", 2)
    assert page.run(layers) == [1, 1]
    choose("right", 0)
    assert page.run(layers) == [0, 1]
    assert page.run("playground.variant.letter") == "A"
    choose("left", 0)
    assert page.run(layers) == [0, -1]
    page.close()


@needs_chromium
@pytest.mark.parametrize("width", [390, 320])
def test_a_phone_shows_the_bytes_while_a_slider_moves(browser, playground, image_file, width):
    page = opened(browser, playground, image_file)
    touched(page, width)
    slider = ".field[data-path=compression_quality] input[type=range]"
    page.run(f"document.querySelector('{slider}').scrollIntoView({{block: 'end', behavior: 'instant'}})")
    weight, moved = page.run(f"""['#weight', '{slider}'].map((selector) => document.querySelector(selector).getBoundingClientRect())
      .map(({{top, bottom, left, right}}) => ({{top, bottom, left, right}}))""")
    assert 0 <= weight["top"] < weight["bottom"] <= moved["top"] < moved["bottom"] < 845
    assert 0 <= weight["left"] < weight["right"] <= width
    assert page.run("document.documentElement.scrollWidth") <= width
    before = page.run("document.getElementById('weight').textContent")
    page.run("playground.set(['compression_quality'], 0.3)")
    page.wait(DONE)
    assert page.run("document.getElementById('weight').textContent") != before
    page.close()


# What can be pressed and is smaller than a size.
SMALL = """(limit) => [...document.querySelectorAll('button, a, select, summary, input:not([type=file]), [role=slider], .crop i')]
  .filter((element) => element.checkVisibility() && !element.matches('.skip'))
  .map((element) => [element, element.getBoundingClientRect()])
  .filter(([, {width, height}]) => width > 0 && Math.min(width, height) < limit - 0.01)
  .map(([element, {width, height}]) => `${element.outerHTML.slice(0, 90)}: ${width}x${height}`)"""


@needs_chromium
@pytest.mark.parametrize("pointer, size", [("mouse", 24), ("touch", 44)])
def test_what_can_be_pressed_is_large_enough(browser, playground, image_file, pointer, size):
    page = opened(browser, playground, image_file)
    if pointer == "touch":
        touched(page, 390)
    page.run("for (const group of document.querySelectorAll('#fields > details')) group.open = true")
    page.run("playground.set(['filters'], [{name: 'blur', intensity: 1, parameters: {}}]); document.getElementById('duplicate').click()")
    page.run("playground.set(['crop'], {unit: 'RECT_UNIT_FRACTIONS', x: 0.2, y: 0.2, width: 0.5, height: 0.5})")
    assert page.run(f"({SMALL})({size})") == []
    page.run("playground.edit(['crop'])")
    page.wait("Boolean(playground.source)")
    assert page.run(f"({SMALL})({size})") == []
    page.close()


@needs_chromium
def test_messages_do_not_replace_each_other(browser, playground, tmp_path):
    page = visited(browser, playground)
    for name in ("one.txt", "two.txt"):
        (tmp_path / name).write_text("no image")
    with (tmp_path / "large.jpg").open("wb") as file:
        file.truncate(page.run("playground.contract.limits.message") + 1)
    page.drop("#stage", tmp_path / "one.txt", tmp_path / "two.txt", tmp_path / "large.jpg")
    page.wait("document.getElementById('toast').children.length === 3")
    texts = page.run("[...document.getElementById('toast').children].map((element) => element.textContent)")
    assert [text.split(":")[0] for text in texts] == ["large.jpg", "one.txt", "two.txt"]
    assert "67.1\u00a0MB" in texts[0] and "67108864" not in texts[0]
    # One that is repeated is shown once, and one that was read can go.
    page.drop("#stage", tmp_path / "one.txt")
    page.wait("document.querySelectorAll('.upload').length === 0")
    page.click("#toast p")
    assert page.run("document.getElementById('toast').children.length") == 2
    readable = "import('/dom.js').then(({readable}) => readable('the images use 150000000 of 201326592 bytes and 3 of 64 places'))"
    assert page.run(readable) == "the images use 150\u00a0MB of 201\u00a0MB and 3 of 64 places"
    page.close()
