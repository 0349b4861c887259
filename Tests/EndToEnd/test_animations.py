"""Animations through the worker: every frame next to Pillow's, whose WebP decoder is libwebp's own, and memory."""

import io
import random
from pathlib import Path

import grpc
import pytest
from conftest import Client, Worker
from google.rpc import error_details_pb2
from PIL import GifImagePlugin, Image, ImageChops
from test_calls import details, parts

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"
PNG, WEBP, JPEG = 3, 4, 2

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


def merged(frames: list) -> list:
    """Frames with equal ones in sequence made one, except short ones."""
    result = []
    for image, duration in frames:
        if result and duration > 10 and result[-1][1] > 10 and result[-1][0].tobytes() == image.tobytes():
            result[-1] = (image, result[-1][1] + duration)
        else:
            result.append((image, duration))
    return result


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
    error = refused(client, image, max_frames=0, max_bytes=1000, preferred_format=WEBP)
    assert error.code() == grpc.StatusCode.UNIMPLEMENTED and "max_bytes" in error.details()


def test_a_still_format_gets_one_frame_with_a_warning_and_a_preview_too(client):
    image = moving(60, 60, 3)
    report = parts(client.process(image, max_frames=0, preferred_format=JPEG))[-1][1].report
    assert [w.code for w in report.warning_details if w.code == 19] == [19]
    responses = list(client.process(image, max_frames=0, preferred_format=WEBP, preview=True))
    preview = b"".join(r.chunk for r in responses if r.is_preview)
    result = b"".join(r.chunk for r in responses if not r.is_preview)
    assert len(frames_of(result)) == 3 and (not preview or len(frames_of(preview)) == 1)
