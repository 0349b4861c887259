"""The Spark job of deploy/spark on a real local cluster: it outlives the loss of an executor."""

import hashlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import pyarrow.parquet
import pyspark
import pytest
from image_worker import Client

ROOT = Path(__file__).parent.parent.parent
FIXTURES = ROOT / "Tests/TestSupport/Fixtures"
JOB = ROOT / "deploy/spark/process_images.py"
COUNT = 600
METRICS = 9473


@pytest.fixture
def worker():
    process = subprocess.Popen(
        [os.environ["IMAGE_WORKER"], "serve", "--port", "0", "--threads", "1", "--cache-memory-mib", "0",
         "--metrics-port", str(METRICS)],
        stderr=subprocess.PIPE, text=True)
    address = next(match[1] for line in process.stderr if (match := re.search(r"serving.*(127\.0\.0\.1:\d+)", line)))
    threading.Thread(target=process.stderr.read, daemon=True).start()
    yield address
    process.terminate()
    assert process.wait(timeout=30) == 0


def descendants(process: int) -> list[int]:
    children = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue  # it has ended
        children.setdefault(int(fields[1]), []).append(int(status.parent.name))
    found = list(children.get(process, []))
    for child in found:
        found += children.get(child, [])
    return found


def executors(driver: int) -> list[int]:
    def command(process):
        try:
            return Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
        except OSError:
            return []
    return [process for process in descendants(driver)
            if command(process)[0].endswith(b"java") and any(b"CoarseGrainedExecutorBackend" in each for each in command(process))]


