"""Animations through the worker: every frame next to Pillow's, whose WebP decoder is libwebp's own, and memory."""

import io
import random
from pathlib import Path

import apng_reference
import grpc
import pytest
from conftest import Client, Worker
from frame_sequences import merged
from google.rpc import error_details_pb2
from PIL import GifImagePlugin, Image, ImageChops
from test_calls import details, parts

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"
PNG, WEBP, JPEG, GIF, AUTO = 3, 4, 2, 6, 8

GifImagePlugin.LOADING_STRATEGY = GifImagePlugin.LoadingStrategy.RGB_ALWAYS


def frames_of(file: bytes) -> list:
    """The frames as Pillow shows them, each with its duration in ms."""
    frames = []
    with Image.open(io.BytesIO(file)) as image:
        first = 1 if getattr(image, "default_image", False) else 0  # an image that is no frame
        for index in range(first, getattr(image, "n_frames", 1)):
            image.seek(index)
            image.load()
            frames.append((image.convert("RGBA"), image.info.get("duration") or 0))
    return frames


def largest_difference(a: Image.Image, b: Image.Image, ignores_transparent: bool) -> int:
    """The largest difference of samples. `a` may be transparent where `b` has a background color."""
    def visible(image, alpha):
        flat = Image.new("RGBA", image.size)
        flat.paste(image, mask=alpha.point(lambda value: 255 if value else 0))
        return flat

    alpha_b = a.getchannel("A") if ignores_transparent else b.getchannel("A")
    pair = ImageChops.difference(visible(a, a.getchannel("A")), visible(b, alpha_b))
    return max(high for _, high in pair.getextrema())


def animations() -> list:
    """Animations that Pillow decodes as browsers do."""
    # Pillow leaves red what the one says becomes green again, and enlarges the canvas of the other.
    differing = {"imgrs--fcTL-dispose-in-region-previous.png", "wuffs--frame-out-of-bounds.gif"}
    found = []
    for path in sorted(CORPUS.glob("0[367]-*/*")):
        if path.suffix in (".gif", ".webp", ".png") and path.name not in differing and path.stat().st_size < 300_000:
            try:
                with Image.open(path) as image:
                    if getattr(image, "n_frames", 1) > 1 and image.width * image.height * image.n_frames < 5_000_000:
                        image.seek(image.n_frames - 1)
                        image.load()
                        found.append(path)
            except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError):
                continue
    return found


@pytest.mark.skipif(not CORPUS.is_dir(), reason="there is no ../shared/corpus")
@pytest.mark.parametrize("format", [PNG, WEBP])
@pytest.mark.parametrize("path", animations() if CORPUS.is_dir() else [], ids=lambda path: path.name)
def test_every_frame_of_the_corpus(client, path, format):
    configuration = {"max_frames": 0, "preferred_format": format, "webp": {"lossless": True}}
    try:
        responses = parts(client.process(path.read_bytes(), **configuration))
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.INVALID_ARGUMENT and "invalid" in path.name, error.details()
        return
    report = responses[-1][1].report
    result = frames_of(b"".join(r.chunk for kind, r in responses if kind == "chunk"))
    expected = frames_of(path.read_bytes())
    assert report.input.frame_count == len(expected) and report.output.frame_count == len(result)
    assert not [w.code for w in report.warning_details if w.code == 19]
    ours, theirs = merged(result), merged(expected)
    if len(ours) != len(theirs):  # frames that differ only in what Pillow's background color hides
        assert path.suffix == ".gif"
        return
    for index, ((one, took), (other, takes)) in enumerate(zip(ours, theirs)):
        # libwebp's blending rounds in another way in some versions, as does Pillow's of APNG.
        assert largest_difference(one, other, path.suffix == ".gif") <= (0 if path.suffix == ".gif" else 1), index
        assert abs(took - takes) < 1, index


def drawn(generator: random.Random, size: tuple, has_alpha: bool) -> Image.Image:
    image = Image.new("RGBA", size, (0, 0, 0, 0) if has_alpha else (40, 80, 120, 255))
    for _ in range(generator.randint(1, 5)):
        left, top = generator.randrange(size[0]), generator.randrange(size[1])
        box = (left, top, generator.randint(left + 1, size[0]), generator.randint(top + 1, size[1]))
        opacity = generator.choice([255, 128, 0]) if has_alpha else 255
        image.paste((*(generator.randrange(6) * 40 for _ in range(3)), opacity), box)
    return image


