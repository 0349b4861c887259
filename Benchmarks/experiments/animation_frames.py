"""Compares every frame of animations, unresized, with the frames that other programs show.

Processes each animation to lossless WebP and to APNG, and compares all frames with those of the original: of a WebP with
libwebp's own animation decoder (in Pillow), of a GIF with Pillow and ImageMagick, of an APNG with Pillow, ffmpeg and
the specification. A frame is right if it equals that of one of these. Results are also checked by webpinfo and pngcheck, and a GIF
that was encoded anew by gifsicle.

Usage: animation_frames.py [--seeds N] [--keep DIRECTORY] [FILE or DIRECTORY]...

Directories are searched for .gif, .png, .apng and .webp. In addition, N animations of each kind are generated (40 by
default) with gifsicle, img2webp, webpmux, gif2webp, apngasm, ffmpeg and Pillow. Needs IMAGE_WORKER, these programs,
and Pillow. Prints each disagreement, then a summary, and fails if there is one.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import GifImagePlugin, Image, ImageChops

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "Tests" / "EndToEnd"))
import apng_reference  # noqa: E402
from frame_sequences import merged  # noqa: E402

GifImagePlugin.LOADING_STRATEGY = GifImagePlugin.LoadingStrategy.RGB_ALWAYS
WORKER = os.environ.get("IMAGE_WORKER", "image-worker")


def run(*command, **options) -> subprocess.CompletedProcess:
    return subprocess.run([str(part) for part in command], capture_output=True, timeout=120, **options)


def visible(image: Image.Image) -> Image.Image:
    """The image without the colors of transparent pixels."""
    alpha = image.getchannel("A")
    flat = Image.new("RGBA", image.size)
    flat.paste(image, mask=alpha.point(lambda value: 255 if value else 0))
    return flat


def opaque(frames: list) -> list:
    """The frames on black, as Pillow shows a WebP without the flag for alpha."""
    def flat(image):
        black = Image.new("RGBA", image.size, (0, 0, 0, 255))
        black.paste(image, mask=image.getchannel("A"))
        return black

    return [(flat(image), duration) for image, duration in frames]


def of_pillow(path: Path) -> list:
    frames = []
    with Image.open(path) as image:
        first = 1 if getattr(image, "default_image", False) else 0  # an image that is no frame
        for index in range(first, getattr(image, "n_frames", 1)):
            image.seek(index)
            image.load()
            frames.append((visible(image.convert("RGBA")), image.info.get("duration") or 0))
    return frames


def of_magick(path: Path, durations: list) -> list:
    with tempfile.TemporaryDirectory() as folder:
        run("convert", path, "-coalesce", f"{folder}/%05d.png")
        images = [visible(Image.open(name).convert("RGBA")) for name in sorted(Path(folder).glob("*.png"))]
    return list(zip(images, durations)) if len(images) == len(durations) else []


def of_ffmpeg(path: Path, durations: list) -> list:
    with tempfile.TemporaryDirectory() as folder:
        run("ffmpeg", "-v", "error", "-f", "apng", "-i", path, "-vsync", "passthrough", "-pix_fmt", "rgba",
            f"{folder}/%05d.png")
        images = [visible(Image.open(name).convert("RGBA")) for name in sorted(Path(folder).glob("*.png"))]
    return list(zip(images, durations)) if len(images) == len(durations) else []


def difference(ours: list, theirs: list, tolerance: int) -> str | None:
    """The first difference of two animations."""
    ours, theirs = merged(ours), merged(theirs)
    if len(ours) != len(theirs):
        return f"{len(ours)} frames instead of {len(theirs)}"
    for index, ((one, took), (other, takes)) in enumerate(zip(ours, theirs)):
        if one.size != other.size:
            return f"frame {index} has {one.size} instead of {other.size}"
        largest = max(high for _, high in ImageChops.difference(one, other).getextrema())
        if largest > tolerance:
            return f"frame {index} differs by {largest}"
        if abs(took - takes) >= 1:
            return f"frame {index} lasts {took} ms instead of {takes}"
    return None


def starts(frames: list) -> list:
    """The frames that are shown for a time, with the times at which they appear."""
    found, now = [], 0
    for image, duration in frames:
        if duration:
            found.append((now, image))
        now += duration
    return found


def visible_difference(ours: list, theirs: list) -> str | None:
    """The first difference of what is not transparent, where Pillow shows a background color."""
    shown = starts(ours)
    for now, other in starts(theirs):
        one = [image for start, image in shown if start <= now][-1]
        if one.size != other.size:
            return f"{one.size} instead of {other.size}"
        masked = Image.new("RGBA", other.size)
        masked.paste(other, mask=one.getchannel("A").point(lambda value: 255 if value else 0))
        if ImageChops.difference(one, masked).getbbox(alpha_only=False):
            return f"the frame at {now} ms differs"
    return None


def checked(path: Path) -> str | None:
    """The complaint of the format's own tools."""
    commands = {".webp": ["webpinfo", "-quiet"], ".png": ["pngcheck", "-q"], ".gif": ["gifsicle", "--info"]}
    found = run(*commands[path.suffix], path)
    text = (found.stderr if path.suffix == ".gif" else found.stdout).decode(errors="replace").strip()
    return text if found.returncode != 0 or (text and path.suffix != ".png" and "rror" in text) else None


