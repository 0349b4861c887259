"""Tests of every call, from a client that obtained the contract by reflection."""

import io
import json
import socket
import subprocess

import grpc
import h2.connection
import h2.events
import pillow_jxl  # noqa: F401 registers JPEG XL with Pillow
import pytest
from conftest import FIXTURES, SERVICE, built_in, fixture_bytes
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_status import rpc_status
from PIL import Image

EXPECTATIONS = json.loads((FIXTURES / "expectations.json").read_text())["files"]


def parts(responses):
    return [(r.WhichOneof("part"), r) for r in responses]


def image_of(responses) -> Image.Image:
    image = Image.open(io.BytesIO(b"".join(r.chunk for kind, r in responses if kind == "chunk")))
    image.load()
    return image


def details(error: grpc.RpcError, kind):
    found = []
    for packed in rpc_status.from_call(error).details:
        message = kind()
        if packed.Unpack(message):
            found.append(message)
    return found


@pytest.mark.parametrize("name", [pytest.param(n, marks=built_in(n.rsplit(".")[-1])) for n in sorted(EXPECTATIONS)])
def test_process_image_fits_every_format_in_a_preset(client, name):
    responses = parts(client.process(fixture_bytes(name), preset="favicon"))
    assert responses[0][0] == "header" and responses[-1][0] == "report"
    result, report = image_of(responses), responses[-1][1].report
    width, height = EXPECTATIONS[name]["width"], EXPECTATIONS[name]["height"]
    scale = min(1, 64 / width, 64 / height)
    assert result.format == "JPEG"
    assert result.size == (max(1, int(width * scale + 0.5)), max(1, int(height * scale + 0.5)))
    assert (report.input.width, report.input.height) == (width, height)
    assert report.output_bytes == sum(len(r.chunk) for kind, r in responses if kind == "chunk")
    # JPEGs that are small enough are copied.
    assert report.passthrough == (name.endswith(".jpg") and max(width, height) <= 64)
    worked = report.timings.encode if report.passthrough else report.timings.decode
    assert worked.ToNanoseconds() > 0 and report.timings.total.ToNanoseconds() > 0
    assert max(len(r.chunk) for _, r in responses) <= 65536


@pytest.mark.parametrize("format, name", [
    (2, "JPEG"), (3, "PNG"), (4, "WEBP"), pytest.param(5, "AVIF", marks=built_in("avif")),
    pytest.param(7, "JXL", marks=built_in("jxl"))])
def test_every_format_out(client, format, name):
    responses = parts(client.process(fixture_bytes("alpha.png"), max_width=50, preferred_format=format))
    assert image_of(responses).format == name and image_of(responses).size == (50, 33)
    assert responses[0][1].header.format == name.lower()


def test_orientations_come_out_upright_and_without_metadata(client):
    for container in ("jpg", "png", "webp"):
        for orientation in range(1, 9):
            result = image_of(parts(client.process(fixture_bytes(f"orientation-{orientation}.{container}"))))
            assert result.size == (48, 32) and not result.getexif()
            for place, corner in zip([(2, 2), (45, 2), (2, 29), (45, 29)], EXPECTATIONS["orientation-1.png"]["corners"]):
                pixel = result.convert("RGB").getpixel(place)
                assert all(abs(a - b) < 24 for a, b in zip(pixel, corner)), (container, orientation, place)


