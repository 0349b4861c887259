"""Tests of the Python package, as its users get it: built, installed in an environment without anything else, run."""

import os
import re
import shutil
import zipfile

import gain_maps
import numpy as np
from certificates import Authority
from conftest import FIXTURES, Worker, fixture_bytes
from python_client import BUILD, PACKAGE, ROOT, batch, environment, python, run, tools, wheel  # noqa: F401


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
    assert outputs[3] == "(3, 224, 224) float16\n(2, 3, 48, 64) (None, None) ((0, 2, 64, 43), (0, 2, 64, 43))\n"
    assert sorted(outputs[4].splitlines()) == ["240 64", "a.jpg 240", "b.jpg 240"]
    assert outputs[5] == "UNKNOWN_FORMAT\n"


INSPECTING = """
import sys
from image_worker import Client

with Client(sys.argv[1]) as client:
    for fields in ({}, {"facts": True}, {"gain_map": "keep"}):
        inspection = client.inspect(sys.argv[2], **fields)
        print(inspection.info.width, inspection.info.gain_map.width, len(inspection.facts.thumb_hash) > 0)
"""


def test_large_images_are_inspected_with_their_facts_and_gain_maps(python, worker, tmp_path):
    noise = np.random.default_rng(7).integers(0, 256, (600, 800, 3), np.uint8)
    image = gain_maps.jpeg(noise, quality=100, subsampling=0)
    assert len(image) > 1 << 20
    (tmp_path / "photo.jpg").write_bytes(gain_maps.ultra_hdr(image, gain_maps.jpeg(gain_maps.gradient(400, 300))))
    printed = run(python, "-c", INSPECTING, worker.address, tmp_path / "photo.jpg", env=environment())
    assert printed.splitlines() == ["800 0 False", "800 400 True", "800 400 False"]


CALLER = """
import sys
from image_worker import TLS, AuthenticationError, Client

address, authority, token, photo = sys.argv[1:]
with Client(address, tls=TLS(root_certificates=authority), token=token) as client:
    print(client.process(photo, preset="favicon").width, next(client.batch([(1, photo)], preset="favicon")).unwrap().width)
for wrong in (None, "wrong"):
    with Client(address, tls=TLS(root_certificates=authority), token=wrong) as client:
        for call in (lambda: client.process(photo), lambda: list(client.batch([(1, photo)]))):
            try:
                call()
            except AuthenticationError as error:
                print(error.reason)
"""


def test_tls_and_tokens_reach_a_worker(python, tmp_path):
    authority = Authority(tmp_path)
    certificate, key = authority.issue("worker")
    made = run(os.environ["IMAGE_WORKER"], "token", "caller")
    (tmp_path / "identities.yaml").write_text(made.split("\n", 1)[1].lstrip())
    worker = Worker(
        "--tls-certificate", str(certificate), "--tls-key", str(key), "--identities", str(tmp_path / "identities.yaml"))
    token = re.match(r"token: (\S+)", made)[1]
    printed = run(
        python, "-c", CALLER, f"localhost:{worker.port}", authority.certificate, token, FIXTURES / "photo-420.jpg",
        env=environment())
    assert printed == "64 64\n" + "UNAUTHENTICATED\n" * 4
    assert worker.stop() == 0


def test_a_batch_outlives_a_killed_and_a_drained_worker(python, tmp_path):
    count = 1500
    for name in ["photo-420.jpg", "orientation-6.jpg"]:
        shutil.copy(FIXTURES / name, tmp_path)
    workers = [Worker("--cache-memory-mib", "0", "--threads", "1") for _ in range(3)]
    try:
        _, expected = batch(python, [workers[2].address], 1, count, tmp_path, {})
        sent, digest = batch(
            python, [worker.address for worker in workers], 3, count, tmp_path,
            {"300": workers[0].process.kill, "700": workers[1].process.terminate})
        assert digest == expected
        # The images in flight were sent again, and few others.
        assert count < sent <= count + 200
        assert workers[1].process.wait(timeout=60) == 0, "".join(workers[1].log)
    finally:
        for worker in workers:
            worker.process.kill()
            worker.process.wait()
