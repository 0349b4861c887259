"""Tests of the Python package, as its users get it: built, installed in an environment without anything else, run."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from conftest import FIXTURES, Worker, fixture_bytes

ROOT = Path(__file__).parent.parent.parent
PACKAGE = ROOT / "clients/python"
BUILD = ROOT / ".build/python-client"


def run(*command, **options) -> str:
    done = subprocess.run([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600, **options)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def tools():
    run(PACKAGE / "venv.sh", BUILD / "tools")
    return BUILD / "tools/bin"


@pytest.fixture(scope="module")
def wheel(tools, tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    # Of a copy, as the build leaves its own files beside the sources.
    source = shutil.copytree(PACKAGE, folder / "source", ignore=shutil.ignore_patterns("__pycache__"))
    run(tools / "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, source)
    [wheel] = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def python(wheel):
    """The interpreter of an environment that has only the wheel, what it requires, and pytest."""
    clean = BUILD / "clean"
    [metadata] = [name for name in zipfile.ZipFile(wheel).namelist() if name.endswith("/METADATA")]
    required = "".join(re.findall(r"^Requires-.*\n", zipfile.ZipFile(wheel).read(metadata).decode(), re.M))
    mark = clean / "required.txt"
    if not mark.exists() or mark.read_text() != required:
        shutil.rmtree(clean, ignore_errors=True)
        run(sys.executable, "-m", "venv", clean)
        run(clean / "bin/pip", "install", "--quiet", "--disable-pip-version-check", wheel, "pytest==9.0.3")
        mark.write_text(required)
    run(clean / "bin/pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--force-reinstall", wheel)
    run(clean / "bin/pip", "check")
    return clean / "bin/python"


def environment(**variables):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "IMAGE_WORKER"))}
    return {**kept, **variables}


def test_the_package_has_types_and_a_licence(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"image_worker/py.typed", "image_worker/_generated/image_worker_pb2.pyi"} <= names
    assert any(name.endswith("/LICENSE") for name in names)
    assert {name.split("/")[0].split("-")[0] for name in names} == {"image_worker", "image_worker_client"}
    assert (PACKAGE / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_the_tests_of_the_package_pass(python):
    run(python, "-m", "pytest", "-q", PACKAGE / "tests", cwd=BUILD, env=environment())


def test_the_types_are_strict(tools, tmp_path):
    """Of the package, its tests and the examples."""
    for number, example in enumerate(examples()):
        (tmp_path / f"example_{number}.py").write_text(example)
    run(tools / "mypy", "--config-file", PACKAGE / "pyproject.toml", "--cache-dir", BUILD / "mypy", PACKAGE / "src",
        PACKAGE / "tests", *tmp_path.glob("*.py"), env=environment(MYPYPATH=str(PACKAGE / "src")))


def examples():
    return re.findall(r"^```python\n(.*?)^```", (PACKAGE / "README.md").read_text(), re.M | re.S)


def test_the_examples_of_the_readme_run(python, worker, tmp_path):
    (tmp_path / "photos").mkdir()
    for name in ["photo.jpg", "photos/a.jpg", "photos/b.jpg"]:
        (tmp_path / name).write_bytes(fixture_bytes("photo-420.jpg"))
    outputs = []
    assert len(examples()) >= 5
    for example in examples():
        assert "127.0.0.1:50051" in example
        program = example.replace("127.0.0.1:50051", worker.address)
        outputs.append(run(python, "-c", program, cwd=tmp_path, env=environment()))
    assert outputs[0].startswith("jpeg 240 160 ") and outputs[1].startswith("large 240\nicon 64\nwebp 240 [")
    assert outputs[2] == "" and sorted(path.name for path in (tmp_path / "small").iterdir()) == ["a.jpg", "b.jpg"]
    assert sorted(outputs[3].splitlines()) == ["240 64", "a.jpg 240", "b.jpg 240"]
    assert outputs[4] == "UNKNOWN_FORMAT\n"


BATCH = """
import hashlib, sys
from collections import Counter
from pathlib import Path
from image_worker import Client, RetryPolicy

addresses, count, folder = sys.argv[1].split(","), int(sys.argv[2]), Path(sys.argv[3])
images = [path.read_bytes() for path in sorted(folder.iterdir())]

def items():
    for number in range(count):
        # Each image once per number, so that nothing comes from a cache: bytes after the end of a JPEG are ignored.
        yield number, images[number % len(images)] + b"%08d" % number
        if number % 100 == 0:
            print(number, flush=True)

with Client(addresses, retry=RetryPolicy(give_up_after=30)) as client:
    outcomes = [(item.key, hashlib.sha256(item.unwrap().data).hexdigest(), item.attempts)
                for item in client.batch(items(), preset="favicon")]
assert Counter(key for key, _, _ in outcomes) == Counter(range(count))
print("attempts", sum(attempts for _, _, attempts in outcomes))
print("digest", hashlib.sha256(repr(sorted((key, digest) for key, digest, _ in outcomes)).encode()).hexdigest())
"""


def test_a_batch_outlives_a_killed_and_a_drained_worker(python, tmp_path):
    count = 1500
    for name in ["photo-420.jpg", "orientation-6.jpg"]:
        shutil.copy(FIXTURES / name, tmp_path)
    workers = [Worker("--cache-memory-mib", "0", "--threads", "1") for _ in range(3)]
    try:
        def batch(addresses):
            return subprocess.Popen(
                [python, "-c", BATCH, addresses, str(count), tmp_path], stdout=subprocess.PIPE, text=True, env=environment())

        alone = batch(workers[2].address)
        expected = alone.communicate(timeout=300)[0].splitlines()
        assert alone.returncode == 0 and expected[-2] == f"attempts {count}"
        process = batch(",".join(worker.address for worker in workers))
        lines = []
        for line in process.stdout:
            lines.append(line.strip())
            if line == "300\n":
                workers[0].process.kill()
            if line == "700\n":
                workers[1].process.terminate()
        assert process.wait(timeout=300) == 0
        assert lines[-1] == expected[-1]
        # The images in flight were sent again, and few others.
        assert count < int(lines[-2].split()[1]) <= count + 200
        assert workers[1].process.wait(timeout=60) == 0, "".join(workers[1].log)
    finally:
        for worker in workers:
            worker.process.kill()
            worker.process.wait()
