"""Workers whose codecs are isolated: lost helpers, drains, limits, and systems that refuse parts of the sandbox."""

import io
import json
import os
import platform
import random
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from conftest import UNLIMITED, Client, Worker, built_in, fixture_bytes, metric, wait_until
from google.rpc import code_pb2, error_details_pb2
from PIL import Image
from processes import contents, cpu_seconds, descendants, family, helpers, is_alive, is_idle, work_nanoseconds
from test_lifecycle import Feed

pytestmark = built_in("isolation")


def isolated_worker(*options: str) -> Worker:
    return Worker("--isolation", "process", "--cache-memory-mib", "0", *options)


@pytest.fixture
def isolated():
    worker = isolated_worker("--threads", "1")
    yield worker
    if worker.process.poll() is None:
        worker.process.kill()
        worker.process.wait()


def favicon(worker: Worker) -> bytes:
    return b"".join(part.chunk for part in Client(worker).process(fixture_bytes("photo-420.jpg"), "favicon"))


def wait_until_gone(processes: list[int]):
    assert wait_until(lambda: not any(is_alive(pid) for pid in processes)), processes


@pytest.fixture(scope="module")
def large_photo() -> bytes:
    output = io.BytesIO()
    Image.open(io.BytesIO(fixture_bytes("photo-420.jpg"))).resize((3000, 2000)).save(output, "JPEG", quality=92)
    return output.getvalue()


