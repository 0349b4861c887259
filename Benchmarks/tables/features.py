"""Compares what calls can add to results with the programs that have it too: differences of results, CPU time and memory.

Usage: Tests/EndToEnd/python.sh Benchmarks/tables/features.py [--rounds 60] [--only NAME], with IMAGE_WORKER=path/to/image-worker

Starts a worker, prints a Markdown table and stops it. Differences are in levels of 255, of lossless results from what the
reference makes of the result without the feature, for 25 photographs of the corpus that were reduced to 1280x720. CPU time is
that of the worker process, which makes a JPEG of 1280x720 from one of 12 megapixels: turns of calls without and with the
feature alternate. The median without is followed by the median difference of the turns and its standard error. Memory is the
working set in the report, in MiB. Figures of other result files are read from these.
"""

import argparse
import datetime
import io
import re
import statistics
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import PIL
import pyvips
from peers import ROOT, cpu_seconds
from photographs import PHOTOGRAPHS, path_of, vignette
from PIL import Image
from worker import Worker  # finds the modules of the tests

import filter_references  # isort: skip
import test_facts  # isort: skip
from conftest import Client  # isort: skip

RESULTS = ROOT / "Benchmarks" / "results"
JPEG, PNG = "OUTPUT_FORMAT_JPEG", "OUTPUT_FORMAT_PNG"
SIZE = {"max_width": 1280, "max_height": 720, "always_encode": True}
JOB = SIZE | {"preferred_format": JPEG, "compression_quality": 0.8}
SQUARE = {"max_width": 720, "max_height": 720, "resize_mode": "RESIZE_MODE_FILL"}
CALLS = 5  # in a turn
HEAD = ("| feature | who has it, too | the call here | compared with | inputs | difference | CPU ms | MiB |\n" + "|---" * 8 + "|")


class Bench:
    """A worker with two overlays, and photographs with their results without any feature."""

    def __init__(self, photographs: Path, overlays: Path):
        picture = Image.open(photographs / "immich--el_torcal_rocks.jpg").convert("RGB").resize((256, 144))
        self.logos = {}
        for name, alpha in (("soft", vignette(256, 144)), ("hard", (vignette(256, 144) > 127) * np.uint8(255))):
            picture.putalpha(Image.fromarray(alpha))
            picture.save(overlays / f"{name}.png")
            self.logos[name] = np.asarray(picture).astype(float)
        self.worker = Worker("--threads", "1", "--overlays", str(overlays))
        self.client = Client(self.worker)
        self.photographs = [self.run(path.read_bytes(), preferred_format=JPEG, compression_quality=0.95)[0]
                            for path in sorted(photographs.iterdir())]
        self.plain = [self.run(image)[0] for image in self.photographs]

    def run(self, image: bytes, **fields):
        """Returns a result, of 1280x720 and lossless unless fields set something else, and its report."""
        parts = list(self.client.process(image, **SIZE | {"preferred_format": PNG} | fields))
        return b"".join(part.chunk for part in parts), parts[-1].report

    def measure(self, image: bytes, pair: list[dict], rounds: int) -> tuple[str, str]:
        """Returns the cells of CPU time and memory of two configurations."""
        requests = [self.client.message("ProcessImageRequest")(image=image, configuration=one) for one in pair]
        call, memory = self.client.call("ProcessImage", "unary_stream"), [0.0, 0.0]

        def turn(index: int) -> float:
            began = cpu_seconds(self.worker.process.pid)
            for _ in range(CALLS):
                *_, last = call(requests[index], timeout=300)
            memory[index] = last.report.peak_memory_bytes / 2**20
            return (cpu_seconds(self.worker.process.pid) - began) / CALLS * 1000

        times = [(turn(0), turn(1)) for _ in range(rounds + 1)][1:]
        differences = [other - one for one, other in times]
        middle = statistics.median(differences)
        error = 1.86 * statistics.median(abs(one - middle) for one in differences) / rounds**0.5
        return (f"{statistics.median(one for one, _ in times):.1f} {middle:+.2f} ± {error:.2f}",
                f"{memory[0]:.1f} {memory[1] - memory[0]:+.1f}")


def opened(image: bytes) -> Image.Image:
    return Image.open(io.BytesIO(image)).convert("RGB")


def samples(image) -> np.ndarray:
    return np.asarray(opened(image) if isinstance(image, bytes) else image).astype(float)


def levels(differences) -> str:
    every = np.concatenate([abs(one).ravel() for one in differences])
    return f"at most {every.max():.0f}, mean {every.mean():.2g}"


