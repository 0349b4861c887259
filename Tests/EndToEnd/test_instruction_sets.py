"""Tests that results do not depend on the processor: on its instructions, the number of cores, or what surrounds it."""

import functools
import itertools
import json
import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import FIXTURES, is_built_in

WORKER = os.environ["IMAGE_WORKER"]
IS_X86 = platform.machine() == "x86_64"
PRELOADED = Path(__file__).with_name("instruction_sets.c")
# Environments that limit our kernels, the libraries', or what else surrounds a worker. A processor that has less than a
# limit allows uses what it has.
LIMITS = {
    "scalar": {"IMAGE_WORKER_INSTRUCTION_SET": "scalar"},
    "locale and time zone": {"LC_ALL": "tr_TR.UTF-8", "LANG": "de_DE.UTF-8", "TZ": "Asia/Kathmandu"},
}
if IS_X86:
    LIMITS |= {
        "avx2": {"IMAGE_WORKER_INSTRUCTION_SET": "avx2"},
        # The AV1 encoder and decoder without AVX-512, and without AVX; the others with SSE2, and without vectors.
        "libraries with SSE": {"JSIMD_FORCESSE2": "1", "AOM_SIMD_CAPS_MASK": "0x13f", "LIMIT_DAV1D": "0x7"},
        "libraries with AVX2": {"JSIMD_FORCEAVX2": "1", "AOM_SIMD_CAPS_MASK": "0x1ff", "LIMIT_DAV1D": "0xf"},
        "libraries without vectors": {"JSIMD_FORCENONE": "1", "LIMIT_DAV1D": "0", "LIMIT_WEBP": "1"},
        "the C library without AVX2": {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1:glibc.cpu.hwcaps=-AVX512F,-AVX2,-FMA"},
    }
CONFIGURATIONS = {
    "png": ["--max-width", "70", "--format", "png"],
    "png-level-0": ["--format", "png", "--compression-level", "0", "--png-filter", "paeth", "--always-encode"],
    "png-level-6": ["--max-width", "40", "--format", "png", "--compression-level", "6"],
    "jpeg": ["--max-width", "90", "--format", "jpeg", "--quality", "0.8"],
    "jpeg-progressive": ["--format", "jpeg", "--quality", "0.95", "--progressive", "--always-encode"],
    "webp": ["--max-width", "60", "--format", "webp", "--quality", "0.8"],
    "webp-lossless": ["--max-width", "50", "--format", "webp", "--lossless"],
    "filters": ["--max-width", "60", "--format", "png", "--rotation", "90",
                "--filter", "blur=0.7", "--filter", "sepia=0.4", "--filter", "sharpen=0.5"],
    "damage": ["--max-width", "100", "--format", "png", "--tolerate-damage", "--tolerate-truncation"],
    "palette": ["--max-width", "60", "--format", "png", "--palette-colors", "32"],
    "tensor": ["--max-width", "61", "--format", "raw", "--tensor-type", "f16", "--tensor-layout", "chw", "--tensor-normalization",
               "imagenet"],
    "tensor-interleaved": ["--max-width", "67", "--format", "raw", "--tensor-type", "bf16", "--tensor-normalization", "clip",
                           "--tensor-channels", "bgr"],
    "similarity": ["--max-width", "80", "--format", "jpeg", "--target-similarity", "75"],
}
if is_built_in("avif"):
    CONFIGURATIONS["avif"] = ["--max-width", "40", "--format", "avif", "--quality", "0.6"]


@pytest.fixture(scope="module")
def images(tmp_path_factory) -> list[Path]:
    """Copies of the fixtures whose names differ in more than the extension, and of each the first two thirds."""
    folder = tmp_path_factory.mktemp("images")
    for path in sorted(FIXTURES.iterdir()):
        if path.is_file() and path.suffix != ".json" and path.stat().st_size < 200_000:
            name = path.name.replace(".", "-")
            (folder / (name + path.suffix)).write_bytes(path.read_bytes())
            (folder / (name + "-cut" + path.suffix)).write_bytes(path.read_bytes()[:path.stat().st_size * 2 // 3])
    return sorted(folder.iterdir())


@pytest.fixture(scope="module")
def preloaded(tmp_path_factory) -> dict[str, str]:
    """The environment in which the worker loads instruction_sets.c."""
    library = tmp_path_factory.mktemp("preloaded") / "instruction_sets.so"
    subprocess.run(["clang", "-Wall", "-Werror", "-shared", "-fPIC", PRELOADED, "-ldl", "-o", library], check=True)
    return {"LD_PRELOAD": str(library)}


def results(images: list[Path], configuration: str, folder: Path, environment: dict[str, str] | None = None,
            prefix: tuple[str, ...] = ()) -> dict[str, bytes | str]:
    """Returns the bytes of each result, or its error."""
    chosen = [image for image in images if ("-cut" in image.name) == (configuration == "damage")]
    command = [*prefix, WORKER, "process", *chosen, "--out", folder, "--json", *CONFIGURATIONS[configuration]]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | (environment or {}))
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    # The memory that an image needs depends on the kernels.
    found = {Path(line["input"]).name: Path(line["output"]).read_bytes() if "output" in line
             else re.sub(r"needs \d+ bytes of memory", "needs memory", str(line["error"]))
             for line in lines if "input" in line}
    assert len(found) == len(chosen), done.stderr
    return found


@functools.cache
def expected(images: tuple[Path, ...], configuration: str) -> dict[str, bytes | str]:
    return results(list(images), configuration, images[0].parent.parent / f"expected-{configuration}")


def check(found: dict[str, bytes | str], images: list[Path], configuration: str):
    known = expected(tuple(images), configuration)
    assert sum(isinstance(result, bytes) for result in known.values()) > len(known) / 4
    assert [name for name in found if found[name] != known[name]] == []


# Without AVX2, scores differ by 10^-5, which is not promised to choose the same quality.
@pytest.mark.parametrize("limit, configuration", [
    pair for pair in itertools.product(LIMITS, CONFIGURATIONS)
    if pair != ("scalar", "similarity")])
def test_results_do_not_depend_on_the_environment(images, preloaded, limit, configuration, tmp_path):
    check(results(images, configuration, tmp_path, LIMITS[limit] | preloaded), images, configuration)


@pytest.mark.skipif(not shutil.which("taskset"), reason="needs taskset")
def test_results_do_not_depend_on_cores_or_the_order_of_files(images, tmp_path):
    found = results(images[::-1], "jpeg", tmp_path, prefix=("taskset", "-c", str(min(os.sched_getaffinity(0)))))
    check(found, images, "jpeg")


# qemu simulates processors without AVX-512 to all libraries. Its AVX2 is wrong in an instruction that dav1d uses, whose
# results are compared above.
QEMU = shutil.which("qemu-x86_64-static") or shutil.which("qemu-x86_64")


@pytest.mark.skipif(not IS_X86 or not QEMU, reason="needs qemu-user-static, which simulates other processors")
@pytest.mark.parametrize("processor", ["Haswell", "Nehalem"])
@pytest.mark.parametrize("configuration", ["png", "jpeg", "webp", "damage"])
def test_results_do_not_depend_on_the_processor(images, configuration, processor, tmp_path):
    known = expected(tuple(images), configuration)
    some = [image for image in images if image.suffix != ".avif"][::9]
    found = results(some, configuration, tmp_path, prefix=(QEMU, "-cpu", processor))
    assert [name for name in found if found[name] != known[name]] == []
