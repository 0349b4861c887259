"""Presets as models of the Open Inference Protocol (KServe v2), with Triton's own client."""

import concurrent.futures
import hashlib
import io
import re
import socket
import sys
from pathlib import Path

import grpc
import h2.connection
import h2.events
import numpy as np
import pytest
import tritonclient.grpc as triton
from conftest import Worker, built_in, fixture_bytes, metric, scrape, wait_until
from google.protobuf import descriptor_pb2
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from PIL import Image
from raw import message
from tritonclient.utils import InferenceServerException

sys.path.insert(0, str(Path(__file__).parent.parent.parent / "clients/python/src"))

import image_worker  # noqa: E402

SERVICE = "inference.GRPCInferenceService"
PHOTOS = ["photo-420.jpg", "photo-odd.jpg", "photo-gray.jpg", "photo.png", "photo.bmp"]
MEAN, DEVIATION = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
PRESETS = """presets:
  classifier:
    description: The input of a classifier.
    max_width: 224
    max_height: 224
    allow_upscale: true
    resize_mode: stretch
    exact_resize: true
    resampling_kernel: bicubic
    preferred_format: raw
    tensor: {element_type: f32, layout: chw, normalization: imagenet}
  halves: {max_width: 32, max_height: 32, allow_upscale: true, resize_mode: fill, tensor: {element_type: f16, layout: chw}}
  brains: {max_width: 32, max_height: 32, allow_upscale: true, resize_mode: fill, tensor: {element_type: bf16, layout: chw}}
  pixels: {max_width: 64, max_height: 64, pad: true, tensor: {layout: hwc}}
  fitted: {max_width: 64, max_height: 64, tensor: {}}
"""


@pytest.fixture(scope="module")
def presets(tmp_path_factory):
    path = tmp_path_factory.mktemp("kserve") / "presets.yaml"
    path.write_text(PRESETS)
    return str(path)


@pytest.fixture(scope="module")
def serving(presets):
    worker = Worker("--kserve", "--presets", presets, "--cache-memory-mib", "0", "--metrics-port", "0")
    yield worker
    assert worker.stop() == 0, "".join(worker.log)


@pytest.fixture
def models(serving):
    with triton.InferenceServerClient(serving.address) as client:
        yield client


def infer(client, model: str, images: list[bytes], outputs=(), column=False, **options):
    array = np.array(images, dtype=np.object_)
    if column:
        array = array.reshape(-1, 1)
    tensor = triton.InferInput("image", list(array.shape), "BYTES")
    tensor.set_data_from_numpy(array)
    requested = [triton.InferRequestedOutput(name) for name in outputs] or None
    return client.infer(model, [tensor], outputs=requested, **options)


def test_metadata(models):
    assert models.is_server_live() and models.is_server_ready()
    assert models.is_model_ready("classifier") and models.is_model_ready("classifier", "1")
    assert not models.is_model_ready("favicon") and not models.is_model_ready("no-such")
    server = models.get_server_metadata()
    model = models.get_model_metadata("classifier")
    print(f"\n{server}\n{model}")
    assert server.name == "image-worker" and server.version
    assert model.name == "classifier" and list(model.versions) == ["1"]
    assert [(each.name, each.datatype, list(each.shape)) for each in model.inputs] == [("image", "BYTES", [-1])]
    assert [(each.name, each.datatype, list(each.shape)) for each in model.outputs] == [
        ("tensor", "FP32", [-1, 3, 224, 224]), ("error", "BYTES", [-1]),
        ("content_box", "INT32", [-1, 4]), ("image_size", "INT32", [-1, 2])]
    assert list(models.get_model_metadata("pixels").outputs[0].shape) == [-1, 64, 64, 3]
    assert list(models.get_model_metadata("fitted").outputs[0].shape) == [-1, -1, -1, 3]


def test_boxes_show_where_a_padded_result_has_its_image(models):
    out = io.BytesIO()
    Image.new("RGB", (200, 100), (255, 0, 0)).save(out, "PNG")
    result = infer(models, "pixels", [out.getvalue()], outputs=["tensor", "content_box", "image_size"])
    assert result.as_numpy("content_box").tolist() == [[0, 16, 64, 32]]
    assert result.as_numpy("image_size").tolist() == [[200, 100]]
    green = result.as_numpy("tensor")[0, :, :, 1]
    assert (green[16:48] == 0).all() and (green[:16] == 255).all() and (green[48:] == 255).all()