def generated(seed: int, suffix: str) -> bytes:
    """An animation whose frames differ, with the disposals and blendings of APNG."""
    generator = random.Random(f"{seed}{suffix}")
    has_alpha = suffix != "GIF" and generator.random() < 0.7
    size = (generator.randint(2, 70), generator.randint(2, 70))
    frames = [drawn(generator, size, has_alpha)]
    for index in range(generator.randint(1, 6)):
        frame = frames[-1].copy()
        frame.paste(drawn(generator, (20, 20), has_alpha), (generator.randrange(size[0]), generator.randrange(size[1])))
        frame.putpixel((0, 0), (255, index * 40, 9, 255))
        frames.append(frame)
    options = {
        "GIF": {"optimize": False},  # Pillow neither clears nor restores as browsers do
        "PNG": {
            "disposal": [generator.choice([0, 1, 2]) for _ in frames], "blend": [generator.choice([0, 1]) for _ in frames]},
        "WEBP": {"lossless": generator.random() < 0.5, "minimize_size": generator.random() < 0.5},
    }[suffix]
    if suffix == "GIF":
        frames = [frame.convert("RGB").quantize(64) for frame in frames]
    file = io.BytesIO()
    durations = [generator.choice([20, 30, 500]) for _ in frames]
    frames[0].save(file, suffix, save_all=True, append_images=frames[1:], duration=durations, loop=3, **options)
    return file.getvalue()


@pytest.mark.parametrize("format", [PNG, WEBP])
@pytest.mark.parametrize("suffix", ["GIF", "PNG", "WEBP"])
def test_every_frame_of_generated_animations(client, suffix, format):
    for seed in range(12):
        image = generated(seed, suffix)
        options = {"preferred_format": format, "webp": {"lossless": True}, "always_encode": True}
        responses = parts(client.process(image, max_frames=0, **options))
        result = b"".join(r.chunk for kind, r in responses if kind == "chunk")
        expected = apng_reference.frames_of(image) if suffix == "PNG" else frames_of(image)
        ours, theirs = merged(frames_of(result)), merged(expected)
        assert len(ours) == len(theirs) > 1, seed
        for index, ((one, took), (other, takes)) in enumerate(zip(ours, theirs)):
            assert largest_difference(one, other, suffix == "GIF") <= (0 if suffix == "GIF" else 1), (seed, index)
            assert abs(took - takes) < 1, (seed, index)


@pytest.mark.parametrize("suffix", ["GIF", "PNG", "WEBP"])
def test_an_unchanged_animation_is_passed_through(client, suffix):
    for seed in range(6):
        image = generated(seed, suffix)
        responses = parts(client.process(image, max_frames=0))
        report = responses[-1][1].report
        result = b"".join(r.chunk for kind, r in responses if kind == "chunk")
        assert report.passthrough and len(result) <= len(image)
        before, after = frames_of(image), frames_of(result)
        assert [(a.tobytes(), took) for a, took in after] == [(b.tobytes(), took) for b, took in before]
        assert report.output.frame_count == len(before) == report.input.frame_count
        assert report.output.duration.ToMilliseconds() == sum(took for _, took in before)


@pytest.mark.parametrize("format", [WEBP, GIF])
def test_max_bytes_holds_for_all_frames(client, format):
    image = moving(160, 120, 12)
    options = {"max_frames": 0, "max_width": 120, "compression_quality": 0.9, "preferred_format": format}
    size = parts(client.process(image, **options))[-1][1].report.output_bytes
    responses = parts(client.process(image, **options, max_bytes=size // 2))
    result = b"".join(r.chunk for kind, r in responses if kind == "chunk")
    report = responses[-1][1].report
    assert size // 6 < len(result) == report.output_bytes <= size // 2
    assert len(frames_of(result)) == report.output.frame_count == 12
    if format == WEBP:
        assert 0 < report.compression_quality < 0.9


def test_the_last_frame_of_a_gif_in_one_message(client):
    image = moving(60, 60, 4)
    whole = parts(client.process(image, frame_index=-1, preferred_format=PNG))
    same = parts(client.process(image, frame_index=3, preferred_format=PNG))
    assert [r.chunk for kind, r in whole if kind == "chunk"] == [r.chunk for kind, r in same if kind == "chunk"]
    error = refused(client, image, frame_index=-5, preferred_format=PNG)
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT and "4 frames" in error.details()


def moving(width: int, height: int, count: int) -> bytes:
    """A GIF in which a square moves over a texture."""
    noise = random.Random(3)
    texture = Image.frombytes("P", (width, height), noise.randbytes(width * height))
    texture.putpalette(list(range(256)) * 3)
    frames = []
    for index in range(count):
        frame = texture.copy()
        frame.paste(index % 250, (index % (width - 40), 20, index % (width - 40) + 40, 60))
        frames.append(frame)
    file = io.BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:], duration=40, loop=0)
    return file.getvalue()


