"""Raw results over gRPC against Pillow and NumPy, and the arrays of the Python client."""

import asyncio
import fcntl
import io
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import grpc
import numpy as np
import pytest
from conftest import FIXTURES, Worker, built_in, fixture_bytes
from PIL import Image, ImageOps

sys.path.insert(0, str(Path(__file__).parent.parent.parent / "clients/python/src"))

import image_worker  # noqa: E402
from image_worker._generated import image_worker_pb2 as wire  # noqa: E402

KERNELS = ["LANCZOS3", "BICUBIC", "BILINEAR", "BOX", "NEAREST"]
# With one and with several components, as planes and interleaved, larger and smaller than the results.
PHOTOS = ["photo-420.jpg", "photo-422.jpg", "photo-444.jpg", "photo-odd.jpg", "photo-progressive.jpg", "photo-gray.jpg",
          "photo.png", "palette.png", "photo.bmp"]
MEAN, DEVIATION = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])


def parts(client, image: bytes, preset="", **fields):
    """The header, the bytes and the report of a raw result."""
    found = list(client.process(image, preset=preset, **{"preferred_format": "OUTPUT_FORMAT_RAW", **fields}))
    return found[0].header, b"".join(part.chunk for part in found), found[-1].report


def exact(kernel: str, size=(224, 224)) -> dict:
    return {"max_width": size[0], "max_height": size[1], "resize_mode": "RESIZE_MODE_STRETCH", "allow_upscale": True,
            "exact_resize": True, "resampling_kernel": f"RESAMPLING_KERNEL_{kernel}"}


def by_pillow(image: bytes, kernel: str, size=(224, 224)) -> np.ndarray:
    """As a training pipeline does it, in one call."""
    photo = Image.open(io.BytesIO(image)).convert("RGB")
    return np.asarray(photo.resize(size, Image.Resampling[kernel.replace("3", "")]))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", PHOTOS)
def test_exact_tensors_equal_those_of_pillow(client, name, kernel):
    for size in [(224, 224), (64, 96)]:  # no place lies between two pixels, where NEAREST and BOX have a choice
        header, data, _ = parts(client, fixture_bytes(name), **exact(kernel, size))
        assert list(header.tensor.shape) == [size[1], size[0], 3] and header.format == "raw"
        result = np.frombuffer(data, np.uint8).reshape(header.tensor.shape)
        difference = np.abs(result.astype(int) - by_pillow(fixture_bytes(name), kernel, size))
        assert difference.max() <= 1, f"{difference.max()} of {name}"


@pytest.mark.parametrize("kernel", KERNELS[:4])
@pytest.mark.parametrize("side", [40, 97, 224, 300])
@pytest.mark.parametrize("name", ["photo-odd.jpg", "photo-444.jpg", "photo.png"])
def test_exact_squares_are_those_of_resize_and_center_crop(client, name, side, kernel):
    photo = Image.open(io.BytesIO(fixture_bytes(name))).convert("RGB")
    for image in photo, photo.transpose(Image.Transpose.TRANSPOSE):
        # As torchvision's Resize(side) and CenterCrop(side) compute them.
        (width, height), shorter = image.size, min(image.size)
        size = (int(side * width / shorter), int(side * height / shorter))
        left, top = (int(round((length - side) / 2)) for length in size)
        expected = np.asarray(image.resize(size, Image.Resampling[kernel.replace("3", "")]))[top:top + side, left:left + side]
        file = io.BytesIO()
        image.save(file, "PNG")
        _, data, _ = parts(client, file.getvalue(), **exact(kernel, (side, side)) | {"resize_mode": "RESIZE_MODE_FILL"})
        assert (np.frombuffer(data, np.uint8).reshape(expected.shape) == expected).all()


