"""The playground's page in a headless Chromium."""

import gain_maps
import pytest
from PIL import Image

from conftest import wait_until
from playground import DONE, Playground, browser, image_file, needs_chromium, opened, photo, playground  # noqa: F401


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
def test_a_gain_map_is_shown_and_kept(browser, playground, tmp_path):
    file = tmp_path / "hdr.jpg"
    file.write_bytes(gain_maps.ultra_hdr(photo(1200, 800), gain_maps.jpeg(gain_maps.gradient(300, 200))))
    page = opened(browser, playground, file)
    assert "gain map (iso) 300×200, up to 5.7 times as bright" in page.run("document.getElementById('caption').textContent")
    card = "document.querySelector('.card-state').textContent"
    assert "gain map" not in page.run(card)

    field = ".field[data-path=gain_map]"
    page.run(f"document.querySelector('{field}').closest('details').open = true")
    page.run(f"[...document.querySelectorAll('{field} [role=radio]')].find((one) => one.textContent === 'keep').click()")
    page.wait("playground.overrides.gain_map === 'GAIN_MAP_KEEP'")
    page.wait(DONE)
    page.wait("playground.variant.result.report.gain_map_bytes > 0")
    assert "with a gain map of" in page.run(card)
    assert page.problems == []
    page.close()


@needs_chromium
def test_a_region_is_drawn_on_the_image(browser, playground, image_file):
    page = opened(browser, playground, image_file)
    field = ".field[data-path=regions]"
    page.run(f"document.querySelector('{field}').closest('details').open = true")
    page.run(f"document.querySelector('{field} > .field-body .plain:last-child').click()")
    page.wait("playground.editing === 'regions.0.area' && Boolean(playground.source)")
    page.wait(DONE.replace("&& playground.reference", ""))
    # The middle of the image is black: the region has begun there.
    dark = """(() => {
      const {canvas} = playground.variant.result;
      const at = (x, y) => canvas.getContext('2d').getImageData(x * canvas.width, y * canvas.height, 1, 1).data;
      return [at(0.4, 0.4), at(0.9, 0.9)].map(([red, green, blue]) => red + green + blue < 12);
    })()"""
    assert page.run(dark) == [True, False]

    # Dragged by its middle to the corner.
    page.drag(page.point(".overlay", 0.5, 0.5), page.point(".overlay", 0.75, 0.75))
    page.wait(DONE.replace("&& playground.reference", ""))
    [region] = page.run("playground.overrides.regions")
    assert region["area"]["unit"] == "RECT_UNIT_FRACTIONS"
    assert all(abs(region["area"][name] - 0.5) < 0.02 for name in ("x", "y", "width", "height"))
    assert page.run(dark) == [False, True]

    # Another shape keeps the area.
    page.run(f"""[...document.querySelectorAll('{field} [role=radio]')].find((one) => one.textContent === 'ellipse').click()""")
    page.wait("playground.overrides.regions[0].shape === 'REGION_SHAPE_ELLIPSE'")
    assert page.run("playground.overrides.regions[0].area.width") == region["area"]["width"]
    page.wait(DONE.replace("&& playground.reference", ""))

    # Removed, it is no longer edited.
    page.run(f"document.querySelector('{field} .chain-head .why').click()")
    page.wait("playground.overrides.regions === undefined && playground.editing === undefined")
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


@needs_chromium
@pytest.mark.parametrize("width", [1440, 768, 390, 320])
def test_it_fits_narrow_screens_and_both_schemes(browser, playground, image_file, width):
    page = opened(browser, playground, image_file)
    for scheme in ["light", "dark"]:
        page.color_scheme(scheme)
        page.resize(width, 900)
        page.wait(f"document.documentElement.scrollWidth <= {width}")
        # Text is readable: 4.5 to 1, as WCAG asks for; colors change gradually.
        assert wait_until(lambda: page.run(CONTRAST) == [], 20), (scheme, page.run(CONTRAST))
    page.close()


def focused(page) -> str:
    return page.run("document.activeElement.ariaLabel ?? document.activeElement.textContent")


