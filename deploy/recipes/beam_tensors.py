#!/usr/bin/env python3
"""Makes tensors of the images that match a pattern with Apache Beam. Usage: beam_tensors.py PATTERN OUTPUT HOST:PORT[,...] [SIZE]

Needs `pip install apache-beam` and the Python client with NumPy on all nodes. OUTPUT-*.parquet get `path` and `tensor`, the elements
of [3, SIZE, SIZE] in a row; failures go to OUTPUT-failures-*. For a model, pass what `Tensors` returns to `RunInference` instead.
"""

import sys

import apache_beam as beam
import pyarrow
from apache_beam.io import fileio
from image_worker import Client, Item


class Tensors(beam.DoFn):
    """Returns the path and the array of each image, with connections that last as long as the worker process of Beam.

    `options` are those of `Client.tensors`.
    """

    def __init__(self, addresses: list[str], **options: object):
        self.addresses, self.options = addresses, options

    def setup(self) -> None:
        self.client = Client(self.addresses)

    def teardown(self) -> None:
        self.client.close()

    def process(self, files: list):
        items = (Item(file.metadata.path, file.read()) for file in files)
        for batch in self.client.tensors(items, **self.options):
            for path, array, error in zip(batch.keys, batch.array, batch.errors, strict=True):
                yield beam.pvalue.TaggedOutput("failures", f"{path}\t{error}") if error else (path, array)


def main(pattern: str, target: str, addresses: str, size: str = "224") -> None:
    schema = pyarrow.schema([("path", pyarrow.string()), ("tensor", pyarrow.list_(pyarrow.float32()))])
    options = {"width": int(size), "height": int(size), "normalize": "imagenet"}
    with beam.Pipeline() as pipeline:
        results = (
            pipeline | fileio.MatchFiles(pattern) | fileio.ReadMatches() | beam.BatchElements(min_batch_size=16, max_batch_size=64)
            | beam.ParDo(Tensors(addresses.split(","), **options)).with_outputs("failures", main="tensors"))
        rows = results.tensors | beam.MapTuple(lambda path, array: {"path": path, "tensor": array.reshape(-1)})
        rows | beam.io.WriteToParquet(target, schema, file_name_suffix=".parquet")
        results.failures | beam.io.WriteToText(f"{target}-failures")


if __name__ == "__main__":
    main(*sys.argv[1:])