def test_the_job_outlives_an_executor(worker, tmp_path):
    source, target = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    photo = (FIXTURES / "photo-420.jpg").read_bytes()
    for number in range(COUNT):
        # Bytes after the end of a JPEG are ignored.
        (source / f"{number:04}.jpg").write_bytes(photo + b"%08d" % number if number % 100 else photo[:4000])
    home = Path(pyspark.__file__).parent
    driver = subprocess.Popen(
        [home / "bin/spark-submit", "--master", "local-cluster[2,1,1024]", "--driver-memory", "512m",
         "--conf", "spark.executor.memory=512m", "--conf", "spark.ui.enabled=false",
         # Small partitions, so that many tasks are left when the executor dies, and each image in one of them.
         "--conf", "spark.sql.files.maxPartitionBytes=262144", "--conf", "spark.sql.files.openCostInBytes=16384",
         JOB, source, target, worker, "compressedThumbnail"],
        env={**os.environ, "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable,
             "SPARK_LOCAL_IP": "127.0.0.1"},
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    output = []
    reader = threading.Thread(target=lambda: output.extend(driver.stdout), daemon=True)
    reader.start()
    try:
        # A task is done when its output is in the folder of its attempt; then the job is in its middle.
        deadline = time.monotonic() + 240
        while time.monotonic() < deadline and driver.poll() is None and len(list(target.rglob("part-*.parquet"))) < 3:
            time.sleep(0.05)
        [victim, *rest] = executors(driver.pid)
        assert len(rest) == 1 and driver.poll() is None, "".join(output)
        os.kill(victim, signal.SIGKILL)
        assert driver.wait(timeout=240) == 0, "".join(output)
    finally:
        driver.kill()
        reader.join(timeout=10)
    log = "".join(output)
    assert "Lost executor" in log, log

    rows = pyarrow.parquet.read_table(target).to_pylist()
    assert sorted(Path(row["path"]).name for row in rows) == [f"{number:04}.jpg" for number in range(COUNT)]
    failed = {Path(row["path"]).stem: row["reason"] for row in rows if row["data"] is None}
    assert failed == {f"{number:04}": "TRUNCATED_IMAGE" for number in range(0, COUNT, 100)}
    with Client(worker) as client:
        expected = hashlib.sha256(client.process(photo, preset="compressedThumbnail").data).digest()
    assert {hashlib.sha256(row["data"]).digest() for row in rows if row["data"]} == {expected}
    assert {(row["format"], row["width"], row["height"]) for row in rows if row["data"]} == {("jpeg", 240, 160)}


def processed_images() -> int:
    """The number of images that the worker has processed."""
    with urllib.request.urlopen(f"http://127.0.0.1:{METRICS}/metrics", timeout=60) as response:
        return sum(int(count) for count in re.findall(r"^imageworker_images_total\{.*\} (\d+)$", response.read().decode(), re.M))


def submit(folder: Path, program: str) -> subprocess.CompletedProcess:
    """Runs a program of Spark that begins with a session called `spark`."""
    path = folder / "program.py"
    path.write_text(f"from pyspark.sql import SparkSession\nspark = SparkSession.builder.getOrCreate()\n{program}")
    home = Path(pyspark.__file__).parent
    return subprocess.run(
        [home / "bin/spark-submit", "--master", "local[2]", "--driver-memory", "1g", "--conf", "spark.ui.enabled=false", path],
        env={**os.environ, "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable,
             "SPARK_LOCAL_IP": "127.0.0.1", "PYTHONPATH": f"{JOB.parent}:{os.environ['PYTHONPATH']}"},
        cwd=folder, capture_output=True, text=True, timeout=300)


def own_program(folder: Path, worker: str) -> str:
    """Returns the program of the README, with 80 images of which 2 are truncated."""
    source = folder / "in"
    source.mkdir()
    photo = (FIXTURES / "photo-420.jpg").read_bytes()
    for number in range(80):
        (source / f"{number:04}.jpg").write_bytes(photo if number % 40 else photo[:4000])
    return ours(readme("processed"), folder, worker)


def readme(function: str) -> str:
    """Returns the program of the README that imports a function of the job."""
    programs = re.findall(r"```python\n(.*?)```", (JOB.parent / "README.md").read_text(), re.S)
    [program] = [each for each in programs if re.search(rf"from process_images import .*\b{function}\b", each)]
    return program


def ours(program: str, folder: Path, worker: str) -> str:
    """Returns a program of the README with addresses of this machine."""
    for address, own in {"s3a://photos/2026/": folder / "in", "s3a://results/2026/": folder / "results",
                         "s3a://failures/2026/": folder / "failures", "s3a://scores/2026/": folder / "scores", "s3a://facts/2026/": folder / "facts",
                         "dns:///image-worker-headless:50051": worker}.items():
        program = program.replace(address, str(own))
    assert "s3a://" not in program and "dns://" not in program
    return program


def test_the_program_of_the_readme_processes_each_image_once(worker, tmp_path):
    run = submit(tmp_path, own_program(tmp_path, worker))
    assert run.returncode == 0, run.stdout + run.stderr
    assert pyarrow.parquet.read_table(tmp_path / "results").num_rows == 78
    failures = [line for file in (tmp_path / "failures").glob("part-*") for line in file.read_text().splitlines()]
    assert len(failures) == 2 and all("TRUNCATED_IMAGE" in line for line in failures)
    assert processed_images() == 80


def test_too_many_rows_at_a_time_are_refused(worker, tmp_path):
    run = submit(tmp_path, own_program(tmp_path, worker).replace("configured(spark)", "spark"))
    assert run.returncode != 0 and "maxRecordsPerBatch is 10000" in run.stdout + run.stderr, run.stdout + run.stderr
    assert processed_images() == 0


MODEL = """
def load_model():
    return lambda inputs: inputs.reshape(len(inputs), -1).mean(axis=1)
"""


def test_the_tensors_of_the_readme_reach_a_model(worker, tmp_path):
    own_program(tmp_path, worker)  # for its images
    run = submit(tmp_path, MODEL + ours(readme("tensors"), tmp_path, worker))
    assert run.returncode == 0, run.stdout + run.stderr
    table = pyarrow.parquet.read_table(tmp_path / "scores").to_pydict()
    with Client(worker) as client:
        expected = client.tensor(FIXTURES / "photo-420.jpg", width=224, height=224, normalize="imagenet").mean()
    [paths, scores] = table.values()
    assert len(set(paths)) == 78 and all(abs(score - expected) < 1e-4 for score in scores)


def test_a_table_of_tensors_names_the_images_that_failed(worker, tmp_path):
    own_program(tmp_path, worker)
    run = submit(tmp_path, f"""
from process_images import configured, tensors
images = configured(spark).read.format("binaryFile").load({str(tmp_path / "in")!r})
tensors(images, [{worker!r}], 8, 6).write.parquet({str(tmp_path / "out")!r})
""")
    assert run.returncode == 0, run.stdout + run.stderr
    rows = pyarrow.parquet.read_table(tmp_path / "out").to_pylist()
    assert len(rows) == 80 and {len(row["tensor"]) for row in rows if row["reason"] is None} == {3 * 8 * 6}
    failed = [row for row in rows if row["reason"]]
    assert {(row["reason"], row["tensor"]) for row in failed} == {("TRUNCATED_IMAGE", None)} and len(failed) == 2


def test_the_facts_of_the_readme_find_duplicates(worker, tmp_path):
    own_program(tmp_path, worker)
    run = submit(tmp_path, ours(readme("facts"), tmp_path, worker))
    assert run.returncode == 0, run.stdout + run.stderr
    rows = pyarrow.parquet.read_table(tmp_path / "facts").to_pylist()
    with Client(worker) as client:
        expected = client.inspect(FIXTURES / "photo-420.jpg", facts=True).facts
    found = [row for row in rows if row["reason"] is None]
    assert len(rows) == 80 and len(found) == 78
    assert {(row["perceptual_hash"] % 2**64, row["thumb_hash"], row["blur_hash"]) for row in found} == {
        (expected.perceptual_hash, expected.thumb_hash, expected.blur_hash)}
    assert {(row["reason"], row["perceptual_hash"]) for row in rows if row["reason"]} == {("TRUNCATED_IMAGE", None)}
    assert re.search(r"/\d{4}\.jpg *\|.*/\d{4}\.jpg *\|", run.stdout)