@pytest.mark.parametrize("orientation", range(2, 9))
def test_exact_tensors_are_those_of_the_displayed_image(client, orientation):
    photo = Image.open(io.BytesIO(fixture_bytes(PHOTOS[0]))).convert("RGB").crop((0, 0, 150, 101))
    exif = Image.Exif()
    exif[0x0112] = orientation
    file = io.BytesIO()
    photo.save(file, "PNG", exif=exif)
    upright = ImageOps.exif_transpose(Image.open(file))
    for kernel in "BOX", "BILINEAR", "LANCZOS3":
        for size in [(50, 60), (33, 64)]:  # which Pillow 13 resizes horizontally first, too
            for box in None, (10, 20, 90, 100):
                crop = {} if box is None else {"crop": {"x": box[0], "y": box[1], "width": 80, "height": 80}}
                data = parts(client, file.getvalue(), **exact(kernel, size), **crop)[1]
                result = np.frombuffer(data, np.uint8).reshape(size[1], size[0], 3)
                expected = np.asarray(upright.crop(box).resize(size, Image.Resampling[kernel.replace("3", "")]))
                assert np.abs(result.astype(int) - expected).max() <= 1, (kernel, size, box)


@pytest.mark.parametrize("dtype, element, tolerance", [("<f4", "F32", 1e-6), ("<f2", "F16", 5e-4)])
def test_normalized_tensors_equal_those_of_numpy(client, dtype, element, tolerance):
    image = fixture_bytes("photo-420.jpg")
    pixels = parts(client, image, **exact("BICUBIC"))[1]
    samples = np.frombuffer(pixels, np.uint8).reshape(224, 224, 3)
    tensor = {"element_type": f"TENSOR_ELEMENT_TYPE_{element}", "layout": "TENSOR_LAYOUT_CHW"}
    for options, expected in [
            ({}, samples / 255), ({"normalization": "TENSOR_NORMALIZATION_IMAGENET"}, (samples / 255 - MEAN) / DEVIATION),
            ({"normalization": "TENSOR_NORMALIZATION_HALF"}, samples / 127.5 - 1),
            ({"normalization": "TENSOR_NORMALIZATION_NONE", "mean": [123.68, 116.78, 103.94],
              "channels": "TENSOR_CHANNELS_BGR"}, (samples - [123.68, 116.78, 103.94])[..., ::-1]),
            ({"scale": 0.01, "standard_deviation": [0.5]}, samples * 0.02)]:
        header, data, report = parts(client, image, **exact("BICUBIC"), tensor={**tensor, **options})
        assert list(header.tensor.shape) == [3, 224, 224] and report.output.tensor == header.tensor
        result = np.frombuffer(data, dtype).reshape(header.tensor.shape)
        difference = np.abs(result.astype(float) - expected.transpose(2, 0, 1)).max()
        assert difference <= tolerance * max(1, np.abs(expected).max()), options


def test_gray_tensors_are_those_of_pillow(client):
    image = fixture_bytes("photo.png")
    _, data, _ = parts(client, image, tensor={"channels": "TENSOR_CHANNELS_GRAY"})
    expected = np.asarray(Image.open(io.BytesIO(image)).convert("RGB").convert("L"))
    assert np.array_equal(np.frombuffer(data, np.uint8).reshape(expected.shape), expected)


def test_a_letterbox_is_in_header_and_report(client):
    header, data, report = parts(
        client, fixture_bytes("photo-420.jpg"), max_width=224, max_height=224, pad=True, allow_upscale=True,
        background={"red": 114, "green": 114, "blue": 114})
    box = header.tensor.content
    assert (box.x, box.y, box.width, box.height) == (0, 37, 224, 149) and report.output.tensor.content == box
    result = np.frombuffer(data, np.uint8).reshape(224, 224, 3)
    assert (result[:37] == 114).all() and (result[37 + 149:] == 114).all() and not (result[37:40] == 114).all()
    assert list(header.tensor.strides) == [672, 3, 1] and header.tensor.byte_order == "little"