@pytest.mark.parametrize("column", [False, True])
def test_tensors_equal_those_of_pillow_and_of_the_python_client(models, serving, column):
    images = [fixture_bytes(name) for name in PHOTOS] * 3
    result = infer(models, "classifier", images, column=column, request_id="a request")
    tensor = result.as_numpy("tensor")
    assert tensor.shape == (15, 3, 224, 224) and tensor.dtype == np.float32
    assert result.get_response().id == "a request" and result.get_response().model_version == "1"
    with image_worker.Client(serving.address) as client:
        for row, image in zip(tensor, images):
            expected = client.tensor(
                image, width=224, height=224, mode="stretch", exact_resize=True, resampling_kernel="bicubic",
                dtype="float32", normalize="imagenet")
            assert np.array_equal(row, expected)
            pixels = np.asarray(Image.open(io.BytesIO(image)).convert("RGB").resize((224, 224), Image.Resampling.BICUBIC))
            difference = np.abs(row - ((pixels / 255 - MEAN) / DEVIATION).transpose(2, 0, 1)).max()
            assert difference <= 1.02 / 255 / DEVIATION.min()


def test_elements_have_the_type_of_the_preset(models, serving):
    images = [fixture_bytes(name) for name in PHOTOS]
    pixels = infer(models, "pixels", images).as_numpy("tensor")
    assert pixels.shape == (5, 64, 64, 3) and pixels.dtype == np.uint8
    halves = infer(models, "halves", images).as_numpy("tensor")
    brains = infer(models, "brains", images).as_numpy("tensor")
    assert halves.shape == (5, 3, 32, 32) and halves.dtype == np.float16
    assert str(brains.dtype) in ("bfloat16", "float32") and brains.shape == halves.shape
    assert np.abs(halves.astype(float) - brains.astype(float)).max() <= 2 ** -8
    with image_worker.Client(serving.address) as client:
        assert np.array_equal(halves[0], client.tensor(images[0], width=32, height=32, mode="fill", dtype="float16"))


def test_the_other_representation_of_images_gives_the_same(models, serving):
    images = [fixture_bytes(name) for name in PHOTOS]
    expected = infer(models, "pixels", images).as_numpy("tensor")
    request = triton.service_pb2.ModelInferRequest(model_name="pixels")
    tensor = request.inputs.add(name="image", datatype="BYTES", shape=[len(images)])
    tensor.contents.bytes_contents.extend(images)
    with grpc.insecure_channel(serving.address) as channel:
        response = triton.service_pb2_grpc.GRPCInferenceServiceStub(channel).ModelInfer(request, timeout=60)
    assert response.raw_output_contents[0] == expected.tobytes()


def test_an_image_that_fails_fails_the_call_with_its_index(models):
    images = [fixture_bytes("photo-420.jpg"), b"no image", fixture_bytes("photo.png")]
    with pytest.raises(InferenceServerException, match="^.*image 1: .*format") as caught:
        infer(models, "pixels", images)
    assert caught.value.status() == "StatusCode.UNIMPLEMENTED"


def test_errors_are_an_output_if_the_client_asks_for_it(models):
    images = [fixture_bytes("photo-420.jpg"), b"no image", fixture_bytes("photo.png")]
    result = infer(models, "pixels", images, outputs=["tensor", "error"])
    tensor, errors = result.as_numpy("tensor"), result.as_numpy("error")
    assert tensor.shape == (3, 64, 64, 3) and tensor[0].any() and not tensor[1].any() and tensor[2].any()
    assert errors[0] == b"" and errors[2] == b"" and errors[1].startswith(b"UNKNOWN_FORMAT: ")


def test_images_with_results_of_other_shapes_are_refused(models):
    images = [fixture_bytes("photo-420.jpg"), fixture_bytes("orientation-6.jpg"), fixture_bytes("gray.png")]
    assert infer(models, "fitted", images[:1]).as_numpy("tensor").shape == (1, 43, 64, 3)
    with pytest.raises(InferenceServerException, match="has the shape .* set max_width, max_height and allow_upscale"):
        infer(models, "fitted", images)


