"""Each program of Examples/ processes an image, with the bytes of this suite's own client. Not that of grpcurl, which Debian
does not have."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import FIXTURES, Client
from python_client import ROOT, run

EXAMPLES = ROOT / "Examples"
PHOTO = FIXTURES / "photo-420.jpg"


@pytest.fixture(scope="module")
def expected(worker):
    return b"".join(response.chunk for response in Client(worker).process(PHOTO.read_bytes(), "preview"))


def go_program():
    if not shutil.which("apt-get"):
        pytest.skip("Debian's packages of Go are missing")
    folder = ROOT / ".build/end-to-end/go"
    run(Path(__file__).parent / "go.sh", folder)
    return [folder / "image-worker-example"]


def node_program():
    if not shutil.which("node"):
        pytest.skip("node is missing")
    return ["node", EXAMPLES / "node/process.mjs"]


PROGRAMS = {"go": go_program, "node": node_program, "python": lambda: [sys.executable, EXAMPLES / "python/process.py"]}


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_example_processes_an_image(name, worker, expected, tmp_path):
    program = PROGRAMS[name]()
    environment = {**os.environ, "IMAGE_WORKER": worker.address}
    called = subprocess.run(
        [*program, PHOTO, tmp_path / "small.jpg"], env=environment, capture_output=True, text=True, timeout=60)
    assert called.returncode == 0, called.stderr
    assert (tmp_path / "small.jpg").read_bytes() == expected and called.stdout
    # A status is an error of the program, with its message.
    refused = subprocess.run(
        [*program, PHOTO, tmp_path / "none.jpg", "unknown"], env=environment, capture_output=True, text=True, timeout=60)
    assert refused.returncode != 0 and "unknown" in refused.stderr


@pytest.mark.parametrize("program", [
    [sys.executable, EXAMPLES / "python/process.py"], [sys.executable, EXAMPLES / "python/batch.py"],
    [EXAMPLES / "grpcurl/process.sh"], ["node", EXAMPLES / "node/process.mjs"],
], ids=lambda program: f"{program[-1].parent.name}/{program[-1].name}")
def test_an_example_without_arguments_prints_its_usage(program):
    if program[0] == "node":
        node_program()
    called = subprocess.run(program, capture_output=True, text=True, timeout=60)
    assert called.returncode == 1 and called.stderr.startswith("usage: ") and called.stderr.count("\n") == 1


def test_an_example_names_a_file_that_is_missing(tmp_path):
    node_program()
    for program in [
        [*PROGRAMS["python"](), tmp_path / "nope.jpg", tmp_path / "o.jpg"],
        [*PROGRAMS["node"](), tmp_path / "nope.jpg", tmp_path / "o.jpg"],
        [sys.executable, EXAMPLES / "python/batch.py", tmp_path / "out", tmp_path / "nope.jpg"],
    ]:
        called = subprocess.run(
            program, env={**os.environ, "IMAGE_WORKER": "127.0.0.1:1"}, capture_output=True, text=True, timeout=60)
        assert called.returncode == 1 and "nope.jpg: " in called.stderr and called.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["node", "python"])
def test_an_example_without_a_worker_prints_one_line(name, tmp_path):
    called = subprocess.run(
        [*PROGRAMS[name](), PHOTO, tmp_path / "o.jpg"], env={**os.environ, "IMAGE_WORKER": "127.0.0.1:1"},
        capture_output=True, text=True, timeout=60)
    assert called.returncode == 1 and "127.0.0.1:1" in called.stderr and called.stderr.count("\n") == 1


def test_the_batch_example_goes_on_after_a_failure(worker, expected, tmp_path):
    for name in ["a.jpg", "b.jpg"]:
        shutil.copy(PHOTO, tmp_path / name)
    (tmp_path / "broken.jpg").write_bytes(PHOTO.read_bytes()[:200])
    shutil.copy(PHOTO, tmp_path / "b.jpeg")
    called = subprocess.run(
        [sys.executable, EXAMPLES / "python/batch.py", tmp_path / "out", *sorted(tmp_path.iterdir())],
        env={**os.environ, "IMAGE_WORKER": worker.address}, capture_output=True, text=True, timeout=60)
    assert called.returncode == 1 and "broken.jpg" in called.stderr
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a.jpg", "b.jpeg.jpg", "b.jpg.jpg"]
    assert {path.read_bytes() for path in (tmp_path / "out").iterdir()} == {expected}
