"""Client of image-worker, a gRPC service that resizes, converts and compresses images.

`Client` is for ordinary code, `AsyncClient` for asyncio. Both have the same methods. `image_worker.torch` has a data set for
PyTorch.
"""

from ._batch import BatchResult, Item
from ._client import AsyncClient
from ._columns import TensorColumn
from ._errors import (
    AuthenticationError, DeadlineError, ImageError, ImageWorkerError, InvalidRequestError, LimitExceededError,
    OverloadedError, UnavailableError)
from ._generated.fields import Fields
from ._generated.image_worker_pb2 import (
    GainMapInfo, ImageInfo, InspectImageResponse, Preset, ProcessingReport, TensorInfo, WarningCode, WarningDetail)
from ._options import TLS, RetryPolicy
from ._requests import Overlay
from ._results import Result
from ._sources import Source
from ._sync import Client
from ._tensors import TensorBatch, TensorOptions, TensorsOptions

__all__ = [
    "TLS", "AsyncClient", "AuthenticationError", "BatchResult", "Client", "DeadlineError", "Fields", "GainMapInfo",
    "ImageError", "ImageInfo", "ImageWorkerError", "InspectImageResponse", "InvalidRequestError", "Item",
    "LimitExceededError", "Overlay", "OverloadedError", "Preset", "ProcessingReport", "Result", "RetryPolicy", "Source",
    "TensorBatch", "TensorColumn", "TensorInfo", "TensorOptions", "TensorsOptions", "UnavailableError", "WarningCode",
    "WarningDetail"]
