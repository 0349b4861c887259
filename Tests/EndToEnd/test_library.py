"""Examples/thumbnail-command uses the product ImageWorkerKit, and nothing more of the worker.

Its source is compiled against the modules that the build has left, and linked with the objects of the product alone.
Tests/Examples builds the package from outside, which compiles the engine a second time.
"""

import functools
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import FIXTURES, LIBRARIES, is_built_in
from python_client import ROOT
from swift_client import build_folder, is_possible, module_maps

EXAMPLE = ROOT / "Examples/thumbnail-command"
# The modules of this package and of others that the product consists of, apart from its own.
PRODUCT = {
    "Admission", "ImagePipeline", "ImageKernels", "ImageCodecs", "Fields", "WorkThreads", "LibC", "CCodecs", "CPixels",
    "CInstructions", "CText", "Tracing", "Instrumentation", "ServiceContextModule"}
SYSTEM = ["libjpeg", "libwebp", "zlib"]
OPTIONAL = {
    "colors": ["lcms2"], "png": ["libisal"],
    "tiff": ["libtiff-4"], "heic": ["libheif", "dav1d", "aom"],
    "text": ["pango", "cairo", "harfbuzz", "fontconfig", "gobject-2.0"]}



# A build of the tests of the package has the library, one of the worker alone has not.
pytestmark = pytest.mark.skipif(
    not is_possible() or not (build_folder() / "Modules/ImageWorkerKit.swiftmodule").exists(),
    reason="the library was not built here, or swiftc is not installed")


def system_libraries() -> list[str]:
    known = [name for name in SYSTEM + [name for what in OPTIONAL if is_built_in(what) for name in OPTIONAL[what]]
             if subprocess.run(["pkg-config", "--exists", name]).returncode == 0]
    flags = subprocess.run(["pkg-config", "--libs", *known], capture_output=True, text=True, check=True).stdout.split()
    return [*flags, "-lm", *(["-ljxl"] if is_built_in("jxl") else [])]


@functools.cache
def program(folder: Path) -> Path:
    listed = (build_folder() / "image-worker.product/Objects.LinkFileList").read_text().splitlines()
    objects = [path for path in listed if PRODUCT & set(re.findall(r"/([^/]+)\.build/", path))]
    objects += (build_folder() / "ImageWorkerKit.build").glob("*.o")
    list_file, path = folder / "objects.txt", folder / "thumbnail-command"
    list_file.write_text("\n".join(map(str, objects)))
    maps = [argument for path in module_maps() for argument in ("-Xcc", f"-fmodule-map-file={path}")]
    sources = sorted((EXAMPLE / "Sources/thumbnail-command").glob("*.swift"))
    built = subprocess.run(
        ["swiftc", "-swift-version", "6", "-warnings-as-errors", "-parse-as-library", "-I", build_folder() / "Modules", *maps,
         *sources, f"@{list_file}", *system_libraries(), "-o", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=300)
    assert built.returncode == 0, built.stdout[-4000:]
    return path


@pytest.fixture(scope="module")
def thumbnail(tmp_path_factory):
    path = program(tmp_path_factory.getbasetemp())
    return lambda *arguments: run(path, *arguments)


def run(*arguments: object) -> subprocess.CompletedProcess:
    return subprocess.run(arguments, capture_output=True, text=True, timeout=120)


REQUESTS = [
    ("photo-420.jpg", []),
    ("photo-progressive.jpg", ["max_width=90", "preferred_format=webp"]),
    ("alpha.png", ["preferred_format=png", "filters=sepia", "rotation=90", "never_larger=false"]),
    ("photo.psd", ["resize_mode=fill", "max_width=64", "max_height=64", "compression_quality=0.5"]),
]


@pytest.mark.parametrize("name, fields", REQUESTS, ids=lambda value: value if isinstance(value, str) else "")
def test_results_equal_those_of_the_command_line(thumbnail, name, fields, tmp_path):
    image, mine, theirs = FIXTURES / name, tmp_path / "mine", tmp_path / "theirs"
    made = thumbnail(image, mine, *fields)
    assert made.returncode == 0 and made.stdout.startswith(image.suffix[1:].replace("jpg", "jpeg")), made.stdout
    names = {"preferred_format": "format", "compression_quality": "quality", "filters": "filter"}
    options = []
    for field in fields:
        key, value = field.split("=")
        option = names.get(key, key).replace("_", "-")
        options += [f"--no-{option}"] if value == "false" else [f"--{option}", value]
    called = run(os.environ["IMAGE_WORKER"], "process", image, "--preset", "preview", *options, "--out", theirs)
    assert called.returncode == 0, called.stderr
    [result] = theirs.iterdir()
    assert mine.read_bytes() == result.read_bytes()


def test_errors_name_the_field_or_the_reason_and_leave_no_file(thumbnail, tmp_path):
    result = tmp_path / "result.jpg"
    for image, fields, expected in [
        (FIXTURES / "photo.png", ["max_widht=3"], "did you mean max_width?"),
        (FIXTURES / "photo.png", ["max_width=0"], "INVALID_FIELD: max_width is 0; it must be between 1 and 65500"),
        (Path(__file__), [], "UNKNOWN_FORMAT"),
        (tmp_path / "missing.jpg", [], "No such file or directory"),
    ]:
        made = thumbnail(image, result, *fields)
        assert made.returncode == 1 and expected in made.stdout, made.stdout
        assert not result.exists()


def test_the_library_needs_neither_foundation_nor_the_network(tmp_path_factory):
    # Linked with the objects of the product alone, so that anything else would be missing.
    linked = run("ldd", program(tmp_path_factory.getbasetemp())).stdout
    assert "libjpeg" in linked and "libwebp" in linked
    for name in ["Foundation", "libcurl", "libssl", LIBRARIES["isolation"]]:
        assert name not in linked, linked


def test_the_package_of_the_example_depends_on_the_library_alone():
    dumped = run(shutil.which("swift"), "package", "--package-path", EXAMPLE, "dump-package")
    [target] = json.loads(dumped.stdout)["targets"]
    assert [dependency["product"][:2] for dependency in target["dependencies"]] == [["ImageWorkerKit", "image-worker"]]
