"""Compares the results of two workers, OLD and NEW, for every image of the shared corpus in several configurations.

Use: compare_results.py OLD NEW [--corpus DIRECTORY] [--only TEXT] [--configurations NAME,...] [--new-options TEXT]

It compares the SHA-256, the header and the report of every result, and the status code and the reasons in the details
of every error. Messages, timings and peak memory are not compared. Both workers run at the same time and receive each
image one after the other. The exit status is 1 if anything differs.
"""

import argparse
import hashlib
import json
import os
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import grpc
from google.protobuf import json_format
from google.rpc import error_details_pb2, status_pb2

from worker import Client, Worker


CALLS_AT_ONCE = 3
TIMEOUT_SECONDS = 120
CHUNK_BYTES = 5000

FIT_300 = {"max_width": 300, "max_height": 300, "compression_quality": 0.8}

# Fields of ProcessImageRequest. Together they use every field of the contract that changes a result.
REQUESTS = {
    "default": {},
    "fit-1280x720": {"preset": "compressedThumbnail"},
    "jpeg-progressive-444": {"configuration": {
        "max_width": 64, "max_height": 64, "compression_quality": 0.8, "preferred_format": "OUTPUT_FORMAT_JPEG",
        "always_encode": True, "jpeg": {"progressive": True, "chroma_subsampling": "CHROMA_SUBSAMPLING_444"}}},
    "fill-gravity-webp": {"configuration": {
        "max_width": 200, "max_height": 150, "resize_mode": "RESIZE_MODE_FILL", "gravity": "GRAVITY_NORTH_EAST",
        "allow_upscale": True, "compression_quality": 0.7, "preferred_format": "OUTPUT_FORMAT_WEBP",
        "webp": {"method": 2}}},
    "crop-pad": {"configuration": {
        "crop": {"unit": "RECT_UNIT_FRACTIONS", "x": 0.1, "y": 0.2, "width": 0.5, "height": 0.6},
        "max_width": 240, "max_height": 240, "pad": True, "background": {"red": 200, "green": 30, "blue": 90},
        "gravity": "GRAVITY_SOUTH", "compression_quality": 0.8, "preferred_format": "OUTPUT_FORMAT_JPEG"}},
    "rotate-flip-lossless": {"configuration": {
        "rotation": 90, "flip_horizontal": True, "max_width": 200, "max_height": 200,
        "preferred_format": "OUTPUT_FORMAT_WEBP", "webp": {"lossless": True, "method": 0}}},
    "filters-png": {"configuration": {
        "max_width": 160, "max_height": 160, "preferred_format": "OUTPUT_FORMAT_PNG",
        "filters": [
            {"name": "sepia", "intensity": 0.5}, {"name": "blur", "intensity": 1, "parameters": {"radius": 3}},
            {"name": "hue", "intensity": 0.7}, {"name": "sharpen", "intensity": 0.8},
            {"name": "vignette", "intensity": 1}],
        "png": {"compression_level": 6, "filter": "PNG_FILTER_PAETH"}}},
    "stretch-palette": {"configuration": {
        "max_width": 120, "max_height": 90, "resize_mode": "RESIZE_MODE_STRETCH", "flip_vertical": True,
        "preferred_format": "OUTPUT_FORMAT_PNG",
        "png": {"interlaced": True, "palette_colors": 32, "compression_level": 9}}},
    "max-bytes": {"configuration": {
        "max_width": 400, "max_height": 400, "max_bytes": 6000, "allow_smaller_dimensions": True,
        "metadata": "METADATA_POLICY_KEEP_COPYRIGHT", "preferred_format": "OUTPUT_FORMAT_JPEG"}},
    "avif": {"configuration": {
        "max_width": 96, "max_height": 96, "compression_quality": 0.5, "scale_factor": 1.5,
        "preferred_format": "OUTPUT_FORMAT_AVIF", "tolerate_truncation": True}},
    "renditions": {"renditions": [
        {"rendition_id": "jpeg", "configuration": {
            "max_width": 320, "compression_quality": 0.6, "preferred_format": "OUTPUT_FORMAT_JPEG",
            "jpeg": {"chroma_subsampling": "CHROMA_SUBSAMPLING_422", "restart_rows": 2, "optimize_huffman": True}}},
        {"rendition_id": "webp", "configuration": {
            "max_width": 64, "preferred_format": "OUTPUT_FORMAT_WEBP", "webp": {"near_lossless": 60}}},
        {"rendition_id": "png", "configuration": {
            "max_width": 100, "max_height": 100, "resize_mode": "RESIZE_MODE_FILL",
            "focus_point": {"x": 0.2, "y": 0.9}, "preferred_format": "OUTPUT_FORMAT_PNG"}}]},
}
# Configurations that are not requested through ProcessImage.
OTHERS = {"chunked-batch", "inspect"}


