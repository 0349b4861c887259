"""Tests of overlays, compared with libvips and Pillow; images come with requests or from the worker's directory."""

import io
import signal
import subprocess
import time

import grpc
import numpy
import os
import pytest
from conftest import Client, Worker, fixture_bytes
from PIL import Image

PHOTO = fixture_bytes("photo-420.jpg")


def encoded(image: Image.Image) -> bytes:
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def noise(width: int, height: int, mode: str, seed: int) -> Image.Image:
    channels = len(mode)
    samples = numpy.random.default_rng(seed).integers(0, 256, (height, width, channels), dtype=numpy.uint8)
    return Image.fromarray(samples, mode)


LOGO = noise(33, 21, "RGBA", 1)


def joined(parts) -> bytes:
    return b"".join(part.chunk for part in parts if part.WhichOneof("part") == "chunk")


def request(client, image: bytes, overlays, images, **configuration):
    configuration = {"preferred_format": "OUTPUT_FORMAT_PNG", "overlays": overlays, **configuration}
    return client.message("ProcessImageRequest")(
        image=image, configuration=configuration,
        auxiliary_images=[{"name": name, "image": data} for name, data in images.items()])


def process(client, image: bytes, overlays, images, **configuration) -> Image.Image:
    message = request(client, image, overlays, images, **configuration)
    return Image.open(io.BytesIO(joined(client.call("ProcessImage", "unary_stream")(message, timeout=60))))


def difference(one: Image.Image, other: Image.Image) -> int:
    """Returns the largest difference of alpha, and of color as far as alpha shows it."""
    assert one.size == other.size
    first, second = (numpy.asarray(image.convert("RGBA"), dtype=float) for image in (one, other))
    differences = abs(first - second)
    differences[..., :3] *= first[..., 3:] / 255
    return int(numpy.ceil(differences.max() - 1e-6))


@pytest.mark.parametrize("mode, blend", [("RGB", "OVER"), ("RGBA", "OVER"), ("RGB", "MULTIPLY"), ("RGB", "SCREEN")])
def test_results_are_those_of_libvips_within_a_level(client: Client, mode: str, blend: str):
    """libvips multiplies and screens premultiplied colors, so that only clear and opaque pixels are as W3C defines them."""
    pyvips = pytest.importorskip("pyvips")
    base, logo = noise(200, 150, mode, 2), LOGO.copy()
    if blend != "OVER":
        logo.putalpha(logo.getchannel("A").point(lambda alpha: 255 if alpha > 100 else 0))
    overlay = {
        "image": "logo", "blend": f"OVERLAY_BLEND_{blend}", "gravity": "GRAVITY_NORTH_WEST", "x": 40, "y": 30}
    drawn = process(client, encoded(base), [overlay], {"logo": encoded(logo)})
    one, other = (pyvips.Image.new_from_buffer(encoded(image), "") for image in (base, logo))
    composed = one.composite2(other, blend.lower(), x=40, y=30).rint().cast("uchar")
    expected = Image.fromarray(composed.numpy(), "RGBA")
    assert difference(drawn, expected) <= 1


@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
def test_results_are_those_of_pillow_within_a_level(client: Client, mode: str):
    base = noise(200, 150, mode, 3)
    overlay = {"image": "logo", "gravity": "GRAVITY_SOUTH_EAST", "x": 10, "y": 20}
    drawn = process(client, encoded(base), [overlay], {"logo": encoded(LOGO)})
    layer = Image.new("RGBA", base.size)
    layer.paste(LOGO, (200 - 33 - 10, 150 - 21 - 20))
    assert difference(drawn, Image.alpha_composite(base.convert("RGBA"), layer)) <= 1


def test_an_overlay_is_resized_turned_and_tiled(client: Client):
    red = encoded(Image.new("RGB", (20, 10), "red"))
    plain = encoded(Image.new("RGB", (100, 80), "blue"))
    turned = process(client, plain, [{"image": "logo", "scale": 0.2, "rotation": 90}], {"logo": red})
    assert turned.convert("RGB").getcolors() is not None
    assert dict((color, count) for count, color in turned.convert("RGB").getcolors())[255, 0, 0] == 20 * 40
    striped = encoded(Image.merge("RGB", [Image.new("L", (4, 2), level) for level in (255, 0, 0)]).crop((0, 0, 8, 2)))
    tiled = process(client, plain, [{"image": "logo", "tile": True, "gravity": "GRAVITY_NORTH_WEST"}], {"logo": striped})
    assert [tiled.convert("RGB").getpixel((x, 70)) for x in (0, 4, 8, 99)] == [
        (255, 0, 0), (0, 0, 0), (255, 0, 0), (255, 0, 0)]


