"""Tests of what `make dist` packs. The archive itself is built and tried by hand: deploy/try_release.sh."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from python_client import ROOT, run

DEPLOY = ROOT / "deploy"
WORKER = os.environ["IMAGE_WORKER"]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("man")
    subprocess.run(
        [sys.executable, DEPLOY / "manual.py", WORKER, folder], check=True, env={**os.environ, "SOURCE_DATE_EPOCH": "86400"})
    return {path.stem: path for path in folder.iterdir()}


def test_each_command_has_a_manual_page_with_its_options(pages):
    usage = subprocess.run([WORKER, "--help"], capture_output=True, text=True, check=True).stdout
    commands = re.findall(r"^  (\w+) ", usage.split("SUBCOMMANDS:")[1].split("\n\n")[0], re.M)
    assert set(pages) == {"image-worker", *(f"image-worker-{command}" for command in commands)} and len(pages) > 6
    for command in commands:
        page = pages[f"image-worker-{command}"].read_text().replace("\\", "")
        assert page.startswith(".TH ") and '"1970-01-02"' in page
        shown = subprocess.run([WORKER, command, "--help"], capture_output=True, text=True, check=True).stdout
        missing = [name for name in re.findall(r"^  (?:-\w, )?(--[\w-]+)", shown, re.M) if f"fB{name}fR" not in page]
        assert not missing


def test_the_manual_pages_have_no_faults(pages, tmp_path):
    if not shutil.which("groff"):
        pytest.skip("groff is not installed")

    def warnings(path):
        # As `man --warnings` does.
        return subprocess.run(
            ["groff", "-man", "-ww", "-Tutf8", "-Kutf8", path], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True).stderr

    for path in pages.values():
        assert not warnings(path)
    broken = tmp_path / "broken.1"
    broken.write_text(pages["image-worker"].read_text() + ".NOTHING\n")
    assert "NOTHING" in warnings(broken)


def test_the_shell_scripts_have_no_faults(tmp_path):
    run("shellcheck", *sorted(DEPLOY.glob("*.sh")), *sorted(Path(__file__).parent.glob("*.sh")), ROOT / "Examples/go/generate.sh")
    (tmp_path / "broken.sh").write_text("#!/bin/bash\nrm $1\n")
    assert subprocess.run(["shellcheck", tmp_path / "broken.sh"], stdout=subprocess.DEVNULL).returncode == 1


def test_the_bill_of_materials_lists_archives_that_are_linked_in():
    archive = subprocess.run(["gcc", "-print-file-name=libz.a"], capture_output=True, text=True, check=True).stdout.strip()
    document = json.loads(run(sys.executable, DEPLOY / "sbom.py", WORKER, archive))
    [zlib] = [component for component in document["components"] if component["name"] == "zlib1g-dev"]
    assert Path(archive).resolve() in [Path(entry["value"]).resolve() for entry in zlib["properties"] if entry["name"] == "file"]
    unknown = subprocess.run([sys.executable, DEPLOY / "sbom.py", WORKER, "/nowhere/libz.a"], capture_output=True, text=True)
    assert unknown.returncode == 1 and "/nowhere/libz.a" in unknown.stderr