def compare(path: Path, folder: Path) -> list:
    """What is wrong with the results of a file; `None` for each that is right."""
    theirs = of_pillow(path)
    with Image.open(path) as image:
        is_still = len(theirs) < 2 and not getattr(image, "default_image", False)
    if is_still:
        return []
    durations = [duration for _, duration in theirs]
    references = [theirs]
    with Image.open(path) as image:
        is_opaque = path.suffix == ".webp" and image.mode == "RGB"
    found = []
    for extension, options in ((".webp", ["--lossless"]), (".png", []), (".gif", ["--always-encode"])):
        if extension == ".gif" and path.suffix != ".gif":
            continue
        target = folder / f"result{extension}"
        made = run(WORKER, "process", path, "--max-frames", "0", "--quality", "1", *options, "--out", target)
        if made.returncode != 0:
            found.append(f"{extension}: {made.stderr.decode(errors='replace').strip().splitlines()[:1]}")
            continue
        ours = opaque(of_pillow(target)) if is_opaque else of_pillow(target)
        # libwebp's blending rounds in another way in some versions, as do programs that blend frames of a PNG.
        tolerance = 0 if path.suffix == ".gif" else 1
        if extension == ".gif":
            problem = None if len(ours) > 1 or len(merged(theirs)) == 1 else "not animated"
        else:
            problem = difference(ours, theirs, tolerance)
            if problem and len(references) == 1:
                if path.suffix == ".gif":
                    references.append(of_magick(path, durations))
                elif path.suffix in (".png", ".apng"):
                    references.append(of_ffmpeg(path, durations))
                    specified = apng_reference.frames_of(path.read_bytes())
                    references.append([(visible(image), duration) for image, duration in specified])
            if problem and path.suffix == ".gif":
                problem = visible_difference(ours, theirs) and problem
            if problem and any(difference(ours, other, tolerance) is None for other in references[1:]):
                problem = None
        problem = problem or checked(target)
        found.append(problem and f"{extension}: {problem}")
    return found


# MARK: Generated animations


def drawn(generator: random.Random, size: tuple, alpha: bool, colors: int) -> Image.Image:
    """A picture of some rectangles."""
    image = Image.new("RGBA", size, (0, 0, 0, 0) if alpha else (40, 80, 120, 255))
    for _ in range(generator.randint(1, 6)):
        left, top = generator.randrange(size[0]), generator.randrange(size[1])
        box = (left, top, generator.randint(left + 1, size[0]), generator.randint(top + 1, size[1]))
        step = 256 // colors
        color = tuple(generator.randrange(colors) * step for _ in range(3))
        opacity = generator.choice([255, 255, 128, 0]) if alpha else 255
        image.paste((*color, opacity), box)
    return image


def pictures(generator: random.Random, alpha: bool) -> list:
    size = (generator.randint(2, 90), generator.randint(2, 90))
    frames = [drawn(generator, size, alpha, 6)]
    for _ in range(generator.randint(1, 9)):
        frame = frames[-1].copy()
        if len(frames) == 1 or generator.random() < 0.8:
            left, top = generator.randrange(size[0]), generator.randrange(size[1])
            part = drawn(generator, (generator.randint(1, 40), generator.randint(1, 40)), alpha, 6)
            frame.paste(part, (left, top))
            frame.putpixel((left, top), (255, 255, 255 * len(frames) % 256, 255))  # or the frame may not change
        frames.append(frame)
    return frames


