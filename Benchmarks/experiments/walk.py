"""Counts the functions and the files that one image passes, from the socket to the last chunk.

Use: walk.py [--image FILE] [--batch] [--list] (with IMAGE_WORKER set to a build that counts its functions' calls:
`deploy/swift.sh build --scratch-path .build-walk --product image-worker -Xswiftc -profile-generate -Xswiftc
-profile-coverage-mapping`)

The image is a JPEG that becomes a smaller JPEG, without isolation and without a cached result. One worker serves some
images, another one more of them: a function is on the way if every further image calls it at least once. Functions are
those declared with `func`; initializers, properties and closures count apart, closures as part of the function that they
stand in. Generated code, packages and C do not count. Needs a Swift toolchain's llvm-profdata and llvm-cov.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "Tests" / "EndToEnd"))
from conftest import Client, Worker, fixture_bytes  # noqa: E402

WARM, FURTHER = 5, 20
TOOLCHAIN = Path(shutil.which("swift")).resolve().parent


def serve(image: bytes, count: int, is_batch: bool, profile: Path):
    """Serves images one after the other in a worker that writes a profile."""
    worker = Worker("--isolation", "none", "--threads", "1", environment={"LLVM_PROFILE_FILE": str(profile)})
    client = Client(worker)
    for number in range(count):
        configuration = {"max_width": 60 + number, "always_encode": True}  # none is in the cache
        if is_batch:
            start = client.start("a")
            start.start.configuration.MergeFrom(client.message("ProcessingConfiguration")(**configuration))
            list(client.batch(iter([start, client.chunk("a", image), client.end("a")])))
        else:
            list(client.process(image, **configuration))
    worker.process.send_signal(signal.SIGTERM)
    assert worker.process.wait(60) == 0


def calls(program: str, image: bytes, count: int, is_batch: bool) -> dict[tuple[str, str, int, int], int]:
    """Returns how often each function was called, by file, symbol, and its first and last line."""
    with tempfile.TemporaryDirectory() as folder:
        raw, merged = Path(folder, "raw"), Path(folder, "merged")
        serve(image, count, is_batch, raw)
        subprocess.run([TOOLCHAIN / "llvm-profdata", "merge", "-o", merged, raw], check=True)
        exported = subprocess.run(
            [TOOLCHAIN / "llvm-cov", "export", "-format=text", f"-instr-profile={merged}", program], check=True,
            capture_output=True, text=True).stdout
    found = {}
    for function in json.loads(exported)["data"][0]["functions"]:
        file, regions = function["filenames"][0], function["regions"]
        symbol = function["name"].rsplit(":", 1)[-1]
        found[file, symbol, regions[0][0], regions[0][2]] = function["count"]
    return found


def declaration(lines: list[str], first: int) -> str:
    """Returns the declaration whose body begins in a line."""
    line = first - 1
    while line > 0 and not re.search(r"\b(func|init|var|subscript|deinit|let|get|set)\b|^\s*}", lines[line]):
        line -= 1
    return lines[line].strip()


def on_the_way(program: str, image: bytes, is_batch: bool) -> dict[str, dict[str, dict[bool, set[str]]]]:
    """Returns the declarations by module, file, and whether each is a function."""
    before = calls(program, image, WARM, is_batch)
    after = calls(program, image, WARM + FURTHER, is_batch)
    sources = str(ROOT / "Sources") + "/"
    by_file = defaultdict(list)
    for (file, symbol, first, last), count in after.items():
        is_ours = file.startswith(sources) and "/Generated/" not in file
        if is_ours and count - before.get((file, symbol, first, last), 0) >= FURTHER:
            by_file[file].append((first, last))
    modules = defaultdict(dict)
    for file, ranges in by_file.items():
        lines = Path(file).read_text().splitlines()
        outer = [f for f in ranges if not any(o[0] <= f[0] and f[1] <= o[1] and o != f for o in ranges)]
        kinds = {True: set(), False: set()}
        for first, _ in outer:
            text = declaration(lines, first)
            kinds[bool(re.search(r"\bfunc\b", text))].add(text)
        name = file.removeprefix(sources)
        modules[name.split("/")[0]][name] = kinds
    return modules


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--image", type=Path, help="default: a photograph of the tests")
    parser.add_argument("--batch", action="store_true", help="an item of a batch instead of a call")
    parser.add_argument("--list", action="store_true", help="print every function")
    arguments = parser.parse_args()
    image = arguments.image.read_bytes() if arguments.image else fixture_bytes("photo-420.jpg")
    modules = on_the_way(str(Path(os.environ["IMAGE_WORKER"]).resolve()), image, arguments.batch)
    print(f"{'module':<20} {'functions':>9} {'in files':>8} {'others':>6} {'all files':>9}")
    sums = [0] * 4
    for module, files in sorted(modules.items()):
        counts = [
            sum(len(kinds[True]) for kinds in files.values()), sum(bool(kinds[True]) for kinds in files.values()),
            sum(len(kinds[False]) for kinds in files.values()), len(files)]
        sums = [a + b for a, b in zip(sums, counts)]
        print(f"{module:<20} {counts[0]:9} {counts[1]:8} {counts[2]:6} {counts[3]:9}")
        for file, kinds in sorted(files.items()) if arguments.list else ():
            print(f"  {file}", *sorted(kinds[True]), sep="\n    ")
    print(f"{'all':<20} {sums[0]:9} {sums[1]:8} {sums[2]:6} {sums[3]:9}")


if __name__ == "__main__":
    main()