def test_memory_does_not_grow_with_the_number_of_frames():
    worker = Worker("--cache-memory-mib", "0", "--threads", "1")
    try:
        client, peaks = Client(worker), []
        for count in (10, 300):
            image = moving(480, 270, count)
            responses = parts(client.process(image, max_frames=0, max_width=240, preferred_format=WEBP))
            report = responses[-1][1].report
            assert report.output.frame_count == count and report.output.duration.ToMilliseconds() == 40 * count
            peaks.append(report.peak_memory_bytes)
        assert peaks[1] < peaks[0] + (2 << 20) and peaks[1] < 16 << 20, peaks
    finally:
        assert worker.stop() == 0, "".join(worker.log)


def refused(client, image: bytes, **configuration):
    with pytest.raises(grpc.RpcError) as caught:
        parts(client.process(image, **configuration))
    return caught.value


def test_limits_of_animations_are_named():
    worker = Worker("--cache-memory-mib", "0", "--max-animation-frames", "5", "--max-animation-pixels", "40000")
    try:
        client, image = Client(worker), moving(100, 100, 8)
        for count, limit in ((0, "max_animation_pixels"), (4, None), (3, None)):
            if limit is None:
                assert parts(client.process(image, max_frames=count, preferred_format=PNG))[-1][1].report.output_bytes
                continue
            error = refused(client, image, max_frames=count, preferred_format=PNG)
            assert error.code() == grpc.StatusCode.FAILED_PRECONDITION
            violations = [v for f in details(error, error_details_pb2.PreconditionFailure) for v in f.violations]
            assert [v.subject for v in violations] == [limit]
        small = moving(60, 61, 8)
        error = refused(client, small, max_frames=0, preferred_format=PNG)
        assert "max_animation_frames" in error.details()
    finally:
        assert worker.stop() == 0, "".join(worker.log)


def test_frames_that_do_not_exist_and_fields_that_do_not_fit(client):
    image = moving(60, 60, 3)
    error = refused(client, image, frame_index=3, preferred_format=PNG)
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert [v.field for b in details(error, error_details_pb2.BadRequest) for v in b.field_violations] == [
        "configuration.frame_index"]
    error = refused(client, image, max_frames=0, max_bytes=1000, allow_smaller_dimensions=True, preferred_format=WEBP)
    assert error.code() == grpc.StatusCode.UNIMPLEMENTED and "allow_smaller_dimensions" in error.details()
    error = refused(client, image, max_frames=0, max_bytes=100, preferred_format=WEBP)
    assert error.code() == grpc.StatusCode.FAILED_PRECONDITION and "max_bytes" in error.details()


def test_frames_are_left_out_where_a_limit_requires_it(client):
    image = moving(60, 60, 24)
    options = {"max_frames": 0, "preferred_format": PNG}
    limit = parts(client.process(image, **options))[-1][1].report.output_bytes * 3 // 4
    error = refused(client, image, **options, max_bytes=limit)
    assert error.code() == grpc.StatusCode.FAILED_PRECONDITION
    responses = parts(client.process(image, **options, max_bytes=limit, allow_lower_frame_rate=True))
    report, data = responses[-1][1].report, b"".join(part.chunk for _, part in responses)
    frames = frames_of(data)
    assert len(data) <= limit and report.output.frame_count == len(frames)
    assert len(frames) in (12, 8, 6) and {duration for _, duration in frames} == {40 * 24 / len(frames)}


def apng(delay: tuple, count: int = 5) -> bytes:
    frames, file = [Image.new("RGB", (40, 30), (50 * (index % 5), 0, 0)) for index in range(count)], io.BytesIO()
    frames[0].save(file, "PNG", save_all=True, append_images=frames[1:], duration=1, loop=0)
    stored = []
    for kind, body in apng_reference.chunks(file.getvalue()):
        if kind == b"fcTL":
            body = body[:20] + b"".join(number.to_bytes(2, "big") for number in delay) + body[24:]
        stored.append(apng_reference.chunk(kind, body))
    return file.getvalue()[:8] + b"".join(stored)


@pytest.mark.parametrize("always_encode", [False, True])
def test_an_animation_that_ends_before_a_frame_is_truncated(client, always_encode):
    file = apng((1, 10))
    cuts = [file.index(b"fcTL", file.index(b"fdAT")) - 4 + more for more in (0, 4, 10)]
    for image in [file[:cut] for cut in cuts]:
        error = refused(client, image, max_frames=0, always_encode=always_encode)
        assert details(error, error_details_pb2.ErrorInfo)[0].reason == "TRUNCATED_IMAGE"
    file = moving(60, 60, 3)
    control = file.index(b"\x21\xf9\x04", file.index(b"\x21\xf9\x04") + 9)
    for cut in control + 2, control + 5, control + 8, control + 14, control + 30:
        error = refused(client, file[:cut], max_frames=0, always_encode=always_encode)
        assert details(error, error_details_pb2.ErrorInfo)[0].reason == "TRUNCATED_IMAGE", cut - control
    # What lacks only its end is complete.
    report = parts(client.process(file[:-1], max_frames=0, always_encode=always_encode))[-1][1].report
    assert report.output.frame_count == 3


