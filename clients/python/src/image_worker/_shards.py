"""The parts of a data set that go to the processes which train a model, and to the workers of their loaders."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from ._batch import Item
from ._sources import Source


def shard(
    images: Iterable[Source | Item[Any]], rank: tuple[int, int], worker: tuple[int, int], batch_size: int,
) -> Iterator[Item[Any]]:
    """Returns the images of one worker of one process. The pairs are an index and a number of them.

    Processes take images in turn, and their workers batches in turn, so that a loader which takes batches from its workers in turn
    has those of a single worker. An image without a key has its index among all images.
    """
    own = islice(enumerate(images), rank[0], None, rank[1])
    for place, (index, image) in enumerate(own):
        if place // batch_size % worker[1] == worker[0]:
            yield image if isinstance(image, Item) else Item(index, image)
