"""Tests of texts on results, by a client of another language, with sandboxed processes and without."""

import io
import os
import subprocess
from pathlib import Path

import grpc
import numpy
import pytest
from conftest import Client, Worker, built_in, fixture_bytes
from PIL import Image

pytestmark = built_in("text")


def png(width: int, height: int) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (width, height), "blue").save(file, "PNG")
    return file.getvalue()


PLAIN = png(400, 200)
HELLO = {"gravity": "GRAVITY_NORTH_WEST", "text": {"text": "Hello", "font": "DejaVu Sans", "size": 40}}


def process(client: Client, overlay: dict, image: bytes = PLAIN) -> numpy.ndarray:
    message = client.message("ProcessImageRequest")(
        image=image, configuration={"preferred_format": "OUTPUT_FORMAT_PNG", "overlays": [overlay]})
    parts = client.call("ProcessImage", "unary_stream")(message, timeout=60)
    data = b"".join(part.chunk for part in parts if part.WhichOneof("part") == "chunk")
    return numpy.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(int)


def box(pixels: numpy.ndarray) -> tuple[int, int, int, int]:
    """Returns where the image is no longer blue: left, top, right and bottom."""
    rows, columns = numpy.nonzero((pixels != [0, 0, 255]).any(axis=2))
    return columns.min(), rows.min(), columns.max() + 1, rows.max() + 1


@pytest.fixture(scope="module", params=[[], pytest.param(["--isolation", "process"], marks=built_in("isolation"))])
def texts(request):
    worker = Worker(*request.param)
    yield Client(worker)
    assert worker.stop() == 0


def test_a_text_is_drawn_in_its_place(texts: Client):
    left, top, right, bottom = box(process(texts, {**HELLO, "x": 50, "y": 30}))
    assert 50 <= left < 60 and 30 <= top < 50 and 130 < right < 190 and 55 < bottom < 85
    assert (process(texts, HELLO)[5:60, 5:130] == 255).all(axis=2).sum() > 200


def test_outline_box_and_lines(texts: Client):
    text = {**HELLO["text"], "text": "one two three", "max_width": 0.25, "box_color": {"red": 255}, "outline_width": 0.1}
    pixels = process(texts, {**HELLO, "text": text})
    left, top, right, bottom = box(pixels)
    assert (left, top) == (0, 0) and right <= 100 + 2 * 10 + 2 and bottom > 3 * 40
    assert list(pixels[0, 0]) == [255, 0, 0] and (pixels == 0).all(axis=2).sum() > 100


def test_a_word_is_broken_without_a_hyphen(texts: Client):
    style = {**HELLO["text"], "font": "DejaVu Sans Mono", "size": 30}
    broken = process(texts, {**HELLO, "text": {**style, "text": "SN4711XYZ", "max_width": 0.225}})
    assert (broken == process(texts, {**HELLO, "text": {**style, "text": "SN47\n11XY\nZ"}})).all()


@pytest.mark.parametrize("width", [0.15, 0.25, 0.5])
def test_an_outline_has_no_holes(texts: Client, width: float):
    overlay = {"gravity": "GRAVITY_CENTER", "text": {
        "text": "gqB%&6", "font": "DejaVu Sans", "size": 100, "outline_width": width, "outline_color": {"red": 255}}}
    pixels = process(texts, overlay, png(600, 260))
    rows, columns = numpy.nonzero((pixels == 255).all(axis=2))
    (y, x), reach = numpy.mgrid[:260, :600], int(100 * width) - 1
    near = numpy.zeros((260, 600), bool)
    for row, column in zip(rows, columns):  # disks around the pixels of the letters
        top, left = max(0, row - reach), max(0, column - reach)
        part = (slice(top, row + reach + 1), slice(left, column + reach + 1))
        near[part] |= (y[part] - row) ** 2 + (x[part] - column) ** 2 <= reach ** 2
    assert not (near & (pixels == [0, 0, 255]).all(axis=2)).any()


def test_scripts_from_right_to_left_begin_on_the_right(texts: Client):
    pixels = process(texts, {**HELLO, "text": {**HELLO["text"], "text": "אבגדהוזחט\nא"}})
    left, top, right, bottom = box(pixels)
    second = box(pixels[bottom - 20:])
    assert second[0] > left + 100 and second[2] > right - 10


