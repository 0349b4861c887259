"""Errors as exceptions, with the details that the worker sends."""

from __future__ import annotations

from collections.abc import Mapping

import grpc
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2

DOMAIN = "imageworker.v1"
_MAX_DELAY = 86_400.0  # seconds
_CODES: dict[int, grpc.StatusCode] = {code.value[0]: code for code in grpc.StatusCode}

# Without a reason these mean that the connection or the worker was lost, not that the request is at fault.
_LOST = frozenset({
    grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN, grpc.StatusCode.CANCELLED,
    grpc.StatusCode.ABORTED})
#: The worker, or what it grants this client, is exhausted for now.
EXHAUSTED = frozenset({"OVERLOADED", "QUOTA_EXCEEDED"})
_RETRYABLE_REASONS = frozenset({"OVERLOADED", "DRAINING", "UPLOAD_STALLED"})
#: The longest delay in seconds that a batch waits because a worker asks for it. A quota of an hour is nothing to wait for.
_MAX_RETRY_DELAY = 60.0


class ImageWorkerError(Exception):
    """An error of the service, or of the connection to it.

    Decide by `reason`, or by the subclass; messages may change.
    """

    def __init__(
        self, message: str, *, code: grpc.StatusCode = grpc.StatusCode.UNKNOWN, reason: str = "",
        metadata: Mapping[str, str] | None = None, retry_after: float | None = None, field: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        #: The status code.
        self.code = code
        #: The reason, such as "CORRUPT_IMAGE"; empty if the error did not come from the service itself.
        self.reason = reason
        #: The metadata of the error's ErrorInfo.
        self.metadata = dict(metadata or {})
        #: The seconds to wait before a retry, if the worker sent them.
        self.retry_after = retry_after
        #: The path of the field that is the cause, such as "configuration.max_width"; empty if there is none.
        self.field = field or self.metadata.get("field", "")
        #: The limit that was exceeded; empty if none was.
        self.limit_name = self.metadata.get("limit_name", "")

    @property
    def limit(self) -> int | None:
        """The limit that was exceeded."""
        return _integer(self.metadata.get("limit"))

    @property
    def value(self) -> int | None:
        """The value that exceeds `limit`."""
        return _integer(self.metadata.get("value"))

    @property
    def is_retryable(self) -> bool:
        """Whether the same request can succeed later, or on another worker."""
        if self.reason == "QUOTA_EXCEEDED":
            return self.retry_after is not None and self.retry_after <= _MAX_RETRY_DELAY
        if self.reason:
            return self.reason in _RETRYABLE_REASONS or self.code is grpc.StatusCode.UNAVAILABLE
        return self.is_lost or self.retry_after is not None

    @property
    def retry_delay(self) -> float:
        """The seconds that the worker asks to wait before a retry, as far as a batch obeys."""
        return min(self.retry_after or 0.0, _MAX_RETRY_DELAY)

    @property
    def is_end(self) -> bool:
        """Whether the worker takes no images any more."""
        return self.code is grpc.StatusCode.UNAVAILABLE or self.reason == "DRAINING"

    @property
    def is_lost(self) -> bool:
        """Whether the connection or the worker was lost; the error did not come from the service itself."""
        return not self.reason and self.code in _LOST

    def __str__(self) -> str:
        return f"{self.reason or self.code.name}: {self.message}"

    def __reduce__(self) -> tuple[object, ...]:
        # Errors travel between processes, in multiprocessing and Spark.
        return _restored, (type(self), self.message, self.code.value[0], self.reason, self.metadata, self.retry_after,
                           self.field)


class InvalidRequestError(ImageWorkerError):
    """A field or the preset of the request is not valid, or not supported by this worker."""


class ImageError(ImageWorkerError):
    """The image is empty, truncated, corrupt, or of a format that is not supported."""


class LimitExceededError(ImageWorkerError):
    """The image, its result, or `max_bytes`, exceeds a limit: see `limit_name`, `limit` and `value`."""


class OverloadedError(ImageWorkerError):
    """The worker has no room for the image now; `retry_after` is the delay that it asks for."""


class UnavailableError(ImageWorkerError):
    """No worker could be reached, or the connection was lost."""


class DeadlineError(ImageWorkerError):
    """The timeout of the call or item passed."""


class AuthenticationError(ImageWorkerError):
    """The worker does not accept the token or certificate."""


_BY_REASON: dict[str, type[ImageWorkerError]] = {
    "INVALID_FIELD": InvalidRequestError, "UNSERVED_FIELD": InvalidRequestError, "UNKNOWN_PRESET": InvalidRequestError,
    "EMPTY_IMAGE": ImageError, "UNKNOWN_FORMAT": ImageError, "UNSUPPORTED_IMAGE": ImageError, "CORRUPT_IMAGE": ImageError,
    "TRUNCATED_IMAGE": ImageError, "LIMIT_EXCEEDED": LimitExceededError, "OVERLOADED": OverloadedError,
    "DRAINING": UnavailableError, "UPLOAD_STALLED": DeadlineError}
_BY_CODE: dict[grpc.StatusCode, type[ImageWorkerError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidRequestError, grpc.StatusCode.FAILED_PRECONDITION: LimitExceededError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: OverloadedError, grpc.StatusCode.UNAVAILABLE: UnavailableError,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineError, grpc.StatusCode.UNAUTHENTICATED: AuthenticationError,
    grpc.StatusCode.PERMISSION_DENIED: AuthenticationError}


def error_class(code: grpc.StatusCode, reason: str) -> type[ImageWorkerError]:
    """Returns the class of an error: by its reason, and by its code if the reason is not known."""
    return _BY_REASON.get(reason) or _BY_CODE.get(code, ImageWorkerError)


def from_status(status: status_pb2.Status) -> ImageWorkerError:
    """Creates the error of a status, which an item of a batch or a rendition ends with."""
    reason, metadata, retry_after, field = "", {}, None, ""
    for detail in status.details:
        info, retry, bad = error_details_pb2.ErrorInfo(), error_details_pb2.RetryInfo(), error_details_pb2.BadRequest()
        try:
            if detail.Unpack(info) and info.domain == DOMAIN:
                reason, metadata = info.reason, dict(info.metadata)
            elif detail.Unpack(retry):
                retry_after = min(max(retry.retry_delay.seconds + retry.retry_delay.nanos / 1e9, 0.0), _MAX_DELAY)
            elif detail.Unpack(bad) and bad.field_violations:
                field = bad.field_violations[0].field
        except DecodeError:
            continue
    code = _CODES.get(status.code, grpc.StatusCode.UNKNOWN)
    # The path of a field is the same whether the image went over ProcessImage or BatchProcess.
    field = (field or metadata.get("field", "")).removeprefix("start.")
    return error_class(code, reason)(
        status.message, code=code, reason=reason, metadata=metadata, retry_after=retry_after, field=field)


def from_rpc_error(error: grpc.aio.AioRpcError) -> ImageWorkerError:
    """Creates the error that a call ended with."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            try:
                return from_status(status_pb2.Status.FromString(value if isinstance(value, bytes) else value.encode()))
            except DecodeError:
                break
    code = error.code()
    return error_class(code, "")(error.details() or code.name, code=code)


def lost(message: str) -> UnavailableError:
    """Creates the error of a stream that ended without the result."""
    return UnavailableError(message, code=grpc.StatusCode.UNAVAILABLE)


def stalled(seconds: float) -> UnavailableError:
    """Creates the error of a call on which nothing happened for too long."""
    return lost(f"the call made no progress for {seconds:g} s")


def timed_out(seconds: float) -> DeadlineError:
    """Creates the error of a timeout that passed in the client."""
    return DeadlineError(f"no result after {seconds:g} s", code=grpc.StatusCode.DEADLINE_EXCEEDED)


def too_large(size: int, limit: int) -> LimitExceededError:
    """Creates the error of a result that exceeds what the client accepts."""
    return LimitExceededError(
        f"the result has more than {limit} bytes; raise max_result_bytes of the client if that is expected",
        code=grpc.StatusCode.FAILED_PRECONDITION,
        metadata={"limit_name": "max_result_bytes", "limit": str(limit), "value": str(size)})


def incomplete(size: int, expected: int) -> ImageWorkerError:
    """Creates the error of a result that has another size than its report states."""
    return ImageWorkerError(
        f"{size} bytes of the result have arrived, of which its report counts {expected}", code=grpc.StatusCode.DATA_LOSS)


def _restored(
    kind: type[ImageWorkerError], message: str, code: int, reason: str, metadata: dict[str, str], retry_after: float | None,
    field: str,
) -> ImageWorkerError:
    return kind(message, code=_CODES[code], reason=reason, metadata=metadata, retry_after=retry_after, field=field)


def _integer(text: str | None) -> int | None:
    return int(text) if text and text.lstrip("-").isdigit() else None