@pytest.mark.parametrize("delay, took", [((1, 60), 20), ((12, 1000), 20), ((1, 100), 10), ((1, 30), 33.3)])
def test_frames_of_more_than_10_ms_are_not_stored_with_10(client, delay, took):
    result = b"".join(r.chunk for r in client.process(apng(delay, 60), max_frames=0, preferred_format=GIF))
    durations = [duration for _, duration in frames_of(result)]
    assert len(durations) == 60 and abs(sum(durations) / 60 - took) < 0.1 and (took == 10 or min(durations) >= 20)


def test_a_wide_animation_gets_a_format_that_stores_it(client):
    frames, file = [Image.new("L", (20_000, 2), level) for level in (0, 255)], io.BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:], duration=100)
    report = parts(client.process(file.getvalue(), max_frames=0, preferred_format=AUTO, always_encode=True))[-1][1].report
    assert report.output.format == "png" and report.output.frame_count == 2


def test_a_still_format_gets_one_frame_with_a_warning_and_a_preview_too(client):
    image = moving(60, 60, 3)
    report = parts(client.process(image, max_frames=0, preferred_format=JPEG))[-1][1].report
    assert [w.code for w in report.warning_details if w.code == 19] == [19]
    responses = list(client.process(image, max_frames=0, preferred_format=WEBP, preview=True))
    preview = b"".join(r.chunk for r in responses if r.is_preview)
    result = b"".join(r.chunk for r in responses if not r.is_preview)
    assert len(frames_of(result)) == 3 and (not preview or len(frames_of(preview)) == 1)


def test_an_apng_of_one_frame_behind_a_default_image_shows_that_frame(client):
    def image_data(color):
        stored = Image.new("RGB", (20, 10), color)
        file = io.BytesIO()
        stored.save(file, "PNG")
        return list(apng_reference.chunks(file.getvalue()))

    still, frame = image_data("gray"), image_data("red")
    number = lambda *values: b"".join(value.to_bytes(4, "big") for value in values)  # noqa: E731
    data = b"".join(body for kind, body in frame if kind == b"IDAT")
    parts_of_file = [still[0], (b"acTL", number(1, 0)), *still[1:-1],
                     (b"fcTL", number(0, 20, 10, 0, 0) + bytes([0, 7, 0, 100, 0, 0])), (b"fdAT", number(1) + data), still[-1]]
    file = b"\x89PNG\r\n\x1a\n" + b"".join(apng_reference.chunk(kind, body) for kind, body in parts_of_file)
    for options, color in (({}, (128, 128, 128)), ({"max_frames": 0}, (255, 0, 0)), ({"frame_index": 0}, (255, 0, 0))):
        responses = parts(client.process(file, **options, preferred_format=WEBP, always_encode=True))
        shown, _ = frames_of(b"".join(part.chunk for _, part in responses))[0]
        assert max(abs(a - b) for a, b in zip(shown.getpixel((5, 5))[:3], color)) < 12


@pytest.mark.parametrize("format", [PNG, WEBP, GIF])
def test_an_animation_of_equal_frames_keeps_its_duration(client, format):
    image, file = Image.new("RGB", (40, 30), "teal"), io.BytesIO()
    dotted = image.copy()
    dotted.putpixel((0, 0), (0, 0, 0))
    dotted.save(file, "GIF", save_all=True, append_images=[image, dotted], duration=[50, 60, 70], loop=0)
    # Cropped, all of its frames are equal.
    crop = {"x": 10, "y": 10, "width": 20, "height": 10}
    for limit in ({}, {"max_bytes": 100_000}):
        responses = parts(client.process(file.getvalue(), max_frames=0, crop=crop, preferred_format=format, **limit))
        report, data = responses[-1][1].report, b"".join(part.chunk for _, part in responses)
        assert report.output.frame_count == 1 and report.output.duration.ToMilliseconds() == 180
        marks = {PNG: b"acTL", WEBP: b"ANMF", GIF: b"\x21\xf9\x04"}
        assert data.count(marks[format]) == 1
        if format == WEBP:  # of which Pillow ignores the duration of a single frame
            at = data.index(b"ANMF") + 20
            assert int.from_bytes(data[at:at + 3], "little") == 180
        elif format == GIF:
            with Image.open(io.BytesIO(data)) as result:
                assert result.info["duration"] == 180
