#!/usr/bin/env python3
"""Processes the images of a folder or bucket with Ray Data. Usage: ray_images.py INPUT OUTPUT HOST:PORT[,...] [PRESET]

Needs `pip install "ray[data]"` and the Python client on all nodes. OUTPUT gets Parquet files with `path`, `data` and `error`.
"""

import sys

import ray
from image_worker import Client


class Processing:
    """An actor, which keeps its connections between batches."""

    def __init__(self, addresses: list[str], preset: str):
        self.client, self.preset = Client(addresses), preset

    def __call__(self, batch: dict) -> dict:
        items = zip(batch["path"], batch["bytes"], strict=True)
        outcomes = list(self.client.batch(items, preset=self.preset))
        return {
            "path": [outcome.key for outcome in outcomes],
            "data": [outcome.result.data if outcome.result else b"" for outcome in outcomes],
            "error": [str(outcome.error or "") for outcome in outcomes]}


def main(source: str, target: str, addresses: str, preset: str = "thumbnail") -> None:
    images = ray.data.read_binary_files(source, include_paths=True)
    results = images.map_batches(
        Processing, fn_constructor_args=[addresses.split(","), preset], batch_size=64,
        # The actors only wait for the workers; they need no whole core.
        num_cpus=0.25, compute=ray.data.ActorPoolStrategy(size=2))
    results.write_parquet(target)


if __name__ == "__main__":
    main(*sys.argv[1:])