def test_what_a_tensor_cannot_do_is_refused(client):
    for field, fields in [
            ("max_bytes", {"max_bytes": 100}), ("target_similarity", {"target_similarity": 80}),
            ("max_frames", {"max_frames": 0}), ("tensor.mean", {"tensor": {"element_type": 4, "mean": [1, 2]}}),
            ("tensor.normalization", {"tensor": {"normalization": "TENSOR_NORMALIZATION_CLIP"}})]:
        with pytest.raises(grpc.RpcError) as caught:
            parts(client, fixture_bytes("photo-420.jpg"), **fields)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT and field in caught.value.details()


@pytest.fixture(scope="module")
def isolated():
    worker = Worker("--isolation", "process")
    yield worker
    assert worker.stop() == 0, "".join(worker.log)


@built_in("isolation")
def test_tensors_of_helpers_and_of_the_cache_are_the_same(isolated, client):
    from conftest import Client
    fields = {"max_width": 100, "max_height": 90, "resize_mode": "RESIZE_MODE_FILL",
              "tensor": {"element_type": "TENSOR_ELEMENT_TYPE_BF16", "layout": "TENSOR_LAYOUT_CHW", "mean": [0.5]}}
    other = Client(isolated)
    expected = parts(client, fixture_bytes("photo-420.jpg"), **fields)
    for is_hit in [False, True]:
        header, data, report = parts(other, fixture_bytes("photo-420.jpg"), **fields)
        assert data == expected[1] and report.output.tensor == header.tensor
        assert str(header.tensor) == str(expected[0].tensor)  # of another client, whose messages never equal
        assert report.cache_hit == is_hit


@pytest.fixture
def arrays(worker):
    with image_worker.Client(worker.address) as client:
        yield client


def test_the_client_returns_arrays(arrays):
    image = fixture_bytes("photo-420.jpg")
    fields = {"exact_resize": True, "resampling_kernel": "bicubic", "mode": "stretch", "width": 224, "height": 224}
    array = arrays.tensor(image, **fields, dtype="float32", normalize="imagenet")
    expected = (by_pillow(image, "BICUBIC") / 255 - MEAN) / DEVIATION
    assert array.shape == (3, 224, 224) and array.dtype == np.float32 and array.flags.writeable
    assert np.abs(array - expected.transpose(2, 0, 1)).max() <= 1.02 / 255 / DEVIATION.min()
    pixels = arrays.tensor(image, **fields, dtype="uint8", layout="hwc")
    assert pixels.shape == (224, 224, 3) and np.abs(pixels.astype(int) - by_pillow(image, "BICUBIC")).max() <= 1
    assert arrays.tensor(image, dtype="float16").shape == (3, 160, 240)
    assert arrays.tensor(image, width=9, height=7, channels="gray", mode="fit").shape == (1, 7, 9)
    assert np.from_dlpack(array).shape == array.shape


def test_commands_print_the_layout_of_tensors(tmp_path, worker):
    Image.new("RGB", (200, 100), "teal").save(tmp_path / "photo.png")
    options = ["--format", "raw", "--max-width", "80", "--max-height", "80", "--pad", "--tensor-type", "f16",
               "--tensor-layout", "chw", "--json"]
    expected = {
        "element_type": "f16", "layout": "chw", "channels": "rgb", "shape": [3, 80, 80], "strides": [12800, 160, 2],
        "content": {"x": 0, "y": 20, "width": 80, "height": 40}}
    for command in (["process", "--out", tmp_path / "one.raw"], ["batch", "--out", tmp_path / "local"],
                    ["batch", "--to", worker.address, "--out", tmp_path / "remote"], ["inspect"]):
        run = subprocess.run(
            [os.environ["IMAGE_WORKER"], command[0], tmp_path / "photo.png", *command[1:], *options], check=True, timeout=60,
            capture_output=True, text=True)
        line = json.loads(run.stdout.splitlines()[0])
        found = line["output"]["tensor"] if command[0] == "inspect" else line["tensor"]
        assert found == expected


