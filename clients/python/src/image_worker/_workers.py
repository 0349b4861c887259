"""The connections to the workers, and which of them the next call uses."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import grpc

from ._addresses import is_local
from ._fork import check_fork, note_use
from ._generated import image_worker_pb2 as wire
from ._options import TLS, RetryPolicy

_SERVICE = "/imageworker.v1.ImageWorkerService/"
_OPTIONS: list[tuple[str, Any]] = [
    # The contract limits the parts of a result to 64 KiB; everything else that workers send is small, too.
    ("grpc.max_receive_message_length", 4 << 20),
    ("grpc.max_send_message_length", -1),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.min_reconnect_backoff_ms", 1_000),
    ("grpc.max_reconnect_backoff_ms", 5_000),
    # Retries are made here, where an upload can be read again.
    ("grpc.enable_retries", 0),
    # A name with several addresses, such as that of a headless service, is balanced over all of them.
    ("grpc.service_config", '{"loadBalancingConfig": [{"round_robin": {}}]}'),
]


class Worker:
    """One connection."""

    def __init__(self, address: str, credentials: grpc.ChannelCredentials | None, options: Sequence[tuple[str, Any]]) -> None:
        self.address = address
        if is_local(address):  # no proxy, which a token without TLS must not reach
            options = [*options, ("grpc.enable_http_proxy", 0)]
        self.channel = (
            grpc.aio.secure_channel(address, credentials, options=options) if credentials
            else grpc.aio.insecure_channel(address, options=options))
        self.process: Any = self.channel.unary_stream(
            _SERVICE + "ProcessImage", wire.ProcessImageRequest.SerializeToString, wire.ProcessImageResponse.FromString)
        self.batch: Any = self.channel.stream_stream(
            _SERVICE + "BatchProcess", wire.BatchProcessRequest.SerializeToString, wire.BatchProcessResponse.FromString)
        self.inspect: Any = self.channel.unary_unary(
            _SERVICE + "InspectImage", wire.InspectImageRequest.SerializeToString, wire.InspectImageResponse.FromString)
        self.presets: Any = self.channel.unary_unary(
            _SERVICE + "ListPresets", wire.ListPresetsRequest.SerializeToString, wire.ListPresetsResponse.FromString)
        #: The calls and streams that are open.
        self.load = 0
        #: The number of the last call that used it.
        self.turn = 0
        self.failures = 0
        self.available_at = 0.0

    async def connect(self, timeout: float) -> bool:
        """Returns whether the connection is up, and sets it up if it is not."""
        deadline = asyncio.get_running_loop().time() + timeout
        while (state := self.channel.get_state(try_to_connect=True)) is not grpc.ChannelConnectivity.READY:
            if state in (grpc.ChannelConnectivity.TRANSIENT_FAILURE, grpc.ChannelConnectivity.SHUTDOWN):
                return False
            try:
                await asyncio.wait_for(
                    self.channel.wait_for_state_change(state), deadline - asyncio.get_running_loop().time())
            except asyncio.TimeoutError:
                return False
        return True


class Workers:
    """All connections of a client."""

    def __init__(
        self, addresses: Sequence[str], tls: TLS | None, token: str | Callable[[], str] | None, connections: int,
        retry: RetryPolicy, affinity: bool, max_result_bytes: int,
    ) -> None:
        note_use()
        options = list(_OPTIONS)
        if tls and tls.server_name:
            options.append(("grpc.ssl_target_name_override", tls.server_name))
        if connections > 1:
            options.append(("grpc.use_local_subchannel_pool", 1))
        credentials = tls.credentials() if tls else None
        self.all = [Worker(address, credentials, options) for _ in range(connections) for address in addresses]
        self.retry = retry
        self.affinity = affinity
        self.max_result_bytes = max_result_bytes
        self._turns = itertools.count(1)
        self._token = _checked(token) if isinstance(token, str) else token
        self._is_closed = False

    def check_open(self) -> None:
        """Raises `RuntimeError` if the client is closed, or if it is that of the process from which this one was forked."""
        check_fork()
        if self._is_closed:
            raise RuntimeError("the client is closed")

    def metadata(self, key: str | None = None) -> list[tuple[str, str]]:
        """Returns the metadata of a call, for an image with this key."""
        metadata = [] if key is None else [("x-image-key", key)]
        if self._token is not None:
            metadata.append(("authorization", f"Bearer {self._token if isinstance(self._token, str) else _checked(self._token())}"))
        return metadata

    async def close(self) -> None:
        """Closes all connections and ends their calls."""
        self._is_closed = True
        await asyncio.gather(*(worker.channel.close() for worker in self.all))

    @contextmanager
    def use(self, key: str | None = None) -> Iterator[Worker]:
        """Chooses the connection with the fewest calls of those that did not fail just now; in turn if several have.

        With a key, those to the worker of that key come first: the one with the largest hash of both, so that the images of a
        worker that fails are spread over all others, and no others move.
        """
        self.check_open()
        now = _now()
        ranks = {} if key is None else {worker.address: -_hash(key + worker.address) for worker in self.all}
        worker = min(self.all, key=lambda worker: (
            max(0.0, worker.available_at - now), ranks.get(worker.address, 0), worker.load, worker.turn))
        worker.load += 1
        worker.turn = next(self._turns)
        try:
            yield worker
        finally:
            worker.load -= 1

    def fail(self, worker: Worker, delay: float | None = None) -> None:
        """Avoids a connection for some time, because it failed or asked for it."""
        worker.failures += 1
        worker.available_at = _now() + max(self.retry.delay(worker.failures), delay or 0)

    def succeed(self, worker: Worker) -> None:
        """Uses a connection as before."""
        worker.failures = 0
        worker.available_at = 0

    def delay(self) -> float:
        """The time until a connection may be used."""
        return max(0.0, min(worker.available_at for worker in self.all) - _now())


def image_key(head: bytes) -> str:
    """Returns the key of the images that begin with these bytes."""
    return hashlib.sha256(head).hexdigest()[:32]


def _checked(token: str) -> str:
    """Returns a token without the line end of its file. Raises `ValueError` for one that gRPC cannot send."""
    token = token.strip()
    if not token or not token.isascii() or not token.isprintable():
        raise ValueError("the token must consist of printable ASCII characters")
    return token


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def _now() -> float:
    return asyncio.get_running_loop().time()