def test_errors_name_the_field(texts: Client):
    for text, field in [
        ({"text": "a" * 1001}, "text.text has 1001 bytes"),
        ({"text": "a\x1b[0m"}, "text.text contains the control character U+001B"),
        ({"text": "a", "font": "No such family"}, 'text.font is "No such family"'),
        ({"text": "a", "font": "/etc/passwd"}, 'text.font is "/etc/passwd"'),
        ({"text": "a", "size": 1e9}, "text.size is 1000000000"),
        ({}, "text.text is not set"),
    ]:
        with pytest.raises(grpc.RpcError) as error:
            process(texts, {"text": text})
        assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert f"overlays[0].{field}" in error.value.details(), error.value.details()


def test_every_frame_rendition_and_preset_has_the_text(tmp_path):
    presets = tmp_path / "presets.yaml"
    presets.write_text(
        "presets: {marked: {preferred_format: png, max_width: 200, overlays: "
        "[{gravity: south, text: {text: © Example, relative_size: 0.2, outline_width: 0.1}}]}}\n")
    worker = Worker("--presets", str(presets))
    try:
        client = Client(worker)
        data = b"".join(
            part.chunk for part in client.process(PLAIN, preset="marked") if part.WhichOneof("part") == "chunk")
        left, top, right, bottom = box(numpy.asarray(Image.open(io.BytesIO(data)).convert("RGB")))
        assert top > 60 and bottom <= 100 and 40 < left and right < 160
        message = client.message("ProcessImageRequest")(
            image=fixture_bytes("animated-transparent.gif"),
            configuration={"preferred_format": "OUTPUT_FORMAT_GIF", "max_frames": 0, "overlays": [
                {"text": {"text": "x", "box_color": {"green": 255}, "relative_size": 1}, "tile": True}]})
        parts = client.call("ProcessImage", "unary_stream")(message, timeout=60)
        animation = Image.open(io.BytesIO(
            b"".join(part.chunk for part in parts if part.WhichOneof("part") == "chunk")))
        assert animation.n_frames > 1
        for frame in range(animation.n_frames):
            animation.seek(frame)
            pixels = numpy.asarray(animation.convert("RGB")).astype(int)
            assert (abs(pixels - [0, 255, 0]).max(axis=2) < 40).mean() > 0.3
    finally:
        worker.stop()


@pytest.mark.parametrize("isolation", ["none", pytest.param("process", marks=built_in("isolation"))])
def test_fonts_of_a_directory(tmp_path, isolation: str):
    fonts = tmp_path / "fonts"
    fonts.mkdir()
    font = Path("/usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf").read_bytes()
    for encoding in ("ascii", "utf-16-be"):  # another family, whose name is as long
        font = font.replace("DejaVu".encode(encoding), "Housed".encode(encoding))
    (fonts / "housed.ttf").write_bytes(font)
    house = {**HELLO, "text": {**HELLO["text"], "font": "Housed Sans Mono"}}
    worker = Worker("--fonts", str(fonts), "--isolation", isolation)
    try:
        client = Client(worker)
        mono = {**HELLO, "text": {**HELLO["text"], "font": "DejaVu Sans Mono"}}
        assert (process(client, house) == process(client, mono)).all()
    finally:
        worker.stop()


def test_the_directory_of_fonts_must_exist(tmp_path):
    program = [os.environ["IMAGE_WORKER"], "serve", "--port", "0", "--fonts", str(tmp_path / "none")]
    failed = subprocess.run(program, capture_output=True, text=True, timeout=60)
    assert failed.returncode != 0 and "must be a directory" in failed.stderr


def test_commands_draw_texts(tmp_path):
    (tmp_path / "plain.png").write_bytes(PLAIN)
    program, out = os.environ["IMAGE_WORKER"], tmp_path / "out.png"
    overlay = r"text=One\, two\nthree,size=30,gravity=south-east,color=#ff0000"
    subprocess.run([program, "process", tmp_path / "plain.png", "--overlay", overlay, "--out", out], check=True, timeout=60)
    pixels = numpy.asarray(Image.open(out).convert("RGB")).astype(int)
    left, top, right, bottom = box(pixels)
    assert left > 250 and top > 110 and right > 380 and bottom > 180
    assert (pixels == [255, 0, 0]).all(axis=2).sum() > 100