def test_a_preset_decides_what_the_caller_leaves_open(tmp_path):
    presets = tmp_path / "presets.yaml"
    presets.write_text("presets: {model: {preferred_format: raw, tensor: {element_type: f16, layout: hwc, channels: bgr}}}")
    worker, file = Worker("--presets", str(presets)), io.BytesIO()
    Image.new("RGB", (12, 9), (255, 0, 0)).save(file, "PNG")
    with image_worker.Client(worker.address) as client:
        array = client.tensor(file.getvalue(), preset="model")
        assert array.shape == (9, 12, 3) and array.dtype == np.float16 and list(array[0, 0]) == [0, 0, 1]
        [batch] = client.tensors([file.getvalue()], preset="model", width=4, height=4, channels="rgb")
        assert batch.array.shape == (1, 4, 4, 3) and list(batch.array[0, 0, 0]) == [1, 0, 0]
    assert worker.stop() == 0


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "P", "1", "CMYK", "LA"])
def test_images_of_pillow_and_arrays_are_images(arrays, mode):
    photo = Image.open(FIXTURES / "photo.png").convert(mode)
    array = arrays.tensor(photo, dtype="uint8", layout="hwc")
    assert np.array_equal(array, np.asarray(photo.convert("RGBA").convert("RGB")))
    if mode in ("L", "RGB", "RGBA"):
        assert np.array_equal(arrays.tensor(np.asarray(photo), dtype="uint8", layout="hwc"), array)


def test_an_image_is_the_same_wherever_it_comes_from(arrays):
    import fsspec
    image, options = fixture_bytes("photo-422.jpg"), {"width": 64, "height": 48, "dtype": "uint8"}
    fsspec.filesystem("memory").pipe_file("/photos/a.jpg", image)
    url = "memory://photos/a.jpg"
    sources = [image, bytearray(image), np.frombuffer(image, np.uint8), FIXTURES / "photo-422.jpg", str(FIXTURES / "photo-422.jpg"),
               (FIXTURES / "photo-422.jpg").as_uri(), url, fsspec.open(url), io.BytesIO(image), [image[:99], image[99:]]]
    expected = arrays.tensor(image, **options)
    [batch] = arrays.tensors([image_worker.Item(type(source).__name__, source) for source in sources], prefetch=1, **options)
    for key, row, error in zip(batch.keys, batch.array, batch.errors, strict=True):
        assert error is None and np.array_equal(row, expected), key


@pytest.mark.parametrize("mode, profile", [("RGB", "display-p3.icc"), ("RGBA", "display-p3.icc"), ("L", "gray-gamma-1.8.icc")])
def test_an_image_of_pillow_has_the_colors_of_its_profile(arrays, mode, profile):
    photo = Image.open(FIXTURES / "photo.png").convert(mode)
    file = io.BytesIO()
    photo.save(file, "PNG", icc_profile=fixture_bytes(profile))
    expected = arrays.tensor(file.getvalue(), dtype="uint8", layout="hwc")
    assert np.array_equal(arrays.tensor(Image.open(file), dtype="uint8", layout="hwc"), expected)
    assert not np.array_equal(arrays.tensor(photo, dtype="uint8", layout="hwc"), expected)


def test_batches_are_stacked_in_order_with_errors_for_each_image(arrays):
    good = [Image.new("RGB", (30 + number, 20), (number, 0, 255 - number)) for number in range(40)]
    images = [b"no image" if number % 7 == 3 else 5 if number == 20 else np.asarray(image)
              for number, image in enumerate(good)]
    batches = list(arrays.tensors(iter(images), batch_size=16, width=8, height=8, dtype="uint8", layout="hwc"))
    assert [batch.array.shape for batch in batches] == [(16, 8, 8, 3), (16, 8, 8, 3), (8, 8, 8, 3)]
    assert [batch.start for batch in batches] == [0, 16, 32]
    rows = [(row, error, box) for batch in batches for row, error, box in zip(batch.array, batch.errors, batch.contents)]
    for number, (row, error, box) in enumerate(rows):
        if number % 7 == 3:
            assert isinstance(error, image_worker.ImageError) and error.reason == "UNKNOWN_FORMAT" and not row.any()
        elif number == 20:
            assert isinstance(error, TypeError) and "not int" in str(error) and not row.any() and box is None
        else:
            assert error is None and box == (0, 0, 8, 8) and (row == [number, 0, 255 - number]).all()
    with pytest.raises(image_worker.ImageError):
        batches[0].unwrap()