class Upload:
    """An image of which a helper has processed the first half."""

    def __init__(self, worker: Worker, image: bytes):
        self.client, self.image, self.feed = Client(worker), image, Feed()
        before = {pid: work_nanoseconds(pid) for pid in helpers(worker)}
        self.responses = self.client.batch(self.feed)
        self.feed.send(self.client.start("half", "compressedThumbnail"),
                       self.client.chunk("half", image[:len(image) // 2]))
        assert next(self.responses).WhichOneof("part") == "header"
        # What was sent has reached its helper if no process has anything to do.
        assert wait_until(lambda: is_idle(worker.process.pid, *helpers(worker)))
        self.helper = max(helpers(worker), key=lambda pid: work_nanoseconds(pid) - before.get(pid, 0))

    def finish(self) -> list:
        """Sends the rest; returns the parts of the result."""
        self.feed.send(self.client.chunk("half", self.image[len(self.image) // 2:]), self.client.end("half"))
        self.feed.close()
        return list(self.responses)


def reason(status) -> str:
    for detail in status.details:
        info = error_details_pb2.ErrorInfo()
        if detail.Unpack(info):
            return info.reason
    return ""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT])
def test_a_helper_that_ends_costs_its_own_image(tmp_path, large_photo, number):
    worker = isolated_worker("--threads", "1", "--crash-directory", str(tmp_path))
    expected = favicon(worker)
    upload = Upload(worker, large_photo)
    os.kill(upload.helper, number)
    assert favicon(worker) == expected
    error = upload.finish()[-1].error
    assert error.code == code_pb2.INTERNAL and reason(error) == "CODEC_CRASHED", error
    assert favicon(worker) == expected
    kept = list(tmp_path.iterdir())
    assert len(kept) == 1 and large_photo.startswith(kept[0].read_bytes())
    assert kept[0].stat().st_size >= len(large_photo) // 2 - 65536 and kept[0].stat().st_mode & 0o077 == 0
    processes = descendants(worker.process.pid)
    assert worker.stop() == 0
    wait_until_gone(processes)


def test_a_stopped_helper_is_continued(isolated, large_photo):
    expected = b"".join(part.chunk for part in Client(isolated).process(large_photo, "compressedThumbnail"))
    upload = Upload(isolated, large_photo)
    os.kill(upload.helper, signal.SIGSTOP)
    assert b"".join(part.chunk for part in upload.finish()) == expected


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGTRAP])
def test_a_crash_of_the_zygote_delays_images_by_little(number):
    worker = Worker("--isolation", "process", "--cache-memory-mib", "0", "--metrics-port", "0")
    try:
        client, image = Client(worker), fixture_bytes("photo-420.jpg")
        assert client.process(image, preset="favicon")
        os.kill(descendants(worker.process.pid)[0], number)
        assert wait_until(lambda: metric(worker, "imageworker_zygotes_replaced_total") == 1)
        began = time.monotonic()
        with ThreadPoolExecutor(8) as pool:
            assert all(list(pool.map(lambda _: list(Client(worker).process(image, preset="favicon")), range(8))))
        assert time.monotonic() - began < 10
    finally:
        assert worker.stop() == 0


def test_an_image_that_is_lost_with_the_zygote_can_be_sent_again(isolated, large_photo):
    expected = b"".join(part.chunk for part in Client(isolated).process(large_photo, "compressedThumbnail"))
    upload = Upload(isolated, large_photo)
    os.kill(descendants(isolated.process.pid)[0], signal.SIGKILL)
    error = upload.finish()[-1].error
    assert error.code == code_pb2.RESOURCE_EXHAUSTED and reason(error) == "OVERLOADED", error
    assert "the process that started it has ended; try again later" in error.message
    assert b"".join(part.chunk for part in Client(isolated).process(large_photo, "compressedThumbnail")) == expected


def test_a_stopped_zygote_is_replaced_before_an_image_needs_it(large_photo):
    worker = isolated_worker("--threads", "1", "--metrics-port", "0")
    expected = favicon(worker)
    upload = Upload(worker, large_photo)
    # The first process that the worker starts; the others are its children.
    zygote = descendants(worker.process.pid)[0]
    assert contents(f"/proc/{zygote}/comm") == "codec-zygote\n"
    assert metric(worker, "imageworker_zygotes_replaced_total") == 0
    os.kill(zygote, signal.SIGSTOP)
    assert wait_until(lambda: metric(worker, "imageworker_zygotes_replaced_total") == 1)
    assert wait_until(lambda: any("was replaced" in line for line in worker.log))
    assert favicon(worker) == expected
    # The image that it was working on is not lost, and the stopped process goes with its helper.
    assert upload.finish()[-1].WhichOneof("part") == "report"
    wait_until_gone([zygote])
    assert metric(worker, "imageworker_helpers_lost_total") == 0 and worker.stop() == 0


def test_at_the_limit_of_processes_images_in_progress_go_on(large_photo):
    # The limit does not apply to root.
    prefix = ("setpriv", "--reuid", "64124", "--regid", "64124", "--clear-groups")
    if os.geteuid() != 0 or subprocess.run([*prefix, "test", "-x", os.environ["IMAGE_WORKER"]]).returncode != 0:
        pytest.skip("nobody else can start the worker")
    worker = Worker("--isolation", "process", "--cache-memory-mib", "0", "--threads", "2", prefix=prefix)
    expected = favicon(worker)
    upload = Upload(worker, large_photo)
    zygote = descendants(worker.process.pid)[0]
    limit = [*prefix, "prlimit", f"--pid={zygote}"]
    before = subprocess.check_output([*limit, "--nproc", "--output=SOFT", "--noheadings", "--raw"], text=True).strip()
    subprocess.run([*limit, "--nproc=1:"], check=True)
    idle = [pid for pid in helpers(worker) if pid != upload.helper]
    for pid in idle:
        os.kill(pid, signal.SIGKILL)
    wait_until_gone(idle)

    with pytest.raises(grpc.RpcError, match="no room for another process") as refused:
        favicon(worker)
    assert refused.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    assert upload.finish()[-1].WhichOneof("part") == "report"
    subprocess.run([*limit, f"--nproc={before}:"], check=True)
    assert favicon(worker) == expected
    assert worker.stop() == 0


@pytest.fixture
def few_processes():
    """A worker with 8 processes, of which 6 may work on uploads."""
    worker = isolated_worker("--threads", "1", "--memory-limit-mib", "192")
    yield worker
    assert worker.stop() == 0


def slow_upload(client: Client, items: list[str], image: bytes):
    """The parts of uploads that take turns."""
    yield from (client.start(item, "favicon") for item in items)
    for at in range(0, len(image), 4000):
        yield from (client.chunk(item, image[at:at + 4000]) for item in items)
        time.sleep(0.1)
    yield from (client.end(item) for item in items)


def ends(responses) -> list:
    return [part for part in responses if part.WhichOneof("part") in ("report", "error")]


def test_uploads_of_several_streams_do_not_wait_for_each_other(few_processes):
    client, image = Client(few_processes), fixture_bytes("photo-420.jpg")
    with ThreadPoolExecutor(12) as pool:
        found = list(pool.map(
            lambda _: ends(client.batch(slow_upload(client, ["a", "b"], image), timeout=60)), range(12)))
    assert all(sorted(part.item_id for part in parts) == ["a", "b"] for parts in found)


def test_previews_of_uploads_leave_processes_to_others(few_processes):
    client, feed, image = Client(few_processes), Feed(), fixture_bytes("photo-420.jpg")
    responses = client.batch(feed)
    for number in range(8):
        start = client.start(str(number), "favicon")
        start.start.preview = True
        feed.send(start, client.chunk(str(number), image[:6000]))
    # That of an upload for which there is no process.
    assert next(part for part in responses if part.WhichOneof("part") == "error").error.code == code_pb2.RESOURCE_EXHAUSTED
    assert list(Client(few_processes).process(image, "favicon", timeout=10))
    feed.close()


def test_whole_images_do_not_block_an_upload_that_they_wait_for():
    worker = isolated_worker("--threads", "1", "--memory-limit-mib", "128", "--image-memory-limit-mib", "100")
    client, feed = Client(worker), Feed()
    # 86 MiB each.
    image = saved(
        Image.effect_noise((88, 88), 80).resize((1400, 1400)).convert("RGB"), format="JPEG", progressive=True, quality=50,
        subsampling=0)
    items = [client.start(str(number), "", image if number else b"") for number in range(12)]
    for number, item in enumerate(items):
        item.start.configuration.max_width, item.start.configuration.preferred_format = 1330 + number, 4
    responses = client.batch(feed, timeout=60)
    feed.send(items[0], client.chunk("0", image[:len(image) // 2]))
    assert next(responses).WhichOneof("part") == "header"
    # More than may be in progress on a stream.
    feed.send(*items[1:], client.chunk("0", image[len(image) // 2:]), client.end("0"))
    feed.close()
    assert sorted(int(part.item_id) for part in ends(responses)) == list(range(12))
    assert worker.stop() == 0


def test_interleaved_uploads_that_find_no_process_are_refused(few_processes):
    client, image, count = Client(few_processes), fixture_bytes("photo-420.jpg"), 60

    # One that waited for a process would block the uploads behind it, whose processes others wait for.
    found = ends(client.batch(slow_upload(client, [str(number) for number in range(count)], image), timeout=60))
    assert sorted(int(part.item_id) for part in found) == list(range(count))
    refused = [part.error for part in found if part.WhichOneof("part") == "error"]
    assert 0 < len(refused) < count
    assert all(error.code == code_pb2.RESOURCE_EXHAUSTED and "busy" in error.message for error in refused), refused
    last = list(client.batch(slow_upload(client, ["one"], image), timeout=60))[-1]
    assert last.WhichOneof("part") == "report"


def noise(width: int, height: int, seed: int = 0) -> Image.Image:
    return Image.frombytes("RGB", (width, height), random.Random(seed).randbytes(width * height * 3))


def saved(image: Image.Image, **options) -> bytes:
    file = io.BytesIO()
    image.save(file, **options)
    return file.getvalue()


def animation(width: int, height: int, count: int, **options) -> bytes:
    frames = [noise(width, height, seed) for seed in range(count)]
    return saved(frames[0], save_all=True, append_images=frames[1:], duration=50, **options)


FLOATS = {"preferred_format": "OUTPUT_FORMAT_RAW", "tensor": {"element_type": "TENSOR_ELEMENT_TYPE_F32"}}
# Of which a frame, a strip or the whole is larger than what most images need.
LARGE = {
    "GIF to PNG": lambda: (animation(64, 64, 100, format="GIF"), {"max_frames": 0, "preferred_format": 3}),
    "WebP to GIF": lambda: (animation(100, 75, 30, format="WEBP"), {
        "max_frames": 0, "preferred_format": "OUTPUT_FORMAT_GIF", "max_width": 400, "allow_upscale": True}),
    "long frames": lambda: (saved(
        noise(4, 4), format="PNG", save_all=True, append_images=[noise(4, 4, seed) for seed in range(1, 1000)],
        duration=65_000_000), {"max_frames": 0, "preferred_format": "OUTPUT_FORMAT_GIF"}),
    "wide floats": lambda: (saved(noise(20_000, 64), format="JPEG"), FLOATS),
    "rotated floats": lambda: (saved(noise(4000, 300), format="JPEG"), FLOATS | {"rotation": 180}),
    "rotated noise": lambda: (saved(noise(8000, 300), format="BMP"), {"preferred_format": 3}),
    "one row": lambda: (saved(noise(700_000, 1), format="PNG"), {"rotation": 180, "preferred_format": 3}),
}


@pytest.fixture(scope="module")
def workers():
    both = [Worker("--isolation", kind, "--cache-memory-mib", "0", "--memory-limit-mib", "1024")
            for kind in ("process", "none")]
    yield both
    assert [worker.stop() for worker in both] == [0, 0]


@pytest.mark.parametrize("name", LARGE)
def test_large_results_are_those_without_isolation(workers, name):
    image, configuration = LARGE[name]()
    isolated, plain = (
        b"".join(part.chunk for part in Client(worker).process(image, **configuration)) for worker in workers)
    assert isolated == plain and len(plain) > 0


def test_filters_may_hold_many_rows_until_the_last(isolated):
    """They leave the process at once, and not as a message that is larger than what was reserved."""
    out = io.BytesIO()
    Image.frombytes("RGB", (4000, 400), random.Random(1).randbytes(4000 * 400 * 3)).save(out, "PNG", compress_level=1)
    filters = [{"name": "sharpen", "intensity": 1, "parameters": {"radius": 50}}] * 2
    parts = list(Client(isolated).process(out.getvalue(), preferred_format=2, filters=filters))
    assert parts[-1].WhichOneof("part") == "report"


def test_fields_that_do_not_fit_into_a_message_to_a_process_are_a_limit(isolated):
    client = Client(isolated)
    request = client.message("ProcessImageRequest")(image=fixture_bytes("photo-420.jpg"))
    for number in range(16):
        configuration = request.renditions.add(rendition_id=str(number)).configuration
        for place in range(100):
            region = configuration.regions.add(effect="REGION_EFFECT_FILL")
            region.area.x, region.area.y, region.area.width, region.area.height = place + 0.25, 0.25, 7.5, 7.5
            region.color.red, region.color.green, region.color.blue = 200, 200, 255
    with pytest.raises(grpc.RpcError, match="at most 163840 are accepted") as refused:
        list(client.call("ProcessImage", "unary_stream")(request, timeout=60))
    assert refused.value.code() == grpc.StatusCode.FAILED_PRECONDITION
    assert favicon(isolated)


def test_cancellation_ends_the_work_within_a_strip(isolated, large_photo):
    client = Client(isolated)
    # More than half a minute of work.
    call = client.process(
        large_photo, max_width=16000, allow_upscale=True, preferred_format=3, png={"compression_level": 9})
    assert next(iter(call)).WhichOneof("part") == "header"
    busy = max(helpers(isolated), key=cpu_seconds)
    spent = cpu_seconds(busy)
    call.cancel()

    assert wait_until(lambda: is_idle(busy))
    assert cpu_seconds(busy) - spent < 3
    assert is_alive(busy) and favicon(isolated)


def test_the_limit_of_cpu_time_ends_an_image():
    worker = isolated_worker("--threads", "1", "--max-cpu-seconds-per-image", "1")
    image = io.BytesIO()
    Image.effect_noise((4000, 4000), 90).save(image, "PNG", compress_level=1)
    with pytest.raises(grpc.RpcError) as raised:
        list(Client(worker).process(
            image.getvalue(), max_width=16000, allow_upscale=True, preferred_format=3, png={"compression_level": 9}))
    assert raised.value.code() == grpc.StatusCode.FAILED_PRECONDITION, raised.value
    assert favicon(worker) and worker.stop() == 0


def test_a_drain_finishes_the_images_of_helpers(isolated, large_photo):
    upload = Upload(isolated, large_photo)
    processes = descendants(isolated.process.pid)
    for pid in processes:
        os.kill(pid, signal.SIGTERM)
    isolated.process.send_signal(signal.SIGTERM)
    time.sleep(0.5)
    assert upload.finish()[-1].WhichOneof("part") == "report"
    assert isolated.process.wait(60) == 0
    wait_until_gone(processes)


def test_helpers_end_with_a_killed_worker(isolated):
    assert favicon(isolated)
    processes = descendants(isolated.process.pid)
    assert len(processes) >= 2
    isolated.process.kill()
    isolated.process.wait()
    wait_until_gone(processes)


def test_a_signal_to_every_process_only_drains_the_worker(isolated):
    assert favicon(isolated)
    processes = descendants(isolated.process.pid)
    for pid in processes:
        os.kill(pid, signal.SIGTERM)
        os.kill(pid, signal.SIGINT)
        os.kill(pid, signal.SIGHUP)
    assert favicon(isolated)
    assert all(is_alive(pid) for pid in processes)
    isolated.process.send_signal(signal.SIGTERM)
    assert isolated.process.wait(60) == 0
    wait_until_gone(processes)


def test_helpers_have_no_descriptor_of_the_worker(isolated):
    assert favicon(isolated)
    links = [os.readlink(file) for file in Path(f"/proc/{helpers(isolated)[0]}/fd").iterdir()]
    assert sorted(re.sub(r"\d+", "N", link) for link in links) == ["/dev/null"] * 3 + ["socket:[N]"] * 2, links


def test_helpers_have_no_secret_of_the_environment(monkeypatch):
    monkeypatch.setenv("IMAGE_WORKER_INSTRUCTION_SET", "scalar")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=secret")
    worker = isolated_worker()
    zygote = descendants(worker.process.pid)[0]
    environment = contents(f"/proc/{zygote}/environ")
    assert "IMAGE_WORKER_INSTRUCTION_SET=scalar" in environment.split("\0") and "secret" not in environment
    assert favicon(worker) and worker.stop() == 0


def ready_helpers(worker: Worker, count: int) -> set[int]:
    found = []

    def are_ready() -> bool:
        found[:] = helpers(worker)
        return len(found) == count

    assert wait_until(are_ready), found
    return set(found)


def test_a_helper_works_for_one_connection(isolated):
    options = [*UNLIMITED, ("grpc.use_local_subchannel_pool", 1)]
    clients = [Client(isolated, grpc.insecure_channel(isolated.address, options=options)) for _ in range(3)]
    # Two stay ready: for the image thread, and for the express lane.
    ready = [ready_helpers(isolated, 2)]
    for client in [clients[0], clients[0], clients[1], clients[0], clients[2], clients[1]]:
        list(client.process(fixture_bytes("photo-420.jpg"), "favicon"))
        ready.append(ready_helpers(isolated, 2))
    # The third connection gets a new helper in place of that of the second, and so does the second then.
    assert [len(later - earlier) for earlier, later in zip(ready, ready[1:])] == [0, 0, 0, 0, 1, 1], ready


# A program that runs the worker on a system that refuses calls, by their numbers on x86-64.
REFUSING = """#!{python}
import ctypes, os, struct, sys

def instruction(code, jump_true, jump_false, value):
    return struct.pack("HBBI", code, jump_true, jump_false, value)

program = instruction(0x20, 0, 0, 0)  # load the number of the call
for number in {numbers}:
    program += instruction(0x15, 0, 1, number) + instruction(0x06, 0, 0, 0x00050000 | 38)
program += instruction(0x15, 0, 4, 157) + instruction(0x20, 0, 0, 16)  # prctl: load its first argument
program += instruction(0x15, 0, 1, 22 if {refuses_filters} else 0xFFFF) + instruction(0x06, 0, 0, 0x00050000 | 22)
program += instruction(0x20, 0, 0, 0) + instruction(0x06, 0, 0, 0x7FFF0000)  # allow everything else
content = ctypes.create_string_buffer(program)
header = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(content)))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, ctypes.c_ulong(ctypes.addressof(header)), 0, 0) == 0
os.execv({worker!r}, [{worker!r}, *sys.argv[1:]])
"""
LANDLOCK, UNSHARE, SECCOMP = 444, 272, 317


def refuse(monkeypatch, folder: Path, *numbers: int):
    """Makes workers that the test starts run on a system that refuses these calls."""
    program = folder / "worker"
    program.write_text(REFUSING.format(
        python=sys.executable, numbers=numbers, refuses_filters=SECCOMP in numbers, worker=os.environ["IMAGE_WORKER"]))
    program.chmod(0o755)
    monkeypatch.setenv("IMAGE_WORKER", str(program))


needs_numbers = pytest.mark.skipif(platform.machine() != "x86_64", reason="numbers of system calls are those of x86-64")


@needs_numbers
def test_without_landlock_and_namespaces_the_worker_serves_and_says_so(monkeypatch, tmp_path):
    refuse(monkeypatch, tmp_path, LANDLOCK, UNSHARE)
    worker = isolated_worker()
    assert favicon(worker)
    assert worker.stop() == 0
    log = "".join(worker.log)
    assert re.search("codecs run in sandboxed processes.*namespaces, Landlock", log), log


@needs_numbers
def test_without_a_system_call_filter_the_worker_refuses_to_start(monkeypatch, tmp_path):
    refuse(monkeypatch, tmp_path, SECCOMP)
    with pytest.raises(AssertionError, match="--isolation is process.*system call filter"):
        isolated_worker()


def place_lines(worker: Worker) -> list[dict]:
    """The lines of a stopped worker that report where codecs run."""
    return [line for line in map(json.loads, worker.log) if line["message"].startswith("codecs run in")]


@needs_numbers
def test_by_default_the_worker_starts_without_a_sandbox_and_warns_once(monkeypatch, tmp_path):
    refuse(monkeypatch, tmp_path, SECCOMP)
    monkeypatch.delenv("IMAGE_WORKER_ISOLATION", raising=False)
    worker = Worker("--crash-directory", str(tmp_path))
    assert favicon(worker) and descendants(worker.process.pid) == []
    assert worker.stop() == 0
    line, = place_lines(worker)
    assert line["level"] == "warning" and "--isolation none" in line["message"], line
    assert "system call filter" in line["reason"] and line["crash_directory"] == "not used", line


def test_by_default_codecs_are_isolated(monkeypatch, tmp_path):
    monkeypatch.delenv("IMAGE_WORKER_ISOLATION", raising=False)
    worker = Worker("--crash-directory", str(tmp_path), "--metrics-port", "0")
    assert favicon(worker) and helpers(worker) and metric(worker, "imageworker_helpers") > 0
    assert worker.stop() == 0
    line, = place_lines(worker)
    assert line["level"] == "notice" and "in sandboxed processes" in line["message"], line


def test_without_isolation_there_are_no_other_processes(tmp_path):
    worker = Worker("--isolation", "none", "--metrics-port", "0")
    assert favicon(worker) and family(worker) == [worker.process.pid] and metric(worker, "imageworker_helpers") == 0
    assert worker.stop() == 0
    line, = place_lines(worker)
    assert line["level"] == "notice" and "in the worker itself" in line["message"], line
    with pytest.raises(AssertionError, match="--crash-directory is .*--isolation none"):
        Worker("--isolation", "none", "--crash-directory", str(tmp_path))
