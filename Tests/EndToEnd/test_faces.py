"""Tests of faces over gRPC. The "faces" of their detector are dark squares in the middle of bright ones."""

import io
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import grpc
import numpy as np
import pytest
from conftest import Client, Worker, built_in, metric, wait_until
from PIL import Image
from processes import descendants

DETECTOR = str(Path(__file__).parent.parent / "Fuzz" / "seeds" / "squares.cascade")
NETWORK = str(Path(__file__).parent.parent / "Fuzz" / "seeds" / "spots.network")
DEBIAN = "/usr/share/opencv4/haarcascades/haarcascade_frontalface_alt2.xml"
FACES = [(100, 120, 200), (640, 300, 120)]
HIDE = {"shape": "REGION_SHAPE_FACES"}
CROP = {"max_width": 100, "max_height": 100, "resize_mode": "RESIZE_MODE_FILL", "gravity": "GRAVITY_FACES",
        "preferred_format": "OUTPUT_FORMAT_PNG"}


def image(faces=FACES, fmt="PNG", **options) -> bytes:
    pixels = np.full((600, 900, 3), 128, np.uint8)
    for x, y, side in faces:
        pixels[y:y + side, x:x + side] = 200
        inner = side // 4
        pixels[y + inner:y + side - inner, x + inner:x + side - inner] = 30
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, fmt, **options)
    return file.getvalue()


def ends(client, data: bytes, **fields):
    parts = list(client.process(data, **fields))
    report = next(part.report for part in parts if part.HasField("report") and not part.is_preview)
    return report, b"".join(part.chunk for part in parts if not part.is_preview)


def rects(list_of_rects):
    return [(int(r.x), int(r.y), int(r.width), int(r.height)) for r in list_of_rects]


@pytest.fixture(scope="module", params=["none", pytest.param("process", marks=built_in("isolation"))])
def client(request):
    worker = Worker("--face-detector", DETECTOR, "--isolation", request.param, "--cache-memory-mib", "0")
    yield Client(worker)
    assert worker.stop() == 0, "".join(worker.log)


def test_crops_keep_faces_and_report_them(client):
    report, _ = ends(client, image([FACES[1]]), **CROP)
    (x, y, width, height), = rects(report.faces)
    assert abs(x - 640) < 12 and abs(y - 300) < 12 and abs(width - 120) < 24 and abs(height - 120) < 24
    assert report.crop.x <= 640 and report.crop.x + report.crop.width >= 760
    report, _ = ends(client, image(), **CROP | {"max_height": 400})
    assert len(report.faces) == 2 and [w.parameters["kept"] for w in report.warning_details] == ["1"]
    report, _ = ends(client, image([]), **CROP)
    assert not report.faces and [w.parameters["field"] for w in report.warning_details] == ["gravity"]


def test_faces_are_hidden_in_results_and_previews(client):
    parts = list(client.process(image(fmt="JPEG"), preview=True, regions=[HIDE], preferred_format="OUTPUT_FORMAT_PNG"))
    report = next(part.report for part in parts if part.HasField("report") and not part.is_preview)
    assert len(report.faces) == len(report.hidden_regions) == 2
    for is_preview in (False, True):
        data = b"".join(part.chunk for part in parts if part.is_preview == is_preview)
        result = Image.open(io.BytesIO(data)).convert("L")
        scale = result.width / 900
        for x, y, side in FACES:
            box = [round(edge * scale) for edge in (x + 4, y + 4, x + side - 4, y + side - 4)]
            assert np.asarray(result.crop(box)).max() <= (20 if is_preview else 0)
    assert 40 in [w.code for w in ends(client, image([]), regions=[HIDE])[0].warning_details]


