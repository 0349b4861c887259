"""Workers that send what no worker should, for as long as somebody receives it."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from typing import Any

from fake import FakeWorker, parts
from image_worker._generated import image_worker_pb2 as wire

INFO = wire.ImageInfo(format="jpeg", width=1, height=2)

#: The part that it sends without end, by a name; nothing for a silence.
ATTACKS: dict[str, dict[str, Any]] = {
    "bytes without end": {"chunk": bytes(65536)},
    "single bytes without end": {"chunk": b"x"},
    "a huge message": {"chunk": bytes(5 << 20)},
    "chunks without bytes": {"chunk": b""},
    "headers without end": {"header": INFO},
    "results of others": {"rendition_id": "other", "chunk": bytes(65536)},
    "ends of others": {"rendition_id": "other", "report": wire.ProcessingReport(output=INFO)},
    "an end of bytes that it does not send": {"report": wire.ProcessingReport(output=INFO, output_bytes=4)},
    "nothing": {},
}


class HostileWorker(FakeWorker):
    """Answers each image with an attack; one that is `b"good"` as it should."""

    def __init__(self, attack: str) -> None:
        super().__init__()
        self._attack = ATTACKS[attack]
        #: The bytes of results that were sent.
        self.sent = 0

    def _parts(self, request: Any, context: Any) -> Iterator[dict[str, Any]]:
        if request.image == b"good":
            yield from parts(request.image)
            return
        id = request.renditions[0].rendition_id if request.renditions else ""
        yield {"rendition_id": id, "header": INFO}
        while context.is_active():
            self.sent += len(self._attack.get("chunk", b""))
            yield {"rendition_id": id, **self._attack} if self._attack else {}
            time.sleep(0 if self._attack else 0.01)

    def _process(self, request: wire.ProcessImageRequest, context: Any) -> Iterator[wire.ProcessImageResponse]:
        self._note(request, context)
        for part in filter(None, self._parts(request, context)):
            yield wire.ProcessImageResponse(**part)

    def _batch(self, requests: Iterator[wire.BatchProcessRequest], context: Any) -> Iterator[wire.BatchProcessResponse]:
        """Answers all images of a stream by turns."""
        starts: queue.SimpleQueue[wire.BatchProcessRequest] = queue.SimpleQueue()
        threading.Thread(target=self._read, args=(requests, starts, context), daemon=True).start()
        answers: list[tuple[str, Iterator[dict[str, Any]]]] = []
        while context.is_active():
            while not starts.empty():
                request = starts.get()
                answers.append((request.item_id, self._parts(request.start, context)))
            for id, answer in list(answers):
                if (part := next(answer, None)) is None:
                    answers.remove((id, answer))
                elif part:
                    yield wire.BatchProcessResponse(item_id=id, **part)
            time.sleep(0 if answers else 0.01)

    def _read(
        self, requests: Iterator[wire.BatchProcessRequest], starts: queue.SimpleQueue[wire.BatchProcessRequest], context: Any,
    ) -> None:
        try:
            for request in requests:
                self._note(request, context)
                if request.WhichOneof("part") == "start":
                    starts.put(request)
        except Exception:
            pass  # the call has ended
