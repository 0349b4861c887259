"""The Python package as its users get it: built, and installed in an environment without anything else."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PACKAGE = ROOT / "clients/python"
BUILD = ROOT / ".build/python-client"
FOR_TESTS = ["fsspec==2026.9.0", "numpy==2.4.6", "pillow==13.0.0", "pytest==9.0.3"]


def run(*command, **options) -> str:
    options.setdefault("env", environment(**{name: value for name, value in os.environ.items() if name.startswith("IMAGE_WORKER")}))
    done = subprocess.run([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, **options)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def tools():
    run(PACKAGE / "venv.sh", BUILD / "tools")
    return BUILD / "tools/bin"


@pytest.fixture(scope="module")
def wheel(tools, tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    before = set(PACKAGE.rglob("*"))
    run(tools / "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, PACKAGE)
    left = {path for path in set(PACKAGE.rglob("*")) - before if "__pycache__" not in path.parts}
    assert not left, "installing from the folder leaves files in it"
    [wheel] = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def python(wheel):
    """The interpreter of an environment that has only the wheel, what it requires with arrays and URLs, and packages for tests."""
    clean = BUILD / "clean"
    [metadata] = [name for name in zipfile.ZipFile(wheel).namelist() if name.endswith("/METADATA")]
    required = "".join(re.findall(r"^(?:Requires|Provides)-.*\n", zipfile.ZipFile(wheel).read(metadata).decode(), re.M)) + "\n".join(FOR_TESTS)
    mark = clean / "required.txt"
    if not mark.exists() or mark.read_text() != required:
        shutil.rmtree(clean, ignore_errors=True)
        run(sys.executable, "-m", "venv", clean)
        run(clean / "bin/pip", "install", "--quiet", f"{wheel}[fsspec,tensors]", *FOR_TESTS)
        mark.write_text(required)
    run(clean / "bin/pip", "install", "--quiet", "--no-deps", "--force-reinstall", wheel)
    run(clean / "bin/pip", "check")
    return clean / "bin/python"


def environment(**variables):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "IMAGE_WORKER"))}
    return {**kept, "PIP_DISABLE_PIP_VERSION_CHECK": "1", **variables}


BATCH = """
import faulthandler, hashlib, sys
from collections import Counter
from pathlib import Path
from image_worker import Client, RetryPolicy

faulthandler.dump_traceback_later(280, exit=True)
addresses, streams, count, folder = sys.argv[1].split(","), int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
images = [path.read_bytes() for path in sorted(folder.iterdir())]

def items():
    for number in range(count):
        # Each image once per number, so that nothing comes from a cache: bytes after the end of a JPEG are ignored.
        yield number, images[number % len(images)] + b"%08d" % number
        if number % 100 == 0:
            print(number, flush=True)

with Client(addresses, retry=RetryPolicy(give_up_after=30, stall_after=15)) as client:
    outcomes = [(item.key, hashlib.sha256(item.unwrap().data).hexdigest(), item.attempts)
                for item in client.batch(items(), preset="favicon", streams=streams, timeout=90)]
assert Counter(key for key, _, _ in outcomes) == Counter(range(count))
print("attempts", sum(attempts for _, _, attempts in outcomes))
print("digest", hashlib.sha256(repr(sorted((key, digest) for key, digest, _ in outcomes)).encode()).hexdigest())
"""


def batch(python, addresses, streams, count, folder, events):
    """Runs a batch of `count` images. `events` are functions that are called when so many images have been taken.

    Returns how often images were sent, and a digest of all results.
    """
    process = subprocess.Popen(
        [python, "-c", BATCH, ",".join(addresses), str(streams), str(count), folder], stdout=subprocess.PIPE, text=True,
        env=environment())
    lines = []
    for line in process.stdout:
        lines.append(line.strip())
        if event := events.get(lines[-1]):
            event()
    assert process.wait(timeout=300) == 0
    return int(lines[-2].split()[1]), lines[-1]
