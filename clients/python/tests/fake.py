"""A worker without images: each result is the reverse of its upload. What it does to an item is up to the test."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2, status_pb2
from image_worker._generated import image_worker_pb2 as wire

SERVICE = "imageworker.v1.ImageWorkerService"


def status(code: grpc.StatusCode, reason: str = "", retry: float | None = None, **metadata: str) -> status_pb2.Status:
    """An error as the worker sends it."""
    answer = status_pb2.Status(code=code.value[0], message=f"the message of {reason or code.name}")
    if reason:
        info = error_details_pb2.ErrorInfo(reason=reason, domain="imageworker.v1", metadata=metadata)
        answer.details.add().Pack(info)
    if retry is not None:
        delay = Duration()
        delay.FromNanoseconds(int(retry * 1e9))
        answer.details.add().Pack(error_details_pb2.RetryInfo(retry_delay=delay))
    return answer


class Break(Exception):
    """Ends the stream, as the loss of the worker does."""


# Returns `None` to process the image, an error to send, or raises `Break`.
Behavior = Callable[[bytes, int], "status_pb2.Status | None"]


class FakeWorker:
    """A gRPC server on a free port of this machine. `seen` counts how often it received each image completely."""

    def __init__(self, behavior: Behavior = lambda image, time: None, credentials: grpc.ServerCredentials | None = None):
        self.seen: Counter[bytes] = Counter()
        self.requests: list[Any] = []
        self.presets: list[wire.Preset] = []
        self.metadata: list[dict[str, str]] = []
        self._behavior = behavior
        self._lock = threading.Lock()
        self._server = grpc.server(ThreadPoolExecutor(32))
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {
            "InspectImage": grpc.unary_unary_rpc_method_handler(
                self._inspect, wire.InspectImageRequest.FromString, wire.InspectImageResponse.SerializeToString),
            "ListPresets": grpc.unary_unary_rpc_method_handler(
                lambda request, context: wire.ListPresetsResponse(presets=self.presets),
                wire.ListPresetsRequest.FromString, wire.ListPresetsResponse.SerializeToString),
            "ProcessImage": grpc.unary_stream_rpc_method_handler(
                self._process, wire.ProcessImageRequest.FromString, wire.ProcessImageResponse.SerializeToString),
            "BatchProcess": grpc.stream_stream_rpc_method_handler(
                self._batch, wire.BatchProcessRequest.FromString, wire.BatchProcessResponse.SerializeToString),
        }),))
        port = (self._server.add_secure_port("localhost:0", credentials) if credentials
                else self._server.add_insecure_port("127.0.0.1:0"))
        self.address = f"{'localhost' if credentials else '127.0.0.1'}:{port}"
        self._server.start()

    def __enter__(self) -> FakeWorker:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop(0).wait()

    def _outcome(self, image: bytes) -> status_pb2.Status | None:
        with self._lock:
            self.seen[image] += 1
            time = self.seen[image]
        return self._behavior(image, time)

    def _answer(self, request: Any, context: Any) -> None:
        """Ends a call with the error of its image, if there is one."""
        self._note(request, context)
        try:
            error = self._outcome(request.image)
        except Break:
            context.abort(grpc.StatusCode.UNAVAILABLE, "broken")
            return
        if error:
            context.set_trailing_metadata([("grpc-status-details-bin", error.SerializeToString())])
            context.abort(next(code for code in grpc.StatusCode if code.value[0] == error.code), error.message)

    def _inspect(self, request: wire.InspectImageRequest, context: Any) -> wire.InspectImageResponse:
        self._answer(request, context)
        return wire.InspectImageResponse(decoded_bytes=len(request.image))

    def _process(self, request: wire.ProcessImageRequest, context: Any) -> Iterator[wire.ProcessImageResponse]:
        self._answer(request, context)
        for part in parts(request.image):
            yield wire.ProcessImageResponse(**part)

    def _batch(
        self, requests: Iterator[wire.BatchProcessRequest], context: Any,
    ) -> Iterator[wire.BatchProcessResponse]:
        uploads: dict[str, bytes] = {}
        for request in requests:
            self._note(request, context)
            kind = request.WhichOneof("part")
            if kind == "start":
                uploads[request.item_id] = request.start.image
            elif kind == "chunk":
                uploads[request.item_id] += request.chunk
            if kind == "end" or (kind == "start" and request.start.image):
                image = uploads.pop(request.item_id)
                try:
                    error = self._outcome(image)
                except Break:
                    context.abort(grpc.StatusCode.UNAVAILABLE, "broken")
                    return
                for part in [{"error": error}] if error else parts(image):
                    yield wire.BatchProcessResponse(item_id=request.item_id, **part)

    def _note(self, request: Any, context: Any) -> None:
        with self._lock:
            self.requests.append(request)
            self.metadata.append({key: value for key, value in context.invocation_metadata()})


def parts(image: bytes) -> list[dict[str, Any]]:
    result = image[::-1]
    info = wire.ImageInfo(format="jpeg", width=1, height=2)
    return [{"header": info}, *({"chunk": result[at:at + 65536]} for at in range(0, len(result), 65536)),
            {"report": wire.ProcessingReport(output=info, output_bytes=len(result))}]
