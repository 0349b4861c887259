"""Tests of cancellation, deadlines, draining and memory, from outside the process."""

import asyncio
import json
import os
import queue
import re
import signal
import struct
import subprocess
import threading
import time

import grpc
import pytest
from conftest import Client, Worker, fixture_bytes, wait_until
from grpc_health.v1 import health_pb2, health_pb2_grpc
from PIL import Image
from processes import family, is_idle
from raw import DATA, Raw


@pytest.fixture(scope="module")
def large_photo(tmp_path_factory):
    """A progressive photograph that the worker needs long to decode."""
    path = tmp_path_factory.mktemp("large") / "large.jpg"
    Image.open(__import__("io").BytesIO(fixture_bytes("photo-420.jpg"))).resize((6000, 4000)).save(
        path, quality=92, progressive=False)
    return path.read_bytes()


class Feed:
    """Requests that the test releases one by one."""

    def __init__(self):
        self.queue = queue.Queue()

    def send(self, *requests):
        for request in requests:
            self.queue.put(request)

    def close(self):
        self.queue.put(None)

    def __iter__(self):
        return self

    def __next__(self):
        request = self.queue.get()
        if request is None:
            raise StopIteration
        return request


def test_results_begin_before_the_upload_ends(client, large_photo):
    feed = Feed()
    responses = client.batch(feed)
    half = len(large_photo) // 2
    feed.send(client.start("a", "compressedThumbnail"))
    for offset in range(0, half, 65536):
        feed.send(client.chunk("a", large_photo[offset:min(offset + 65536, half)]))
    kinds = []
    for response in responses:  # nothing more is sent until compressed bytes have arrived
        kinds.append(response.WhichOneof("part"))
        if kinds[-1] == "chunk":
            break
    assert kinds == ["header", "chunk"]
    feed.send(client.chunk("a", large_photo[half:]), client.end("a"))
    feed.close()
    assert [r.WhichOneof("part") for r in responses][-1] == "report"


# About a second of work, nearly all of it after the first bytes of the result.
PNG = {"max_width": 1000, "preferred_format": 3, "png": {"compression_level": 9}}


@pytest.fixture(scope="module")
def whole_cost(client, worker, large_photo):
    """Returns the CPU seconds and wall seconds of the work that the tests below interrupt."""
    cpu, wall = worker.cpu_seconds(), time.monotonic()
    assert list(client.process(large_photo, timeout=600, **PNG))[-1].WhichOneof("part") == "report"
    return worker.cpu_seconds() - cpu, time.monotonic() - wall


@pytest.mark.parametrize("how", ["cancel", "deadline", "stream"])
def test_a_client_that_leaves_stops_the_work(client, worker, large_photo, whole_cost, how):
    cpu = worker.cpu_seconds()
    images = 1
    if how == "deadline":
        with pytest.raises(grpc.RpcError) as caught:
            list(client.process(large_photo, timeout=whole_cost[1] / 5, **PNG))
        assert caught.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    elif how == "cancel":
        call = client.process(large_photo, **PNG)
        # A process of its own may have done most of the work before it hands over the first part.
        assert wait_until(lambda: worker.cpu_seconds() - cpu > 0.05)
        call.cancel()
    else:
        images = 4
        feed = Feed()
        call = client.batch(feed)
        for item in range(images):
            start = client.start(str(item), "default", large_photo)
            start.start.configuration.MergeFrom(type(start.start.configuration)(**PNG))
            feed.send(start)
        next(call)
        call.cancel()
        feed.close()
    assert wait_until(lambda: is_idle(*family(worker)))
    assert worker.cpu_seconds() - cpu < images * whole_cost[0] * 0.6
    assert [r.WhichOneof("part") for r in client.process(fixture_bytes("photo.png"), preset="favicon")][-1] == "report"


def test_memory_stays_small_and_comes_back(client, worker, large_photo):
    list(client.process(large_photo, preset="compressedThumbnail"))
    before = worker.rss_mib()
    for _ in range(10):
        feed = [client.start("a", "compressedThumbnail")]
        feed += [client.chunk("a", large_photo[o:o + 65536]) for o in range(0, len(large_photo), 65536)]
        report = list(client.batch(iter(feed + [client.end("a")])))[-1].report
        assert report.peak_memory_bytes < 8 << 20
    assert worker.rss_mib() < before + 30


