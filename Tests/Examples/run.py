#!/usr/bin/env python3
"""Builds packages outside of this repository that use ImageWorkerKit, as its users do, and makes a thumbnail with each.

They are the package of the article "From nothing to the first thumbnail" and those in Examples. Each begins with
`swift package init`; in its manifest only the path of this repository is replaced, and no trait is asked for, so that the engine
without optional libraries is tested, too. Prints what each step takes.

Tests/EndToEnd/python.sh Tests/Examples/run.py [debug | release]
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
ARTICLE = ROOT / "Sources/ImageWorkerKit/Documentation.docc/FirstThumbnail.md"
EXAMPLES = ROOT / "Examples"
FIXTURES = ROOT / "Tests/TestSupport/Fixtures"
PHOTO = FIXTURES / "photo-420.jpg"


def run(*command: object, folder: Path) -> str:
    """Returns what a command prints; ends this program if it fails."""
    done = subprocess.run(
        [str(part) for part in command], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout[-8000:]}")
    return done.stdout


def require(condition: bool, what: object) -> None:
    if not condition:
        sys.exit(f"Tests/Examples: {what}")


class Package:
    """A package in a folder of its own."""

    def __init__(self, name: str, folder: Path, configuration: str) -> None:
        self.name, self.folder, self.configuration = name, folder / name, configuration
        self.folder.mkdir()
        run("swift", "package", "init", "--type", "executable", "--name", name, folder=self.folder)
        # All packages build the same modules, which are compiled once.
        self.options = ["-c", configuration, "--scratch-path", folder / "build"]

    def build(self, manifest: str, sources: dict[str, str]) -> None:
        """Builds an executable with the package's name from these files."""
        manifest, count = re.subn(r'path: "\.\./[^"]*"', f'path: "{ROOT}", traits: []', manifest)
        require(count == 1, f"the manifest of {self.name} has no path of this repository")
        (self.folder / "Package.swift").write_text(manifest)
        shutil.rmtree(self.folder / "Sources")
        target = self.folder / "Sources" / self.name
        target.mkdir(parents=True)
        for file, text in sources.items():
            (target / file).write_text(text)
        begun = time.monotonic()
        output = run("swift", "build", *self.options, folder=self.folder)
        require(f"Sources/{self.name}/" not in output, output)  # as in a warning
        self.program = Path(run("swift", "build", *self.options, "--show-bin-path", folder=self.folder).strip()) / self.name
        size = self.program.stat().st_size / 1e6
        print(f"{self.name}: built in {time.monotonic() - begun:.0f} s ({self.configuration}), {size:.1f} MB", flush=True)

    def call(self, *arguments: object) -> str:
        begun = time.monotonic()
        output = run(self.program, *arguments, folder=self.folder)
        print(f"{self.name}: {output.strip()}; {time.monotonic() - begun:.3f} s with its start", flush=True)
        return output


def first_thumbnail(package: Package) -> None:
    manifest, program = re.findall(r"```swift\n(.*?)```", ARTICLE.read_text(), re.DOTALL)
    package.build(manifest, {"FirstThumbnail.swift": program})
    output = package.call(PHOTO)
    require(re.match(r"jpeg 240x160 .* to jpeg ", output) is not None, output)
    require((package.folder / "thumbnail.jpg").read_bytes()[:2] == b"\xff\xd8", "thumbnail.jpg is not a JPEG")


def build_example(package: Package) -> None:
    folder = EXAMPLES / package.name
    sources = (folder / "Sources" / package.name).glob("*.swift")
    package.build((folder / "Package.swift").read_text(), {path.name: path.read_text() for path in sources})


def thumbnail_command(package: Package) -> bytes:
    build_example(package)
    package.call(PHOTO, "small.webp", "max_width=100", "preferred_format=webp")
    without_optional_libraries(package)
    return (package.folder / "small.webp").read_bytes()


def pixels(path: Path) -> bytes:
    return Image.open(path).convert("RGBA").tobytes()


def without_optional_libraries(package: Package) -> None:
    """Requires that no such library is loaded, and what the engine does in place of them."""
    if sys.platform == "linux":
        loaded = run("ldd", package.program, folder=package.folder)
        require(not re.search("lcms|isal|heif|tiff|jxl|pango", loaded), loaded)
    # With zlib alone: rows that are inflated and deflated are those that they were.
    for name in ("photo.png", "pngsuite-basi6a08.png", "palette.png"):
        for level in (1, 9):
            package.call(
                FIXTURES / name, "same.png", "preferred_format=png", "never_larger=false", f"png.compression_level={level}")
            require(pixels(package.folder / "same.png") == pixels(FIXTURES / name), f"{name} has other pixels")


@contextmanager
def served(program: Path) -> Iterator[str]:
    """Runs the server on a free port and returns its address."""
    process = subprocess.Popen([program, "0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        for line in process.stdout:
            if address := re.search(r"listening on (127\.0\.0\.1:\d+)", line):
                yield f"http://{address[1]}"
                break
        else:
            sys.exit("thumbnail-server does not listen")
    finally:
        process.terminate()
        process.wait(timeout=60)


def post(url: str, body: bytes) -> tuple[int, str, bytes]:
    """Returns the status, the content type and the body of the answer."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body), timeout=120) as response:
            return response.status, response.headers["content-type"], response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers["content-type"], error.read()


def thumbnail_server(package: Package, expected: bytes) -> None:
    build_example(package)
    with served(package.program) as address:
        begun = time.monotonic()
        answer = post(f"{address}/thumbnail?max_width=100&preferred_format=webp", PHOTO.read_bytes())
        print(f"{package.name}: the first thumbnail in {time.monotonic() - begun:.3f} s", flush=True)
        require(answer == (200, "image/webp", expected), (answer[:2], "another result than that of the command"))
        for query, body, status, message in [
            ("max_width=0", PHOTO.read_bytes(), 400, "max_width is 0; it must be between 1 and 65500"),
            ("preset=larg", PHOTO.read_bytes(), 400, "UNKNOWN_PRESET"),
            ("", b"no image", 415, "UNKNOWN_FORMAT"),
            ("", PHOTO.read_bytes()[:3000], 422, "TRUNCATED_IMAGE"),
        ]:
            found = post(f"{address}/thumbnail?{query}", body)
            require(found[0] == status and message in json.loads(found[2])["error"]["message"], found)


def main() -> None:
    configuration = sys.argv[1] if len(sys.argv) > 1 else "debug"
    with tempfile.TemporaryDirectory(prefix="image-worker-examples-") as name:
        folder = Path(name)
        first_thumbnail(Package("first-thumbnail", folder, configuration))
        small = thumbnail_command(Package("thumbnail-command", folder, configuration))
        thumbnail_server(Package("thumbnail-server", folder, configuration), small)


if __name__ == "__main__":
    main()