def test_renditions_find_faces_as_each_is_displayed(client):
    message = client.message
    renditions = [
        message("Rendition")(rendition_id=str(rotation), configuration=message("ProcessingConfiguration")(
            rotation=rotation, regions=[HIDE], max_width=300)) for rotation in (0, 90)]
    renditions.append(message("Rendition")(rendition_id="plain", configuration=message("ProcessingConfiguration")(max_width=50)))
    request = message("ProcessImageRequest")(image=image(), renditions=renditions)
    reports = {part.rendition_id: part.report for part in client.call("ProcessImage", "unary_stream")(request, timeout=120)
               if part.HasField("report")}
    upright, turned = rects(reports["0"].faces), rects(reports["90"].faces)
    assert len(upright) == len(turned) == len(reports["90"].hidden_regions) == 2 and not reports["plain"].faces
    for (x, y, width, height), (turned_x, turned_y, _, _) in zip(upright, turned, strict=True):
        assert abs(turned_x - (600 - y - height)) < 10 and abs(turned_y - x) < 10


def test_animations_are_refused_rather_than_shown(client):
    frames = [Image.open(io.BytesIO(image(faces))).convert("P") for faces in (FACES, FACES[:1])]
    file = io.BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:])
    with pytest.raises(grpc.RpcError) as raised:
        ends(client, file.getvalue(), regions=[HIDE], max_frames=0, preferred_format="OUTPUT_FORMAT_GIF")
    assert raised.value.code() == grpc.StatusCode.UNIMPLEMENTED and "frames" in raised.value.details()
    assert len(ends(client, file.getvalue(), regions=[HIDE], preferred_format="OUTPUT_FORMAT_PNG")[0].hidden_regions) == 2


@pytest.mark.parametrize("isolation", ["none", pytest.param("process", marks=built_in("isolation"))])
def test_without_a_detector_faces_are_refused(isolation):
    worker = Worker("--face-detector", "none", "--isolation", isolation)
    try:
        client = Client(worker)
        for fields, field in ((CROP, "gravity"), ({"regions": [HIDE]}, "regions")):
            with pytest.raises(grpc.RpcError) as raised:
                ends(client, image(), **fields)
            assert raised.value.code() == grpc.StatusCode.UNIMPLEMENTED
            assert "--face-detector" in raised.value.details() and "opencv-data" in raised.value.details()
            assert f"configuration.{field}".encode() in dict(raised.value.trailing_metadata())["grpc-status-details-bin"]
            request = client.message("InspectImageRequest")(
                image=image(), configuration=client.message("ProcessingConfiguration")(**fields))
            with pytest.raises(grpc.RpcError) as inspected:
                client.call("InspectImage", "unary_unary")(request, timeout=60)
            assert inspected.value.code() == raised.value.code() and inspected.value.details() == raised.value.details()
        assert ends(client, image(), max_width=50)[1]
    finally:
        worker.stop()


@pytest.mark.parametrize("text, reason", [
    (None, "there is no such file"), ("", "its size is not 1"), ("<html></html>", "it is not a cascade of OpenCV"),
    ("<opencv_storage><featureType>LBP</featureType>", "not of the type HAAR"),
])
def test_a_file_that_is_no_detector_fails_the_start(tmp_path, text, reason):
    file = tmp_path / "cascade.xml"
    if text is not None:
        file.write_text(text)
    for command in (["serve", "--port", "0"], ["process", str(tmp_path / "none.png"), "--out", str(tmp_path)]):
        run = subprocess.run(
            [os.environ["IMAGE_WORKER"], *command, "--face-detector", str(file)], capture_output=True, text=True, timeout=120)
        assert run.returncode != 0 and f"--face-detector is {file}" in run.stderr and reason in run.stderr, run.stderr


def test_commands_find_faces_and_print_them(tmp_path):
    file = tmp_path / "image.png"
    file.write_bytes(image())
    command = [os.environ["IMAGE_WORKER"], "process", str(file), "--face-detector", DETECTOR, "--region", "faces,pixelate",
               "--json", "--out", str(tmp_path / "out")]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    line = next(line for line in map(json.loads, lines) if "faces" in line)
    assert len(line["faces"]) == len(line["hidden_regions"]) == 2