def test_sigterm_lets_work_in_flight_finish_and_exits_with_0(large_photo):
    worker = Worker()
    client = Client(worker)
    statuses = queue.Queue()

    def watch():
        try:
            for answer in health_pb2_grpc.HealthStub(client.channel).Watch(health_pb2.HealthCheckRequest()):
                statuses.put(answer.status)
        except grpc.RpcError:
            pass

    threading.Thread(target=watch, daemon=True).start()
    assert statuses.get(timeout=60) == health_pb2.HealthCheckResponse.SERVING
    feed = Feed()
    responses = client.batch(feed)
    half = len(large_photo) // 2
    feed.send(client.start("a", "preview"), client.chunk("a", large_photo[:half]))
    assert next(responses).WhichOneof("part") == "header"
    worker.process.send_signal(signal.SIGTERM)
    assert statuses.get(timeout=60) == health_pb2.HealthCheckResponse.NOT_SERVING
    time.sleep(0.3)
    assert worker.process.poll() is None
    feed.send(client.start("late", "preview", large_photo))
    feed.send(client.chunk("a", large_photo[half:]), client.end("a"))
    outcome = {}
    try:
        for response in responses:
            kind = response.WhichOneof("part")
            if kind in ("report", "error"):
                outcome[response.item_id] = kind
                if kind == "error":
                    assert response.error.code == grpc.StatusCode.UNAVAILABLE.value[0]
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.UNAVAILABLE
    assert outcome == {"a": "report", "late": "error"}
    assert worker.process.wait(timeout=60) == 0, "".join(worker.log)


def test_a_reload_without_files_changes_nothing():
    worker = Worker()
    client = Client(worker)
    worker.process.send_signal(signal.SIGHUP)
    assert wait_until(lambda: any("SIGHUP is ignored" in line for line in worker.log))
    assert next(client.process(fixture_bytes("photo-420.jpg"), "favicon")).header.width
    assert worker.stop() == 0, "".join(worker.log)


def test_a_drain_that_takes_too_long_is_cut_short(large_photo):
    worker = Worker("--drain-timeout-seconds", "1")
    client = Client(worker)
    feed = Feed()
    responses = client.batch(feed)
    feed.send(client.start("a", "preview"), client.chunk("a", large_photo[:100_000]))
    assert next(responses).WhichOneof("part") == "header"
    started = time.monotonic()
    worker.process.terminate()
    assert worker.process.wait(timeout=60) == 1
    assert time.monotonic() - started > 0.5
    rest = []
    with pytest.raises(grpc.RpcError) as caught:
        for response in responses:
            rest.append(response)
    assert caught.value.code() == grpc.StatusCode.UNAVAILABLE
    assert [r.WhichOneof("part") for r in rest if r.WhichOneof("part") != "chunk"] == ["error"]
    assert rest[-1].item_id == "a" and rest[-1].error.code == grpc.StatusCode.UNAVAILABLE.value[0]


def test_a_call_whose_message_never_arrives_is_refused_when_the_drain_is_over():
    worker = Worker("--drain-timeout-seconds", "1")

    async def call():
        raw = await Raw(worker).open()
        stream = raw.call("ProcessImage")
        raw.frame(DATA, 0, stream, b"\0" + struct.pack(">I", 100_000) + b"x" * 1000)
        await raw.writer.drain()
        await asyncio.sleep(0.3)
        worker.process.terminate()
        return await asyncio.to_thread(worker.process.wait, 60)

    assert asyncio.run(call()) == 1
    [line] = [line for line in map(json.loads, worker.log) if line["message"] == "call"]
    assert line["code"] == "UNAVAILABLE" and line["reason"] == "DRAINING"


