"""Tests of `image-worker batch` on workers: nothing is lost, done twice or wrong, whatever is killed."""

import io
import json
import os
import re
import shutil
import signal
import subprocess
import threading
from collections import Counter

import pytest
from certificates import Authority
from conftest import FIXTURES, Worker, fixture_bytes, wait_until
from PIL import Image

COUNT = 1200
KINDS = 12
PRESET = ["--preset", "favicon"]


class Run:
    """A batch in a process of its own, whose results are counted as they come."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen(
            [os.environ["IMAGE_WORKER"], "batch", *map(str, arguments), "--json"], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        self.lines = []
        self.summary = None
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for text in self.process.stdout:
            try:
                line = json.loads(text)
            except json.JSONDecodeError:
                continue  # the last line of a process that was killed
            if "summary" in line:
                self.summary = line["summary"]
            else:
                self.lines.append(line)

    def wait(self, seconds=300):
        code = self.process.wait(timeout=seconds)
        self.reader.join(timeout=10)
        self.errors = self.process.stderr.read()
        return code

    def has(self, count):
        return wait_until(lambda: len(self.lines) >= count or self.process.poll() is not None, seconds=120)

    def of(self, status):
        return [line for line in self.lines if line["status"] == status]


def results(directory):
    """The bytes of all results by their names, which are those of no other file."""
    return {str(path.relative_to(directory)): path.read_bytes()
            for path in directory.rglob("*") if path.is_file() and ".image-worker" not in path.parts}


def journal(directory):
    """How often each image is noted as finished."""
    lines = (directory / ".image-worker/journal.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines if line.endswith("}")]
    return Counter(record["place"] for record in records if record["status"] == "done")


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """Images of several sizes in several folders."""
    folder = tmp_path_factory.mktemp("images")
    kinds = []
    with Image.open(FIXTURES / "photo-420.jpg") as photo:
        for kind in range(KINDS):
            data = io.BytesIO()
            photo.resize((240 + 40 * kind, 160 + 20 * kind)).save(data, "jpeg")
            kinds.append(data.getvalue())
    for number in range(COUNT):
        path = folder / f"{number % 7}" / f"{number:04}.jpg"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(kinds[number % KINDS])
    return folder


@pytest.fixture(scope="module")
def expected(images, tmp_path_factory):
    """The results of this process alone."""
    out = tmp_path_factory.mktemp("expected")
    run = Run(images, "--out", out, *PRESET)
    assert run.wait() == 0 and run.summary["done"] == COUNT
    return results(out)


@pytest.fixture
def workers():
    started = [Worker("--cache-memory-mib", "0", "--threads", "1") for _ in range(3)]
    yield started
    for worker in started:
        worker.process.kill()
        worker.process.wait()


def addresses(workers):
    return ",".join(worker.address for worker in workers)


def check(out, expected):
    """In and out are as many; nothing is lost, done twice or wrong."""
    found = results(out)
    lost = expected.keys() - found.keys()
    wrong = [name for name in found if found[name] != expected.get(name)]
    twice = [place for place, times in journal(out).items() if times != 1]
    assert (len(found), len(lost), len(wrong), len(twice)) == (len(expected), 0, 0, 0)
    assert len(journal(out)) == COUNT


def test_workers_give_the_bytes_that_this_process_gives(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for path in FIXTURES.iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    options = [
        folder, "--quality", "0.6", "--rendition", "small: --preset thumbnail --max-width 90",
        "--rendition", "sharp: --filter sharpen=0.5 --format png", "--rendition", "limit: --max-bytes 9000 --format webp"]
    worker = Worker("--cache-memory-mib", "0")
    try:
        local, remote = Run(*options, "--out", tmp_path / "local"), None
        local.wait()
        remote = Run(*options, "--out", tmp_path / "remote", "--to", worker.address)
        remote.wait()
    finally:
        assert worker.stop() == 0
    assert results(tmp_path / "local") == results(tmp_path / "remote")
    kinds = [{(os.path.basename(line["input"]), line.get("rendition"), line["status"], line.get("reason"), line.get("quality"))
              for line in run.lines} for run in (local, remote)]
    assert kinds[0] == kinds[1] and len(local.of("done")) > 100
    sizes = [{(os.path.basename(line["output"]), line["width"], line["height"], line["input_bytes"])
              for line in run.of("done")} for run in (local, remote)]
    assert sizes[0] == sizes[1]
    assert {line["worker"] for line in remote.of("done")} == {worker.address}


def test_a_preview_comes_from_workers_too(tmp_path):
    (tmp_path / "a.jpg").write_bytes(fixture_bytes("photo-420.jpg"))
    worker = Worker("--cache-memory-mib", "0")
    qualities = []
    try:
        for name, to in [("local", []), ("remote", ["--to", worker.address])]:
            run = Run(tmp_path / "a.jpg", "--out", tmp_path / name, "--max-width", "200", "--preview", *to)
            assert run.wait() == 0, run.errors
            qualities.append({line.get("rendition"): line["quality"] for line in run.lines})
    finally:
        assert worker.stop() == 0
    assert qualities[0] == qualities[1] and len(qualities[0]) == 2
    assert results(tmp_path / "local") == results(tmp_path / "remote")
    assert sorted(results(tmp_path / "remote")) == ["a-preview.jpg", "a.jpg"]


def test_a_batch_outlives_a_killed_and_a_drained_worker(images, expected, workers, tmp_path):
    run = Run(images, "--out", tmp_path, *PRESET, "--to", addresses(workers))
    assert run.has(200)
    workers[0].process.kill()
    assert run.has(500)
    workers[1].process.terminate()
    assert run.wait() == 0, run.errors
    assert run.summary["images"] == run.summary["done"] == COUNT
    assert Counter(line["input"] for line in run.lines).most_common(1)[0][1] == 1
    check(tmp_path, expected)
    assert {line["worker"] for line in run.lines} == {worker.address for worker in workers}
    # The images in flight were sent again, and few others.
    assert COUNT < sum(line["attempts"] for line in run.lines) <= COUNT + 100
    assert workers[1].process.wait(timeout=60) == 0, "".join(workers[1].log)


@pytest.mark.parametrize("count", [0, 2])
def test_a_killed_batch_goes_on_where_it_was(count, images, expected, workers, tmp_path):
    """In this process, and on two workers."""
    arguments = [images, "--out", tmp_path, *PRESET] + (["--to", addresses(workers[:count])] if count else [])
    finished = 0
    for _ in range(3):
        run = Run(*arguments)
        assert run.has(finished + 150)
        run.process.kill()
        run.wait()
        # What was finished before is not done again.
        assert len(run.of("skipped")) == finished or run.process.returncode == 0
        finished = len(journal(tmp_path))
        assert finished >= 150
    last = Run(*arguments)
    assert last.wait() == 0, last.errors
    assert len(last.of("skipped")) == finished and len(last.of("done")) == COUNT - finished
    check(tmp_path, expected)
    again = Run(*arguments)
    assert again.wait() == 0 and len(again.of("skipped")) == COUNT
    # A run without workers goes on with what workers did.
    assert Run(*arguments[:5]).wait() == 0
    check(tmp_path, expected)


def test_the_images_of_a_stopped_worker_go_to_others(images, expected, workers, tmp_path):
    run = Run(images, "--out", tmp_path, *PRESET, "--to", addresses(workers))
    assert run.has(200)
    workers[0].process.send_signal(signal.SIGSTOP)
    # Long before the stream counts as broken.
    assert run.wait(seconds=100) == 0, run.errors
    check(tmp_path, expected)


def test_a_signal_lets_what_is_begun_finish(images, expected, workers, tmp_path):
    arguments = [images, "--out", tmp_path, *PRESET, "--to", addresses(workers)]
    run = Run(*arguments)
    assert run.has(100)
    run.process.send_signal(signal.SIGINT)
    assert run.wait() == 130 and 100 <= len(run.lines) < COUNT
    assert len(run.of("done")) == len(run.lines) == len(results(tmp_path)) == len(journal(tmp_path))
    assert Run(*arguments).wait() == 0
    check(tmp_path, expected)


def test_workers_that_are_not_there_end_the_batch(tmp_path):
    (tmp_path / "a.jpg").write_bytes(fixture_bytes("photo-420.jpg"))
    run = Run(tmp_path / "a.jpg", "--out", tmp_path / "out", "--to", "127.0.0.1:1", "--give-up-seconds", "1")
    assert run.wait(seconds=60) == 69 and "no worker could be reached for" in run.errors
    assert run.lines == [] and results(tmp_path / "out") == {}


def test_one_signal_ends_a_batch_without_workers(tmp_path):
    (tmp_path / "a.jpg").write_bytes(fixture_bytes("photo-420.jpg"))
    run = Run(tmp_path / "a.jpg", "--out", tmp_path / "out", "--to", "127.0.0.1:1")
    line = run.process.stderr.readline()
    assert "127.0.0.1:1" in line, line
    run.process.send_signal(signal.SIGINT)
    assert run.wait(seconds=30) == 130


def test_failures_are_those_of_this_process(workers, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.jpg").write_bytes(fixture_bytes("photo-420.jpg"))
    (folder / "cut.jpg").write_bytes(fixture_bytes("photo-420.jpg")[:3000])
    (folder / "notes.txt").write_text("only words, many of them, and no image")
    outcomes = []
    for name, to in [("local", []), ("remote", ["--to", workers[0].address])]:
        run = Run(folder, "--out", tmp_path / name, *PRESET, *to)
        assert run.wait() == 1
        outcomes.append({(line["input"], line["status"], line.get("reason")) for line in run.lines})
        failures = (tmp_path / name / ".image-worker/failures.jsonl").read_text().splitlines()
        assert [json.loads(line)["output"] for line in failures] == ["cut"]
    assert outcomes[0] == outcomes[1] and len(outcomes[0]) == 3


def test_tls_client_certificates_and_tokens(tmp_path):
    (tmp_path / "a.jpg").write_bytes(fixture_bytes("photo-420.jpg"))
    authority = Authority(tmp_path)
    certificate, key = authority.issue("worker")
    mine, my_key = authority.issue("caller")
    made = subprocess.run([os.environ["IMAGE_WORKER"], "token", "caller"], capture_output=True, text=True, check=True).stdout
    (tmp_path / "identities.yaml").write_text(made.split("\n", 1)[1].lstrip())
    (tmp_path / "token").write_text(re.match(r"token: (\S+)", made)[1] + "\n")
    (tmp_path / "wrong").write_text("wrong\n")
    served = ["--tls-certificate", certificate, "--tls-key", key]
    trust = ["--tls-ca", authority.certificate, "--give-up-seconds", "2"]
    identity = ["--tls-certificate", mine, "--tls-key", my_key]

    def status(worker, *options):
        run = Run(tmp_path / "a.jpg", "--out", tmp_path / "out", "--fresh", *PRESET, "--to", f"localhost:{worker.port}",
                  *options)
        return run.wait(seconds=60)

    worker = Worker(*map(str, served), "--identities", str(tmp_path / "identities.yaml"))
    try:
        assert status(worker, *trust, "--token-file", tmp_path / "token") == 0
        assert status(worker, *trust, "--token-file", tmp_path / "wrong") == 69
        assert status(worker, *trust) == 69
        assert status(worker, "--tls", "--token-file", tmp_path / "token", "--give-up-seconds", "2") == 69
    finally:
        assert worker.stop() == 0
    worker = Worker(*map(str, served), "--tls-client-ca", str(authority.certificate))
    try:
        assert status(worker, *trust, *identity) == 0
        assert status(worker, *trust) == 69
    finally:
        assert worker.stop() == 0
