"""The request that the playground's page hands over, in each of its forms, gives the bytes of the page's result."""

import os
import re
import shutil
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

import swift_client
from playground import DONE, browser, image_file, needs_chromium, opened, playground  # noqa: F401
from python_client import environment, python, run, tools, wheel  # noqa: F401

ROOT = Path(__file__).parent.parent.parent
needs_swift = pytest.mark.skipif(
    not swift_client.is_possible(), reason="the worker was not built here, or swiftc is not installed")

STAND_IN = """#!/bin/sh
# A stand-in for grpcurl where that is not installed: the same call by buf curl.
while [ $# -gt 2 ]; do shift; done
exec buf curl --http2-prior-knowledge --protocol grpc -d @- "http://$1/$2"
"""


# Fields of every type, and several of their shapes.
REQUEST = """playground.change({preset: 'upload', overrides: {
      max_width: 400, max_height: 300, resize_mode: 'RESIZE_MODE_FILL', focus_point: {x: 0.2, y: 0.75}, pad: true,
      crop: {unit: 'RECT_UNIT_FRACTIONS', x: 0, y: 0.1, width: 1, height: 0.8}, background: {red: 12, green: 200, blue: 0},
      rotation: 90, flip_horizontal: true, compression_quality: 0.55, metadata: 'METADATA_POLICY_KEEP_COPYRIGHT',
      filters: [{name: 'sharpen', intensity: 0.75, parameters: {radius: 1.5}}, {name: 'sepia', intensity: 0.4, parameters: {}}],
      jpeg: {progressive: true, chroma_subsampling: 'CHROMA_SUBSAMPLING_444'}, allow_upscale: false}})"""


class Tuned:
    """A page with a tuned result, of which everything is copied by a click."""

    def __init__(self, browser, playground, image_file: Path):
        self.page = opened(browser, playground, image_file)
        self.page.run(REQUEST)
        self.page.wait(DONE)
        self.expected = bytes(self.page.run(
            "playground.variant.result.blob.arrayBuffer().then((buffer) => [...new Uint8Array(buffer)])"))
        assert Image.open(BytesIO(self.expected)).size == (400, 300)
        self.page.call("Browser.grantPermissions", origin=f"http://{playground.authority}",
                       permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])

    def copied(self, form: str) -> str:
        self.page.click(f"#languages [data-value={form}]")
        self.page.run("document.getElementById('toast').textContent = ''")
        self.page.click("#copy")
        self.page.wait("document.getElementById('toast').textContent === 'Copied.'")
        return self.page.run("navigator.clipboard.readText()")

    def close(self):
        assert self.page.problems == []
        self.page.close()


@pytest.fixture
def quoted_file(image_file, tmp_path):  # noqa: F811
    """An image whose name needs care in each language."""
    return Path(shutil.copy(image_file, tmp_path / "it's \"a\" bird, \\(1) $HOME.jpg"))


@needs_chromium
def test_what_is_copied_gives_the_same_bytes(browser, playground, python, quoted_file, tmp_path):  # noqa: F811
    tuned = Tuned(browser, playground, quoted_file)
    expected, copied = tuned.expected, tuned.copied
    if not shutil.which("grpcurl"):
        (tmp_path / "grpcurl").write_text(STAND_IN)
        (tmp_path / "grpcurl").chmod(0o755)
    path = f"{tmp_path}:{Path(os.environ['IMAGE_WORKER']).parent}:{os.environ['PATH']}"
    for form in ["grpcurl", "Command"]:
        if form == "grpcurl" and not shutil.which("jq"):
            continue
        run("bash", "-euo", "pipefail", "-c", copied(form), cwd=tmp_path, env=environment(PATH=path))
    assert not shutil.which("jq") or (tmp_path / "result.jpg").read_bytes() == expected
    assert (tmp_path / "results" / quoted_file.name).read_bytes() == expected
    (tmp_path / "result.jpg").unlink(missing_ok=True)

    (tmp_path / "code.py").write_text(copied("Python"))
    run(python, "code.py", cwd=tmp_path, env=environment())
    assert (tmp_path / "result.jpg").read_bytes() == expected

    (tmp_path / "presets.yaml").write_text(copied("Preset"))
    run(os.environ["IMAGE_WORKER"], "process", quoted_file.name, "--presets", "presets.yaml", "--preset", "tuned", "--out",
        "tuned", cwd=tmp_path, env=environment())
    assert (tmp_path / "tuned" / quoted_file.name).read_bytes() == expected
    tuned.close()


@needs_chromium
@needs_swift
def test_the_copied_swift_compiles_and_gives_the_same_bytes(browser, playground, quoted_file, tmp_path):  # noqa: F811
    tuned = Tuned(browser, playground, quoted_file)
    run(swift_client.compiled(tuned.copied("Swift"), tmp_path), cwd=tmp_path)
    assert (tmp_path / "result.jpg").read_bytes() == tuned.expected
    tuned.close()


@needs_chromium
def test_the_copied_swift_spells_every_field_as_the_generated_code(browser, playground):  # noqa: F811
    page = browser.open(f"http://{playground.authority}/")
    page.wait("globalThis.playground !== undefined")
    # Each field of each message that a configuration consists of, and each choice of each enum.
    names = page.run("""import('/handover.js').then(({swiftChoice, swiftName}) => {
      const {contract} = playground;
      const [fields, choices] = [new Set(), new Set()];
      const visit = (message) => {
        for (const field of contract.fieldsOf(message)) {
          fields.add(swiftName(field.name));
          for (const {word} of contract.enums[field.typeName] ?? []) choices.add(swiftChoice(field, word));
          if (field.type === 'message') visit(field.typeName);
        }
      };
      visit('ProcessingConfiguration');
      return [[...fields], [...choices]];
    })""")
    generated = (ROOT / "Sources/WorkerProtocol/Generated/imageworker_v1_image_worker.pb.swift").read_text()
    fields, choices = (set(found) for found in names)
    assert len(fields) > 40 and len(choices) > 25
    assert fields <= set(re.findall(r"public var (\w+):", generated))
    assert choices <= set(re.findall(r"^  case (\w+) // = ", generated, re.M))
    page.close()
