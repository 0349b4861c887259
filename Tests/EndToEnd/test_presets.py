"""Tests of presets from a file: at startup, at SIGHUP, and with --only-presets."""

import os
import signal
import subprocess

import grpc
import pytest
from conftest import Client, Worker, fixture_bytes, wait_until


def names(client: Client) -> list[str]:
    request = client.message("ListPresetsRequest")()
    return [preset.name for preset in client.call("ListPresets", "unary_unary")(request, timeout=60).presets]


def test_a_file_of_presets_is_read_again_at_sighup(tmp_path):
    path = tmp_path / "presets.yaml"
    path.write_text("presets:\n  card: {max_width: 20, preferred_format: png}\n")
    worker = Worker("--presets", str(path), "--only-presets")
    client = Client(worker)
    built_in = names(client)[:-1]
    assert "default" in built_in and names(client)[-1] == "card"
    assert next(client.process(fixture_bytes("photo.png"), "card")).header.width == 20
    with pytest.raises(grpc.RpcError) as caught:
        list(client.process(fixture_bytes("photo.png"), "card", max_width=10))
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT and "only presets" in caught.value.details()

    path.write_text("presets:\n  card: {max_width: 30, preferred_format: png}\n  other: {max_width: 1}\n")
    worker.process.send_signal(signal.SIGHUP)
    assert wait_until(lambda: names(client) == [*built_in, "card", "other"])
    assert next(client.process(fixture_bytes("photo.png"), "card")).header.width == 30

    path.write_text("presets:\n  card:\n    max_width: 30\n    max_wdith: 3\n")
    worker.process.send_signal(signal.SIGHUP)
    assert wait_until(lambda: any("presets.yaml:4: presets.card.max_wdith" in line for line in worker.log))
    assert names(client) == [*built_in, "card", "other"]
    assert worker.stop() == 0, "".join(worker.log)


def test_a_bad_file_of_presets_stops_the_start(tmp_path):
    path = tmp_path / "presets.yaml"
    path.write_text("presets:\n  card:\n    compression_quality: 3\n")
    run = subprocess.run(
        [os.environ["IMAGE_WORKER"], "serve", "--port", "0", "--presets", path], capture_output=True, text=True,
        timeout=60)
    assert run.returncode != 0 and "presets.yaml:3: presets.card.compression_quality" in run.stderr, run.stderr
    run = subprocess.run(
        [os.environ["IMAGE_WORKER"], "serve", "--port", "0", "--presets", tmp_path / "none.yaml"], capture_output=True,
        text=True, timeout=60)
    assert run.returncode != 0 and "none.yaml" in run.stderr, run.stderr
