"""Pages of TIFF files and pictures of icons by frame_index, next to Pillow."""

import io

import grpc
import numpy
import pytest
from google.rpc import error_details_pb2
from PIL import Image
from test_calls import details, parts

PNG = 3


def picture(index: int, size: tuple, mode: str) -> Image.Image:
    """A pattern that differs from that of other indices."""
    width, height = size
    columns, rows = numpy.meshgrid(numpy.arange(width), numpy.arange(height))
    planes = [(columns * (index + 2) + rows * plane + 40 * index) % 256 for plane in range(3)]
    return Image.fromarray(numpy.stack(planes, axis=-1).astype(numpy.uint8)).convert(mode)


def tiff() -> tuple:
    """A TIFF whose pages differ in size, colors and compression, and its pages."""
    pages = [
        picture(0, (40, 30), "RGB"), picture(1, (17, 50), "L"), picture(2, (64, 8), "RGBA"), picture(3, (30, 30), "1"),
        picture(4, (9, 9), "P")]
    file = io.BytesIO()
    pages[0].save(file, "TIFF", save_all=True, append_images=pages[1:], compression="tiff_lzw")
    return file.getvalue(), pages


def icon(bitmap_format: str) -> bytes:
    file = io.BytesIO()
    sizes = [(16, 16), (48, 48), (32, 32), (24, 24)]
    images = [picture(index, size, "RGBA") for index, size in enumerate(sizes)]
    images[1].save(file, "ICO", sizes=sizes, append_images=images, bitmap_format=bitmap_format)
    return file.getvalue()


def result(client, image: bytes, **configuration) -> tuple:
    responses = parts(client.process(image, preferred_format=PNG, **configuration))
    report = responses[-1][1].report
    return Image.open(io.BytesIO(b"".join(r.chunk for kind, r in responses if kind == "chunk"))), report


def is_equal(a: Image.Image, b: Image.Image) -> bool:
    return a.size == b.size and a.convert("RGBA").tobytes() == b.convert("RGBA").tobytes()


def test_every_page_of_a_tiff_from_both_ends(client):
    file, pages = tiff()
    for index, page in enumerate(pages):
        for place in (index, index - len(pages)):
            found, report = result(client, file, frame_index=place)
            assert is_equal(found, page), place
            assert report.input.frame_count == 5 and report.output.frame_count == 1
            assert (report.input.width, report.input.height) == page.size
            warnings = [w.code for w in report.warning_details]
            assert (2 in warnings) == (index == 0), warnings  # FIRST_IMAGE_ONLY
    found, report = result(client, file, max_frames=0, frame_index=2)
    assert is_equal(found, pages[2]) and report.output.frame_count == 1


@pytest.mark.parametrize("bitmap_format", ["png", "bmp"])
def test_pictures_of_an_icon_from_the_largest_to_the_smallest(client, bitmap_format):
    file = icon(bitmap_format)
    with Image.open(io.BytesIO(file)) as image:
        for index, side in enumerate([48, 32, 24, 16]):
            expected = image.ico.getimage((side, side))
            for place in (index, index - 4):
                found, report = result(client, file, frame_index=place)
                assert is_equal(found, expected), (side, place)
                assert report.input.frame_count == 4
        assert is_equal(result(client, file)[0], image.ico.getimage((48, 48)))


@pytest.mark.parametrize("index", [5, -6])
def test_a_page_that_does_not_exist(client, index):
    for file in (tiff()[0], icon("png")):
        with pytest.raises(grpc.RpcError) as caught:
            result(client, file, frame_index=index)
        assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert [v.field for b in details(caught.value, error_details_pb2.BadRequest) for v in b.field_violations] == [
            "configuration.frame_index"]