def quoted(file: str, pattern: str, words: str) -> str:
    """Returns words with figures of another file of results, and a link to it."""
    return words.format(*re.search(pattern, (RESULTS / file).read_text(), re.DOTALL).groups()) + f" ([{file[:-3]}]({file}))"


def composed(base: np.ndarray, logo: np.ndarray, blend: str, x: int, y: int) -> np.ndarray:
    one, other = (pyvips.Image.new_from_array(array).copy(interpretation="srgb") for array in (base, logo))
    return one.composite2(other, blend, x=x, y=y).numpy()[..., :3].round()


def formula(base: np.ndarray, logo: np.ndarray, blend: str, x: int, y: int) -> np.ndarray:
    """W3C Compositing and Blending on an opaque image."""
    result, color = base.copy(), logo[..., :3]
    part = result[y:y + logo.shape[0], x:x + logo.shape[1]]
    product = part * color / 255
    part += ((product if blend == "multiply" else part + color - product) - part) * logo[..., 3:] / 255
    return result.round()


def drawn(bench: Bench, overlay: dict, reference=composed, encoded=PNG):
    """Yields the differences of results with an overlay in the lower right corner, or with tiles."""
    logo = np.rot90(bench.logos[overlay["image"]] * [1, 1, 1, overlay.get("opacity", 1)], -overlay.get("rotation", 0) // 90)
    for image in bench.photographs:
        base, result = (samples(bench.run(image, preferred_format=encoded, overlays=one)[0]) for one in ([], [overlay]))
        place, shown = [base.shape[1] - logo.shape[1] - 16, base.shape[0] - logo.shape[0] - 16], logo
        if "tile" in overlay:
            place, shown = [0, 0], np.tile(logo, (6, 6, 1))[:base.shape[0], :base.shape[1]]
        yield result - reference(base, shown, overlay["blend"][14:].lower(), *place)


def planes(bench, overlay):
    found = list(drawn(bench, overlay, encoded=JPEG))
    inside = [one[-176:, -288:].copy() for one in found]  # with whole blocks around the overlay
    for one in found:
        one[-176:, -288:] = 0
    return f"{levels(inside)}, of luma {levels(one @ (0.299, 0.587, 0.114) for one in inside)}; elsewhere {levels(found)}"


def blending(bench, soft):
    return (f"hard edges: {levels(drawn(bench, soft | {'image': 'hard'}))}; soft edges: {levels(drawn(bench, soft))}, "
            f"from W3C's formula {levels(drawn(bench, soft, formula))}")


def text(bench, _):
    """Compares letters with those of libvips, also with large ones, which it hardly fits to pixels, reduced."""
    black, found = io.BytesIO(), {1: [], 8: []}
    Image.new("RGB", (1280, 300)).save(black, "PNG")
    for words in ("Hamburgefonts 0123", "Съешь же ещё этих булок", "Θέλει αρετή και τόλμη"):
        for font, size in (("DejaVu Sans", 16), ("DejaVu Sans", 40), ("DejaVu Serif Bold", 40)):
            overlay = {"text": {"text": words, "font": font, "size": size}}
            ours = samples(bench.run(black.getvalue(), overlays=[overlay])[0])[..., 0]
            top, left = (np.flatnonzero(ours.any(axis=axis))[0] - 1 for axis in (1, 0))
            for factor, kept in found.items():
                theirs = pyvips.Image.text(words, font=f"{font} {size}", dpi=72 * factor).numpy().astype(float)
                height, width = (-(-side // factor) + 3 for side in theirs.shape)
                part, places = ours[top:top + height, left:left + width], []
                for axis in (1, 0):  # the place where the sums of rows and columns differ least
                    sums, length = theirs.sum(axis=axis), part.shape[1 - axis] * factor
                    shifted = [np.pad(sums, (place, length - place - len(sums))) for place in range(3 * factor)]
                    errors = [abs(part.sum(axis=axis) - one.reshape(-1, factor).mean(axis=1) / factor).sum() for one in shifted]
                    places.append((np.argmin(errors), length - np.argmin(errors) - len(sums)))
                padded = np.pad(theirs, places).reshape(part.shape[0], factor, part.shape[1], factor)
                kept.append(part - padded.mean(axis=(1, 3)))
    return f"{levels(found[1])}; from letters of 8 times the size, reduced: {levels(found[8])}"


def region(bench, hidden):
    """Yields the differences from the mean colors of blocks, which Pillow enlarges. What is around must stay."""
    for image in bench.plain:
        result, report = bench.run(image, regions=[hidden])
        place, expected = report.hidden_regions[0], opened(image)
        box = [int(one) for one in (place.x, place.y, place.x + place.width, place.y + place.height)]
        size = box[2] - box[0], box[3] - box[1]
        blocks = expected.crop(box).resize([one // max(16, -(-max(size) // 4)) for one in size], Image.Resampling.BOX)
        shown = {"FILL": Image.new("RGB", size), "PIXELATE": blocks.resize(size, Image.Resampling.NEAREST),
                 "BLUR": blocks.resize(size, Image.Resampling.BILINEAR)}
        expected.paste(shown[hidden["effect"][14:]], box)
        yield samples(result) - samples(expected)


def regions(bench, hidden):
    large = {"unit": "RECT_UNIT_FRACTIONS", "x": 0.1, "y": 0.1, "width": 0.8, "height": 0.8}
    return f"200x100: {levels(region(bench, hidden))}; 0.8 of each side: {levels(region(bench, hidden | {'area': large}))}"


def trim(bench, fields):
    found = []
    for number, image in enumerate(bench.plain * 4):
        random, picture, file = np.random.default_rng(number), opened(image), io.BytesIO()
        picture.thumbnail((480, 480))
        left, top, right, bottom, *color = random.integers(0, [90, 90, 90, 90, 256, 256, 256]).tolist()
        framed = Image.new("RGB", (picture.width + left + right, picture.height + top + bottom),
                           ["white", "black", tuple(color)][number % 3])
        framed.paste(picture, (left, top))
        framed.save(file, ["PNG", "JPEG", "WEBP", "JPEG"][number // 25], quality=92)
        vips = pyvips.Image.new_from_buffer(file.getvalue(), "")
        theirs = vips.find_trim(threshold=fields["threshold"], background=vips.getpoint(0, 0)[:3])
        crop = bench.run(file.getvalue(), trim=fields)[1].crop
        ours = (crop.x, crop.y, crop.width, crop.height) if crop.width else (0, 0, *framed.size)
        edges = [np.array([x, y, x + width, y + height]) for x, y, width, height in (ours, theirs)]
        found.append(abs(edges[0] - edges[1]).max())
    return f"{found.count(0)} of {len(found)} equal, {found.count(1)} by a pixel, at most {max(found):.0f}"


def facts(bench, _):
    equal, bits = {}, []
    for image in bench.photographs:
        result, report = bench.run(image, facts=True)
        ours, theirs = test_facts.shown(report.facts), test_facts.expected(test_facts.thumbnail(result))
        equal = {name: equal.get(name, 0) + (ours[name] == theirs[name]) for name in ours}
        ours = test_facts.shown(bench.run(image, facts=True, preferred_format=JPEG)[1].facts)
        bits += [(ours[name] ^ theirs[name]).bit_count() for name in ("perceptual_hash", "difference_hash")]
    counts = ", ".join(f"{name} {count}" for name, count in equal.items()).replace("_", " ")
    return f"equal of {len(bench.photographs)}: {counts}; hashes of JPEG results differ in at most {max(bits)} bits"


def colors(bench, _):
    """Compares the mean distance of pixels from the closest of six colors."""
    found = {"here": [], "median cut": [], "with k-means": []}
    for image in bench.photographs:
        result, report = bench.run(image, facts=True)
        small = test_facts.thumbnail(result)
        palettes = [[(one.color.red, one.color.green, one.color.blue) for one in report.facts.dominant_colors]]
        palettes += [np.reshape(small.quantize(6, Image.Quantize.MEDIANCUT, kmeans=rounds).getpalette()[:18], (-1, 3))
                     for rounds in (0, 5)]
        for kept, palette in zip(found.values(), palettes):
            kept.append(np.linalg.norm(samples(small).reshape(-1, 1, 3) - palette, axis=2).min(axis=1).mean())
    return "distance of pixels: " + ", ".join(f"{name} {np.mean(one):.1f}" for name, one in found.items())


def zoom(bench, _):
    for image in bench.photographs:
        sizes = {"max_width": 320, "max_height": 180, "zoom": 2}, {"max_width": 640, "max_height": 360}
        one, other = (samples(bench.run(image, **size)[0]) for size in sizes)
        yield one - other


def minimum(bench, _):
    """Compares with what Resize and CenterCrop of torchvision make by Pillow."""
    limits = (400, 300)
    for image in bench.plain:
        base = opened(image)
        scale = max(min(limits[0] / base.width, limits[1] / base.height), 350 / base.width, 280 / base.height)
        size = [int(side * scale + 1e-9) if side * scale > limit else round(side * scale) for side, limit in zip(base.size, limits)]
        corner = [round(max(0, side - limit) / 2) for side, limit in zip(size, limits)]
        box = (*corner, *(start + min(side, limit) for start, side, limit in zip(corner, size, limits)))
        result, _ = bench.run(image, max_width=400, max_height=300, min_width=350, min_height=280, exact_resize=True)
        yield samples(result) - samples(base.resize(size, Image.Resampling.LANCZOS).crop(box))


def extend(bench, _):
    for image in bench.photographs:
        base = opened(bench.run(image, max_width=720)[0])
        expected = Image.new("RGB", [max(base.size)] * 2, "white")
        expected.paste(base, [(max(base.size) - one) // 2 for one in base.size])
        yield samples(bench.run(image, max_width=720, extend_aspect_ratio=1)[0]) - samples(expected)


def sharpen(bench, _):
    for image in bench.photographs:
        (base, _), (result, report) = (bench.run(image, max_width=400, sharpen_reduced=one) for one in (0, 0.5))
        reduction = min(report.input.width / report.output.width, report.input.height / report.output.height)
        amount = round(0.5 * min(1, np.log2(reduction) / 3), 2)
        yield samples(result) - np.clip(filter_references.sharpen(opened(base), radius=0.7, amount=amount), 0, 255)


@dataclass(frozen=True)
class Feature:
    """A row of the table. Its cost is that of `fields` added to the job and to `without`, or else the text `cost`."""

    name: str
    peers: str
    call: str
    reference: str
    compare: Callable  # takes the bench and `argument`; returns a cell, or yields differences in levels
    fields: dict = field(default_factory=dict)
    without: dict = field(default_factory=dict)
    argument: object = None
    inputs: str = "25 photographs"
    cost: str = ""


def overlay(name: str, peers: str, call: str, compare, reference: str = "libvips `composite`", **fields) -> Feature:
    one = {"image": "soft", "blend": "OVERLAY_BLEND_OVER", "gravity": "GRAVITY_SOUTH_EAST", "x": 16, "y": 16} | fields
    return Feature(name, peers, call, reference, compare, {"overlays": [one]}, argument=one)


def hidden(effect: str, peers: str, reference: str) -> Feature:
    one = {"effect": f"REGION_EFFECT_{effect}", "area": {"x": 64, "y": 64, "width": 200, "height": 100}}
    cost = one | {"area": {"unit": "RECT_UNIT_FRACTIONS", "x": 0.4, "y": 0.4, "width": 0.2, "height": 0.2}}
    return Feature(f"hidden region: {effect.lower()}", peers, f"`regions` {effect}", reference, regions, {"regions": [cost]},
                   argument=one, inputs="25 photographs as PNG")


FEATURES = [
    Feature("none: the same call twice", "", "", "", lambda *_: "", JOB, inputs=""),
    overlay("overlay", "imgproxy `wm` (Pro: `wmu`), Cloudinary `l_`, thumbor, libvips, sharp", "`overlays` with `opacity`",
            drawn, opacity=0.6),
    overlay("overlay on the planes of a JPEG", "", "the same, JPEG to JPEG", planes, opacity=0.6),
    overlay("overlay, multiplied", "Cloudinary, libvips, sharp", "`blend` MULTIPLY", blending, blend="OVERLAY_BLEND_MULTIPLY"),
    overlay("overlay, screened", "libvips, sharp", "`blend` SCREEN", blending, blend="OVERLAY_BLEND_SCREEN"),
    overlay("overlay, tiled", "imgproxy `wm:…:re`, Cloudinary, thumbor, sharp", "`tile`", drawn, tile=True,
            gravity="GRAVITY_NORTH_WEST", x=0, y=0),
    overlay("overlay, rotated", "imgproxy Pro `wmr`, Cloudinary, libvips, sharp", "`rotation` 90", drawn, rotation=90),
    Feature("text", "imgproxy Pro `wmt`, Cloudinary `l_text`, libvips, sharp", "`overlays` with `text`", "libvips `text`", text,
            {"overlays": [{"text": {"text": "© Example 2026", "font": "DejaVu Sans", "size": 36}}]},
            inputs="9 lines in 3 scripts"),
    Feature("smart crop", "imgproxy `g:sm`, Cloudinary `g_auto`, thumbor, libvips, sharp", "`gravity` SMART", "libvips `smartcrop`",
            lambda *_: quoted("smart-crops.md", r"GRAVITY_SMART[^\n]* (\d+ %) \|[^\n]*\n.*?attention[^\n]* (\d+ %) \|[^\n]*\n",
                              "{} of marked subjects kept, libvips {}"),
            SQUARE | {"gravity": "GRAVITY_SMART"}, SQUARE, inputs="10 photographs, 4 shapes"),
    Feature("crop to faces", "imgproxy Pro `g:obj:face`, Cloudinary `g_faces`, thumbor", "`gravity` FACES", "libvips `smartcrop`",
            lambda *_: quoted("face-crops.md", r"_FACES \| (\S+ %) .*?attention \| (\S+ %) ", "{} of faces whole, libvips {}"),
            inputs="195 images, cut to 1:1", cost=quoted(
                "face-crops.md", r"(\S+) ms of CPU time for a search of 224x168.*?took (\S+) ms", "a network {}, a cascade {}")),
    hidden("FILL", "imagorface, of faces", "Pillow `paste`"),
    hidden("PIXELATE", "Cloudinary `e_pixelate_region`", "Pillow `resize` BOX, NEAREST"),
    hidden("BLUR", "imgproxy Pro `ba`, Cloudinary `e_blur_region`", "Pillow `resize` BOX, BILINEAR"),
    Feature("trim", "imgproxy `trim`, Cloudinary `e_trim`, thumbor, libvips, sharp", "`trim`", "libvips `find_trim`", trim,
            {"trim": {"threshold": 25}}, argument={"threshold": 25}, inputs="100 photographs in borders: PNG, JPEG, WebP"),
    Feature("ThumbHash, BlurHash, pHash, dHash", "imgproxy Pro `/info`; pHash: Cloudinary", "`facts`",
            "`thumbhash-python`, `blurhash`, `imagehash`", facts, {"facts": True}),
    Feature("dominant colors", "imgproxy Pro `/info`, Cloudinary `colors`; sharp has one", "`facts`", "Pillow `quantize`", colors,
            cost="in the row above"),
    Feature("zoom", "imgproxy `zoom`, Cloudinary `dpr`", "`zoom`", "twice the size here", zoom,
            {"max_width": 640, "max_height": 360, "zoom": 2}),
    Feature("minimum size", "imgproxy `min-width`", "`min_width`, `min_height`", "torchvision's steps, by Pillow", minimum,
            SQUARE | {"min_height": 720, "resize_mode": "RESIZE_MODE_FIT"}, SQUARE, inputs="25 photographs as PNG"),
    Feature("aspect ratio by padding", "imgproxy `extend_ar`, Cloudinary `c_pad`", "`extend_aspect_ratio`", "Pillow `paste`",
            extend, {"max_height": 1280, "extend_aspect_ratio": 1}),
    Feature("sharpening after reduction", "imgproxy `sharpen`, Cloudinary `e_sharpen`, thumbor, libvips, sharp",
            "`sharpen_reduced`", "numpy: unsharp mask", sharpen, {"sharpen_reduced": 0.5}),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--only", default="", help="rows whose name contains this regular expression")
    parser.add_argument("--photographs", type=Path, default=ROOT.parent / "shared" / "corpus" / "12-photos")
    parser.add_argument("--cache", type=Path, default=ROOT / ".build" / "benchmarks" / "pictures")
    options = parser.parse_args()
    photograph = next(one for one in PHOTOGRAPHS if one.name == "12mp-dji")
    large = path_of(photograph, options.photographs, options.cache).read_bytes()
    with tempfile.TemporaryDirectory() as overlays:
        bench = Bench(options.photographs, Path(overlays))
        versions = ".".join(str(pyvips.version(part)) for part in range(3)), PIL.__version__
        print(f"{datetime.date.today()}, libvips {versions[0]}, Pillow {versions[1]}\n\n{HEAD}", flush=True)
        try:
            for one in FEATURES:
                if not re.search(options.only, one.name):
                    continue
                found, costs = one.compare(bench, one.argument), (one.cost, "")
                if one.fields:
                    costs = bench.measure(large, [JOB | one.without, JOB | one.without | one.fields], options.rounds)
                difference = found if isinstance(found, str) else levels(found)
                cells = one.name, one.peers, one.call, one.reference, one.inputs, difference, *costs
                print(f"| {' | '.join(cells)} |", flush=True)
        finally:
            bench.worker.stop()


if __name__ == "__main__":
    main()
