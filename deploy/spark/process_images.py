#!/usr/bin/env python3
"""A Spark job that processes the images of a folder or bucket with a fleet of workers.

    spark-submit --py-files image_worker.zip process_images.py INPUT OUTPUT HOST:PORT[,...] [PRESET]

INPUT is anything that Spark reads as `binaryFile`: file://, s3a://, gs://, hdfs://. OUTPUT gets a table in Parquet with a row
for each image: `path`, `data` (null if it failed), `format`, `width`, `height`, `input_bytes`, `output_bytes`, `milliseconds`,
`attempts`, `reason` and `error`, and the facts of images whose preset asks for them. Failed images do not fail the job; see
`reason`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import (
    ArrayType, BinaryType, BooleanType, FloatType, IntegerType, LongType, StringType, StructField, StructType)

#: What an image looks like: see ImageFacts of the contract. The hashes have the bits of its 64-bit numbers, and a sign.
FACTS = [
    StructField("thumb_hash", BinaryType()), StructField("blur_hash", StringType()), StructField("mean_color", StringType()),
    StructField("perceptual_hash", LongType()), StructField("difference_hash", LongType()),
    StructField("is_opaque", BooleanType()), StructField("is_gray", BooleanType()),
    StructField("is_photographic", BooleanType())]

SCHEMA = StructType([
    StructField("path", StringType(), False), StructField("data", BinaryType()), StructField("format", StringType()),
    StructField("width", IntegerType()), StructField("height", IntegerType()), StructField("input_bytes", LongType()),
    StructField("output_bytes", LongType()), StructField("milliseconds", LongType()), StructField("attempts", IntegerType()),
    StructField("reason", StringType()), StructField("error", StringType()), *FACTS])

#: Of a table of facts, for which no result is made.
FACTS_SCHEMA = StructType([
    StructField("path", StringType(), False), StructField("format", StringType()), StructField("width", IntegerType()),
    StructField("height", IntegerType()), StructField("reason", StringType()), StructField("error", StringType()), *FACTS])

#: Of a table of tensors. Their elements are in a row, as `predict_batch_udf` takes them.
TENSOR_SCHEMA = StructType([
    StructField("path", StringType(), False), StructField("tensor", ArrayType(FloatType(), False)),
    StructField("reason", StringType()), StructField("error", StringType())])

#: Images that a task inspects at the same time.
INSPECTIONS = 8
#: Images that a task reads at a time. With 1 MB each, a task needs some 50 MB.
ROWS_PER_BATCH = 32
#: More are an error.
MAX_ROWS_PER_BATCH = 512
#: Spark's setting of it, whose default of 10,000 rows would take all of these images into memory.
BATCH_SETTING = "spark.sql.execution.arrow.maxRecordsPerBatch"


def configured(spark: SparkSession) -> SparkSession:
    """Lets the tasks of a session read `ROWS_PER_BATCH` images at a time."""
    spark.conf.set(BATCH_SETTING, str(ROWS_PER_BATCH))
    return spark


def processed(
    images: DataFrame, addresses: list[str], preset: str = "", **fields: object,
) -> DataFrame:
    """Returns a row of `SCHEMA` for each row of `images`, which has the columns `path` and `content`.

    The images are processed each time that the result is used: write it once, or persist it before several uses. The session
    must read at most some dozens of rows at a time; `configured` sets that.
    """
    return _checked(images).mapInPandas(_task(addresses, preset, fields), SCHEMA)


def facts(images: DataFrame, addresses: list[str], preset: str = "", **fields: object) -> DataFrame:
    """Returns a row of `FACTS_SCHEMA` for each row of `images`, as `processed` does, and makes no results.

    Images are decoded at a small size. `fields` are those that apply to an inspection, such as `crop`.
    """
    return _checked(images).mapInPandas(_facts_task(addresses, preset, fields), FACTS_SCHEMA)


def tensors(images: DataFrame, addresses: list[str], width: int, height: int, **options: object) -> DataFrame:
    """Returns a row of `TENSOR_SCHEMA` for each row of `images`, as `processed` does.

    The tensors have the shape [3, height, width] and elements of 32 bits. `options` are those of `Client.tensors`, such as
    `normalize`, which must not change that.
    """
    options = {"width": width, "height": height, **options}
    return _checked(images).mapInPandas(_tensor_task(addresses, options), TENSOR_SCHEMA)


def _checked(images: DataFrame) -> DataFrame:
    rows = int(images.sparkSession.conf.get(BATCH_SETTING))
    if not 0 < rows <= MAX_ROWS_PER_BATCH:
        raise ValueError(f"{BATCH_SETTING} is {rows}, but a task holds that many images; set at most {MAX_ROWS_PER_BATCH}, "
                         f"such as {ROWS_PER_BATCH} with process_images.configured(spark)")
    return images.select("path", "content")


def _task(
    addresses: list[str], preset: str, fields: dict[str, object],
) -> Callable[[Iterator[pd.DataFrame]], Iterator[pd.DataFrame]]:
    def run(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        # Imported and connected on the executor: a task has a client of its own.
        from image_worker import Client

        with Client(addresses) as client:
            for batch in batches:
                items = list(zip(batch["path"], batch["content"], strict=True))
                # An item whose worker is lost goes to another. If no worker is left, this raises, and Spark runs the task
                # again elsewhere.
                rows = [_row(outcome) for outcome in client.batch(items, preset=preset, **fields)]
                # `object`, as pandas turns integers next to None into floats, which lose bits of a hash.
                yield pd.DataFrame(rows, columns=SCHEMA.names, dtype=object)

    return run


def _facts_task(
    addresses: list[str], preset: str, fields: dict[str, object],
) -> Callable[[Iterator[pd.DataFrame]], Iterator[pd.DataFrame]]:
    def run(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        from image_worker import Client, ImageError, LimitExceededError

        with Client(addresses) as client, ThreadPoolExecutor(INSPECTIONS) as threads:
            def row(path: str, content: bytes) -> tuple[object, ...]:
                try:
                    found = client.inspect(content, preset=preset, **{**fields, "facts": True})
                except (ImageError, LimitExceededError) as error:
                    return (path, None, None, None, error.reason, str(error), *_facts(None))
                info = found.info
                return (path, info.format, info.width, info.height, None, None, *_facts(found.facts))

            for batch in batches:
                yield pd.DataFrame(list(threads.map(row, batch["path"], batch["content"])), columns=FACTS_SCHEMA.names, dtype=object)

    return run


def _tensor_task(
    addresses: list[str], options: dict[str, object],
) -> Callable[[Iterator[pd.DataFrame]], Iterator[pd.DataFrame]]:
    def run(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        from image_worker import Client, Item

        with Client(addresses) as client:
            for rows in batches:
                items = [Item(path, content) for path, content in zip(rows["path"], rows["content"], strict=True)]
                for batch in client.tensors(items, **options):
                    yield pd.DataFrame(
                        [(path, None, _reason(error), str(error)) if error else (path, array.reshape(-1), None, None)
                         for path, array, error in zip(batch.keys, batch.array, batch.errors, strict=True)],
                        columns=TENSOR_SCHEMA.names)

    return run


def _reason(error: Exception) -> str:
    return getattr(error, "reason", "") or type(error).__name__


def _row(outcome) -> tuple[object, ...]:
    result, error = outcome.result, outcome.error
    if result is None:
        return (outcome.key, None, None, None, None, None, None, None, outcome.attempts, _reason(error), str(error),
                *_facts(None))
    report = result.report
    return (outcome.key, result.data, result.format, result.width, result.height, report.input_bytes, report.output_bytes,
            report.timings.total.ToMilliseconds(), outcome.attempts, None, None,
            *_facts(report.facts if report.HasField("facts") else None))


def _facts(facts) -> tuple[object, ...]:
    """Returns the columns of `FACTS`; empty ones for None."""
    if facts is None:
        return (None,) * len(FACTS)
    color = facts.mean_color
    hashes = [number - (1 << 64) if number >> 63 else number for number in (facts.perceptual_hash, facts.difference_hash)]
    return (facts.thumb_hash, facts.blur_hash, f"#{color.red:02x}{color.green:02x}{color.blue:02x}", *hashes,
            facts.is_opaque, facts.is_gray, facts.is_photographic)


def main(source: str, target: str, addresses: str, preset: str = "thumbnail") -> None:
    spark = configured(SparkSession.builder.appName("image-worker").getOrCreate())
    images = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(source)
    processed(images, addresses.split(","), preset).write.mode("errorifexists").parquet(target)
    spark.read.parquet(target).groupBy("reason").count().show()


if __name__ == "__main__":
    main(*sys.argv[1:])
