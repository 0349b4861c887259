"""Tests of OUTPUT_FORMAT_AUTO over gRPC, with Pillow reading the results."""

import io

import grpc
import numpy as np
import pillow_jxl  # noqa: F401 registers JPEG XL with Pillow
import pytest
from conftest import FIXTURES, Client, Worker, built_in, fixture_bytes
from google.rpc import error_details_pb2
from PIL import Image
from test_calls import details

AUTO = "OUTPUT_FORMAT_AUTO"


def parts(client, image: bytes, **fields):
    configuration = client.message("ProcessingConfiguration")(preferred_format=AUTO, **fields)
    request = client.message("ProcessImageRequest")(image=image, configuration=configuration)
    return list(client.call("ProcessImage", "unary_stream")(request, timeout=60))


def png(pixels: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.mark.parametrize("accept", ["image/webp,*/*;q=0.8", "jpeg,png", "webp,png"])
@pytest.mark.parametrize("name", ["photo-420.jpg", "photo.png", "alpha.png"])
def test_the_header_names_the_chosen_format(client, name, accept):
    first, *chunks, last = parts(client, fixture_bytes(name), accept=accept, compression_quality=0.8)
    image = Image.open(io.BytesIO(b"".join(part.chunk for part in chunks)))
    assert first.header.format == last.report.output.format == image.format.lower()
    assert first.header.format in accept.replace("*/*", "jpeg,png")
    trials = [trial.format for trial in last.report.format_trials]
    if (name, accept) == ("alpha.png", "jpeg,png"):  # only PNG stores transparency
        assert trials == []
    else:
        # Lossless formats are tried for drawings only.
        assert trials[0] == first.header.format and (len(trials) > 1 or name == "alpha.png" or "image" not in accept)
    assert (first.header.width, first.header.height) == image.size


def test_the_result_is_the_smallest_of_all_formats_at_the_same_score(client):
    photograph = fixture_bytes("photo-420.jpg")
    report = parts(client, photograph, accept="jpeg,webp", compression_quality=0.8)[-1].report

    def alone(**fields):
        configuration = client.message("ProcessingConfiguration")(**fields)
        request = client.message("ProcessImageRequest")(image=photograph, configuration=configuration)
        return list(client.call("ProcessImage", "unary_stream")(request, timeout=60))[-1].report

    jpeg = alone(preferred_format="OUTPUT_FORMAT_JPEG", compression_quality=0.8, target_similarity=100)
    webp = alone(preferred_format="OUTPUT_FORMAT_WEBP", target_similarity=jpeg.similarity)
    assert report.output_bytes <= min(jpeg.output_bytes, webp.output_bytes) * 1.05


@pytest.mark.parametrize("accept", ["jpeg,webp,png", "jpeg,png"])
def test_alpha_that_is_opaque_does_not_matter(client, accept):
    photograph = np.asarray(Image.open(io.BytesIO(fixture_bytes("photo-420.jpg"))).convert("RGB"))
    opaque = np.dstack([photograph, np.full(photograph.shape[:2], 255, np.uint8)])
    plain, same = (parts(client, png(pixels), accept=accept, compression_quality=0.5) for pixels in (photograph, opaque))
    assert [part.chunk for part in same] == [part.chunk for part in plain] and same[0].header.format == "jpeg"
    assert not same[0].header.has_alpha and not same[-1].report.output.has_alpha
    opaque[5, 5, 3] = 254
    assert parts(client, png(opaque), accept=accept, compression_quality=0.5)[0].header.format != "jpeg"


def test_a_drawing_is_lossless(client):
    pixels = np.full((300, 400, 3), 255, np.uint8)
    pixels[40:90, 30:300] = (200, 30, 30)
    pixels[120:124, :] = 0
    *_, last = answer = parts(client, png(pixels), compression_quality=0.8)
    result = Image.open(io.BytesIO(b"".join(part.chunk for part in answer))).convert("RGB")
    assert not last.report.HasField("compression_quality")
    assert np.array_equal(np.asarray(result), pixels)


@pytest.mark.parametrize("isolation", ["none", pytest.param("process", marks=built_in("isolation"))])
def test_a_helper_chooses_as_the_worker_does(isolation):
    worker = Worker("--isolation", isolation)
    try:
        first, *_, last = parts(Client(worker), fixture_bytes("photo.png"), accept="webp,png", compression_quality=0.5)
        assert first.header.format == last.report.output.format == "webp"
        assert [trial.format for trial in last.report.format_trials] == ["webp"]  # a photograph is not tried as PNG
    finally:
        worker.stop()


def test_renditions_choose_each_for_itself(client):
    rendition = client.message("Rendition")
    configuration = client.message("ProcessingConfiguration")
    request = client.message("ProcessImageRequest")(
        image=fixture_bytes("photo.png"),
        renditions=[
            rendition(rendition_id="a", configuration=configuration(preferred_format=AUTO, accept="webp,png")),
            rendition(rendition_id="b", configuration=configuration(preferred_format=AUTO, accept="jpeg,png",
                                                                    compression_quality=0.5)),
            rendition(rendition_id="c", configuration=configuration(preferred_format="OUTPUT_FORMAT_PNG")),
        ])
    formats: dict[str, list] = {}
    for part in client.call("ProcessImage", "unary_stream")(request, timeout=60):
        kind = part.WhichOneof("part")
        if kind in ("header", "report"):
            formats.setdefault(part.rendition_id, []).append(
                part.header.format if kind == "header" else part.report.output.format)
    assert all(len(names) == 2 and names[0] == names[1] for names in formats.values())
    assert formats["a"][0] in ("webp", "png") and formats["b"][0] == "jpeg" and formats["c"][0] == "png"


def test_inspection_has_no_format_yet(client):
    configuration = client.message("ProcessingConfiguration")(preferred_format=AUTO)
    request = client.message("InspectImageRequest")(image=fixture_bytes("photo.png"), configuration=configuration)
    answer = client.call("InspectImage", "unary_unary")(request, timeout=60)
    assert answer.output.format == "" and answer.output.width == answer.info.width


def test_an_unknown_format_names_the_field(client):
    with pytest.raises(grpc.RpcError) as raised:
        parts(client, fixture_bytes("photo.png"), accept="bmp")
    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    request = details(raised.value, error_details_pb2.BadRequest)[0]
    assert request.field_violations[0].field == "configuration.accept"


@pytest.mark.parametrize("accept", ["webp,png", pytest.param("png,avif", marks=built_in("avif"))])
def test_no_file_in_color_has_a_profile_for_gray(client, accept):
    """Whichever format is chosen."""
    from PIL import ImageCms
    gray = Image.open(io.BytesIO(fixture_bytes("photo.png"))).convert("L")
    profile = (FIXTURES / "gray-gamma-1.8.icc").read_bytes()
    buffer = io.BytesIO()
    gray.save(buffer, "PNG", icc_profile=profile)
    result = b"".join(part.chunk for part in parts(client, buffer.getvalue(), accept=accept, color_space="COLOR_SPACE_KEEP"))
    image = Image.open(io.BytesIO(result))
    if written := image.info.get("icc_profile"):
        space = ImageCms.ImageCmsProfile(io.BytesIO(written)).profile.xcolor_space.strip()
        assert (space == "GRAY") == (image.mode == "L"), (space, image.mode)


def test_a_lossy_format_is_chosen_where_a_lossless_one_cannot_fit(client):
    drawing = np.full((400, 400, 3), 255, np.uint8)
    drawing[::8] = (0, 0, 255)
    photo = np.asarray(Image.open(io.BytesIO(fixture_bytes("photo.png"))).convert("RGB"))
    drawing[:160, :240] = photo.repeat(2, axis=0).repeat(2, axis=1)
    small = b"".join(part.chunk for part in parts(client, png(drawing), accept="jpeg", compression_quality=0.3))
    found = parts(client, png(drawing), accept="png,jpeg", compression_quality=1, max_bytes=len(small) + 2000)
    assert found[-1].report.output_bytes <= len(small) + 2000
    assert found[0].header.format == "jpeg"


def test_a_similarity_leaves_formats_without_a_quality_to_be_chosen(client):
    found = parts(client, fixture_bytes("alpha.png"), accept="png,jpeg", target_similarity=80)
    assert found[-1].WhichOneof("part") == "report"
