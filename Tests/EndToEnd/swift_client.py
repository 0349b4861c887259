"""Programs in Swift, compiled against the modules of the product ImageWorkerClient that the worker's build has left."""

import functools
import os
import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
# The modules of this package that the product consists of.
PRODUCT = {"ImageWorkerClient", "WorkerProtocol"}


def build_folder() -> Path:
    return Path(os.environ["IMAGE_WORKER"]).resolve().parent


def is_possible() -> bool:
    return shutil.which("swiftc") is not None and (build_folder() / "Modules/ImageWorkerClient.swiftmodule").exists()


@functools.cache
def objects() -> list[str]:
    """The objects of the product and of its dependencies, among those that the worker was linked from."""
    others = {path.name.replace("-", "_") for path in (ROOT / "Sources").iterdir()} - PRODUCT
    listed = (build_folder() / "image-worker.product/Objects.LinkFileList").read_text().splitlines()
    return [path for path in listed if not others & set(re.findall(r"/([^/]+)\.build/", path))]


@functools.cache
def module_maps() -> list[Path]:
    """What describes the C modules of a build, some of which Swift's modules import."""
    made = [path for path in build_folder().glob("*.build/module.modulemap") if not path.parent.name.endswith("-tool.build")]
    return [*made, *(ROOT / ".build/checkouts").glob("*/Sources/*/include/module.modulemap")]


def compiled(source: str, folder: Path) -> Path:
    """Compiles the `main.swift` of a program, as strictly as the current language mode is by default."""
    main, list_file, program = folder / "main.swift", folder / "objects.txt", folder / "program"
    main.write_text(source)
    list_file.write_text("\n".join(objects()))
    maps = [argument for path in module_maps() for argument in ("-Xcc", f"-fmodule-map-file={path}")]
    done = subprocess.run(
        ["swiftc", "-swift-version", "6", "-warnings-as-errors", "-I", build_folder() / "Modules", *maps, main, f"@{list_file}",
         "-lstdc++", "-lz", "-o", program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
    assert done.returncode == 0, done.stdout
    return program
