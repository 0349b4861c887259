#!/usr/bin/env python3
"""Processes the images that match a pattern with Apache Beam. Usage: beam_images.py PATTERN OUTPUT HOST:PORT[,...] [PRESET]

Needs `pip install apache-beam` and the Python client on all nodes. Results go to the folder OUTPUT under the hash of their path,
failures to OUTPUT/failures.
"""

import hashlib
import sys

import apache_beam as beam
from apache_beam.io import fileio
from apache_beam.io.filesystems import FileSystems
from image_worker import Client


class Processing(beam.DoFn):
    """Processes batches of images, with connections that last as long as the worker process of Beam."""

    def __init__(self, addresses: list[str], preset: str):
        self.addresses, self.preset = addresses, preset

    def setup(self) -> None:
        self.client = Client(self.addresses)

    def teardown(self) -> None:
        self.client.close()

    def process(self, files: list):
        items = ((file.metadata.path, file.read()) for file in files)
        for outcome in self.client.batch(items, preset=self.preset):
            if outcome.result:
                yield outcome.key, outcome.result.data
            else:
                yield beam.pvalue.TaggedOutput("failures", f"{outcome.key}\t{outcome.error}")


def write(result: tuple[str, bytes], folder: str) -> None:
    """Writes under a name that depends on the path alone, so that a bundle that runs twice writes the same file twice."""
    name = hashlib.sha256(result[0].encode()).hexdigest()
    with FileSystems.create(f"{folder}/{name}", "application/octet-stream") as file:
        file.write(result[1])


def main(pattern: str, target: str, addresses: str, preset: str = "thumbnail") -> None:
    with beam.Pipeline() as pipeline:
        results = (
            pipeline | fileio.MatchFiles(pattern) | fileio.ReadMatches() | beam.BatchElements(min_batch_size=16, max_batch_size=64)
            | beam.ParDo(Processing(addresses.split(","), preset)).with_outputs("failures", main="results"))
        results.results | beam.Map(write, target)
        results.failures | beam.io.WriteToText(f"{target}/failures/part")


if __name__ == "__main__":
    main(*sys.argv[1:])