@needs_chromium
def test_it_is_used_with_keys_alone(browser, playground, image_file):
    page = opened(browser, playground, image_file)
    page.run("playground.set(['max_width'], 320)")

    # A slider of few whole numbers moves by one of them.
    page.run("for (const group of document.querySelectorAll('#fields > details')) group.open = true")
    page.run("document.querySelector('.field[data-path=\"png.compression_level\"] input[type=range]').focus()")
    page.key("ArrowLeft", 37)
    first = page.run("playground.overrides.png.compression_level")
    page.key("ArrowLeft", 37)
    assert page.run("playground.overrides.png.compression_level") == first - 1

    # Filters: the focus stays where the work is.
    page.run("playground.set(['filters'], ['sepia', 'blur', 'vignette'].map((name) => ({name, intensity: 0.5, parameters: {}})))")
    page.run("document.querySelector('.chain input[type=range]').focus()")
    page.key("ArrowRight", 39)
    assert page.run("playground.overrides.filters[0].intensity") == 0.51
    page.run("document.querySelectorAll('.grip')[2].focus()")
    page.key("ArrowUp", 38)
    assert page.run("playground.overrides.filters.map(({name}) => name)") == ["sepia", "vignette", "blur"]
    assert focused(page).startswith("Vignette, place 2")
    page.run("document.querySelectorAll('.chain-head .why')[2].focus()")
    page.enter()
    assert focused(page) == "Remove vignette"

    # A crop begins with a button, and ends with Escape there.
    page.wait(DONE)
    page.run("document.querySelector('#tools [data-path=crop]').focus()")
    page.enter()
    page.wait("Boolean(playground.source)")
    page.key("ArrowLeft", 37, modifiers=8)
    assert page.run("playground.overrides.crop.width") == 0.99
    # A field that changes meanwhile is shown there.
    page.run("playground.set(['crop'], {...playground.overrides.crop, width: 0.5})")
    assert page.run("document.querySelector('.crop').style.width") == "50%"
    page.key("Escape", 27)
    assert page.run("playground.editing === undefined") and focused(page) == "Crop"

    # An image is chosen, and closed.
    page.wait(DONE)
    page.run("document.querySelector('.chip').focus()")
    page.enter()
    assert focused(page) == image_file.name
    page.run("document.querySelector('.chip-pair .why').focus()")
    page.enter()
    assert focused(page) == "Choose images"
    assert page.problems == []
    page.close()


@needs_chromium
def test_fields_are_found_by_words(browser, playground, image_file):
    page = opened(browser, playground, image_file)
    page.run("playground.set(['filters'], [{name: 'blur', intensity: 1, parameters: {}}])")

    def search(text: str):
        page.run(f"""(() => {{ const box = document.getElementById('search'); box.value = '{text}';
          box.dispatchEvent(new Event('input')); }})()""")

    search("optimize_huffman")
    assert page.run("[...document.querySelectorAll('.field')].filter((field) => field.checkVisibility()).map((field) => field.dataset.path)") == [
        "jpeg.optimize_huffman"]
    search("no such field")
    assert page.run("document.querySelector('.nothing').checkVisibility()")
    search("")
    assert page.run("document.querySelector('.chain .parameters').checkVisibility()")
    assert not page.run("document.querySelector('.nothing').checkVisibility()")
    page.close()


@needs_chromium
@pytest.mark.parametrize("width", [1440, 320])
def test_ten_results_are_seen_side_by_side(browser, playground, image_file, width):
    page = opened(browser, playground, image_file)
    page.resize(width, 800)
    page.run("playground.set(['max_width'], 200)")
    for quality in range(1, 20):
        page.run(f"document.getElementById('duplicate').click(); playground.set(['compression_quality'], {quality / 20})")
        if quality == 9:
            page.run("playground.setMode('side')")
            page.wait("playground.variants.length === 10 && playground.variants.every((variant) => variant.result && !variant.isBusy)")
            sides = page.run("""[...document.querySelectorAll('.pane')].map((pane) => pane.getBoundingClientRect())
              .flatMap(({width, height}) => [width, height])""")
            assert len(sides) >= 20 and min(sides) > 70
            assert page.run("document.documentElement.scrollWidth") <= width
    # Each has a letter of its own; there is no room for more.
    assert page.run("new Set(playground.variants.map(({letter}) => letter)).size") == page.run("playground.variants.length") == 16
    page.close()


@needs_chromium
def test_the_newest_image_is_shown(browser, playground, image_file, tmp_path):
    page = opened(browser, playground, image_file)
    other = tmp_path / "other.jpg"
    other.write_bytes(photo(800, 900))
    page.drop("#stage", other)
    page.wait("playground.images.length === 2")
    # Back while the preview of the other is on its way.
    page.run("playground.choose(playground.images[1]); playground.choose(playground.images[0]); 0")
    page.wait(DONE)
    assert page.run("playground.variant.result.report.input.width") == 2400
    assert page.run("document.querySelectorAll('.chip')[0].ariaPressed") == "true"
    page.close()


@needs_chromium
def test_a_page_in_the_background_gets_its_result(browser, playground, image_file):
    page = opened(browser, playground, image_file)
    front = browser.open(f"http://{playground.authority}/")
    front.wait("globalThis.playground !== undefined")
    page.run("playground.set(['max_width'], 700)")
    page.wait("playground.variant.result?.report.output.width === 700 && !playground.variant.isBusy")
    front.close()
    page.close()