@dataclass(frozen=True)
class Outcome:
    """The outcome of one image for one rendition: its parts by name, so that a difference can be named."""

    parts: tuple[tuple[str, str], ...]

    @property
    def is_error(self) -> bool:
        return any(name == "code" for name, _ in self.parts)

    def difference(self, other: "Outcome") -> str:
        mine, theirs = dict(self.parts), dict(other.parts)
        names = [name for name in {**mine, **theirs} if mine.get(name) != theirs.get(name)]
        return "; ".join(f"{name}: {mine.get(name, '-')} -> {theirs.get(name, '-')}" for name in names)


class Result:
    """Collects the parts of one rendition as they arrive."""

    def __init__(self):
        self.hash, self.count, self.parts, self.peak_bytes = hashlib.sha256(), 0, {}, 0

    def take(self, part) -> None:
        kind = part.WhichOneof("part")
        if kind == "header":
            self.parts["header"] = line(part.header)
        elif kind == "chunk":
            self.hash.update(part.chunk)
            self.count += len(part.chunk)
        elif kind == "report":
            self.take_report(part.report)
        elif kind == "error":
            self.parts.update(parts_of_error(part.error))

    def take_report(self, report) -> None:
        self.peak_bytes = report.peak_memory_bytes
        quality = f"{report.compression_quality:.6f}" if report.HasField("compression_quality") else "-"
        self.parts.update({
            "bytes": str(self.count), "sha256": self.hash.hexdigest(), "input": line(report.input),
            "output": line(report.output), "passthrough": str(report.passthrough), "quality": quality,
            "counts": f"{report.input_bytes} {report.output_bytes}", "warnings": str(len(report.warnings))})

    def outcome(self) -> Outcome:
        return Outcome(tuple(self.parts.items()))


def line(message) -> str:
    return json_format.MessageToJson(message, indent=None, preserving_proto_field_name=True)


def parts_of_error(status) -> dict[str, str]:
    reasons = []
    for detail in status.details:
        info, request = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
        if detail.Unpack(info):
            reasons.append(info.reason)
        elif detail.Unpack(request):
            reasons += [violation.field for violation in request.field_violations]
        else:
            reasons.append(detail.type_url.rsplit(".", 1)[-1])
    return {"code": str(status.code), "reasons": " ".join(reasons)}


def parts_of_call_error(error: grpc.RpcError) -> dict[str, str]:
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            return parts_of_error(status_pb2.Status.FromString(value))
    return {"code": str(error.code().value[0]), "reasons": error.code().name}


class Subject:
    """One of the two workers."""

    def __init__(self, path: str, options: str = ""):
        os.environ["IMAGE_WORKER"] = path
        self.worker = Worker(*options.split())
        self.client = Client(self.worker)
        self.peak_bytes = 0

    def calls(self, configuration: str, image: bytes):
        """Returns the parts of the response."""
        if configuration == "chunked-batch":
            return self.client.batch(self.upload(image), timeout=TIMEOUT_SECONDS)
        request = self.client.message("ProcessImageRequest")(image=image)
        json_format.ParseDict(REQUESTS[configuration], request)
        return self.client.call("ProcessImage", "unary_stream")(request, timeout=TIMEOUT_SECONDS)

    def upload(self, image: bytes):
        start = self.client.start("item")
        json_format.ParseDict(FIT_300, start.start.configuration)
        yield start
        for at in range(0, len(image), CHUNK_BYTES):
            yield self.client.chunk("item", image[at:at + CHUNK_BYTES])
        yield self.client.end("item")

    def inspect(self, image: bytes) -> Outcome:
        request = self.client.message("InspectImageRequest")(image=image)
        json_format.ParseDict(FIT_300, request.configuration)
        try:
            return Outcome((("answer", line(self.client.call("InspectImage", "unary_unary")(
                request, timeout=TIMEOUT_SECONDS))),))
        except grpc.RpcError as error:
            return Outcome(tuple(parts_of_call_error(error).items()))

    def outcomes(self, configuration: str, image: bytes) -> dict[str, Outcome]:
        """Returns the outcomes by rendition; an error of the whole call has the empty name."""
        if configuration == "inspect":
            return {"": self.inspect(image)}
        results = {}
        try:
            for part in self.calls(configuration, image):
                results.setdefault(part.rendition_id, Result()).take(part)
        except grpc.RpcError as error:
            results.setdefault("", Result()).parts.update(parts_of_call_error(error))
        self.peak_bytes = max([self.peak_bytes, *(result.peak_bytes for result in results.values())])
        return {name: result.outcome() for name, result in results.items()}


