"""Arrays, from a worker that only pretends to have decoded images."""

import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import image_worker._tensors as tensors
import numpy
import pytest
from fake import FakeWorker
from image_worker import Client, InvalidRequestError, Item, Result, TensorColumn
from image_worker._generated import image_worker_pb2 as wire
from image_worker._requests import configuration
from image_worker._shared_memory import Segments


class TensorWorker(FakeWorker):
    """Returns arrays whose elements are the number of their image; the image "bad" fails, "small" has another size."""

    #: Whether some images wait for the next one, as with a worker of several threads.
    holds = True

    def _batch(self, requests: Iterator[wire.BatchProcessRequest], context: Any) -> Iterator[wire.BatchProcessResponse]:
        held = None
        for request in requests:
            self._note(request, context)
            is_third = request.start.image.isdigit() and int(request.start.image) % 3 == 0
            if self.holds and is_third and request.start.image != b"99":
                held = request
                continue
            yield from answer(request)
            if held:
                yield from answer(held)
                held = None


def info(shape: list[int]) -> wire.ImageInfo:
    tensor = wire.TensorInfo(element_type="TENSOR_ELEMENT_TYPE_U8", layout="TENSOR_LAYOUT_CHW", shape=shape)
    return wire.ImageInfo(format="raw", tensor=tensor)


def answer(request: wire.BatchProcessRequest) -> Iterator[wire.BatchProcessResponse]:
    name = request.item_id
    image = request.start.image.decode()
    if image == "bad":
        error = {"code": 3, "message": "it is bad"}
        yield wire.BatchProcessResponse(item_id=name, error=error)
        return
    shape = [3, 1, 1] if image == "small" else [3, 2, 4]
    count = shape[0] * shape[1] * shape[2]
    number = 0 if image == "small" else int(image)
    yield wire.BatchProcessResponse(item_id=name, header=info(shape))
    yield wire.BatchProcessResponse(item_id=name, chunk=bytes([number]) * count)
    yield wire.BatchProcessResponse(item_id=name, report=wire.ProcessingReport(output=info(shape), output_bytes=count))


def test_batches_keep_the_order_and_hold_few_images() -> None:
    taken = 0

    def images() -> Iterator[bytes]:
        nonlocal taken
        for number in range(100):
            taken += 1
            yield b"bad" if number == 5 else b"small" if number == 6 else b"%d" % number

    with TensorWorker() as worker, Client(worker.address) as client:
        for batch in client.tensors(images(), batch_size=10, width=4, height=2, dtype="uint8"):
            assert batch.array.shape == (10, 3, 2, 4) and len(batch) == 10
            assert taken <= batch.start + 10 + 10 + 8 + 1
            for index, row in enumerate(batch.array):
                number = batch.start + index
                error = batch.errors[index]
                assert (row == (0 if number in (5, 6) else number)).all()
                assert (error is None) == (number not in (5, 6))
        assert taken == 100 and batch.start == 90
        request = worker.requests[0].start.configuration
        assert request.preferred_format == wire.OUTPUT_FORMAT_RAW and request.allow_upscale
        assert (request.max_width, request.max_height, request.resize_mode) == (4, 2, wire.RESIZE_MODE_FILL)
        assert request.tensor.element_type == wire.TENSOR_ELEMENT_TYPE_U8 and request.tensor.layout == wire.TENSOR_LAYOUT_CHW


def test_fields_of_the_caller_replace_others() -> None:
    fields = tensors.tensor_fields(
        width=4, height=2, dtype="float16", layout="CHW", channels="bgr", mode="fit", tensor={"mean": [1.0, 2.0, 3.0]}, pad=False,
        gravity="north")
    assert fields["resize_mode"] == "fit" and fields["pad"] is False and fields["gravity"] == "north"
    assert fields["tensor"] == {
        "element_type": "f16", "layout": "CHW", "channels": "bgr", "normalization": None, "mean": [1.0, 2.0, 3.0]}
    assert tensors.tensor_fields(dtype=numpy.float16) == tensors.tensor_fields(dtype=numpy.dtype("float16"))
    with TensorWorker() as worker, Client(worker.address) as client:
        [_] = client.tensors([b"1"], width=4, height=2, tensor={"mean": [1.0, 2.0, 3.0]}, dtype="uint8")
        assert list(worker.requests[0].start.configuration.tensor.mean) == [1, 2, 3]
    for mean in numpy.array([1, 2, 3], numpy.float32), numpy.array([1, 2, 3]):
        sent = configuration(tensors.tensor_fields(tensor={"mean": mean}))
        assert sent and list(sent.tensor.mean) == [1, 2, 3]
    with pytest.raises(TypeError, match="tensor must be a dictionary or TensorOptions, not list"):
        tensors.tensor_fields(tensor=[1.0])