def test_batches_over_asyncio(worker):
    async def collect():
        async with image_worker.AsyncClient(worker.address) as client:
            images = [fixture_bytes("photo-420.jpg")] * 5
            return [batch async for batch in client.tensors(
                images, batch_size=4, width=10, height=10, dtype="float16", mode="fit")]
    batches = asyncio.run(collect())
    assert [batch.unwrap().shape for batch in batches] == [(4, 3, 10, 10), (1, 3, 10, 10)]
    assert batches[0].contents[0] == (0, 1, 10, 7)


def test_the_command_writes_raw_files(tmp_path):
    import os
    command = [os.environ["IMAGE_WORKER"], "process", str(FIXTURES / "photo-420.jpg"), "--max-width", "32", "--max-height", "32",
               "--resize-mode", "fill", "--tensor-type", "f32", "--tensor-layout", "chw", "--tensor-mean", "0.1,0.2,0.3",
               "--tensor-deviation", "2"]
    subprocess.run([*command, "--out", str(tmp_path / "a.raw")], check=True)
    subprocess.run([*command, "--format", "raw", "--out", str(tmp_path)], check=True)
    data = (tmp_path / "a.raw").read_bytes()
    assert len(data) == 3 * 32 * 32 * 4 and (tmp_path / "photo-420.raw").read_bytes() == data
    array = np.frombuffer(data, "<f4")
    assert -0.15 <= array.min() and array.max() <= 0.45


def test_a_preset_can_be_a_tensor(tmp_path):
    from conftest import Client
    presets = tmp_path / "presets.yaml"
    presets.write_text("""presets:
  classifier:
    description: The input of a classifier.
    max_width: 32
    max_height: 32
    resize_mode: fill
    preferred_format: raw
    tensor: {element_type: f32, layout: chw, mean: [0.5, 0.4, 0.3], standard_deviation: [0.25]}
""")
    worker = Worker("--presets", str(presets))
    client = Client(worker)
    found = list(client.process(fixture_bytes("photo-420.jpg"), preset="classifier"))
    array = np.frombuffer(b"".join(part.chunk for part in found), "<f4").reshape(found[0].header.tensor.shape)
    pixels = parts(client, fixture_bytes("photo-420.jpg"), max_width=32, max_height=32, resize_mode="RESIZE_MODE_FILL")[1]
    samples = np.frombuffer(pixels, np.uint8).reshape(32, 32, 3)
    assert np.abs(array - ((samples / 255 - [0.5, 0.4, 0.3]) / 0.25).transpose(2, 0, 1)).max() < 1e-5
    listed = client.call("ListPresets", "unary_unary")(client.message("ListPresetsRequest")(), timeout=60)
    preset = next(preset for preset in listed.presets if preset.name == "classifier")
    assert list(preset.configuration.tensor.mean) == [0.5, 0.4, 0.3]
    assert worker.stop() == 0


@pytest.fixture(scope="module", params=["none", pytest.param("process", marks=built_in("isolation"))])
def sharing(request):
    worker = Worker("--shared-memory", "--isolation", request.param)
    yield worker
    assert worker.stop() == 0


def segments():
    return [name for name in os.listdir("/dev/shm") if name.startswith(f"image-worker.python-{os.getpid()}-")]


