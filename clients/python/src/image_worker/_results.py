"""Results, and how they are put together from their parts."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Union

from ._errors import ImageWorkerError, from_status
from ._generated import image_worker_pb2 as wire

Part = Union[wire.ProcessImageResponse, wire.BatchProcessResponse]


@dataclass(frozen=True)
class Result:
    """The result of processing one image."""

    #: The file.
    data: bytes
    #: Its properties as the worker planned them; `report.output` has the final ones.
    header: wire.ImageInfo
    #: Sizes, the time of each stage, peak memory and warnings.
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

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the file. Readers see all of it, or what was there before."""
        target = Path(path)
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
        try:
            with open(temporary, "xb") as file:
                file.write(self.data)
            os.replace(temporary, target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


class Collector:
    """Puts one result together."""

    def __init__(self) -> None:
        self._header = wire.ImageInfo()
        self._chunks: list[bytes] = []

    def add(self, part: Part) -> Result | ImageWorkerError | None:
        """Adds the next part. Returns the result or the error when it is complete."""
        kind = part.WhichOneof("part")
        if kind == "header":
            self._header = part.header
        elif kind == "chunk":
            self._chunks.append(part.chunk)
        elif kind == "error":
            return from_status(part.error)
        elif kind == "report":
            return Result(b"".join(self._chunks), self._header, part.report)
        return None
