#!/usr/bin/env python3
"""Opens JPEGs with Pillow, libvips and ImageMagick, none of which may warn:

    Tests/JPEGEncoder/run.sh 300 1 DIRECTORY && Tests/JPEGEncoder/readers.py DIRECTORY

Prints the number of files that each reader opened. A reader that is not installed is named. Pillow and libvips must
return the same samples.
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

    image = pyvips.Image.new_from_file(str(path), fail_on="warning")
    return image.numpy().reshape(image.height, image.width, -1)


def imagemagick(path: pathlib.Path) -> None:
    if IDENTIFY is None:
        raise ImportError
    result = subprocess.run([IDENTIFY, "-regard-warnings", "-verbose", str(path)], capture_output=True, text=True)
    if result.returncode != 0 or result.stderr:
        raise ValueError(result.stderr.strip())


IDENTIFY = shutil.which("identify-im6.q16") or shutil.which("identify")


def main() -> int:
    files = sorted(pathlib.Path(sys.argv[1]).glob("*.jpg"))
    defects = 0
    for reader in (pillow, libvips, imagemagick):
        opened = 0
        try:
            for path in files:
                try:
                    samples = reader(path)
                    opened += 1
                    if samples is not None and not np.array_equal(samples, pillow(path)):
                        raise ValueError("other samples than Pillow's")
                except (OSError, ValueError, Warning) as error:
                    print(f"{path.name}: {reader.__name__}: {error}")
                    defects += 1
            print(f"{reader.__name__}: {opened} of {len(files)}")
        except ImportError:
            print(f"{reader.__name__}: not installed")
    return defects > 0 or not files


if __name__ == "__main__":
    sys.exit(main())
