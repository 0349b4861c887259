"""How a client connects, retries and paces."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass
from pathlib import Path

import grpc


@dataclass(frozen=True)
class TLS:
    """The certificates of a connection. Each is PEM bytes, or the path of a file.

    Without `root_certificates` the worker's certificate is checked against those that gRPC ships. `certificate` and
    `private_key` identify the client. `server_name` replaces the host name that the worker's certificate must have.
    """

    root_certificates: bytes | str | os.PathLike[str] | None = None
    certificate: bytes | str | os.PathLike[str] | None = None
    private_key: bytes | str | os.PathLike[str] | None = None
    server_name: str | None = None

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.private_key is None):
            raise ValueError("certificate and private_key must be set together")

    def credentials(self) -> grpc.ChannelCredentials:
        """Returns the credentials of a channel."""
        return grpc.ssl_channel_credentials(
            _pem(self.root_certificates), _pem(self.private_key), _pem(self.certificate))


@dataclass(frozen=True)
class RetryPolicy:
    """When and how often requests are sent again.

    Images are processed the same way each time, so everything that another attempt can change is retried: a worker that is
    full or shutting down, and a connection that broke. The delay of the worker (`retry_after`) counts if it is longer.
    """

    #: The number of times that an image is sent at most. An image during which so many streams broke may be what
    #: breaks them.
    attempts: int = 6
    #: The number of times that an item of a batch is sent again because the worker had no room for it.
    overload_attempts: int = 100
    #: The first delay in seconds, which doubles each time.
    initial_delay: float = 0.1
    #: The longest delay in seconds.
    max_delay: float = 5.0
    #: A call, or a stream of a batch with items in flight, counts as broken if no result makes progress for so many seconds.
    #: Longer than what a worker may spend on one image.
    stall_after: float = 150.0
    #: A batch ends if for so many seconds no worker could be reached.
    give_up_after: float = 120.0

    def delay(self, failures: int) -> float:
        """Returns the delay after a number of failures, varied so that clients do not return at the same moment."""
        longest = min(self.max_delay, self.initial_delay * 2.0 ** min(failures - 1, 20))
        return longest * random.uniform(0.5, 1.0)


#: The default of `max_result_bytes`.
MAX_RESULT_BYTES = 128 << 20


def _pem(value: bytes | str | os.PathLike[str] | None) -> bytes | None:
    return value if value is None or isinstance(value, bytes) else Path(value).read_bytes()
