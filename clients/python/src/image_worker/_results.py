"""Results, and how they are put together from their parts."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from ._errors import ImageWorkerError, from_status, incomplete, too_large
from ._generated import image_worker_pb2 as wire

if TYPE_CHECKING:
    from numpy.typing import NDArray

Part = Union[wire.ProcessImageResponse, wire.BatchProcessResponse]


@dataclass(frozen=True)
class Result:
    """The result of processing one image."""

    #: The file.
    data: bytes
    #: Its properties as the worker planned them; `report.output` has the final ones.
    header: wire.ImageInfo
    #: Sizes, the time of each stage, peak memory and warnings; `warning_details` has their codes.
    report: wire.ProcessingReport

    @property
    def format(self) -> str:
        """The file format, such as "jpeg"."""
        return self.report.output.format

    @property
    def width(self) -> int:
        """Width in pixels."""
        return self.report.output.width

    @property
    def height(self) -> int:
        """Height in pixels."""
        return self.report.output.height

    def __repr__(self) -> str:
        return f"<Result {self.format} {self.width}x{self.height}, {len(self.data)} bytes>"

    def __bytes__(self) -> bytes:
        return self.data

    def __len__(self) -> int:
        return len(self.data)

    def numpy(self) -> NDArray[Any]:
        """Returns the array of a result with `preferred_format="raw"`, of the shape in `report.output.tensor`."""
        from ._tensors import array_of

        return array_of(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the file. Readers see all of it, or what was there before."""
        target = Path(path)
        # Without the name, which may be as long as a name can be.
        temporary = target.with_name(f".image-worker.{secrets.token_hex(8)}")
        try:
            with open(temporary, "xb") as file:
                file.write(self.data)
            os.replace(temporary, target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


class Intake:
    """Decides which of the parts that arrive belong to the results of one image, so that these have an end.

    A worker can send parts forever. Those that it admits are a header for each result, bytes up to the maximum, and an end,
    which comes after all bytes.
    """

    def __init__(self, max_bytes: int, start: wire.BatchItemStart) -> None:
        self._max_bytes = max_bytes
        self._is_sent = not start.HasField("shared_memory")
        renditions = [each.rendition_id for each in start.renditions] or [""]
        self._sizes = dict.fromkeys(renditions, 0)
        self._without_header = set(self._sizes)

    def admits(self, part: Part) -> bool:
        """Returns whether the part is one of a result that has not ended. Raises an error for one that is too large or incomplete."""
        name, kind = part.rendition_id, part.WhichOneof("part")
        if kind == "error" and name == "":
            return True  # of the whole image
        if name not in self._sizes:
            return False
        if kind == "chunk":
            self._sizes[name] += len(part.chunk)
            if self._sizes[name] > self._max_bytes:
                raise too_large(self._sizes[name], self._max_bytes)
            return len(part.chunk) > 0
        if kind == "header":
            is_first = name in self._without_header
            self._without_header.discard(name)
            return is_first
        if kind in ("report", "error"):
            size = self._sizes.pop(name)
            if kind == "report" and self._is_sent and size != part.report.output_bytes:
                raise incomplete(size, part.report.output_bytes)
            return True
        return False


class Collector:
    """Puts one result together."""

    def __init__(self) -> None:
        self._header = wire.ImageInfo()
        # Not a list, in which each of many small chunks would take more room than its bytes.
        self._data = bytearray()

    def add(self, part: Part) -> Result | ImageWorkerError | None:
        """Adds the next part. Returns the result or the error when it is complete."""
        kind = part.WhichOneof("part")
        if kind == "header":
            self._header = part.header
        elif kind == "chunk":
            self._data += part.chunk
        elif kind == "error":
            return from_status(part.error)
        elif kind == "report":
            return Result(bytes(self._data), self._header, part.report)
        return None