@dataclass
class Tally:
    counts: Counter = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)

    def add(self, name: str, old: dict[str, Outcome], new: dict[str, Outcome]) -> None:
        nothing = Outcome(())
        for rendition in {**old, **new}:
            before, after = old.get(rendition, nothing), new.get(rendition, nothing)
            is_equal = dict(before.parts) == dict(after.parts)
            kind = ("errors" if before.is_error else "identical") if is_equal else "different"
            self.counts[kind] += 1
            if not is_equal:
                where = f"{name} [{rendition}]" if rendition else name
                self.differences.append(f"{where}: {before.difference(after)}")


def compare(configuration: str, subjects: list[Subject], files: dict[str, Path]) -> Tally:
    tally = Tally()

    def both(path: Path) -> list[dict[str, Outcome]]:
        image = path.read_bytes()
        return [subject.outcomes(configuration, image) for subject in subjects]

    with ThreadPoolExecutor(CALLS_AT_ONCE) as pool:
        for name, (old, new) in zip(files, pool.map(both, files.values())):
            tally.add(name, old, new)
    return tally


def row(configuration: str, tally: Tally, cpu_seconds: list[float], subjects: list[Subject]) -> str:
    counts = [sum(tally.counts.values()), *(tally.counts[kind] for kind in ("identical", "different", "errors"))]
    return (f"{configuration:22}" + "".join(f"{count:>10}" for count in counts)
            + "".join(f"{seconds:>9.1f}" for seconds in cpu_seconds)
            + "".join(f"{subject.peak_bytes / 2**20:>9.1f}" for subject in subjects))


def arguments_of() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", help="the worker that is right")
    parser.add_argument("new", help="the worker that is to do the same")
    parser.add_argument("--corpus", type=Path, default=Path("../shared/corpus"))
    parser.add_argument("--only", default="", help="only files whose path has this in it")
    parser.add_argument("--configurations", default="", help="only these (comma); default: all")
    parser.add_argument("--new-options", default="", help='options of the new worker, as in "--isolation process"')
    arguments = parser.parse_args()
    if not (arguments.corpus / "expect.json").exists():
        parser.error(f"there is no corpus at {arguments.corpus} (--corpus)")
    return arguments


def selected(wanted: str) -> list[str]:
    every = [*REQUESTS, *sorted(OTHERS)]
    names = wanted.split(",") if wanted else every
    if unknown := [name for name in names if name not in every]:
        sys.exit(f"no such configuration: {', '.join(unknown)}; there are {', '.join(every)}")
    return names


def main() -> int:
    arguments = arguments_of()
    configurations = selected(arguments.configurations)
    names = json.loads((arguments.corpus / "expect.json").read_text())["files"]
    files = {name: arguments.corpus / name for name in names if arguments.only in name}
    subjects = [Subject(arguments.old), Subject(arguments.new, arguments.new_options)]
    print(f"{len(files)} files\n{'':62}{'CPU s':>18}{'peak MiB':>18}")
    print(f"{'configuration':22}" + "".join(
        f"{title:>10}" for title in ("results", "identical", "different", "errors=")) + f"{'old':>9}{'new':>9}" * 2)
    differences = []
    try:
        for configuration in configurations:
            began = [subject.worker.cpu_seconds() for subject in subjects]
            for subject in subjects:
                subject.peak_bytes = 0
            tally = compare(configuration, subjects, files)
            spent = [subject.worker.cpu_seconds() - start for subject, start in zip(subjects, began)]
            print(row(configuration, tally, spent, subjects), flush=True)
            differences += [f"{configuration}: {text}" for text in tally.differences]
    finally:
        codes = [subject.worker.stop() for subject in subjects]
    print(*(f"DIFFERENT: {text}" for text in differences), sep="\n")
    if any(codes):
        print(f"exit status of old and new: {codes}")
    print(f"{len(differences)} of the results differ" if differences else "every result is the same")
    return 1 if differences or any(codes) or not files else 0


if __name__ == "__main__":
    sys.exit(main())