def test_a_preset_that_makes_tensors_is_not_overridden() -> None:
    options = wire.TensorOptions(element_type="TENSOR_ELEMENT_TYPE_U8", layout="TENSOR_LAYOUT_CHW", channels="TENSOR_CHANNELS_BGR")
    raw = wire.ProcessingConfiguration(preferred_format="OUTPUT_FORMAT_RAW", tensor=options)
    with TensorWorker() as worker, Client(worker.address) as client:
        worker.presets = [wire.Preset(name="model", configuration=raw), wire.Preset(name="small")]
        [batch] = client.tensors([b"1"], width=4, height=2, preset="model")
        assert batch.array.dtype == numpy.uint8 and not worker.requests[0].start.configuration.HasField("tensor")
        assert worker.requests[0].start.configuration.preferred_format == wire.OUTPUT_FORMAT_UNSPECIFIED
        [_] = client.tensors([b"1"], width=4, height=2, preset="model", channels="rgb")
        sent = worker.requests[1].start.configuration.tensor
        assert sent == wire.TensorOptions(channels="TENSOR_CHANNELS_RGB")
        [_] = client.tensors([b"1"], width=4, height=2, preset="small", dtype="uint8")
        assert worker.requests[2].start.configuration.tensor.layout == wire.TENSOR_LAYOUT_CHW
        fitted = wire.ProcessingConfiguration(max_width=4, max_height=2, allow_upscale=True, pad=True)
        fitted.MergeFrom(raw)
        worker.presets = [wire.Preset(name="model", configuration=fitted), wire.Preset(name="other")]
        [_] = client.tensors([Item("own", b"1", preset="other"), b"2"], width=4, height=2, preset="model")
        own, plain = (request.start for request in sorted(worker.requests[3:5], key=lambda request: request.start.image))
        assert own.configuration.tensor == options and own.configuration.resize_mode == wire.RESIZE_MODE_FILL
        assert not plain.HasField("configuration")  # which a worker refuses that takes presets alone
        [_] = client.tensors([b"1"], width=4, height=2, preset="model", mode="stretch")
        assert worker.requests[5].start.configuration.resize_mode == wire.RESIZE_MODE_STRETCH
        column = TensorColumn(worker.address, width=4, height=2, preset="model")
        assert column({"bytes": []})["tensor"].dtype == numpy.uint8


@pytest.mark.parametrize("options, shape", [
    ({}, (3, 2, 4)), ({"layout": "HWC"}, (2, 4, 3)), ({"channels": "GRAY"}, (1, 2, 4)), ({"channels": "Bgr"}, (3, 2, 4)),
    ({"tensor": {"layout": "HWC", "channels": "Gray"}}, (2, 4, 1)), ({"tensor": {"layout": 1, "channels": 3}}, (2, 4, 1)),
    ({"layout": None}, (3, 2, 4)), ({"tensor": wire.TensorOptions(channels="TENSOR_CHANNELS_GRAY")}, (1, 2, 4)),
    ({"tensor": {"layout": None, "channels": None, "element_type": None}}, (3, 2, 4)), ({"layout": "hwc", "tensor": {"layout": None}}, (2, 4, 3))])
def test_names_of_enumerations_may_have_capitals_and_none_is_the_default(options: Any, shape: tuple[int, ...]) -> None:
    options = {"width": 4, "height": 2, **options}
    fields = tensors.tensor_fields(**options)
    assert tensors.form_of(options, fields, None) == (shape, "float32")
    sent = configuration(fields)
    assert sent and sent.tensor.layout == (wire.TENSOR_LAYOUT_CHW if shape[1:] == (2, 4) else wire.TENSOR_LAYOUT_HWC)
    assert (sent.tensor.channels == wire.TENSOR_CHANNELS_GRAY) == (1 in shape) and sent.tensor.element_type == wire.TENSOR_ELEMENT_TYPE_F32


