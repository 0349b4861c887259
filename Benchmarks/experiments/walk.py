"""Counts the functions and the files that one image passes, from the socket to the last chunk.

Use: walk.py [--image FILE] [--batch] [--list] (with IMAGE_WORKER set to a build that counts its functions' calls:
`swift build --scratch-path .build-walk -Xswiftc -profile-generate -Xswiftc -profile-coverage-mapping`)

The image is a JPEG that becomes a smaller JPEG, without isolation and without a cached result. One worker serves some
images, another one more of them: a function is on the way if every further image calls it at least once. Accessors and
closures count as parts of the function or property in whose source they are. Generated code, packages and C do not
count. Needs llvm-profdata and llvm-cov of a Swift toolchain.
"""

import argparse
import json
import os
import re
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


def serve(image: bytes, count: int, is_batch: bool, profile: Path):
    """Serves images one after the other in a worker that writes a profile."""
    worker = Worker("--threads", "1", environment={"LLVM_PROFILE_FILE": str(profile)})
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
        subprocess.run(["llvm-profdata", "merge", "-o", merged, raw], check=True)
        exported = subprocess.run(
            ["llvm-cov", "export", "-format=text", f"-instr-profile={merged}", program], check=True,
            capture_output=True, text=True).stdout
    found = {}
    for function in json.loads(exported)["data"][0]["functions"]:
        file, regions = function["filenames"][0], function["regions"]
        symbol = function["name"].rsplit(":", 1)[-1]
        found[file, symbol, regions[0][0], regions[0][2]] = function["count"]
    return found


def on_the_way(program: str, image: bytes, is_batch: bool) -> dict[str, dict[str, set[str]]]:
    """Returns the names of functions by module and file."""
    before = calls(program, image, WARM, is_batch)
    after = calls(program, image, WARM + FURTHER, is_batch)
    sources = str(ROOT / "Sources") + "/"
    by_file = defaultdict(list)
    for (file, symbol, first, last), count in after.items():
        is_ours = file.startswith(sources) and "/Generated/" not in file
        if is_ours and count - before.get((file, symbol, first, last), 0) >= FURTHER:
            by_file[file.removeprefix(sources)].append((first, last, symbol))
    modules = defaultdict(dict)
    for file, functions in by_file.items():
        # A function within the lines of another one is a part of it.
        outer = [f for f in functions if not any(o[0] <= f[0] and f[1] <= o[1] and o[:2] != f[:2] for o in functions)]
        names = subprocess.run(["swift-demangle", "--compact", "--simplified"], input="\n".join(f[2] for f in outer),
                               capture_output=True, text=True, check=True).stdout.splitlines()
        modules[file.split("/")[0]][file] = {re.sub(r"\.(getter|setter|modify|read)\b.*", "", name) for name in names}
    return modules


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--image", type=Path, help="default: a photograph of the tests")
    parser.add_argument("--batch", action="store_true", help="an item of a batch instead of a call")
    parser.add_argument("--list", action="store_true", help="print every function")
    arguments = parser.parse_args()
    image = arguments.image.read_bytes() if arguments.image else fixture_bytes("photo-420.jpg")
    modules = on_the_way(str(Path(os.environ["IMAGE_WORKER"]).resolve()), image, arguments.batch)
    print(f"{'module':<20} {'functions':>9} {'files':>6}")
    for module, files in sorted(modules.items()):
        print(f"{module:<20} {sum(map(len, files.values())):9} {len(files):6}")
        for file, functions in sorted(files.items()) if arguments.list else ():
            print(f"  {file}", *sorted(functions), sep="\n    ")
    total = sum(len(functions) for files in modules.values() for functions in files.values())
    print(f"{'all':<20} {total:9} {sum(map(len, modules.values())):6}")


if __name__ == "__main__":
    main()
