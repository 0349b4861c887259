"""Tests of filters over gRPC, compared with Pillow and numpy."""

import io
import os
import subprocess

import filter_references
import grpc
import numpy as np
import pytest
from conftest import FIXTURES, fixture_bytes
from google.rpc import error_details_pb2
from PIL import Image
from test_calls import details, parts, image_of

PNG = 3
EXACT = [case for case in filter_references.CASES if case[3] == "numpy"]


def filtered(client, image: bytes, filters, **configuration):
    """Returns the result and the report; filters are (name, intensity, parameters)."""
    request = client.message("ProcessImageRequest")(image=image)
    for name, value in configuration.items():
        setattr(request.configuration, name, value)
    for name, intensity, parameters in filters:
        added = request.configuration.filters.add(name=name, intensity=intensity)
        for key, value in parameters.items():
            added.parameters[key] = value
    responses = parts(client.call("ProcessImage", "unary_stream")(request, timeout=60))
    return image_of(responses), responses[-1][1].report


@pytest.mark.parametrize("case", filter_references.CASES, ids=lambda c: f"{c[0]} {c[1]} {c[3]}")
def test_each_filter_is_what_others_make_of_it(client, case):
    name, parameters, _, _, largest, mean = case
    source = Image.open(FIXTURES / "photo.png").convert("RGB")
    result, report = filtered(client, fixture_bytes("photo.png"), [(name, 1, parameters)], preferred_format=PNG)
    assert report.timings.filter.ToNanoseconds() > 0
    found = filter_references.distances(result, source, case)
    assert found[0] <= largest + 1e-6 and found[1] <= mean, found


@pytest.mark.parametrize("intensity", [0.0, 0.25, 0.8])
@pytest.mark.parametrize("case", EXACT, ids=lambda c: f"{c[0]} {c[1]}")
def test_intensity_mixes_with_the_image(client, case, intensity):
    source = Image.open(FIXTURES / "photo.png").convert("RGB")
    result, _ = filtered(client, fixture_bytes("photo.png"), [(case[0], intensity, case[1])], preferred_format=PNG)
    largest, _ = filter_references.distances(result, source, case, intensity)
    assert largest <= (0 if intensity == 0 else 1.2)


def test_a_chain_keeps_its_order(client):
    chain = [("brightness", 1, {"amount": 2}), ("invert", 1, {}), ("pixelate", 1, {"size": 10}), ("gamma", 1, {})]
    source = filter_references.samples(Image.open(FIXTURES / "photo.png").convert("RGB"))
    inverted = 255 - np.clip(2 * source, 0, 255)
    expected = filter_references.gamma(Image.fromarray(np.uint8(np.rint(
        filter_references.pixelate(Image.fromarray(np.uint8(np.rint(inverted))), 10)))))
    result, _ = filtered(client, fixture_bytes("photo.png"), chain, preferred_format=PNG)
    distance = np.abs(filter_references.samples(result.convert("RGB")) - expected)
    assert np.mean(distance) < 1 and np.mean(distance > 3) < 0.01


def test_alpha_stays_as_it_is(client):
    source = np.asarray(Image.open(FIXTURES / "alpha.png").convert("RGBA"))
    for name in ("grayscale", "sepia", "gamma", "vignette", "sharpen", "threshold"):
        result, _ = filtered(client, fixture_bytes("alpha.png"), [(name, 1, {})])
        assert result.mode == "RGBA" and np.array_equal(np.asarray(result)[..., 3], source[..., 3])


def test_blur_takes_alpha_along_premultiplied(client):
    source = np.zeros((40, 60, 4), np.uint8)
    source[:, :30] = (255, 0, 0, 255)
    source[:, 30:] = (0, 255, 0, 0)
    file = io.BytesIO()
    Image.fromarray(source).save(file, "PNG")
    result = np.asarray(filtered(client, file.getvalue(), [("blur", 1, {"radius": 5})])[0])
    assert result[..., 1].max() == 0 and 0 < result[20, 32, 3] < 128
    assert (result[..., 0][result[..., 3] > 0] == 255).all()


@pytest.mark.parametrize("filters, field, mention", [
    ([("sepa", 1, {})], "configuration.filters[0].name", "sepia"),
    ([("sepia", 1, {}), ("blur", 1, {"radius": 51})], 'configuration.filters[1].parameters["radius"]', "50"),
    ([("blur", 1, {"sigma": 1})], 'configuration.filters[0].parameters["sigma"]', "radius"),
    ([("sepia", 1.01, {})], "configuration.filters[0].intensity", "between 0 and 1"),
    ([("sepia", float("nan"), {})], "configuration.filters[0].intensity", "between 0 and 1"),
    ([("sepia", 1, {})] * 33, "configuration.filters", "32"),
])
def test_what_does_not_exist_is_refused_and_what_exists_is_listed(client, filters, field, mention):
    with pytest.raises(grpc.RpcError) as caught:
        filtered(client, fixture_bytes("photo.png"), filters)
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT and mention in caught.value.details()
    violations = details(caught.value, error_details_pb2.BadRequest)[0].field_violations
    assert [v.field for v in violations] == [field]


def command(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([os.environ["IMAGE_WORKER"], *arguments], capture_output=True, text=True)


def test_the_commands(client, tmp_path):
    listed = command("filters").stdout
    assert {case[0] for case in filter_references.CASES} <= {line.split()[0] for line in listed.splitlines()}
    photo = str(FIXTURES / "photo.png")
    run = command("process", photo, "--filter", "sepia=0.5", "--filter", "blur=1,radius=3", "--out", str(tmp_path))
    assert run.returncode == 0, run.stderr
    here = Image.open(tmp_path / "photo.png")
    there, _ = filtered(client, fixture_bytes("photo.png"), [("sepia", 0.5, {}), ("blur", 1, {"radius": 3})])
    assert np.array_equal(np.asarray(here), np.asarray(there))
    inspected = command("inspect", photo, "--filter", "gamma", "--filter", "blur=0.5").stdout
    assert "levels(gamma) | blur(halo 12)" in inspected
    for bad in ("sepa", "sepia=x", "blur=1,radius", "blur=1,radius=3,radius=4", "blur=1,radius=99", "sepia=2"):
        assert command("process", photo, "--filter", bad, "--out", str(tmp_path)).returncode != 0, bad