def test_errors_name_the_field(client: Client):
    for overlays, images, text in [
        ([{"image": "other"}], {"logo": encoded(LOGO)}, "overlays[0].image is \"other\""),
        ([{"image": "logo"}], {"logo": b"no image"}, "overlays[0].image is \"logo\""),
        ([{"image": "logo"}] * 9, {"logo": encoded(LOGO)}, "overlays has 9 entries"),
        ([{"image": "logo", "opacity": 3}], {"logo": encoded(LOGO)}, "overlays[0].opacity is 3"),
    ]:
        with pytest.raises(grpc.RpcError) as error:
            process(client, PHOTO, overlays, images)
        assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT and text in error.value.details()


def test_the_directory_is_read_at_the_start_and_reloaded(tmp_path):
    directory = tmp_path / "overlays"
    directory.mkdir()
    Image.new("RGB", (10, 10), "red").save(directory / "logo.png")
    presets = tmp_path / "presets.yaml"
    presets.write_text(
        "presets: {marked: {preferred_format: png, overlays: [{image: logo, gravity: north_west}]}}\n")
    worker = Worker("--overlays", str(directory), "--presets", str(presets), "--only-presets")
    try:
        client = Client(worker)

        def corner() -> tuple[int, ...]:
            data = joined(client.process(encoded(Image.new("RGB", (50, 50))), preset="marked"))
            return Image.open(io.BytesIO(data)).convert("RGB").getpixel((5, 5))

        def reload(text: str) -> None:
            before = len(worker.log)
            worker.process.send_signal(signal.SIGHUP)
            deadline = time.monotonic() + 60
            while not any(text in line for line in worker.log[before:]):
                assert time.monotonic() < deadline
                time.sleep(0.05)

        assert corner() == (255, 0, 0)
        Image.new("RGB", (10, 10), "lime").save(directory / "logo.png")
        assert corner() == (255, 0, 0)
        reload("overlays reloaded")
        assert corner() == (0, 255, 0)
        (directory / "text.png").write_text("no image")
        reload("the directory of overlays cannot be used")
        assert corner() == (0, 255, 0)
        message = client.message("ProcessImageRequest")(
            image=PHOTO, preset="marked", auxiliary_images=[{"name": "logo", "image": encoded(LOGO)}])
        with pytest.raises(grpc.RpcError) as error:
            list(client.call("ProcessImage", "unary_stream")(message, timeout=60))
        assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    finally:
        worker.stop()
    program = [os.environ["IMAGE_WORKER"], "serve", "--port", "0", "--overlays", str(directory)]
    failed = subprocess.run(program, capture_output=True, text=True, timeout=60)
    assert failed.returncode != 0 and "text.png is not an image" in failed.stderr


def test_commands_draw_files_and_images_of_a_directory(tmp_path):
    Image.new("RGB", (60, 40), "blue").save(tmp_path / "photo.png")
    for name in "logo.png", "logo, red.png":
        Image.new("RGB", (10, 10), "red").save(tmp_path / name)
    program = os.environ["IMAGE_WORKER"]
    for options in (["--overlay", f"{tmp_path}/logo.png,gravity=south-east"],
                    ["--overlay", rf"{tmp_path}/logo\, red.png,gravity=south-east"],
                    ["--overlays", str(tmp_path), "--overlay", "logo,gravity=south-east"]):
        out = tmp_path / "out.png"
        subprocess.run([program, "process", tmp_path / "photo.png", *options, "--out", out], check=True, timeout=60)
        result = Image.open(out).convert("RGB")
        assert (result.getpixel((55, 35)), result.getpixel((5, 5))) == ((255, 0, 0), (0, 0, 255))
    failed = subprocess.run(
        [program, "process", tmp_path / "photo.png", "--overlay", "none", "--out", out], capture_output=True, text=True,
        timeout=60)
    assert failed.returncode == 1 and 'the overlay "none" is not there' in failed.stdout + failed.stderr