def test_a_signal_ends_a_worker_that_starts():
    """It comes before any handler of signals, before the listener, or behind it."""
    for step in range(16):
        process = subprocess.Popen(
            [os.environ["IMAGE_WORKER"], "serve", "--port", "0"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.02 * step)
        process.terminate()
        try:
            assert process.wait(timeout=25) in (0, -signal.SIGTERM)
        finally:
            process.kill()


def test_a_log_that_nobody_reads_stops_no_call():
    process = subprocess.Popen(
        [os.environ["IMAGE_WORKER"], "serve", "--port", "0", "--log-level", "debug", "--log-format", "json"],
        stderr=subprocess.PIPE)
    line = process.stderr.readline()
    while b'"serving"' not in line:
        assert line
        line = process.stderr.readline()
    port = re.search(rb"127\.0\.0\.1:(\d+)", line)[1].decode()
    channel = grpc.insecure_channel(f"127.0.0.1:{port}")
    stub = health_pb2_grpc.HealthStub(channel)
    calls = 1500  # one log line each, several times the capacity of a pipe
    for _ in range(calls):
        answer = stub.Check(health_pb2.HealthCheckRequest(), timeout=60)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
    channel.close()
    process.terminate()
    log = process.communicate(timeout=60)[1].decode()
    assert process.returncode == 0 and len(log) > 200_000
    assert log.count('"message":"call"') == calls and "dropped" not in log
    assert '"stopped"' in log.splitlines()[-1]


def test_the_most_detailed_log_has_no_contents_of_services():
    worker = Worker("--log-level", "trace")
    assert worker.stop() == 0
    assert sum(map(len, worker.log)) < 20_000


def test_closed_standard_descriptors_are_replaced(tmp_path):
    from conftest import FIXTURES
    run = subprocess.run(
        ["sh", "-c", 'exec "$0" process "$1" --out "$2" <&- >&-', os.environ["IMAGE_WORKER"], FIXTURES / "photo.png",
         tmp_path / "a.jpg"], stderr=subprocess.PIPE, text=True, timeout=60)
    assert run.returncode == 0 and run.stderr == ""
    run = subprocess.run(
        ["sh", "-c", 'exec "$0" process "$1" --out - >&-', os.environ["IMAGE_WORKER"], FIXTURES / "photo.png"],
        stderr=subprocess.PIPE, text=True, timeout=60)
    assert run.returncode == 64 and "--out is -, and standard output is closed" in run.stderr
    worker = Worker(prefix=("sh", "-c", 'exec "$0" "$@" <&- >&-'))
    assert [os.readlink(f"/proc/{worker.process.pid}/fd/{number}") for number in range(2)] == ["/dev/null"] * 2
    assert worker.stop() == 0


def test_a_signal_leaves_nothing_of_a_result_that_is_not_complete(tmp_path):
    from conftest import FIXTURES
    # A result that needs seconds, and an image that never arrives.
    for image in FIXTURES / "photo.png", "-":
        run = subprocess.Popen(
            [os.environ["IMAGE_WORKER"], "process", image, "--out", tmp_path / "a.avif", "--avif-effort", "9",
             "--allow-upscale", "--max-width", "3000"], stdin=subprocess.PIPE)
        if image != "-":
            assert wait_until(lambda: list(tmp_path.iterdir()))
        else:
            time.sleep(0.3)
        run.send_signal(signal.SIGINT)
        assert run.wait(60) == -signal.SIGINT
        assert not list(tmp_path.iterdir())


def test_the_memory_of_one_image_is_limited_by_an_option(tmp_path):
    from conftest import FIXTURES
    for limit, code in ("1", 1), ("300", 0):
        run = subprocess.run(
            [os.environ["IMAGE_WORKER"], "process", FIXTURES / "photo.png", "--out", tmp_path / "a.avif",
             "--image-memory-limit-mib", limit], stderr=subprocess.PIPE, text=True, timeout=60)
        assert run.returncode == code, run.stderr
        assert ("raise --image-memory-limit-mib" in run.stderr) == (code == 1)


def test_a_trace_replaces_no_image_and_no_result(tmp_path):
    image, result = tmp_path / "a.png", tmp_path / "a.jpg"
    image.write_bytes(fixture_bytes("photo.png"))
    link = tmp_path / "link"
    link.symlink_to(image)
    for command in ["process", image, "--out", result], ["batch", image, "--out", tmp_path / "out"]:
        for trace, message in (image, "is one of the images"), (link, "is one of the images"), ("-", "--trace-out is -"):
            run = subprocess.run(
                [os.environ["IMAGE_WORKER"], *command, "--trace-out", trace], stderr=subprocess.PIPE, text=True, timeout=60)
            assert run.returncode == 64 and message in run.stderr
            assert image.read_bytes() == fixture_bytes("photo.png")
    run = subprocess.run(
        [os.environ["IMAGE_WORKER"], "process", image, "--out", result, "--trace-out", result], stderr=subprocess.PIPE, text=True,
        timeout=60)
    assert run.returncode == 1 and "is already the file of --trace-out" in run.stderr


def test_too_few_descriptors_are_an_error_and_the_minimum_is_enough():
    run = subprocess.run(
        ["prlimit", "--nofile=16", os.environ["IMAGE_WORKER"], "serve", "--threads", "2"], capture_output=True, text=True,
        timeout=60)
    assert run.returncode == 1 and "the limit of open files is 16; with 2 threads this worker needs" in run.stderr
    minimum = re.search(r"needs (\d+)", run.stderr)[1]
    worker = Worker("--threads", "2", prefix=("prlimit", f"--nofile={minimum}"))
    assert next(Client(worker).process(fixture_bytes("photo-420.jpg"), "favicon")).header.width
    assert worker.stop() == 0, "".join(worker.log)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run as a user whose processes are counted")
@pytest.mark.parametrize("command", [("presets",), ("serve", "--port", "0")])
def test_a_refused_thread_is_an_error(command):
    def run(limit):
        process = subprocess.Popen(
            ["setpriv", "--reuid", "54321", "prlimit", f"--nproc={limit}", os.environ["IMAGE_WORKER"], *command],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            _, error = process.communicate(timeout=3)
        except subprocess.TimeoutExpired:  # it serves
            process.terminate()
            _, error = process.communicate(timeout=60)
        return process.returncode, error
    limit = 1
    while (outcome := run(limit))[0] != 0:
        status, error = outcome
        assert status == 1 and re.search(
            r"the system refuses to start thread \d+ of \d+: Resource temporarily unavailable", error), error
        limit += 3
    assert 4 <= limit < 64


def test_a_reload_passes_over_pipes_and_hinders_no_end(tmp_path):
    import yaml
    presets, tokens = tmp_path / "presets.yaml", tmp_path / "identities.yaml"
    presets.write_text("presets: {card: {max_width: 50}}")
    hash = "5c6ffbdd40d9556b73a21e63c3e0e904d8a0d2f6a1b8f4a2f0d1a9b9b6f6c5d1"
    tokens.write_text(yaml.safe_dump({"identities": {"a": {"tokens": [hash]}}}))
    worker = Worker("--presets", str(presets), "--identities", str(tokens), "--reload-seconds", "1")
    for file in (presets, tokens):
        file.unlink()
        os.mkfifo(file)
    worker.process.send_signal(signal.SIGHUP)
    for option, file in (("--presets", presets), ("--identities", tokens)):
        assert wait_until(lambda: any(f"{option} {file} cannot be read: not a regular file" in line for line in worker.log), 20)
    tokens.unlink()
    tokens.write_text(yaml.safe_dump({"identities": {"b": {"tokens": [hash]}}}))
    assert wait_until(lambda: any("identities reloaded" in line for line in worker.log), 20)
    assert worker.stop() == 0, "".join(worker.log)


def test_bad_settings_are_named(tmp_path):
    cases = [(["--port", "70000"], "port"), (["--threads", "0"], "threads"), (["--log-level", "loud"], "log-level")]
    for options, word in cases:
        run = subprocess.run([os.environ["IMAGE_WORKER"], "serve", *options], capture_output=True, text=True, timeout=60)
        assert run.returncode != 0 and word in run.stderr, run.stderr
    run = subprocess.run(
        [os.environ["IMAGE_WORKER"], "serve"], capture_output=True, text=True, timeout=60,
        env={**os.environ, "IMAGE_WORKER_PORT": "many"})
    assert run.returncode != 0 and "IMAGE_WORKER_PORT" in run.stderr


def test_each_setting_is_in_the_table_with_its_range(tmp_path):
    from conftest import FIXTURES
    sources = FIXTURES.parent.parent.parent / "Sources"
    usage = subprocess.run([os.environ["IMAGE_WORKER"], "serve", "--help"], capture_output=True, text=True).stdout
    article = (sources / "image-worker/Documentation.docc/Deploying.md").read_text()
    rows = re.findall(r"^\| `(--[a-z-]+)` \| `(IMAGE_WORKER_\w+)` \| `(\w+)` \| ([^|]*) \|", article, re.M)
    assert len(rows) > 25
    for option, variable, key, accepted in rows:
        assert option in usage
        bounds = re.search(r"(\d+) to (\d+)", accepted)
        if not bounds:
            continue
        low, high = map(int, bounds.groups())
        (tmp_path / "settings.yaml").write_text(f"{key}: {high + 1}\n")
        for value, place, arguments, environment in [
                (low - 1, variable, [], {variable: str(low - 1)}),
                (high + 1, f"{key} in {tmp_path}/settings.yaml:1", ["--config", tmp_path / "settings.yaml"], {})]:
            run = subprocess.run(
                [os.environ["IMAGE_WORKER"], "serve", *arguments], capture_output=True, text=True, timeout=60,
                env={**os.environ, **environment})
            assert run.returncode != 0
            assert f"{place} is {value}; it must be between {low} and {high}" in run.stderr, run.stderr


def test_the_local_commands(tmp_path):
    from conftest import FIXTURES
    out = tmp_path / "out"
    run = subprocess.run(
        [os.environ["IMAGE_WORKER"], "process", FIXTURES / "photo.png", FIXTURES / "expectations.json",
         FIXTURES / "orientation-6.jpg", "--preset", "favicon", "--out", out], capture_output=True, text=True)
    assert run.returncode == 1 and "expectations.json: UNKNOWN_FORMAT" in run.stderr
    assert Image.open(out / "photo.jpg").size == (64, 43) and Image.open(out / "orientation-6.jpg").size == (48, 32)
    assert sorted(p.name for p in out.iterdir()) == ["orientation-6.jpg", "photo.jpg"]
    run = subprocess.run(
        [os.environ["IMAGE_WORKER"], "inspect", FIXTURES / "orientation-6.jpg"], capture_output=True, text=True)
    assert run.returncode == 0 and "48x32" in run.stdout


def test_process_replaces_no_image_and_no_result(tmp_path):
    photo, png = fixture_bytes("photo-420.jpg"), fixture_bytes("photo.png")
    for name, content in [("p.jpg", photo), ("below/p.jpg", photo), ("below/q.png", png), ("q.jpg", photo)]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)

    def process(*arguments):
        run = subprocess.run(
            [os.environ["IMAGE_WORKER"], "process", "--preset", "favicon", *arguments], capture_output=True, text=True,
            cwd=tmp_path)
        return run.returncode, run.stderr

    code, errors = process("p.jpg", "--out", ".")
    assert code == 1 and errors == "p.jpg: FILE: its result would replace it\n"
    # Not through another path to the same file, and not the file of an image that is processed later.
    code, errors = process("below/../p.jpg", "--out", "./below/..")
    assert code == 1 and "would replace it" in errors
    code, errors = process("below/p.jpg", "below/q.png", "p.jpg", "q.jpg", "--out", ".")
    assert code == 1 and errors.splitlines()[:2] == [
        "below/p.jpg: FILE: its result would replace p.jpg", "below/q.png: FILE: its result would replace q.jpg"]
    assert (tmp_path / "p.jpg").read_bytes() == (tmp_path / "q.jpg").read_bytes() == photo
    code, errors = process("q.jpg", "below/q.png", "p.jpg", "--out", "small")
    assert code == 1 and errors == "below/q.png: FILE: small/q.jpg is already the result of q.jpg\n"
    assert sorted(path.name for path in (tmp_path / "small").iterdir()) == ["p.jpg", "q.jpg"]
    assert process("q.jpg", "--out", "small") == (0, "")  # a result of an earlier run is not an input of this one