@pytest.mark.parametrize("options, images, message", [
    ({"tensor": {"element_type": "f32"}}, [b"1"], "dtype is 'uint8', but tensor.element_type that of 'float32'; set dtype alone"),
    ({}, "photo.jpg", "images is an iterable of images, not str; write \\[image\\] for a single one"),
    ({}, b"1", "images is an iterable of images, not bytes")])
def test_arrays_that_would_be_zero_are_errors(options: Any, images: Any, message: str) -> None:
    with TensorWorker() as worker, Client(worker.address) as client:
        with pytest.raises((TypeError, ValueError), match=message):
            list(client.tensors(images, width=4, height=2, dtype="uint8", **options))
        assert not worker.requests


@pytest.mark.parametrize("shares", [False, pytest.param(True, marks=pytest.mark.skipif(
    sys.platform != "linux", reason="the worker writes shared memory on Linux alone"))])
def test_images_of_overlays_come_with_the_request(shares: bool) -> None:
    options: Any = {
        "width": 4, "height": 2, "dtype": "uint8", "auxiliary_images": {"logo": b"logo"}, "overlays": [{"image": "logo"}],
        "shared_memory": shares}
    with TensorWorker() as worker, Client(worker.address) as client:
        with pytest.raises(ValueError, match="the result is jpeg|of the shape"):  # this worker has no tensors of one image
            client.tensor(b"1", **options)
        [_] = client.tensors([b"1"], **options)
        one, several = worker.requests[0], worker.requests[-1].start
        for request in (one, several):
            assert [(each.name, each.image) for each in request.auxiliary_images] == [("logo", b"logo")]
            assert request.configuration.overlays[0].image == "logo" and request.HasField("shared_memory") == shares


def test_wrong_parameters_are_named() -> None:
    with FakeWorker() as worker, Client(worker.address) as client:
        for parameters, text in [
                ({"dtype": "float64"}, "dtype is 'float64'; it must be one of uint8"), ({"mode": "crop"}, "mode is 'crop'"),
                ({"width": 3}, "width and height must be set together"), ({"layout": "nchw"}, "tensor.layout is 'nchw'")]:
            with pytest.raises(ValueError, match=text):
                client.tensor(b"1", **parameters)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="batch_size is 0"):
            list(client.tensors([b"1"], width=1, height=1, batch_size=0))
        with pytest.raises(ValueError, match="the result is jpeg"):
            client.tensor(b"1")
        with pytest.raises(TypeError, match="uint8 .* not <f4 of the shape"):
            client.tensor(numpy.zeros((2, 3), "<f4"))
        assert not any(isinstance(request, wire.BatchProcessRequest) for request in worker.requests)


def test_a_tensor_of_another_size_than_it_says_is_refused() -> None:
    report = wire.ProcessingReport(output=info([3, 2, 4]))
    assert Result(bytes(24), info([3, 2, 4]), report).numpy().shape == (3, 2, 4)
    for data in [b"", bytes(23), bytes(25)]:
        with pytest.raises(ValueError, match=f"{len(data)} bytes for a tensor of the shape"):
            Result(data, info([3, 2, 4]), report).numpy()
    with pytest.raises(ValueError, match="unknown type"):
        Result(bytes(24), info([24]), wire.ProcessingReport(output=info([24]))).numpy()


def test_an_error_of_an_image_is_raised_where_it_is_asked_for() -> None:
    with TensorWorker() as worker, Client(worker.address) as client:
        [batch] = client.tensors([b"1", b"bad"], width=4, height=2, dtype="uint8")
        with pytest.raises(InvalidRequestError, match="it is bad"):
            batch.unwrap()