@needs_chromium
def test_an_image_that_has_expired_is_sent_again(browser, playground, image_file):
    page = opened(browser, playground, image_file)
    count = playground.state["uploadCount"]
    for use, done in [
            ("playground.set(['max_width'], 500)", "playground.variant.result?.report.output.width === 500"),
            ("playground.edit(['crop'])", "Boolean(playground.source)"),
            ("playground.edit(['crop']); playground.set(['rotation'], 90)", "Boolean(playground.reference)")]:
        page.wait("playground.variant.runner.phase === 'idle'")
        playground.send("DELETE", "/api/images/" + page.run("playground.image.id"))
        page.run(f"{use}; 0")
        page.wait(done)
    assert playground.state["uploadCount"] <= count
    page.close()


@needs_chromium
def test_files_that_cannot_be_used_are_explained(browser, playground, image_file, tmp_path):
    page = browser.open(f"http://{playground.authority}/")
    page.wait("globalThis.playground !== undefined")
    limit = page.run("playground.contract.limits.message")
    (tmp_path / "notes.txt").write_text("no image")
    (tmp_path / "empty.jpg").touch()
    with (tmp_path / "large.jpg").open("wb") as file:
        file.truncate(limit + 1)
    for name, reason in {"notes.txt": "known image format", "empty.jpg": "empty", "large.jpg": "max_message_bytes"}.items():
        page.drop("#stage", tmp_path / name)
        page.wait(f"document.getElementById('toast').textContent.includes({name!r})")
        assert reason in page.run("document.getElementById('toast').textContent")
        assert page.run("playground.image === undefined")
    # The large one was not even sent.
    assert not any("status of 413" in problem for problem in page.problems)

    cut = tmp_path / "cut.jpg"
    cut.write_bytes(image_file.read_bytes()[:200_000])
    page.drop("#stage", cut)
    page.wait("playground.variant.error?.reason === 'TRUNCATED_IMAGE'")
    assert "truncated" in page.run("document.getElementById('stage-note').textContent")
    page.run("playground.set(['tolerate_truncation'], true)")
    page.wait("Boolean(playground.variant.result) && !playground.variant.isBusy")
    assert page.run("document.getElementById('stage-note').hidden && playground.variant.result.report.warnings.length") == 1
    # Nothing of one image is left when the next one fails.
    page.run("playground.set(['tolerate_truncation'], undefined)")
    page.drop("#stage", image_file)
    page.wait(DONE)
    page.drop("#stage", cut)
    page.wait("playground.variant.error?.reason === 'TRUNCATED_IMAGE'")
    assert page.run("document.querySelectorAll('.pane canvas').length") == 0
    page.close()


@needs_chromium
def test_it_outlives_its_worker(browser, image_file):
    playground = Playground()
    try:
        page = opened(browser, playground, image_file)
        assert playground.worker.stop() == 0
        page.run("playground.set(['max_width'], 500)")
        page.wait("playground.variant.error?.code === 'unreachable'")
        assert page.run("document.getElementById('toast').textContent") == "The worker cannot be reached."
        playground = Playground(port=playground.port)
        page.run("playground.set(['max_width'], 480)")
        page.wait(DONE)
        assert page.run("playground.variant.result.report.output.width") == 480
        # What is handed over names the present worker.
        page.run("playground.update()")
        assert playground.worker.address in page.run("document.getElementById('code').textContent")
        page.close()
    finally:
        assert playground.worker.stop() == 0


@needs_chromium
@pytest.mark.parametrize("width", [1440, 768, 390, 320])
def test_an_empty_page_shows_how_to_begin(browser, playground, width):
    page = browser.open(f"http://{playground.authority}/", width, 740)
    page.wait("globalThis.playground !== undefined")
    assert page.run("document.documentElement.scrollWidth") <= width
    for name in ["choose", "sample"]:
        assert page.run(f"""(() => {{
          const [button, stage] = ['{name}', 'stage'].map((id) => document.getElementById(id).getBoundingClientRect());
          return button.top >= stage.top && button.bottom <= stage.bottom; }})()""")
    page.click("#sample")
    page.wait(DONE)
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


@needs_chromium
def test_an_animation_plays(browser, playground, tmp_path):
    path = tmp_path / "moving.gif"
    first, *rest = [Image.new("RGB", (60, 40), color) for color in ("red", "green", "blue")]
    first.save(path, save_all=True, append_images=rest, duration=50, loop=0)
    page = opened(browser, playground, path)
    assert page.run("document.querySelectorAll('.sheet > img').length") == 0
    page.run("playground.set(['max_frames'], 0)")
    for format in ("webp", "gif", "png"):
        page.run(f"playground.set(['preferred_format'], 'OUTPUT_FORMAT_{format.upper()}')")
        page.wait(f"playground.variant.result?.report.output.format === '{format}' && !playground.variant.isBusy")
        assert page.run("playground.variant.result.report.output.frame_count") == 3
        page.wait("document.querySelector('.sheet > img')?.naturalWidth === 60")
    assert page.problems == []
    page.close()