def test_unknown_models_and_parameters_are_refused(models):
    image = [fixture_bytes("photo.png")]
    with pytest.raises(InferenceServerException, match='model_name is "pixel".*did you mean.*pixels'):
        infer(models, "pixel", image)
    with pytest.raises(InferenceServerException, match='model_version is "3"'):
        infer(models, "pixels", image, model_version="3")
    with pytest.raises(InferenceServerException, match='parameters has "priority"'):
        infer(models, "pixels", image, priority=1)
    with pytest.raises(InferenceServerException, match='parameters has "shared_memory_'):
        tensor = triton.InferInput("image", [1], "BYTES")
        tensor.set_shared_memory("region", 100)
        models.infer("pixels", [tensor])
    with pytest.raises(InferenceServerException, match='outputs.0..name is "scores"'):
        infer(models, "pixels", image, outputs=["scores"])


def test_reflection_describes_the_service_as_triton_does(serving):
    with grpc.insecure_channel(serving.address) as channel:
        database = ProtoReflectionDescriptorDatabase(channel)
        assert SERVICE in database.get_services()
        file = database.FindFileContainingSymbol(SERVICE)
    theirs = triton.service_pb2.DESCRIPTOR

    def fields(message) -> dict:
        return {field.name: (field.number, field.type, field.label) for field in message.field}

    def compare(ours, others) -> int:
        others = {message.name: message for message in others}
        for message in ours:
            known = fields(others[message.name])
            for name, field in fields(message).items():
                # The properties of a model are KServe's alone.
                assert name == "properties" or known[name] == field, f"{message.name}.{name}"
            nested = [each for each in message.nested_type if each.name != "PropertiesEntry"]
            compare(nested, others[message.name].nested_type)
        return len(ours)

    copy = descriptor_pb2.FileDescriptorProto()
    theirs.CopyToProto(copy)
    assert compare(file.message_type, copy.message_type) == 14
    methods = {method.name: (method.input_type, method.output_type) for method in copy.service[0].method}
    assert len(file.service[0].method) == 6
    assert all(methods[method.name] == (method.input_type, method.output_type) for method in file.service[0].method)


def test_probes_need_no_token(presets, tmp_path):
    identities = tmp_path / "identities.yaml"
    identities.write_text(f'identities:\n  caller:\n    tokens: ["{hashlib.sha256(b"a token").hexdigest()}"]\n')
    worker = Worker("--kserve", "--presets", presets, "--identities", str(identities))
    with triton.InferenceServerClient(worker.address) as client:
        assert client.is_server_live() and client.is_server_ready()
        for call in [client.get_server_metadata, lambda: client.is_model_ready("pixels")]:
            with pytest.raises(InferenceServerException) as caught:
                call()
            assert caught.value.status() == "StatusCode.UNAUTHENTICATED"
    assert worker.stop() == 0


def test_the_service_is_off_by_default(presets):
    worker = Worker("--presets", presets)
    with grpc.insecure_channel(worker.address) as channel:
        assert SERVICE not in ProtoReflectionDescriptorDatabase(channel).get_services()
    with triton.InferenceServerClient(worker.address) as client:
        with pytest.raises(InferenceServerException) as caught:
            infer(client, "pixels", [fixture_bytes("photo.png")])
        assert caught.value.status() == "StatusCode.UNIMPLEMENTED"
    assert worker.stop() == 0


def test_the_size_of_tensors_is_limited(presets):
    worker = Worker("--kserve", "--presets", presets, "--max-message-mib", "1")
    with triton.InferenceServerClient(worker.address) as client:
        image = fixture_bytes("gray.png")
        assert infer(client, "classifier", [image]).as_numpy("tensor").nbytes == 602_112
        with pytest.raises(InferenceServerException, match="max_message_bytes of 1048576.* send fewer images") as caught:
            infer(client, "classifier", [image] * 2)
        assert caught.value.status() == "StatusCode.FAILED_PRECONDITION"
    assert worker.stop() == 0


