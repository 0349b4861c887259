"""A package outside of this one, Examples/thumbnail-command, uses the product ImageWorkerKit, and nothing more of the worker."""

import functools
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from conftest import FIXTURES
from python_client import ROOT

SCRATCH = ROOT / ".build/end-to-end/thumbnail-command"
BUILD = [
    ROOT / "deploy/swift.sh", "build", "--package-path", ROOT / "Examples/thumbnail-command", "--scratch-path", SCRATCH,
    "--product", "thumbnail-command"]

pytestmark = pytest.mark.skipif(shutil.which("swift") is None, reason="swift is not installed")


@functools.cache
def program() -> Path:
    began = time.monotonic()
    built = subprocess.run(BUILD, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=1800)
    assert built.returncode == 0, built.stdout[-4000:]
    path = SCRATCH / "debug/thumbnail-command"
    print(f"built in {time.monotonic() - began:.0f} s, {path.stat().st_size >> 20} MiB")
    return path


def run(*arguments: object) -> subprocess.CompletedProcess:
    return subprocess.run(arguments, capture_output=True, text=True, timeout=120)


REQUESTS = [
    ("photo-420.jpg", []),
    ("photo-progressive.jpg", ["max_width=90", "preferred_format=webp"]),
    ("alpha.png", ["preferred_format=png", "filters=sepia", "rotation=90", "never_larger=false"]),
    ("photo.psd", ["resize_mode=fill", "max_width=64", "max_height=64", "compression_quality=0.5"]),
]


@pytest.mark.parametrize("name, fields", REQUESTS, ids=lambda value: value if isinstance(value, str) else "")
def test_results_equal_those_of_the_command_line(name, fields, tmp_path):
    image, mine, theirs = FIXTURES / name, tmp_path / "mine", tmp_path / "theirs"
    made = run(program(), image, mine, *fields)
    assert made.returncode == 0 and made.stdout.startswith(image.suffix[1:].replace("jpg", "jpeg")), made.stdout
    names = {"preferred_format": "format", "compression_quality": "quality", "filters": "filter"}
    options = []
    for field in fields:
        key, value = field.split("=")
        option = "--" + names.get(key, key).replace("_", "-")
        options += [option.replace("--", "--no-")] if value == "false" else [option, value]
    worker = [os.environ["IMAGE_WORKER"], "process", image, "--preset", "preview", *options, "--out", theirs]
    assert (called := run(*worker)).returncode == 0, called.stderr
    [result] = theirs.iterdir()
    assert mine.read_bytes() == result.read_bytes()


def test_errors_name_the_field_or_the_reason_and_leave_no_file(tmp_path):
    result = tmp_path / "result.jpg"
    for image, fields, expected in [
        (FIXTURES / "photo.png", ["max_widht=3"], "did you mean max_width?"),
        (FIXTURES / "photo.png", ["max_width=0"], "INVALID_FIELD: max_width is 0; it must be between 1 and 65500"),
        (Path(__file__), [], "UNKNOWN_FORMAT"),
        (tmp_path / "missing.jpg", [], "No such file or directory"),
    ]:
        made = run(program(), image, result, *fields)
        assert made.returncode == 1 and expected in made.stdout, made.stdout
        assert not result.exists()


def test_the_library_links_neither_foundation_nor_a_library_of_the_network():
    linked = run("ldd", program()).stdout
    assert "libjpeg" in linked and "libwebp" in linked
    for name in ["Foundation", "libcurl", "libssl", "Dispatch"]:
        assert name not in linked, linked
    built = {path.name.removesuffix(".swiftmodule") for path in (SCRATCH / "debug/Modules").glob("*.swiftmodule")}
    assert {"ImageWorkerKit", "ImagePipeline"} <= built
    assert not [name for name in built if name.startswith(("NIO", "GRPC", "Worker", "SwiftProtobuf", "Crypto"))]
