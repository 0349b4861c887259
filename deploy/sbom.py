#!/usr/bin/env python3
"""Writes a software bill of materials of a built worker to standard output, as CycloneDX 1.5 in JSON.

It lists the libraries that the program loads and those that are linked in, with the Debian packages that own them, and the
Swift packages that are compiled in, with the versions of the last build. Libraries that are linked in are arguments, or,
without arguments, what the program reports.

Use: sbom.py PROGRAM [STATIC_LIBRARY...]
"""

import json
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).resolve().parent.parent
# Libraries that may be linked in, with the Debian package of their static library.
STATIC_LIBRARIES = {"libseccomp": "libseccomp-dev"}


def output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def libraries(program: str) -> list[Path]:
    """Returns the files of the shared libraries that the program loads."""
    return [Path(path) for path in re.findall(r"(?:=> |^\s*)(/\S+) \(0x", output("ldd", program), re.M)]


def owners(files: list[Path]) -> dict[Path, str]:
    """Returns the Debian package of each file that one has, by any of its paths: /lib is a link to /usr/lib."""
    paths = {path: file for file in files
             for path in (str(file), str(file.resolve()), re.sub("^/usr", "", str(file.resolve())))}
    # One call for all, as each reads the lists of all packages. It fails where one of the paths has none.
    found = subprocess.run(["dpkg", "-S", *paths], capture_output=True, text=True).stdout if paths else ""
    lines = (line.rsplit(": ", 1) for line in found.splitlines())
    return {paths[path]: package.split(", ")[0] for package, path in lines if path in paths}


def debian_component(package: str, files: list[Path]) -> dict:
    fields = "${Package}\t${Version}\t${Architecture}\t${source:Package}"
    name, version, architecture, source = output("dpkg-query", "-W", "-f", fields, package).split("\t")
    return {
        "type": "library", "bom-ref": f"deb:{name}", "name": name, "version": version,
        "purl": f"pkg:deb/debian/{name}@{quote(version, safe='')}?arch={architecture}",
        "properties": [{"name": "debian:source", "value": source}]
        + [{"name": "file", "value": str(file)} for file in sorted(files)],
    }


def static_libraries(program: str, archives: list[Path], loaded: list[Path]) -> dict[str, list[Path]]:
    """Returns the files of libraries that are linked in, by Debian package."""
    if archives:
        packages, files = owners(archives), {}
        for archive in archives:
            if archive not in packages:
                sys.exit(f"error: no package has {archive}")
            files.setdefault(packages[archive], []).append(archive)
        return files
    names = [line.split(" ")[0] for line in output(program, "--version", "--verbose").splitlines()]
    return {
        package: [Path(path) for path in output("dpkg", "-L", package).splitlines() if path.endswith(".a")]
        for name, package in STATIC_LIBRARIES.items()
        if name in names and not any(library.name.startswith(name) for library in loaded)
    }


def debian_components(program: str, archives: list[Path]) -> list[dict]:
    loaded = libraries(program)
    files = static_libraries(program, archives, loaded)
    packages, unowned = owners(loaded), []
    for library in loaded:
        if library in packages:
            files.setdefault(packages[library], []).append(library)
        else:
            unowned.append({"type": "library", "bom-ref": f"file:{library}", "name": library.name})
    return [debian_component(package, files[package]) for package in sorted(files)] + unowned


def swift_components() -> list[dict]:
    components = []
    for pin in json.loads((ROOT / "Package.resolved").read_text())["pins"]:
        version, location = pin["state"].get("version", pin["state"]["revision"]), pin["location"].removesuffix(".git")
        name = location.removeprefix("https://")
        components.append({
            "type": "library", "bom-ref": f"swift:{name}", "name": pin["identity"], "version": version,
            "purl": f"pkg:swift/{name}@{version}", "externalReferences": [{"type": "vcs", "url": location}],
        })
    return components


def main() -> None:
    program = sys.argv[1]
    version = output(program, "--version").strip()
    components = debian_components(program, [Path(path) for path in sys.argv[2:]]) + swift_components()
    worker = {"type": "application", "bom-ref": "image-worker", "name": "image-worker", "version": version}
    print(json.dumps({
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "metadata": {"component": worker},
        "components": components,
        "dependencies": [{"ref": "image-worker", "dependsOn": [component["bom-ref"] for component in components]}],
    }, indent=2))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main()