def test_shared_memory_has_what_is_sent_otherwise(sharing):
    photos = [fixture_bytes(name) for name in PHOTOS] * 3
    options = {"width": 224, "height": 224, "dtype": "float16", "batch_size": 8}
    with image_worker.Client(sharing.address) as client:
        single = {"width": 64, "height": 48, "mode": "fit"}
        for _ in range(3):
            assert (client.tensor(photos[0], **single) == client.tensor(photos[0], shared_memory=True, **single)).all()
        assert len(segments()) == 1
        sent = list(client.tensors([*photos, b"no image"], **options))
        shared = list(client.tensors([*photos, b"no image"], shared_memory=True, **options))
    assert [batch.array.shape for batch in shared] == [batch.array.shape for batch in sent]
    for one, other in zip(sent, shared):
        assert (one.array == other.array).all() and one.contents == other.contents
    assert shared[-1].errors[-1].code is grpc.StatusCode.UNIMPLEMENTED and not shared[-1].array[-1].any()
    assert not segments()


def test_a_lease_on_a_segment_holds_no_thread(sharing):
    """Without O_NONBLOCK, opening the file would wait for its owner, for 45 seconds."""
    path, size, token = Path("/dev/shm", f"image-worker.{os.getpid()}-leased"), 1 << 20, bytes(range(32))
    path.write_bytes(token + bytes(size - len(token)))
    path.chmod(0o600)
    file = os.open(path, os.O_RDWR)
    former = signal.signal(signal.SIGIO, signal.SIG_IGN)
    try:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        place = wire.SharedMemory(name=path.name, offset=4096, max_bytes=size - 4096, token=token)
        request = wire.ProcessImageRequest(
            image=fixture_bytes("photo-420.jpg"), configuration=wire.ProcessingConfiguration(max_width=77), shared_memory=place)
        process = grpc.insecure_channel(sharing.address).unary_stream(
            "/imageworker.v1.ImageWorkerService/ProcessImage", wire.ProcessImageRequest.SerializeToString,
            wire.ProcessImageResponse.FromString)
        with pytest.raises(grpc.RpcError) as caught:
            list(process(request, timeout=40))
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT, caught.value
    finally:
        os.close(file)
        signal.signal(signal.SIGIO, former)
        path.unlink()


def test_a_client_that_shortens_its_memory_meanwhile_costs_its_own_result(sharing):
    """Images of other clients go on, and the worker lives."""
    image, stop = fixture_bytes("photo-420.jpg"), threading.Event()
    name = f"image-worker.{os.getpid()}-shortened"
    path, size, token = Path("/dev/shm", name), 1 << 20, bytes(range(32))

    def change():
        while not stop.is_set():
            with open(path, "r+b") as file:
                os.posix_fallocate(file.fileno(), 0, size)
                file.write(token)
                file.truncate(4096 if stop.wait(0.001) else 100)

    path.touch(0o600)
    changing = threading.Thread(target=change)
    changing.start()
    try:
        channel = grpc.insecure_channel(sharing.address)
        process = channel.unary_stream(
            "/imageworker.v1.ImageWorkerService/ProcessImage", wire.ProcessImageRequest.SerializeToString,
            wire.ProcessImageResponse.FromString)
        outcomes = set()
        for width in range(100, 300):
            place = wire.SharedMemory(name=name, offset=4096, max_bytes=size - 4096, token=token)
            configuration = wire.ProcessingConfiguration(max_width=width, always_encode=True)
            request = wire.ProcessImageRequest(image=image, configuration=configuration, shared_memory=place)
            try:
                outcomes.add([part.WhichOneof("part") for part in process(request)][-1])
            except grpc.RpcError as error:
                assert error.code() is grpc.StatusCode.INVALID_ARGUMENT, error.details()
                outcomes.add("error")
        assert "error" in outcomes
    finally:
        stop.set()
        changing.join()
        path.unlink()
    with image_worker.Client(sharing.address) as client:
        assert client.process(image, max_width=50).width == 50