@pytest.mark.parametrize("image, configuration, preset, code, reason, field", [
    (b"", {}, "", "INVALID_ARGUMENT", "EMPTY_IMAGE", None),
    (b"only words, many of them, and no image", {}, "", "UNIMPLEMENTED", "UNKNOWN_FORMAT", None),
    (b"qoif\0\0\0\x01", {}, "", "UNIMPLEMENTED", "UNSUPPORTED_IMAGE", None),
    (fixture_bytes("photo-420.jpg")[:3000], {}, "", "INVALID_ARGUMENT", "TRUNCATED_IMAGE", None),
    (fixture_bytes("pngsuite-xcsn0g01.png"), {}, "", "INVALID_ARGUMENT", "CORRUPT_IMAGE", None),
    (b"x", {}, "nope", "INVALID_ARGUMENT", "UNKNOWN_PRESET", "preset"),
    (b"x", {}, "widget", "UNIMPLEMENTED", "UNKNOWN_FORMAT", None),
    (b"x", {"compression_quality": 1.5}, "", "INVALID_ARGUMENT", "INVALID_FIELD", "configuration.compression_quality"),
    (b"x", {"compression_quality": float("nan")}, "", "INVALID_ARGUMENT", "INVALID_FIELD",
     "configuration.compression_quality"),
    (b"x", {"scale_factor": 0.5}, "", "INVALID_ARGUMENT", "INVALID_FIELD", "configuration.scale_factor"),
    (b"x", {"max_width": 0}, "", "INVALID_ARGUMENT", "INVALID_FIELD", "configuration.max_width"),
    (b"x", {"max_bytes": 0}, "", "INVALID_ARGUMENT", "INVALID_FIELD", "configuration.max_bytes"),
    # Errors that repeat what was sent fit into the metadata that clients accept.
    pytest.param(b"x", {"metadata_title": "t" * 100_000}, "", "INVALID_ARGUMENT", "INVALID_FIELD",
                 "configuration.metadata_title", id="a title of 100 kB"),
    pytest.param(b"x", {"overlays": [{"image": "ä" * 3000}]}, "", "INVALID_ARGUMENT", "INVALID_FIELD",
                 "configuration.overlays[0].image", id="a name of 6 kB"),
    pytest.param(b"x", {"tensor": {"mean": [0.5] * 5000}}, "", "INVALID_ARGUMENT", "INVALID_FIELD",
                 "configuration.tensor.mean", id="5,000 numbers"),
    pytest.param(b"x", {"filters": [{"name": "blur", "parameters": {"x" * 300_000: 1}}]}, "", "FAILED_PRECONDITION",
                 "LIMIT_EXCEEDED", None, id="a parameter's name of 300 kB"),
    pytest.param(b"x", {}, "e" + "\u0301" * 50_000, "INVALID_ARGUMENT", "UNKNOWN_PRESET", "preset",
                 id="a name of one letter with 50,000 accents"),
])
def test_errors_carry_their_details(client, image, configuration, preset, code, reason, field):
    with pytest.raises(grpc.RpcError) as caught:
        list(client.process(image, preset=preset, **configuration))
    assert caught.value.code().name == code, caught.value.details()
    info = details(caught.value, error_details_pb2.ErrorInfo)
    assert [i.reason for i in info] == [reason] and info[0].domain == "imageworker.v1"
    bad = details(caught.value, error_details_pb2.BadRequest)
    assert (bad[0].field_violations[0].field if bad else None) == field


