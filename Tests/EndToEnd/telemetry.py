"""Helpers of the telemetry tests: a collector process and the requests that it received."""

import base64
import json
import subprocess
import sys
from pathlib import Path

from conftest import Worker
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

REQUESTS = {
    "trace": ExportTraceServiceRequest, "metrics": ExportMetricsServiceRequest, "logs": ExportLogsServiceRequest,
}


class Collector:
    def __init__(self, folder: Path, *options: str):
        self.path = folder / "exports"
        self.path.touch()
        self.process = subprocess.Popen(
            [sys.executable, Path(__file__).with_name("collector.py"), self.path, *options], stdout=subprocess.PIPE,
            text=True)
        self.port = int(self.process.stdout.readline())

    def kill(self):
        self.process.kill()
        self.process.wait()

    def exports(self, signal: str):
        whole = self.path.read_text().rpartition("\n")[0]  # the last line may be one that is being written
        lines = (json.loads(line) for line in whole.splitlines())
        return [(dict(line["metadata"]), REQUESTS[signal].FromString(base64.b64decode(line["request"])))
                for line in lines if line["signal"] == signal]

    def spans(self):
        return [span for _, request in self.exports("trace") for resource in request.resource_spans
                for scope in resource.scope_spans for span in scope.spans]

    def logs(self):
        return [record for _, request in self.exports("logs") for resource in request.resource_logs
                for scope in resource.scope_logs for record in scope.log_records]


def environment(collector: Collector, scheme: str = "http", **variables: str) -> dict[str, str]:
    """Returns an environment that exports only traces, immediately, unless `variables` override it."""
    return {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"{scheme}://localhost:{collector.port}", "OTEL_BSP_SCHEDULE_DELAY": "50",
        "OTEL_METRICS_EXPORTER": "none", "OTEL_LOGS_EXPORTER": "none", **variables}


def traced(collector: Collector, *options: str, **variables: str) -> Worker:
    # No result is cached unless a test requests it, so that every call does its work.
    return Worker("--cache-memory-mib", "0", *options, environment=environment(collector, **variables))


def attributes(record) -> dict:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in record.attributes}


def trace_events(path: Path) -> list[dict]:
    """Returns the events of a Chrome trace file, after checking it: a JSON array of complete and metadata events with
    the fields and types that the "Trace Event Format" requires."""
    events = json.loads(path.read_text())
    assert isinstance(events, list) and events
    named = set()
    for event in events:
        assert isinstance(event["name"], str) and event["name"], event
        assert type(event["pid"]) is int and type(event["tid"]) is int, event
        if event["ph"] == "X":
            assert all(type(event[field]) in (int, float) and event[field] >= 0 for field in ("ts", "dur")), event
            assert isinstance(event["cat"], str) and isinstance(event["args"], dict), event
            assert event["tid"] in named, "a lane is named before it is used"
        elif event["ph"] == "M":
            kind, field = {"thread_name": (str, "name"), "thread_sort_index": (int, "sort_index")}[event["name"]]
            assert type(event["args"][field]) is kind, event
            named.add(event["tid"])
        else:
            raise AssertionError(f"no such kind of event is written: {event}")
    return events