class WritingWorker(TensorWorker):
    """Writes arrays into shared memory, as the worker does; "half" fails after half of its bytes."""

    holds = False

    def _batch(self, requests: Iterator[wire.BatchProcessRequest], context: Any) -> Iterator[wire.BatchProcessResponse]:
        for request in requests:
            self._note(request, context)
            place = request.start.shared_memory
            is_half = request.start.image == b"half"
            number = wire.BatchProcessRequest(item_id=request.item_id)
            number.start.image = b"7" if is_half else request.start.image
            with open(f"/dev/shm/{place.name}", "r+b") as file:
                assert file.read(len(place.token)) == place.token and os.fstat(file.fileno()).st_mode & 0o777 == 0o600
                for response in answer(number):
                    if response.WhichOneof("part") != "chunk":
                        if not is_half:
                            yield response
                        continue
                    file.seek(place.offset)
                    file.write(response.chunk[:12] if is_half else response.chunk)
                    assert len(response.chunk) == place.max_bytes
            if is_half:
                yield wire.BatchProcessResponse(item_id=request.item_id, error={"code": 3, "message": "it is bad"})


def segments() -> list[str]:
    return [name for name in os.listdir("/dev/shm") if name.startswith(f"image-worker.python-{os.getpid()}-")]


@pytest.mark.skipif(sys.platform != "linux", reason="the worker writes shared memory on Linux alone")
def test_arrays_in_shared_memory_are_written_in_place() -> None:
    with WritingWorker() as worker, Client(worker.address) as client:
        images = [b"half" if number == 3 else b"%d" % number for number in range(10)]
        batches = list(client.tensors(images, batch_size=4, width=4, height=2, dtype="uint8", shared_memory=True))
        assert [len(batch) for batch in batches] == [4, 4, 2]
        for batch in batches:
            assert batch.array.shape == (len(batch), 3, 2, 4) and batch.array.ctypes.data % 64 == 0
            for index, row in enumerate(batch.array):
                number = batch.start + index
                assert (batch.errors[index] is None) == (number != 3)
                assert (row == (0 if number == 3 else number)).all()
        assert all(request.start.HasField("shared_memory") for request in worker.requests)
        with pytest.raises(InvalidRequestError, match="it is bad"):
            list(client.tensors([b"half"], width=4, height=2, dtype="uint8", shared_memory=True, errors="raise"))
        with pytest.raises(ValueError, match="shared_memory does not work with errors='skip'"):
            list(client.tensors([b"1"], width=4, height=2, shared_memory=True, errors="skip"))
        with pytest.raises(TypeError, match="need width and height"):
            client.tensor(b"1", shared_memory=True)
    assert segments() == []


@pytest.mark.skipif(sys.platform != "linux", reason="the worker writes shared memory on Linux alone")
def test_the_memory_of_freed_arrays_is_used_again_and_that_of_others_is_not() -> None:
    with WritingWorker() as worker, Client(worker.address) as client:
        images = [b"half" if number == 3 else b"%d" % number for number in range(40)]
        options: Any = {"batch_size": 4, "width": 4, "height": 2, "dtype": "uint8", "shared_memory": True, "window": 1}
        kept = []
        for batch in client.tensors(images, **options):
            assert len(segments()) <= 6
            if batch.start % 8 == 0:
                kept.append(batch)
        for batch in kept:
            for index, row in enumerate(batch.array):
                assert (row == (0 if batch.start + index == 3 else batch.start + index)).all()
        places = [request.start.shared_memory for request in worker.requests]
        assert len({place.token for place in places}) == 10 and len({place.name for place in places}) < 10
        # The worker may still write what failed.
        assert all(place.name != places[0].name for place in places[4:])
    assert segments() == []


@pytest.mark.skipif(sys.platform != "linux", reason="the worker writes shared memory on Linux alone")
def test_calls_use_the_memory_of_the_calls_before_them_again() -> None:
    with WritingWorker() as worker, Client(worker.address) as client:
        for size in [4, 4, 4, 2, 2]:
            images = [b"%d" % number for number in range(size)]
            [batch] = client.tensors(images, batch_size=size, width=4, height=2, dtype="uint8", shared_memory=True)
            assert [row.max() for row in batch.unwrap()] == list(range(size)) and len(segments()) <= 2
            del batch
        places = [request.start.shared_memory for request in worker.requests]
        assert len({place.name for place in places}) == 2 and len({place.token for place in places}) == 5
        assert segments() == [places[-1].name]
    assert segments() == []


