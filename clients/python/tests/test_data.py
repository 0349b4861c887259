"""Data sets: batches that are prepared ahead, shares of processes and loaders, tables, and arrays without copies."""

from __future__ import annotations

import asyncio
import pickle
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any

import numpy
import pytest
from fake import FakeWorker
from image_worker import AsyncClient, Client, ImageWorkerError, Item, TensorColumn
from image_worker._shards import shard
from test_tensors import TensorWorker

SIZE: Any = {"width": 4, "height": 2, "dtype": "uint8"}


class PromptWorker(TensorWorker):
    holds = False


def numbers(count: int, bad: tuple[int, ...] = ()) -> list[bytes]:
    return [b"bad" if number in bad else b"%d" % number for number in range(count)]


def rows(batches: list[Any]) -> list[int]:
    return [int(row.max()) for batch in batches for row in batch.array]


def test_keys_are_labels_or_indices() -> None:
    images: list[bytes | Item[str]] = [b"1", Item("cat", b"2"), Item("dog", b"4", fields={"quality": 1}), b"5"]
    with TensorWorker() as worker, Client(worker.address) as client:
        batches = list(client.tensors(images, batch_size=3, **SIZE))
    assert [batch.keys for batch in batches] == [(0, "cat", "dog"), (3,)] and rows(batches)[0] == 1
    assert isinstance(batches[0].errors[2], TypeError) and "item 2: quality is not a field" in str(batches[0].errors[2])


def test_what_becomes_of_an_image_that_fails_is_chosen() -> None:
    images = numbers(20, bad=(0, 4, 5, 19))
    with TensorWorker() as worker, Client(worker.address) as client:
        masked = list(client.tensors(images, batch_size=8, **SIZE))
        assert [batch.mask.tolist() for batch in masked][0] == [False, True, True, True, False, False, True, True]
        assert [len(batch) for batch in masked] == [8, 8, 4] and masked[2].mask.dtype == bool
        skipped = list(client.tensors(images, batch_size=8, errors="skip", **SIZE))
        assert [len(batch) for batch in skipped] == [8, 8] and rows(skipped) == [*range(1, 4), *range(6, 19)]
        assert skipped[1].keys == tuple(range(11, 19)) and skipped[1].start == 11 and all(skipped[1].mask)
        raised = client.tensors(numbers(20, bad=(9,)), batch_size=8, errors="raise", **SIZE)
        assert rows([next(raised)]) == list(range(8))
        with pytest.raises(ImageWorkerError, match="it is bad"):
            next(raised)
        assert list(client.tensors(numbers(3, bad=(0, 1, 2)), errors="skip", **SIZE)) == []
        with pytest.raises(ValueError, match="errors is 'ignore'; it must be one of mask, skip, raise"):
            next(client.tensors(images, errors="ignore", **SIZE))  # type: ignore[arg-type]


def test_so_many_batches_are_prepared_ahead_and_no_more() -> None:
    """While the consumer does nothing."""
    for prefetch, least, most in [(0, 10, 28), (2, 30, 58)]:
        with TensorWorker() as worker, Client(worker.address) as client:
            batches = client.tensors(numbers(100), batch_size=10, prefetch=prefetch, **SIZE)
            first = next(batches)
            deadline = time.monotonic() + 60
            while len(worker.requests) < least and time.monotonic() < deadline:
                time.sleep(0.02)
            time.sleep(0.5)
            assert least <= len(worker.requests) <= most
            assert rows([first, *batches]) == list(range(100))