def test_results_of_another_detector_are_not_taken_from_the_cache(tmp_path):
    cache = tmp_path / "cache"
    cache.mkdir()
    other = tmp_path / "other.xml"
    # The same detector, for faces of other proportions.
    other.write_text(Path(DETECTOR).read_text().replace("-1.6e+00", "-9.6e+00"))
    found = []
    for detector in (DETECTOR, DETECTOR, str(other)):
        worker = Worker("--face-detector", detector, "--cache-directory", str(cache))
        try:
            report, _ = ends(Client(worker), image(), regions=[HIDE])
            found.append((len(report.faces), report.cache_hit))
        finally:
            worker.stop()
    assert found == [(2, False), (2, True), (0, False)]


@built_in("isolation")
@pytest.mark.parametrize("replace", [os.replace, shutil.copyfile])
def test_helpers_have_the_detector_that_the_worker_has_read(tmp_path, replace):
    file, other = tmp_path / "detector.xml", tmp_path / "other.xml"
    shutil.copyfile(DETECTOR, file)
    other.write_text(Path(DETECTOR).read_text().replace("-1.6e+00", "-9.6e+00"))
    worker = Worker(
        "--face-detector", str(file), "--isolation", "process", "--cache-memory-mib", "0", "--metrics-port", "0")
    try:
        client = Client(worker)
        assert len(ends(client, image(), regions=[HIDE])[0].faces) == 2
        replace(other, file)
        os.kill(descendants(worker.process.pid)[0], signal.SIGKILL)
        assert wait_until(lambda: metric(worker, "imageworker_zygotes_replaced_total") == 1)
        if replace is os.replace:
            assert len(ends(client, image(), regions=[HIDE])[0].faces) == 2
        else:  # The bytes are gone; those of another detector would end up in caches as if they were of the first.
            with pytest.raises(grpc.RpcError) as raised:
                ends(client, image(), regions=[HIDE])
            assert raised.value.code() == grpc.StatusCode.UNIMPLEMENTED and "--face-detector" in raised.value.details()
    finally:
        worker.stop()


@pytest.mark.skipif(not os.path.exists(DEBIAN), reason="opencv-data is not installed")
def test_the_detector_of_debian_finds_a_person(tmp_path):
    photograph = Path(__file__).parent / "astronaut.jpg"
    command = [os.environ["IMAGE_WORKER"], "process", str(photograph), "--gravity", "faces", "--max-width", "60",
               "--max-height", "120", "--resize-mode", "fill", "--json", "--out", str(tmp_path)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    (face, *_), = [line["faces"] for line in map(json.loads, lines) if "faces" in line]
    assert abs(face["x"] + face["width"] / 2 - 112) < 15 and abs(face["y"] + face["height"] / 2 - 58) < 15


@pytest.mark.parametrize("isolation", ["none", pytest.param("process", marks=built_in("isolation"))])
def test_a_network_can_be_the_detector(isolation):
    pixels = np.full((560, 760, 3), 60, np.uint8)
    pixels[160:280, 500:620] = (250, 240, 230)  # what this network takes for faces
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", quality=95)
    worker = Worker("--face-detector", NETWORK, "--isolation", isolation, "--cache-memory-mib", "0")
    try:
        client = Client(worker)
        report, _ = ends(client, file.getvalue(), **CROP)
        assert report.faces and all(
            abs(x + width / 2 - 560) < 110 and abs(y + height / 2 - 220) < 110 for x, y, width, height in rects(report.faces))
        assert report.crop.x > 100
        report, data = ends(client, file.getvalue(), regions=[HIDE], preferred_format="OUTPUT_FORMAT_PNG")
        assert len(report.hidden_regions) == len(report.faces)
        assert np.asarray(Image.open(io.BytesIO(data)).convert("L"))[190:250, 530:590].max() == 0
    finally:
        assert worker.stop() == 0


def test_a_damaged_network_fails_the_start(tmp_path):
    file = tmp_path / "damaged.tflite"
    file.write_bytes(Path(NETWORK).read_bytes()[:5000])
    run = subprocess.run([os.environ["IMAGE_WORKER"], "serve", "--port", "0", "--face-detector", str(file)],
                         capture_output=True, text=True, timeout=120)
    assert run.returncode != 0 and f"--face-detector is {file}" in run.stderr and "not a face detector" in run.stderr