@pytest.mark.skipif(sys.platform != "linux", reason="the worker writes shared memory on Linux alone")
def test_memory_that_another_thread_frees_has_the_size_that_is_asked_for() -> None:
    shared, sizes, queued = Segments(), [1 << 12, 1 << 13, 1 << 14], queue.SimpleQueue[memoryview | None]()

    def free() -> None:
        while queued.get() is not None:
            pass

    threads = [threading.Thread(target=free) for _ in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for number in range(3000):
            segment = shared.create(sizes[number % 3])
            assert len(segment.memory) == sizes[number % 3]
            shared.give(segment)
            queued.put(segment.memory)
            del segment
    finally:
        sys.setswitchinterval(interval)
        for _ in threads:
            queued.put(None)
        for thread in threads:
            thread.join()
        shared.close()


FORKED = """
import os
from image_worker._shared_memory import Segments
segments = Segments()
segment = segments.create(1 << 16)
memory = segment.memory
memory[:5] = b"first"
segments.give(segment)
reading, writing = os.pipe()
if child := os.fork():
    del memory, segment
    segments.create(1 << 16).memory[:5] = b"later"
    os.write(writing, b"!")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
else:
    os.read(reading, 1)
    os._exit(bytes(memory[:5]) != b"first")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the worker writes shared memory on Linux alone")
def test_memory_that_a_forked_process_has_is_not_used_again() -> None:
    subprocess.run([sys.executable, "-c", FORKED], check=True, timeout=60)


KILLED = """
import os, signal, sys
from image_worker._shared_memory import Segment
segments = [Segment(1 << 16), Segment(1 << 16)]
print(os.getpid(), flush=True)
sys.stdin.read()
os.kill(os.getpid(), signal.SIGKILL)
"""
ALIVE = "from image_worker._shared_memory import Segment\nSegment(1 << 16)"


@pytest.mark.skipif(sys.platform != "linux", reason="the worker writes shared memory on Linux alone")
def test_segments_of_a_process_that_was_killed_are_removed_and_others_are_not() -> None:
    other = Path("/dev/shm/image-worker.other-client")
    other.write_bytes(b"")
    process = subprocess.Popen([sys.executable, "-c", KILLED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdin and process.stdout
        pattern = f"image-worker.python-{int(process.stdout.readline())}-*"
        subprocess.run([sys.executable, "-c", ALIVE], check=True)
        assert len(list(Path("/dev/shm").glob(pattern))) == 2
        process.communicate(timeout=60)
        assert len(list(Path("/dev/shm").glob(pattern))) == 2
        subprocess.run([sys.executable, "-c", ALIVE], check=True)
        assert not list(Path("/dev/shm").glob(pattern)) and other.exists()
    finally:
        process.kill()
        other.unlink()


@pytest.mark.skipif(sys.platform != "linux", reason="the worker writes shared memory on Linux alone")
def test_many_processes_create_segments_while_others_look_for_stale_ones() -> None:
    program = (
        "from image_worker import _shared_memory as memory\n"
        "for _ in range(200):\n"
        "    memory._remove_stale.cache_clear()\n"
        "    segment = memory.Segment(1)\n"
        "    assert memory.Path('/dev/shm', segment.place(0, 1).name).exists()\n"
        "    segment.hide()\n")
    processes = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(4)]
    assert [process.wait(timeout=300) for process in processes] == [0] * 4


@pytest.mark.skipif(sys.platform != "linux", reason="the worker writes shared memory on Linux alone")
def test_results_that_are_sent_in_spite_of_shared_memory_are_taken() -> None:
    with TensorWorker() as worker, Client(worker.address) as client:
        [batch] = client.tensors([b"1", b"2"], width=4, height=2, dtype="uint8", shared_memory=True)
        assert (batch.array[0] == 1).all() and (batch.array[1] == 2).all()
    assert segments() == []


def test_numpy_is_optional() -> None:
    program = (
        "import sys; sys.modules['numpy'] = None\n"
        "from image_worker import Client\n"
        "client = Client('127.0.0.1:1')\n"
        "try: client.tensor(b'1')\n"
        "except ImportError as error: print(error)\n")
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "pip install numpy" in printed