def write_gif(generator: random.Random, path: Path) -> None:
    frames = pictures(generator, False)
    first, *rest = [frame.convert("RGB").quantize(generator.choice([2, 16, 64, 255])) for frame in frames]
    first.save(
        path, save_all=True, append_images=rest, loop=generator.choice([0, 1, 5]), optimize=False,
        # Before the first frame is nothing, which browsers restore and Pillow does not.
        disposal=[generator.choice([0, 1, 2] if index == 0 else [0, 1, 2, 3]) for index in range(len(frames))],
        duration=[generator.choice([10, 20, 70, 500]) for _ in frames])
    option = generator.choice([None, "-O1", "-O3", "--unoptimize", "-i", "--colors=4"])
    if option:
        run("gifsicle", "-b", option, path)


def write_apng(generator: random.Random, path: Path) -> None:
    frames = pictures(generator, generator.random() < 0.7)
    if generator.random() < 0.3:
        with tempfile.TemporaryDirectory() as folder:
            for index, frame in enumerate(frames):
                frame.save(f"{folder}/f{index:03}.png")
            run("apngasm", path, f"{folder}/f000.png", generator.randint(1, 9), "10")
        return
    durations = [generator.choice([10, 33, 70, 500]) for _ in frames]
    frames[0].save(
        path, "PNG", save_all=True, append_images=frames[1:], loop=generator.choice([0, 3]), duration=durations,
        disposal=[generator.choice([0, 1, 2]) for _ in frames], blend=[generator.choice([0, 1]) for _ in frames],
        default_image=generator.random() < 0.2)


def write_webp(generator: random.Random, path: Path) -> None:
    frames = pictures(generator, generator.random() < 0.6)
    with tempfile.TemporaryDirectory() as folder:
        if generator.random() < 0.4:
            names = []
            for index, frame in enumerate(frames):
                frame.save(f"{folder}/{index}.png")
                kind = generator.choice(["-lossless", "-lossy"])
                names += ["-d", generator.choice([10, 33, 70]), kind, f"{folder}/{index}.png"]
            options = generator.choice([[], ["-min_size"], ["-mixed"], ["-kmin", "1", "-kmax", "2"]])
            run("img2webp", "-loop", generator.choice([0, 4]), *options, *names, "-o", path)
            return
        arguments = []
        for index, frame in enumerate(frames):
            name = f"{folder}/{index}.webp"
            left, top = 2 * generator.randint(0, 20), 2 * generator.randint(0, 20)
            frame.save(name, lossless=generator.random() < 0.5, exact=True)
            arguments += ["-frame", name, f"+{generator.choice([10, 40, 90])}+{left}+{top}+"
                          f"{generator.choice([0, 1])}{generator.choice(['+b', '-b'])}"]
        run("webpmux", *arguments, "-loop", generator.choice([0, 2]), "-bgcolor", "9,8,7,6", "-o", path)


WRITERS = {".gif": write_gif, ".png": write_apng, ".webp": write_webp}


def generated(count: int, folder: Path) -> list:
    paths = []
    for extension, write in WRITERS.items():
        for seed in range(count):
            path = folder / f"{seed}{extension}"
            write(random.Random(f"{seed}{extension}"), path)
            if path.exists():
                paths.append(path)
    return paths


def collected(places: list) -> list:
    paths = []
    for place in places:
        paths += sorted(place.rglob("*")) if place.is_dir() else [place]
    return [path for path in paths if path.suffix in (".gif", ".png", ".apng", ".webp")]


def is_animation(path: Path) -> bool:
    try:
        with Image.open(path) as image:
            return getattr(image, "n_frames", 1) > 1
    except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError):
        return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("places", type=Path, nargs="*")
    options = parser.parse_args()
    wrong = right = unread = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(exist_ok=True)
        for path in [p for p in collected(options.places) if is_animation(p)] + generated(options.seeds, folder):
            try:
                found = compare(path, folder)
            except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError) as error:
                unread += 1
                print(f"{path.name}: Pillow: {error}")
                continue
            for problem in found:
                right, wrong = right + (problem is None), wrong + (problem is not None)
                if problem:
                    print(f"{path.name}: {problem}", flush=True)
    print(f"{right} results are right, {wrong} are not, {unread} files were not read by Pillow")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
