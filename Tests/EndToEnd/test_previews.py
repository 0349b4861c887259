"""Tests of previews before results, and of items that replace each other; the client groups parts by their tags."""

import io
import queue
from collections import defaultdict
from pathlib import Path

import grpc
import pytest
from conftest import Client, Worker, fixture_bytes
from PIL import Image, ImageChops, ImageOps, ImageStat

# Without the corpus, the photograph is an enlarged fixture.
CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
PHOTO = fixture_bytes("photo-420.jpg")


def corpus(name: str) -> bytes:
    path = CORPUS / name
    if path.exists():
        return path.read_bytes()
    enlarged = io.BytesIO()
    Image.open(io.BytesIO(PHOTO)).resize((4032, 2688)).save(
        enlarged, "JPEG", quality=85, progressive="book" in name)
    return enlarged.getvalue()


class Result:
    def __init__(self):
        self.data, self.kinds, self.places, self.header, self.report, self.error = b"", [], [], None, None, None

    def take(self, part, place: int) -> None:
        kind = part.WhichOneof("part")
        self.kinds.append(kind)
        self.places.append(place)
        if kind == "chunk":
            self.data += part.chunk
        else:
            setattr(self, kind, getattr(part, kind))

    @property
    def decoded(self) -> Image.Image:
        return Image.open(io.BytesIO(self.data))


def gather(parts) -> dict[tuple[str, bool], Result]:
    """Returns results by item and by whether they are previews."""
    results = defaultdict(Result)
    for place, part in enumerate(parts):
        results[getattr(part, "item_id", ""), part.is_preview].take(part, place)
    return results


def request(client, image: bytes, **configuration):
    return client.message("ProcessImageRequest")(
        image=image, preview=True, configuration=client.message("ProcessingConfiguration")(**configuration))


def process(client, image: bytes, preview: bool = True, **configuration) -> dict[tuple[str, bool], Result]:
    return gather(client.process(image, timeout=120, preview=preview, **configuration))


def start(client, item: str, key: str = "", image: bytes = b"", preview: bool = True, **configuration):
    message = client.start(item, image=image)
    message.start.preview, message.start.preview_key = preview, key
    for name, value in configuration.items():
        setattr(message.start.configuration, name, value)
    return message


def check(preview: Result, result: Result, form: str = "JPEG", tolerance: float = 3) -> None:
    assert preview.kinds[0] == "header" and preview.kinds[-1] == "report" and preview.kinds.count("chunk") > 0
    assert max(preview.places) < min(result.places), "the preview is whole before the result begins"
    assert result.kinds[0] == "header" and result.kinds[-1] == "report"
    small, large = preview.decoded, result.decoded
    assert small.format == form
    assert small.size == (preview.header.width, preview.header.height)
    factor = min(1, 300 / max(large.size))
    assert small.size == tuple(max(1, round(side * factor)) for side in large.size)
    assert not small.getexif() and not small.info.get("icc_profile")
    # The preview shows the result: the same image, as far as its size permits.
    shown = large.convert("RGBA").resize(small.size, Image.Resampling.BOX)
    both = [Image.alpha_composite(Image.new("RGBA", small.size, "white"), one.convert("RGBA")).convert("RGB")
            for one in (small, shown)]
    means = [ImageStat.Stat(one).mean for one in both]
    assert max(abs(a - b) for a, b in zip(*means)) < tolerance
    assert max(ImageStat.Stat(ImageChops.difference(*both)).mean) < 3 * tolerance


@pytest.mark.parametrize("name", [
    "12-photos/mei--Issue_525.jpg", "12-photos/avif--dog_exif_extended_xmp_icc.jpg",
    "12-photos/immich--book-beside-flowers.jpg"])
def test_a_photograph_of_12_megapixels_is_seen_before_its_result_begins(client, name):
    image = corpus(name)
    configuration = {"max_width": 1280, "max_height": 1280, "compression_quality": 0.8}
    both = process(client, image, **configuration)
    alone = process(client, image, preview=False, **configuration)
    check(both["", True], both["", False])
    assert set(alone) == {("", False)} and alone["", False].data == both["", False].data
    assert both["", True].report.input.width == alone["", False].report.input.width


def test_a_photograph_that_is_passed_on_is_passed_on_with_a_preview_too(client):
    both = process(client, PHOTO)
    alone = process(client, PHOTO, preview=False)
    check(both["", True], both["", False])
    assert both["", False].report.passthrough and not both["", True].report.passthrough
    assert both["", False].data == alone["", False].data


