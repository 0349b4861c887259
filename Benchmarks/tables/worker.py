"""The worker as a process and its client: those of the tests, adapted for measurements."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "Tests" / "EndToEnd"))
import conftest  # noqa: E402
from conftest import UNLIMITED, fixture_bytes  # noqa: E402

__all__ = ["UNLIMITED", "Client", "Worker", "fixture_bytes"]


class Worker(conftest.Worker):
    """A worker without a result cache, so that every call does its work, and without isolation, unless `options` ask for it."""

    def __init__(self, *options: str, environment: dict[str, str] | None = None):
        super().__init__("--cache-memory-mib", "0", "--isolation", "none", *options, environment=environment)


class Client(conftest.Client):
    def configuration(self, job):
        """Returns the ProcessingConfiguration for a job of peers.py."""
        formats = {"jpeg": 2, "png": 3, "webp": 4}
        return self.message("ProcessingConfiguration")(
            max_width=job.width, max_height=job.height, compression_quality=job.quality / 100,
            preferred_format=formats[job.format], always_encode=True)

    def request(self, image: bytes, job):
        return self.message("ProcessImageRequest")(image=image, configuration=self.configuration(job))

    def process(self, image: bytes, job, timeout: float = 120):
        return self.call("ProcessImage", "unary_stream")(self.request(image, job), timeout=timeout)
