"""JPEGs of the worker, and random ones of its encoder, in other programs, none of which may warn."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import fixture_bytes
from PIL import Image

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


def test_a_large_baseline_jpeg_has_the_codes_of_baseline_alone(tmp_path):
    """At most 162 for AC, which decoders in hardware have room for."""
    source, result = tmp_path / "noise.png", tmp_path / "noise.jpg"
    noise = np.random.default_rng(1).integers(0, 256, (1400, 1400, 3), np.uint8)
    Image.fromarray(noise).save(source)
    subprocess.run([os.environ["IMAGE_WORKER"], "process", source, "--no-progressive", "--quality", "0.9", "--out", result,
                    "--quiet"], check=True)
    data, at, found = result.read_bytes(), 2, 0
    while data[at + 1] != 0xDA:
        length = int.from_bytes(data[at + 2:at + 4], "big")
        table, end = at + 4, at + 2 + length
        while data[at + 1] == 0xC4 and table < end:
            count = sum(data[table + 1:table + 17])
            symbols = data[table + 17:table + 17 + count]
            if data[table] >> 4 == 1:
                assert count <= 162 and not any(symbol & 15 == 0 and symbol not in (0, 0xF0) for symbol in symbols)
                found += 1
            table += 17 + count
        at = end
    assert found
