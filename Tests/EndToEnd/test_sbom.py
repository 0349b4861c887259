"""Tests of the versions that operators see."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from conftest import Worker, linked_libraries
from test_security import metrics_address, scrape

WORKER = os.environ["IMAGE_WORKER"]
ROOT = Path(__file__).parent.parent.parent


def versions() -> dict[str, str]:
    text = subprocess.run([WORKER, "--version", "--verbose"], capture_output=True, text=True, check=True).stdout
    return dict(line.split(" ") for line in text.splitlines())


def test_the_versions_of_the_libraries_are_those_of_the_packages():
    found = versions()
    short = subprocess.run([WORKER, "--version"], capture_output=True, text=True, check=True).stdout
    assert short.strip() == found.pop("image-worker")
    owners = json.loads(subprocess.run(
        [sys.executable, ROOT / "deploy" / "sbom.py", WORKER], capture_output=True, text=True, check=True).stdout)
    packages = {component["name"]: re.match(r"(?:\d+:)?(\d+(?:\.\d+){0,2})", component["version"])[1]
                for component in owners["components"] if component["bom-ref"].startswith("deb:")}
    prefixes = {"libjpeg-turbo": "libjpeg", "zlib": "zlib1g", "isa-l": "libisal", "lcms2": "liblcms2", "dav1d": "libdav1d",
                "pango": "libpango", "cairo": "libcairo", "harfbuzz": "libharfbuzz", "fontconfig": "libfontconfig"}
    assert len(found) >= 5
    for library, version in found.items():
        package = next(name for name in packages if re.match(prefixes.get(library, library) + r"[\d.-]*", name))
        assert version == packages[package] + ".0" * (2 - packages[package].count(".")), (library, package)


def test_the_bill_of_materials_lists_every_library_and_swift_package():
    text = subprocess.run(
        [sys.executable, ROOT / "deploy" / "sbom.py", WORKER], capture_output=True, text=True, check=True).stdout
    document = json.loads(text)
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.5")
    files = {Path(entry["value"]).name for component in document["components"]
             for entry in component.get("properties", []) if entry["name"] == "file"}
    files |= {component["name"] for component in document["components"] if component["bom-ref"].startswith("file:")}
    linked = {Path(path).name for path in re.findall(r"(/\S+) \(0x", linked_libraries())}
    assert files - linked <= {"libseccomp.a"} and linked <= files
    assert any(name.startswith("libseccomp.") for name in files) == ("libseccomp" in versions())
    names = {component["name"] for component in document["components"]}
    assert {"swift-nio-ssl", "swift-nio-http2", "grpc-swift-2", "swift-crypto"} <= names
    references = [component["bom-ref"] for component in document["components"]]
    assert len(references) == len(set(references)) and document["dependencies"][0]["dependsOn"] == references


def test_the_versions_of_the_libraries_are_a_metric():
    worker = Worker("--metrics-port", "0")
    values = scrape(f"http://{metrics_address(worker)}")
    for library, version in versions().items():
        if library != "image-worker":
            assert values[f'imageworker_library_info{{library="{library}",version="{version}"}}'] == 1
    assert worker.stop() == 0