def test_an_iterator_that_prefetches_can_be_left() -> None:
    with TensorWorker() as worker, Client(worker.address) as client:
        batches = client.tensors(numbers(100), batch_size=4, prefetch=3, **SIZE)
        next(batches)
        batches.close()
        asked = iter([b"1", b"2"])
        with pytest.raises(ZeroDivisionError):
            list(client.tensors((1 // 0 if image == b"2" else image for image in asked), prefetch=3, **SIZE))  # type: ignore[misc]


@pytest.mark.parametrize("options", [{}, {"prefetch": 2}, {"errors": "skip"}, {"shared_memory": True}])
def test_an_error_of_the_images_follows_the_rows_before_it(options: Any) -> None:
    if options.get("shared_memory") and sys.platform != "linux":
        pytest.skip("the worker writes shared memory on Linux alone")

    def images() -> Iterator[bytes]:
        yield from numbers(10)
        raise KeyError("gone")

    taken = []
    with PromptWorker() as worker, Client(worker.address) as client:
        with pytest.raises(KeyError, match="gone"):
            for batch in client.tensors(images(), batch_size=4, **SIZE, **options):
                taken.append(batch)
    assert [len(batch) for batch in taken] == [4, 4, 2] and rows(taken) == list(range(10))


@pytest.mark.parametrize("workers", [1, 3])
def test_shares_are_disjoint_and_in_the_order_of_one_loader(workers: int) -> None:
    images = numbers(50)
    taken: list[Any] = []
    for rank in range(2):
        own = [list(shard(images, (rank, 2), (worker, workers), 4)) for worker in range(workers)]
        batches = [[share[at:at + 4] for at in range(0, len(share), 4)] for share in own]
        # As a loader takes them: in turn.
        order = [share[turn] for turn in range(10) for share in batches if turn < len(share)]
        assert [item.key for batch in order for item in batch] == list(range(rank, 50, 2))
        assert all(len(batch) == 4 for batch in order[:-1])
        taken += [item.key for batch in order for item in batch]
    assert sorted(taken) == list(range(50))
    assert [item.key for item in shard([Item("a", b"1"), b"2"], (0, 1), (0, 1), 4)] == ["a", 1]


def test_tables_get_a_column_of_tensors() -> None:
    images = numpy.array(numbers(5, bad=(3,)), object)
    with PromptWorker() as worker:
        column = TensorColumn(worker.address, **SIZE)
        table = column({"bytes": images, "path": numpy.array(list("abcde")), "label": [1, 2, 3, 4, 5]})
        assert list(table) == ["path", "label", "tensor", "error"] and table["tensor"].shape == (5, 3, 2, 4)
        assert table["error"][:3] == ["", "", ""] and "it is bad" in table["error"][3]
        assert [int(row.max()) for row in table["tensor"]] == [0, 1, 2, 0, 4]
        skipping = TensorColumn(
            partial(Client, worker.address), image_column="image", tensor_column="x", error_column="why", errors="skip", **SIZE)
        # Sent to another process, it connects there.
        skipping = pickle.loads(pickle.dumps(skipping))
        table = skipping({"image": list(images), "path": numpy.array(list("abcde")), "label": [1, 2, 3, 4, 5]})
        assert table["path"].tolist() == list("abce") and table["label"] == [1, 2, 3, 5] and table["why"] == [""] * 4
        assert [int(row.max()) for row in table["x"]] == [0, 1, 2, 4]
        assert column({"bytes": [], "path": []})["tensor"].shape == (0, 3, 2, 4)
        with pytest.raises(KeyError, match="no column 'bytes' with images; the columns are image"):
            column({"image": images})
        with pytest.raises(ImageWorkerError, match="it is bad"):
            TensorColumn(worker.address, errors="raise", **SIZE)({"bytes": images})


def test_rows_of_a_table_of_pandas_are_taken_by_their_position() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"bytes": numbers(5, bad=(3,)), "label": list("abcde")}, index=[9, 3, 1, 0, 2])
    with PromptWorker() as worker:
        assert list(TensorColumn(worker.address, errors="skip", **SIZE)(frame)["label"]) == list("abce")


def test_arrays_are_taken_without_a_copy() -> None:
    with PromptWorker() as worker, Client(worker.address) as client:
        [batch] = client.tensors(numbers(5), **SIZE)
    assert batch.array.ctypes.data % 64 == 0 and batch.array.shape == (5, 3, 2, 4)
    taken = numpy.from_dlpack(batch.array)
    assert taken.ctypes.data == batch.array.ctypes.data and taken.shape == batch.array.shape


def test_jax_takes_arrays_without_a_copy() -> None:
    jax = pytest.importorskip("jax")
    with PromptWorker() as worker, Client(worker.address) as client:
        for batch in client.tensors(numbers(20), batch_size=5, prefetch=1, **SIZE):
            array = jax.dlpack.from_dlpack(batch.array, copy=False)
            assert array.unsafe_buffer_pointer() == batch.array.ctypes.data and int(array.max()) == batch.start + 4


def test_torch_takes_arrays_without_a_copy() -> None:
    torch = pytest.importorskip("torch")
    with PromptWorker() as worker, Client(worker.address) as client:
        [batch] = client.tensors(numbers(5), **SIZE)
        for tensor in (torch.from_dlpack(batch.array), torch.from_numpy(batch.array)):
            assert tensor.data_ptr() == batch.array.ctypes.data and int(tensor.max()) == 4


def shuffled() -> list[Any]:
    return [Item(number % 3, image) for number, image in reversed(list(enumerate(numbers(30, bad=(7,)))))]


@pytest.mark.parametrize("loaders, context", [(0, None), (2, "spawn")])
def test_a_loader_of_torch_has_the_order_of_the_images(loaders: int, context: str | None) -> None:
    data = pytest.importorskip("torch.utils.data")
    from image_worker.torch import ImageDataset

    with PromptWorker() as worker:
        dataset = ImageDataset(worker.address, shuffled, batch_size=4, **SIZE)
        loader = data.DataLoader(dataset, batch_size=None, num_workers=loaders, multiprocessing_context=context)
        batches = list(loader)
        values = [int(image.max()) for batch in batches for image in batch.images]
        assert values == [0 if number == 7 else number for number in reversed(range(30))]
        assert [bool(ok) for batch in batches for ok in batch.mask] == [number != 7 for number in reversed(range(30))]
        assert [int(key) for batch in batches for key in batch.keys] == [number % 3 for number in reversed(range(30))]
        # The next epoch has the images that were assigned.
        dataset.images = numbers(3)
        assert [batch.keys.tolist() for batch in loader] == [[0, 1, 2]]


FORKED = """if True:
    import sys
    from image_worker import Client
    from image_worker.torch import ImageDataset
    from torch.utils.data import DataLoader

    dataset = ImageDataset(sys.argv[1], [b"%d" % number for number in range(30)], batch_size=4, width=4, height=2, dtype="uint8")
    loader = DataLoader(dataset, batch_size=None, num_workers=2, multiprocessing_context="fork")
    print([key for batch in loader for key in batch.keys.tolist()] == list(range(30)))
    next(iter(dataset))
    try:
        next(iter(loader))
    except RuntimeError as error:
        print(str(error).splitlines()[-1])
"""


def test_loaders_that_fork_work_before_the_first_call() -> None:
    pytest.importorskip("torch")
    with PromptWorker() as worker:
        called = subprocess.run([sys.executable, "-c", FORKED, worker.address], capture_output=True, text=True, timeout=120)
    assert called.stdout.startswith("True\n") and 'multiprocessing_context="spawn"' in called.stdout, called


def test_a_data_set_of_torch_names_mistakes_and_converts() -> None:
    torch = pytest.importorskip("torch")
    from image_worker.torch import ImageDataset, _tensor

    with pytest.raises(ValueError, match=r"rank is \(8, 8\)"):
        ImageDataset("127.0.0.1:1", [], rank=(8, 8), **SIZE)
    with PromptWorker() as worker:
        images: list[Any] = [Item("cat", b"1"), Item("dog", b"2")]
        [batch] = ImageDataset(partial(Client, worker.address), images, rank=(1, 2), **SIZE)
        assert batch.keys == ["dog"] and batch.images.shape == (1, 3, 2, 4) and batch.images.dtype == torch.uint8
        for labels in (numpy.array([7, 8]), torch.tensor([7, 8]), [7, 8.5]):
            [batch] = ImageDataset(worker.address, [Item(label, b"1") for label in labels], **SIZE)
            assert batch.keys.tolist() == [7, float(labels[1])]
        with pytest.raises(ImageWorkerError, match="it is bad"):
            list(ImageDataset(worker.address, numbers(3, bad=(1,)), errors="raise", **SIZE))
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = numpy.array([[1.5, -2]], ml_dtypes.bfloat16)
    assert _tensor(array).dtype == torch.bfloat16 and _tensor(array).tolist() == [[1.5, -2]]


def test_torch_is_optional() -> None:
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "import image_worker\n"
        "try: import image_worker.torch\n"
        "except ImportError as error: print(error)\n")
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "pip install torch" in printed


def test_batches_come_over_asyncio() -> None:
    async def images() -> AsyncIterator[bytes]:
        for image in numbers(9):
            yield image

    async def collected(address: str) -> list[Any]:
        async with AsyncClient(address) as client:
            return [batch async for batch in client.tensors(images(), batch_size=4, prefetch=2, **SIZE)]

    with PromptWorker() as worker:
        assert rows(asyncio.run(collected(worker.address))) == list(range(9))