def test_a_thumbnail_in_the_exif_is_not_shown(client):
    """It may show content that was later cropped or painted over."""
    thumbnail = io.BytesIO()
    Image.new("RGB", (160, 120), "red").save(thumbnail, "JPEG")
    exif = Image.Exif()
    exif[0x0112] = 1
    body = thumbnail.getvalue()
    # A second IFD with the thumbnail, as cameras write it.
    tiff = b"II*\0\x08\0\0\0" + (0).to_bytes(2, "little") + (14).to_bytes(4, "little")
    entries = [(0x0103, 3, 6), (0x0201, 4, 14 + 2 + 36 + 4), (0x0202, 4, len(body))]
    tiff += len(entries).to_bytes(2, "little")
    for tag, kind, value in entries:
        tiff += tag.to_bytes(2, "little") + kind.to_bytes(2, "little") + (1).to_bytes(4, "little") + value.to_bytes(4, "little")
    segment = b"Exif\0\0" + tiff + bytes(4) + body
    image = PHOTO[:2] + b"\xff\xe1" + (len(segment) + 2).to_bytes(2, "big") + segment + PHOTO[2:]
    assert body in image
    both = process(client, image, max_width=200)
    check(both["", True], both["", False])
    assert all(body not in result.data for result in both.values())


@pytest.mark.parametrize("orientation", [1, 3, 6, 8])
def test_a_preview_is_upright(client, orientation):
    image = fixture_bytes(f"orientation-{orientation}.jpg")
    both = process(client, image, max_width=900, max_height=900, allow_upscale=True)
    check(both["", True], both["", False])
    upright = ImageOps.exif_transpose(Image.open(io.BytesIO(image))).convert("RGB")
    preview = both["", True].decoded.convert("RGB").resize(upright.size)
    assert max(ImageStat.Stat(ImageChops.difference(preview, upright)).mean) < 12


def test_transparency_stays(client):
    both = process(client, fixture_bytes("alpha.png"), max_width=800, allow_upscale=True)
    check(both["", True], both["", False], form="PNG")
    assert both["", True].header.has_alpha and both["", True].decoded.mode == "RGBA"
    low, high = both["", True].decoded.getchannel("A").getextrema()
    assert low < 128 < high or low < high


def test_filters_look_as_in_the_result(client):
    message = request(client, PHOTO, max_width=1200, allow_upscale=True)
    message.configuration.filters.add(name="blur", intensity=1).parameters["radius"] = 24
    message.configuration.filters.add(name="sepia", intensity=1)
    both = gather(client.call("ProcessImage", "unary_stream")(message, timeout=60))
    check(both["", True], both["", False])


@pytest.mark.parametrize("name", ["12-photos/mei--Issue_525.jpg", "12-photos/immich--book-beside-flowers.jpg"])
def test_uploads_in_chunks_have_previews(client, name):
    image = corpus(name)
    configuration = {"max_width": 1280, "max_height": 1280, "compression_quality": 0.8}

    def parts():
        for preview in (True, False):
            item = str(preview)
            yield start(client, item, preview=preview, **configuration)
            yield from (client.chunk(item, image[at:at + 100_000]) for at in range(0, len(image), 100_000))
            yield client.end(item)

    results = gather(client.batch(parts(), timeout=120))
    check(results["True", True], results["True", False])
    assert set(results) == {("True", True), ("True", False), ("False", False)}
    assert results["True", False].data == results["False", False].data


def test_renditions_have_none(client):
    message = request(client, PHOTO)
    message.renditions.add(rendition_id="a")
    with pytest.raises(grpc.RpcError) as raised:
        list(client.call("ProcessImage", "unary_stream")(message, timeout=60))
    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT and "preview" in raised.value.details()


def test_a_kept_result_comes_without_a_preview():
    worker = Worker("--metrics-port", "0")
    try:
        client = Client(worker)
        first, second = (process(client, PHOTO, max_width=100) for _ in range(2))
        assert set(first) == {("", True), ("", False)} and set(second) == {("", False)}
        assert second["", False].report.cache_hit and second["", False].data == first["", False].data
    finally:
        assert worker.stop() == 0


def test_an_item_takes_the_place_of_the_one_with_its_key(client):
    """Like a user who moves a slider: each position requests the image again, and only the last one counts."""
    image = corpus("12-photos/mei--Issue_525.jpg")
    feed = queue.SimpleQueue()
    call = client.batch(iter(feed.get, None), timeout=120)
    results = defaultdict(Result)
    feed.put(start(client, "upload", key="slider"))
    feed.put(client.chunk("upload", image[:200_000]))
    feed.put(start(client, "bystander", key="another", image=image, max_width=300))
    for index in range(8):
        feed.put(start(client, str(index), key="slider", image=image, max_width=2000 + index))
    feed.put(client.chunk("upload", image[200_000:]))
    feed.put(client.end("upload"))
    feed.put(None)
    for place, part in enumerate(call):
        results[part.item_id, part.is_preview].take(part, place)
    ends = {item: result for (item, is_preview), result in results.items() if not is_preview}
    assert ends["7"].kinds[-1] == "report" and ends["bystander"].kinds[-1] == "report"
    assert ends["upload"].kinds.count("error") == 1 and ends["upload"].kinds[-1] == "error"
    cancelled = 0
    for item, result in ends.items():
        assert result.kinds.count("error") + result.kinds.count("report") == 1 and result.kinds[-1] in ("error", "report")
        if result.error:
            after = str(int(item) + 1) if item != "upload" else "0"
            assert result.error.code == grpc.StatusCode.CANCELLED.value[0]
            assert result.error.message == f"replaced by item {after}, which has the same preview_key"
            cancelled += 1
    assert cancelled >= 2
