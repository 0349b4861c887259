#!/usr/bin/env python3
"""Makes tensors of the images of a folder or bucket with Ray Data. Usage: ray_tensors.py INPUT OUTPUT HOST:PORT[,...] [SIZE]

Needs `pip install "ray[data]"` and the Python client with NumPy on all nodes. OUTPUT gets Parquet files with `path`, `tensor`, of
the shape [3, SIZE, SIZE], and `error`. For a training, iterate over `tensors(...)` with `iter_torch_batches` or `iter_batches`.
"""

import sys

import ray
from image_worker import TensorColumn


def tensors(source: str, addresses: list[str], **options: object) -> ray.data.Dataset:
    """Returns a data set with the columns `path`, `tensor` and `error`. `options` are those of `Client.tensors`."""
    return ray.data.read_binary_files(source, include_paths=True).map_batches(
        TensorColumn, fn_constructor_args=[addresses], fn_constructor_kwargs=options, batch_size=64,
        # The actors only wait for the workers; they need no whole core.
        num_cpus=0.25, compute=ray.data.ActorPoolStrategy(size=2))


def main(source: str, target: str, addresses: str, size: str = "224") -> None:
    tensors(
        source, addresses.split(","), width=int(size), height=int(size), dtype="float16", normalize="imagenet",
    ).write_parquet(target)


if __name__ == "__main__":
    main(*sys.argv[1:])
