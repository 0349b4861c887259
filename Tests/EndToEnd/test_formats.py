"""Formats missing from the build are identified from their first bytes alone."""

import grpc
import pytest
from conftest import fixture_bytes, is_built_in
from google.rpc import error_details_pb2
from test_calls import details

IMAGES = {"tiff": "lzw.tiff", "avif": "photo.avif", "heic": "photo.heic", "jxl": "photo.jxl"}
ABSENT = [format for format in IMAGES if not is_built_in(format)]


def refusal(call) -> grpc.RpcError:
    with pytest.raises(grpc.RpcError) as caught:
        list(call)
    assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED, caught.value.details()
    return caught.value


@pytest.mark.parametrize("byte_count", [32, None])
@pytest.mark.parametrize("format", ABSENT)
def test_a_image_of_a_format_that_is_not_built_in_is_refused(client, format, byte_count):
    error = refusal(client.process(fixture_bytes(IMAGES[format])[:byte_count], preset="thumbnail"))
    assert format in error.details()
    assert [i.reason for i in details(error, error_details_pb2.ErrorInfo)] == ["UNSUPPORTED_IMAGE"]


@pytest.mark.skipif(is_built_in("avif"), reason="AVIF is built in")
def test_results_of_a_format_that_is_not_built_in_are_refused(client):
    error = refusal(client.process(fixture_bytes("photo.png"), preferred_format=5))
    assert "avif" in error.details()


def test_formats_without_a_decoder_are_named(client):
    assert "qoi" in refusal(client.process(b"qoif" + bytes(28))).details()
