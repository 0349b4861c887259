#!/usr/bin/env python3
"""Opens JPEGs with Pillow, libvips and ImageMagick, none of which may warn:

    Tests/JPEGEncoder/run.sh 300 1 DIRECTORY && Tests/JPEGEncoder/readers.py DIRECTORY [READER...]

Prints the number of files that each reader opened. Pillow and libvips must return the same samples. A reader that is
not installed is named; if none is, the exit code is 77. The end-to-end tests call this with a few files.
"""

import pathlib
import shutil
import subprocess
import sys
import warnings

import numpy as np

warnings.simplefilter("error")


def pillow(path: pathlib.Path) -> np.ndarray:
    from PIL import Image

    with Image.open(path) as image:
        image.load()
        return np.asarray(image).reshape(image.height, image.width, -1)


def libvips(path: pathlib.Path) -> np.ndarray:
    import pyvips

    try:
        image = pyvips.Image.new_from_file(str(path), fail_on="warning")
        return image.numpy().reshape(image.height, image.width, -1)
    except pyvips.Error as error:
        raise ValueError(str(error).strip()) from error


def imagemagick(path: pathlib.Path) -> None:
    if IDENTIFY is None:
        raise ImportError
    result = subprocess.run([IDENTIFY, "-regard-warnings", "-verbose", str(path)], capture_output=True, text=True)
    if result.returncode != 0 or result.stderr:
        raise ValueError(result.stderr.strip())


IDENTIFY = shutil.which("identify-im6.q16") or shutil.which("identify")
READERS = {"pillow": pillow, "libvips": libvips, "imagemagick": imagemagick}
NOT_INSTALLED = 77


def open_all(name: str, files: list[pathlib.Path]) -> int | None:
    """Returns the number of defects; `None` if the reader is not installed."""
    opened = defects = 0
    for path in files:
        try:
            samples = READERS[name](path)
            opened += 1
            if samples is not None and not np.array_equal(samples, pillow(path)):
                raise ValueError("other samples than Pillow's")
        except ImportError:
            print(f"{name} is not installed")
            return None
        except (OSError, ValueError, Warning) as error:
            print(f"{path.name}: {name}: {error}")
            defects += 1
    print(f"{name}: {opened} of {len(files)}")
    return defects


def main() -> int:
    files = sorted(pathlib.Path(sys.argv[1]).glob("*.jpg"))
    defects = [open_all(name, files) for name in sys.argv[2:] or READERS]
    if not files or any(defects):
        return 1
    return NOT_INSTALLED if set(defects) == {None} else 0


if __name__ == "__main__":
    sys.exit(main())
