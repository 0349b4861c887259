"""JPEGs of the worker, and random ones of its encoder, in other programs, none of which may warn."""

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import fixture_bytes

CHECK = Path(__file__).parents[1] / "JPEGEncoder"
NOT_INSTALLED = 77
OPTIONS = [{"progressive": False}, {"progressive": True}, {"chroma_subsampling": "CHROMA_SUBSAMPLING_444"}]


@pytest.fixture(scope="module")
def files(client, tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("jpegs")
    subprocess.run([CHECK / "run.sh", "12", "1", directory], check=True, stdout=subprocess.DEVNULL)
    for name in ("photo-odd.jpg", "gray.png"):
        for index, jpeg in enumerate(OPTIONS):
            configuration = client.message("ProcessingConfiguration")(
                preferred_format="OUTPUT_FORMAT_JPEG", always_encode=True, jpeg=jpeg)
            request = client.message("ProcessImageRequest")(image=fixture_bytes(name), configuration=configuration)
            parts = client.call("ProcessImage", "unary_stream")(request, timeout=60)
            (directory / f"{name}-{index}.jpg").write_bytes(b"".join(part.chunk for part in parts))
    return directory


@pytest.mark.parametrize("program", ["readers.py pillow", "readers.py libvips", "readers.py imagemagick", "browser.py"])
def test_another_program_opens_them_without_a_warning(files, program):
    script, *reader = program.split()
    done = subprocess.run(
        [sys.executable, CHECK / script, files, *reader], capture_output=True, text=True, timeout=180)
    if done.returncode == NOT_INSTALLED:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout + done.stderr