@pytest.mark.parametrize("path, status", [
    (f"/{SERVICE}/ProcessImage", b"3"), (f"/{SERVICE}/ListPresets", b"3"), (f"/{SERVICE}/BatchProcess", b"0"),
    ("/grpc.health.v1.Health/Check", b"3"),
])
def test_a_call_of_headers_alone_is_answered(worker, path, status):
    connection = h2.connection.H2Connection()
    connection.initiate_connection()
    connection.send_headers(1, [
        (":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "x"), ("te", "trailers"),
        ("content-type", "application/grpc")], end_stream=True)
    headers = {}
    with socket.create_connection(("127.0.0.1", worker.port), timeout=60) as stream:
        stream.sendall(connection.data_to_send())
        while b"grpc-status" not in headers:
            for event in connection.receive_data(stream.recv(65_536)):
                if isinstance(event, (h2.events.ResponseReceived, h2.events.TrailersReceived)):
                    headers.update(event.headers)
            stream.sendall(connection.data_to_send())
    assert headers[b"grpc-status"] == status, headers


@pytest.mark.parametrize("method", ["ProcessImage", "BatchProcess", "InspectImage", "ListPresets"])
def test_messages_that_are_no_request_are_refused(client, method):
    call = client.channel.stream_stream(f"/{SERVICE}/{method}", request_serializer=bytes, response_deserializer=bytes)
    with pytest.raises(grpc.RpcError) as caught:
        list(call(iter([b"\xff"]), timeout=60))
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert caught.value.details() == f"the message cannot be decoded as imageworker.v1.{method}Request"
    assert [i.reason for i in details(caught.value, error_details_pb2.ErrorInfo)] == ["INVALID_FIELD"]
    if method != "BatchProcess":
        for requests in [[], [b"", b""]]:
            with pytest.raises(grpc.RpcError) as caught:
                list(call(iter(requests), timeout=60))
            assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
            assert caught.value.details() == "the call must have exactly one request message"


def test_a_frame_that_is_not_there_is_called_so_by_every_call(client):
    image = fixture_bytes("photo.gif")
    inspect, request = client.call("InspectImage", "unary_unary"), client.message("InspectImageRequest")
    for call in [lambda: inspect(request(image=image, configuration={"frame_index": 5}), timeout=60),
                 lambda: list(client.process(image, frame_index=5))]:
        with pytest.raises(grpc.RpcError) as caught:
            call()
        assert caught.value.details() == "frame_index is 5, but the image has 1 frame"


def test_an_unknown_value_of_an_enum_is_refused_with_those_that_exist(client):
    with pytest.raises(grpc.RpcError) as caught:
        list(client.process(b"x", resize_mode=99))
    assert caught.value.details() == "resize_mode is 99; it must be one of: 1 (FIT), 2 (FILL), 3 (STRETCH)"


def test_a_gif_of_one_frame_is_planned_as_it_is_processed(client):
    image = fixture_bytes("photo.gif")
    request = client.message("InspectImageRequest")(image=image, configuration={"max_frames": 0, "max_width": 50})
    planned = client.call("InspectImage", "unary_unary")(request)
    report = parts(client.process(image, max_frames=0, max_width=50))[-1][1].report
    assert planned.output.format == report.output.format == "gif"
    assert planned.working_set_bytes >= report.peak_memory_bytes


def test_batch_mixes_whole_and_chunked_items_and_errors(client):
    photo = fixture_bytes("photo-420.jpg")

    def requests():
        yield client.start("chunked", "preview")
        yield client.start("whole", "favicon", photo)
        yield client.start("bad", "nope", photo)
        for offset in range(0, len(photo), 1000):
            yield client.chunk("chunked", photo[offset:offset + 1000])
        yield client.chunk("stray", photo)
        yield client.end("chunked")
        yield client.start("whole", "favicon", photo)
        yield client.start("last", "favicon", photo)

    items = {}
    for response in client.batch(requests()):
        items.setdefault(response.item_id, []).append((response.WhichOneof("part"), response))
    for item, size in (("chunked", (240, 160)), ("last", (64, 43))):
        assert items[item][0][0] == "header" and items[item][-1][0] == "report"
        assert image_of(items[item]).size == size
    assert [kind for kind, _ in items["bad"]] == ["error"] and items["bad"][0][1].error.code == 3
    assert [kind for kind, _ in items["stray"]] == ["error"]
    assert sorted(kind for kind, _ in items["whole"] if kind in ("report", "error")) == ["error", "report"]


def test_inspect_needs_only_the_first_kilobyte(client):
    request = client.message("InspectImageRequest")(image=fixture_bytes("orientation-6.jpg")[:900], preset="favicon")
    response = client.call("InspectImage", "unary_unary")(request)
    assert (response.info.width, response.info.height, response.info.orientation) == (48, 32, 6)
    assert response.output.format == "jpeg" and response.working_set_bytes > 0


def test_list_presets(client):
    response = client.call("ListPresets", "unary_unary")(client.message("ListPresetsRequest")())
    assert [p.name for p in response.presets] == [
        "default", "highDefinition", "thumbnail", "compressedThumbnail", "favicon", "compressedFavicon", "preview",
        "upload", "widget"]


def test_health(client):
    stub = health_pb2_grpc.HealthStub(client.channel)
    for service in ("", SERVICE):
        assert stub.Check(health_pb2.HealthCheckRequest(service=service)).status == 1
    assert stub.List(health_pb2.HealthListRequest()).statuses[SERVICE].status == 1
    with pytest.raises(grpc.RpcError) as caught:
        stub.Check(health_pb2.HealthCheckRequest(service="no.Such"))
    assert caught.value.code() == grpc.StatusCode.NOT_FOUND


def test_a_message_above_the_limit_is_refused_and_one_below_is_not(client):
    with pytest.raises(grpc.RpcError) as caught:
        list(client.process(b"\0" * (65 << 20)))
    assert caught.value.code() == grpc.StatusCode.FAILED_PRECONDITION
    # The length of the message, whose bytes are not read: that of the image and of the field before it.
    assert "67108864" in caught.value.details() and "68157445" in caught.value.details()
    padded = fixture_bytes("photo-420.jpg") + b"\0" * (63 << 20)
    assert parts(client.process(padded, preset="favicon"))[-1][0] == "report"


def test_a_second_client_agrees(worker):
    request = json.dumps({"image": __import__("base64").b64encode(fixture_bytes("orientation-6.jpg")).decode(),
                          "preset": "favicon"})
    for method, data in (("InspectImage", request), ("ProcessImage", request), ("ListPresets", "{}")):
        run = subprocess.run(
            ["buf", "curl", "--http2-prior-knowledge", "--protocol", "grpc",
             f"http://{worker.address}/{SERVICE}/{method}", "-d", data], capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
    assert '"presets"' in run.stdout
