"""Images of a data set as tensors of PyTorch, which must be installed."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Union

from ._batch import Item
from ._connection import Connection, Workers
from ._shards import shard
from ._sources import Source
from ._tensors import TensorBatch, TensorsOptions

try:
    import torch
    from torch.utils.data import IterableDataset, get_worker_info
except ImportError:
    raise ImportError("image_worker.torch needs PyTorch: pip install torch") from None

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Unpack

Images = Iterable[Union[Source, Item[Any]]]


class ImageBatch(NamedTuple):
    """A batch of images."""

    #: The images, [N, channels, height, width], or with the layout "hwc" [N, height, width, channels].
    images: torch.Tensor
    #: The keys of their `Item`s, such as labels, or else their indices: a tensor if all are numbers, and otherwise a list.
    keys: Any
    #: Which images did not fail.
    mask: torch.Tensor


class ImageDataset(IterableDataset[ImageBatch]):
    """Batches of images that workers have decoded and resized, for `torch.utils.data.DataLoader`.

        dataset = ImageDataset("host:50051", [Item(label, path) for path, label in samples], width=224, height=224)
        for images, labels, mask in DataLoader(dataset, batch_size=None, num_workers=2, pin_memory=True):

    The batches are those of this data set, so the loader gets `batch_size=None`. Its workers take batches in turn: the order is that
    of a single one. They only wait for the image workers, so that few are enough; without any, images are processed ahead in a
    thread.

    - `workers`: the address of an image worker, several, or a function that returns a client. Each process has a client of its own.
    - `images`: what `process` takes, or `Item`s with labels as keys: a list, another iterable that starts anew each time, or a
      function that returns one. Shuffle them before each epoch, in the same way in all processes, and assign them to `images`.
    - `rank`: the index of this process and their number, if several train one model; each takes every so many-th image. If
      the number of images is no multiple of theirs times `batch_size`, some processes have a batch more, or a larger one.
    - `options`: those of `Client.tensors`, except that `prefetch` is 2 by default.
    """

    def __init__(
        self, workers: Workers, images: Images | Callable[[], Images], *, rank: tuple[int, int] = (0, 1),
        **options: Unpack[TensorsOptions],
    ) -> None:
        super().__init__()
        if not 0 <= rank[0] < rank[1]:
            raise ValueError(f"rank is {rank}; it must be an index and the number of processes, such as (0, 8)")
        #: The images of the next epoch.
        self.images = images
        self._connection = Connection(workers)
        self._rank = rank
        self._options: TensorsOptions = {"prefetch": 2, **options}

    def __iter__(self) -> Iterator[ImageBatch]:
        info = get_worker_info()
        images = self.images() if callable(self.images) else self.images
        own = shard(
            images, self._rank, (info.id, info.num_workers) if info else (0, 1), self._options.get("batch_size", 32))
        for batch in self._connection.client().tensors(own, **self._options):
            yield _converted(batch)


def _converted(batch: TensorBatch) -> ImageBatch:
    are_numbers = all(_is_number(key) for key in batch.keys)
    return ImageBatch(
        _tensor(batch.array), torch.tensor(batch.keys) if are_numbers else list(batch.keys), torch.from_numpy(batch.mask))


def _is_number(key: object) -> bool:
    return isinstance(key, torch.Tensor) and key.ndim == 0 or isinstance(key, numbers.Real)  # of NumPy, too


def _tensor(array: NDArray[Any]) -> torch.Tensor:
    """Returns a tensor that shares the memory of an array."""
    if array.dtype.name == "bfloat16":  # which torch knows, but not as NumPy does
        return torch.from_numpy(array.view("int16")).view(torch.bfloat16)
    return torch.from_numpy(array)
