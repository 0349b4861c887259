"""Tensors as a column of a table, for libraries that pass batches of columns to functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ._connection import Connection, Workers
from ._tensors import TensorsOptions, no_rows, preset_of_tensors

if TYPE_CHECKING:
    from typing_extensions import Unpack


class TensorColumn:
    """A function from a batch of columns with images to one with tensors, as Ray Data and Hugging Face Datasets call it.

    Ray Data, where the actors only wait for the workers and need no whole core:

        images.map_batches(
            TensorColumn, fn_constructor_args=["host:50051"], fn_constructor_kwargs={"width": 224, "height": 224},
            num_cpus=0.25, compute=ray.data.ActorPoolStrategy(size=2))

    The column with the images is replaced by one with the tensors, an array with a row for each image, and one with the error, a
    text that is empty if the image did not fail. Other columns and the order of rows are kept.

    - `workers`: the address of a worker, several, or a function that returns a client. Each process has a client of its own.
    - `image_column`, `tensor_column`, `error_column`: the names of the columns.
    - `options`: those of `Client.tensors`. With `errors="skip"`, the rows of images that fail are left out.
    """

    def __init__(
        self, workers: Workers, *, image_column: str = "bytes", tensor_column: str = "tensor",
        error_column: str = "error", **options: Unpack[TensorsOptions],
    ) -> None:
        self._connection = Connection(workers)
        self._image, self._tensor, self._error = image_column, tensor_column, error_column
        self._skips = options.get("errors") == "skip"
        # Rows that are left out are also left out of other columns, so that each batch has all of its images.
        self._options = options
        if self._skips:
            self._options["errors"] = "mask"

    def __call__(self, columns: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the columns with tensors."""
        if self._image not in columns:
            raise KeyError(f"there is no column {self._image!r} with images; the columns are {', '.join(columns)}")
        images = list(columns[self._image])
        others = {name: values for name, values in columns.items() if name != self._image}
        if not images:
            name = self._options.get("preset", "")
            known = preset_of_tensors(self._connection.client().presets(), name) if name else None
            return {**others, self._tensor: no_rows(self._options, known), self._error: []}
        options: TensorsOptions = {**self._options, "batch_size": len(images)}
        [batch] = self._connection.client().tensors(images, **options)
        if not self._skips:
            return {**others, self._tensor: batch.array, self._error: [_text(error) for error in batch.errors]}
        kept = [index for index, error in enumerate(batch.errors) if error is None]
        others = {name: _taken(values, kept) for name, values in others.items()}
        return {**others, self._tensor: batch.array[kept], self._error: [""] * len(kept)}


def _text(error: Exception | None) -> str:
    return "" if error is None else str(error) or type(error).__name__


def _taken(values: Any, rows: list[int]) -> Any:
    if hasattr(values, "iloc"):  # a column of pandas, whose own index is by labels
        return values.iloc[rows]
    return values[rows] if hasattr(values, "dtype") else [values[row] for row in rows]
