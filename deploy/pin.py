#!/usr/bin/env python3
"""Pins every Swift package to the version in deploy/swift-packages.txt, so that two builds are the same. Writes Package.resolved.

Use: pin.py, before `swift build --force-resolved-versions`; the Dockerfile does. pin.py --update writes the list from the
Package.resolved of the last build.

Package.resolved itself is not in the repository: it names commits, which mirrors of packages may number differently.
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSIONS = Path(__file__).with_name("swift-packages.txt")
RESOLVED = ROOT / "Package.resolved"


def commit(location: str, version: str) -> str:
    """Returns the commit of a version; of a tag with a message, the commit that it names."""
    tags = [version, f"v{version}"]
    lines = subprocess.run(
        ["git", "ls-remote", location, *(f"refs/tags/{tag}{suffix}" for tag in tags for suffix in ("", "^{}"))],
        capture_output=True, text=True, check=True).stdout.splitlines()
    found = {name: number for number, name in (line.split("\t") for line in lines)}
    for tag in tags:
        if number := found.get(f"refs/tags/{tag}^{{}}", found.get(f"refs/tags/{tag}")):
            return number
    sys.exit(f"error: {location} has no version {version}")


def pins() -> list[dict]:
    rows = [line.split() for line in VERSIONS.read_text().splitlines() if not line.startswith("#")]
    return [
        {"identity": location.rsplit("/", 1)[1].removesuffix(".git").lower(), "kind": "remoteSourceControl",
         "location": location, "state": {"revision": commit(location, version), "version": version}}
        for location, version in rows]


def update() -> None:
    rows = sorted(
        f"{pin['location']} {pin['state']['version']}" for pin in json.loads(RESOLVED.read_text())["pins"])
    VERSIONS.write_text("\n".join(["# Every Swift package of a build, written by deploy/pin.py --update.", *rows, ""]))


if __name__ == "__main__":
    if sys.argv[1:] == ["--update"]:
        update()
    elif sys.argv[1:]:
        sys.exit(__doc__)
    else:
        RESOLVED.write_text(json.dumps({"pins": pins(), "version": 2}, indent=2) + "\n")