def unread_call(worker: Worker, request: bytes) -> socket.socket:
    """A connection with a call whose response has begun to arrive, and of which no more is read."""
    connection = h2.connection.H2Connection()
    link = socket.create_connection(("127.0.0.1", worker.port), timeout=120)
    connection.initiate_connection()
    headers = {":method": "POST", ":scheme": "http", ":authority": "worker", ":path": f"/{SERVICE}/ModelInfer",
               "te": "trailers", "content-type": "application/grpc"}
    connection.send_headers(1, list(headers.items()))
    body = message(request)
    while True:
        count = min(len(body), connection.local_flow_control_window(1), connection.max_outbound_frame_size)
        if count > 0:
            connection.send_data(1, body[:count], end_stream=count == len(body))
            body = body[count:]
        link.sendall(connection.data_to_send())
        if body and count > 0:
            continue
        events = connection.receive_data(link.recv(65_536))
        if any(isinstance(event, h2.events.DataReceived) for event in events):
            return link


def test_a_tensor_is_charged_until_its_client_has_read_it(presets):
    # Half of the memory is room for one tensor and the copy that is sent, but not beside a second tensor.
    worker = Worker("--kserve", "--presets", presets, "--memory-limit-mib", "200", "--cache-memory-mib", "0")
    images = [fixture_bytes("gray.png")] * 64
    request = triton.service_pb2.ModelInferRequest(model_name="classifier")
    request.inputs.add(name="image", datatype="BYTES", shape=[64]).contents.bytes_contents.extend(images)
    with triton.InferenceServerClient(worker.address) as client:
        link = unread_call(worker, request.SerializeToString())
        with pytest.raises(InferenceServerException, match="bytes to buffer the results are not free") as caught:
            infer(client, "classifier", images)
        assert caught.value.status() == "StatusCode.RESOURCE_EXHAUSTED"
        link.close()

        def is_served() -> bool:
            try:
                return infer(client, "classifier", images).as_numpy("tensor").shape == (64, 3, 224, 224)
            except InferenceServerException:
                return False
        assert wait_until(is_served)
    assert worker.stop() == 0


def test_calls_are_counted_and_cancelled(serving, models):
    def count() -> int:
        return sum(map(int, re.findall(
            r'^rpc_server_call_duration_seconds_count{.*GRPCInferenceService/ModelInfer".*} (\d+)$', scrape(serving), re.M)))

    before, data = count(), io.BytesIO()
    # Much work that is sent at once.
    Image.new("RGB", (8000, 8000)).save(data, "PNG")
    with pytest.raises(InferenceServerException) as caught:
        infer(models, "classifier", [data.getvalue()] * 32, client_timeout=1.5)
    assert caught.value.status() in ("StatusCode.DEADLINE_EXCEEDED", "StatusCode.RESOURCE_EXHAUSTED")
    assert wait_until(lambda: metric(serving, "imageworker_calls_active") == 0)
    assert wait_until(lambda: metric(serving, "imageworker_memory_budget_used_bytes") == 0)
    infer(models, "pixels", [fixture_bytes("photo.png")])
    assert wait_until(lambda: count() >= before + 2)


@built_in("isolation")
def test_codecs_in_processes_give_the_same(presets, models):
    worker = Worker("--kserve", "--presets", presets, "--isolation", "process")
    images = [fixture_bytes(name) for name in PHOTOS] * 2
    expected = infer(models, "classifier", images).as_numpy("tensor")
    with triton.InferenceServerClient(worker.address) as client:
        # The second time from the cache.
        for _ in range(2):
            assert np.array_equal(infer(client, "classifier", images).as_numpy("tensor"), expected)
    assert worker.stop() == 0


def test_many_clients_at_once(serving):
    images = [fixture_bytes(name) for name in PHOTOS]
    with triton.InferenceServerClient(serving.address) as client:
        expected = infer(client, "pixels", images).as_numpy("tensor")

    def run(_) -> bool:
        with triton.InferenceServerClient(serving.address) as client:
            return np.array_equal(infer(client, "pixels", images).as_numpy("tensor"), expected)
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        assert all(pool.map(run, range(64)))
