"""Tests of traces and logs as a collector receives them, and of the cost of a failing collector."""

import io
import json
import os
import socket
import statistics
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from conftest import FIXTURES, Client, Worker, fixture_bytes, wait_until
from PIL import Image
from processes import contents, family, threads
from telemetry import Collector, attributes, environment, trace_events, traced

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
STAGES = {"queue", "decode", "resize", "encode"}
METHOD = "imageworker.v1.ImageWorkerService"


@pytest.fixture
def collector(tmp_path):
    collector = Collector(tmp_path)
    yield collector
    collector.kill()


def call(client, image, metadata=(), preset="favicon"):
    request = client.message("ProcessImageRequest")(image=image, preset=preset)
    return list(client.call("ProcessImage", "unary_stream")(request, metadata=metadata, timeout=60))


def many(client, count, image):
    """Processes an image `count` times and returns the codes of the failed calls."""
    request = client.message("ProcessImageRequest")(image=image, preset="favicon")
    method = client.call("ProcessImage", "unary_stream")

    def one(_):
        try:
            return None if list(method(request, timeout=60))[-1].WhichOneof("part") == "report" else "no report"
        except grpc.RpcError as error:
            return error.code()

    with ThreadPoolExecutor(16) as pool:
        return [code for code in pool.map(one, range(count)) if code is not None]


def test_a_call_is_one_trace_below_its_caller(collector):
    worker = traced(
        collector, OTEL_SERVICE_NAME="shrinker", OTEL_RESOURCE_ATTRIBUTES="deployment.environment.name=test%20one")
    client = Client(worker)
    responses = call(client, fixture_bytes("photo-420.jpg"), [
        ("traceparent", f"00-{TRACE}-{PARENT}-01"), ("tracestate", "vendor=1"), ("baggage", "user=secret")])
    assert responses[-1].report.trace_id == TRACE
    with pytest.raises(grpc.RpcError):
        call(client, b"only words, many of them, and no image")
    assert worker.stop() == 0

    resource = collector.exports("trace")[0][1].resource_spans[0]
    described = attributes(resource.resource)
    assert described["service.name"] == "shrinker" and described["deployment.environment.name"] == "test one"
    assert {"service.instance.id", "host.name", "process.pid", "telemetry.sdk.language"} <= described.keys()
    assert resource.schema_url.startswith("https://opentelemetry.io/schemas/1.")

    spans = {span.name: span for span in collector.spans() if span.trace_id.hex() == TRACE}
    server = spans.pop(f"{METHOD}/ProcessImage")
    assert server.kind == server.SPAN_KIND_SERVER and server.parent_span_id.hex() == PARENT
    assert server.trace_state == "vendor=1" and server.flags & 0xff == 1 and server.flags & 0x300 == 0x300
    assert server.status.code == server.status.STATUS_CODE_UNSET and not server.events
    assert attributes(server).items() >= {
        "rpc.system.name": "grpc", "rpc.method": server.name, "rpc.response.status_code": "OK",
        "network.peer.address": "127.0.0.1"}.items()
    assert spans.keys() == STAGES
    for name, span in spans.items():
        assert span.parent_span_id == server.span_id and span.kind == span.SPAN_KIND_INTERNAL, name
        assert server.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano
        assert span.end_time_unix_nano <= server.end_time_unix_nano
    decode, encode = attributes(spans["decode"]), attributes(spans["encode"])
    assert decode["imageworker.format"] == "jpeg" and decode["imageworker.pixels"] == 240 * 160
    assert decode["imageworker.decode_scale_eighths"] in range(1, 9) and decode["imageworker.busy_ns"] > 0
    assert encode["imageworker.bytes"] == responses[-1].report.output_bytes
    assert encode["imageworker.peak_memory_bytes"] == responses[-1].report.peak_memory_bytes
    assert b"secret" not in b"".join(span.SerializeToString() for span in collector.spans())

    refused = next(span for span in collector.spans() if span.trace_id.hex() != TRACE and span.kind == span.SPAN_KIND_SERVER)
    assert not refused.parent_span_id and attributes(refused)["rpc.response.status_code"] == "UNIMPLEMENTED"
    assert refused.status.code == refused.status.STATUS_CODE_ERROR and len(refused.events) == 1


def test_items_of_a_batch_are_spans_with_their_ids(collector):
    worker = traced(collector)
    client = Client(worker)
    photo = fixture_bytes("photo-420.jpg")
    requests = [client.start("good", "favicon", photo), client.start("bad", "favicon", photo[:3000])]
    reports = [r.report for r in client.batch(iter(requests)) if r.WhichOneof("part") == "report"]
    assert worker.stop() == 0
    spans = collector.spans()
    server = next(span for span in spans if span.kind == span.SPAN_KIND_SERVER)
    assert {span.trace_id for span in spans} == {server.trace_id}
    assert [report.trace_id for report in reports] == [server.trace_id.hex()]
    items = {attributes(span)["imageworker.item_id"]: span for span in spans if span.name == "item"}
    assert items.keys() == {"good", "bad"}
    assert all(item.parent_span_id == server.span_id for item in items.values())
    assert {span.name for span in spans if span.parent_span_id == items["good"].span_id} == STAGES
    assert attributes(items["bad"])["error.type"] == "TRUNCATED_IMAGE"
    given_up = [span for span in spans if span.parent_span_id == items["bad"].span_id and span.name == "decode"]
    assert [span.status.code for span in given_up] == [given_up[0].status.STATUS_CODE_ERROR]


def cpu_nanoseconds(worker: Worker) -> int:
    """Returns the CPU time of the worker and its helpers with nanosecond resolution, which `ps` does not have."""
    return sum(int((contents(thread / "schedstat") or "0").split()[0]) for pid in family(worker) for thread in threads(pid))


def test_busy_times_account_for_the_cpu_time(collector, tmp_path):
    path = tmp_path / "large.jpg"
    Image.open(io.BytesIO(fixture_bytes("photo-420.jpg"))).resize((6000, 4000)).save(path, quality=60)
    worker = traced(collector)
    client = Client(worker)
    request = client.message("ProcessImageRequest")(image=path.read_bytes())
    # A job that outweighs receiving the image, whose CPU time belongs to no stage.
    request.configuration.max_width = 3000
    request.configuration.preferred_format = 4  # WebP
    method = client.call("ProcessImage", "unary_stream")
    list(method(request, timeout=60))  # one-time initialization of the process belongs to no stage
    spent = {}
    for _ in range(7):
        before = cpu_nanoseconds(worker)
        trace = list(method(request, timeout=60))[-1].report.trace_id
        spent[trace] = cpu_nanoseconds(worker) - before
    assert worker.stop() == 0
    busy = dict.fromkeys(spent, 0)
    for span in collector.spans():
        if span.trace_id.hex() in busy:
            busy[span.trace_id.hex()] += attributes(span).get("imageworker.busy_ns", 0)
    # Other processes may use the CPU in between: a stage is busy only while it runs.
    assert 0.9 < statistics.median(busy[trace] / spent[trace] for trace in spent) < 1.1


def test_nothing_is_lost_in_10000_requests(collector):
    # There is room for all spans, as the collector may be slower than the worker.
    worker = traced(collector, OTEL_BSP_MAX_QUEUE_SIZE="65536")
    assert not many(Client(worker), 10_000, fixture_bytes("photo-420.jpg"))
    assert worker.stop() == 0, "".join(worker.log)
    spans = collector.spans()
    assert sum(span.kind == span.SPAN_KIND_SERVER for span in spans) == 10_000
    # An image waits twice: for a thread, and for memory.
    assert len(spans) == 10_000 * (2 + len(STAGES)) == len({span.span_id for span in spans})
    assert not any("dropped" in line for line in worker.log)


def test_a_collector_that_dies_costs_no_request_and_no_memory(collector):
    worker = traced(collector, OTEL_EXPORTER_OTLP_TIMEOUT="1000")
    client, photo = Client(worker), fixture_bytes("photo-420.jpg")
    assert not many(client, 2000, photo)
    assert wait_until(lambda: len(collector.spans()) > 0)
    before = worker.rss_mib()
    timer = threading.Timer(0.3, collector.kill)
    timer.start()
    assert not many(client, 6000, photo)
    timer.join()
    assert worker.rss_mib() < before + 16
    assert worker.stop() == 0
    assert sum("does not accept telemetry" in line for line in worker.log) == 1, "".join(worker.log)
    assert any("telemetry was dropped" in line for line in worker.log)


def test_a_collector_that_comes_back_is_found(collector, tmp_path):
    worker = traced(collector, OTEL_EXPORTER_OTLP_TIMEOUT="300")
    client, photo = Client(worker), fixture_bytes("photo-420.jpg")
    call(client, photo)
    assert wait_until(lambda: len(collector.spans()) == 6)
    collector.kill()
    call(client, photo)
    assert wait_until(lambda: any("does not accept telemetry" in line for line in worker.log))
    other = tmp_path / "other"
    other.mkdir()
    again = Collector(other, "--port", str(collector.port))
    try:
        def arrives():
            call(client, photo)
            return again.spans()
        assert wait_until(arrives, 60)
        assert worker.stop() == 0
        assert any("accepts telemetry again" in line for line in worker.log)
    finally:
        again.kill()


@pytest.mark.parametrize("address", ["hanging", "closed"])
def test_a_collector_that_never_answers_holds_up_nothing(tmp_path, address):
    collector = Collector(tmp_path, "--hang")
    if address == "closed":
        collector.kill()
    worker = traced(collector, OTEL_BSP_MAX_QUEUE_SIZE="600")
    client, photo = Client(worker), fixture_bytes("photo-420.jpg")
    assert not many(client, 1000, photo)
    assert worker.stop() == 0
    dropped = [json.loads(line) for line in worker.log if "telemetry was dropped" in line]
    assert [int(line["dropped"]) for line in dropped] == [6000]
    collector.kill()


@pytest.mark.parametrize("options, arrives", [
    (["--refuse", "2"], True), (["--refuse", "2", "--code", "RESOURCE_EXHAUSTED", "--retry-after", "100"], True),
    (["--refuse", "1", "--code", "RESOURCE_EXHAUSTED"], False), (["--refuse", "1", "--code", "INVALID_ARGUMENT"], False),
])
def test_exports_are_tried_again_where_the_specification_says_so(tmp_path, options, arrives):
    collector = Collector(tmp_path, *options)
    # All spans of the call are exported at once.
    worker = traced(collector, OTEL_BSP_SCHEDULE_DELAY="3600000", OTEL_BSP_MAX_EXPORT_BATCH_SIZE="6")
    call(Client(worker), fixture_bytes("photo-420.jpg"))
    if arrives:
        assert wait_until(lambda: len(collector.spans()) == 6)
    else:
        assert wait_until(lambda: any("does not accept telemetry" in line for line in worker.log))
    assert worker.stop() == 0
    assert len(collector.spans()) == (6 if arrives else 0)
    assert any("telemetry was dropped" in line for line in worker.log) != arrives
    collector.kill()


def test_a_collector_that_floods_its_connection_costs_no_memory():
    listener = socket.create_server(("127.0.0.1", 0))
    settings = b"\0\0\0\x04\0\0\0\0\0"
    ignored = (1 << 14).to_bytes(3, "big") + b"\x77\0\0\0\0\0" + bytes(1 << 14)
    sent = []

    def flood(connection):
        try:
            connection.sendall(settings)
            while True:
                connection.sendall(ignored)
                sent[-1] += len(ignored)
        except OSError:
            connection.close()

    def serve():
        while True:
            connection = listener.accept()[0]
            sent.append(0)
            flood(connection)

    threading.Thread(target=serve, daemon=True).start()
    worker = Worker(environment={
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{listener.getsockname()[1]}", "OTEL_METRIC_EXPORT_INTERVAL": "200"})
    assert wait_until(lambda: len(sent) >= 3)
    # More than what is accepted is in the buffers of the kernel.
    assert max(sent) < 16 << 20
    assert worker.rss_mib() < 150
    assert worker.stop() == 0


def test_what_a_collector_rejects_is_told(tmp_path):
    collector = Collector(tmp_path, "--reject", "2")
    worker = traced(collector)
    call(Client(worker), fixture_bytes("photo-420.jpg"))
    assert worker.stop() == 0
    assert any("some are odd" in line for line in worker.log)
    collector.kill()


def test_spans_are_flushed_when_the_worker_stops(collector):
    worker = traced(collector, OTEL_BSP_SCHEDULE_DELAY="3600000")
    call(Client(worker), fixture_bytes("photo-420.jpg"))
    assert not collector.spans()
    assert worker.stop() == 0
    assert len(collector.spans()) == 6


@pytest.mark.parametrize("variables, alone, sampled, unsampled", [
    ({}, True, True, False),
    ({"OTEL_TRACES_SAMPLER": "always_off"}, False, False, False),
    ({"OTEL_TRACES_SAMPLER": "always_on"}, True, True, True),
    ({"OTEL_TRACES_SAMPLER": "parentbased_always_off"}, False, True, False),
    ({"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0"}, False, True, False),
    ({"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "1"}, True, True, True),
    ({"OTEL_SDK_DISABLED": "true"}, False, False, False),
    ({"OTEL_TRACES_EXPORTER": "none"}, False, False, False),
])
def test_samplers_choose_by_the_caller_or_without(collector, variables, alone, sampled, unsampled):
    worker = traced(collector, **variables)
    client, photo = Client(worker), fixture_bytes("photo-420.jpg")
    parents = {"1" * 32: "01", "2" * 32: "00"}
    own = call(client, photo)[-1].report.trace_id
    assert bool(own) == alone
    for trace, flags in parents.items():
        call(client, photo, [("traceparent", f"00-{trace}-{PARENT}-{flags}")])
    assert worker.stop() == 0
    traces = {span.trace_id.hex() for span in collector.spans()}
    assert traces == ({own} if alone else set()) | ({"1" * 32} if sampled else set()) | ({"2" * 32} if unsampled else set())


def test_headers_compression_and_tls(tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)
    collector = Collector(tmp_path, "--key", key, "--certificate", certificate)
    trusted = environment(
        collector, scheme="https", OTEL_EXPORTER_OTLP_CERTIFICATE=str(certificate),
        OTEL_EXPORTER_OTLP_COMPRESSION="gzip", OTEL_EXPORTER_OTLP_HEADERS="Authorization=Bearer%20x,tenant=7")
    worker = Worker(environment=trusted)
    call(Client(worker), fixture_bytes("photo-420.jpg"))
    assert worker.stop() == 0
    assert len(collector.spans()) == 6
    metadata = collector.exports("trace")[0][0]
    assert metadata["authorization"] == "Bearer x" and metadata["tenant"] == "7"

    # The worker does not connect to a collector with an untrusted certificate.
    worker = Worker(environment={k: v for k, v in trusted.items() if not k.endswith("CERTIFICATE")} | {
        "OTEL_EXPORTER_OTLP_TIMEOUT": "500"})
    call(Client(worker), fixture_bytes("photo-420.jpg"))
    assert worker.stop() == 0
    assert len(collector.spans()) == 6
    collector.kill()

    worker = Worker(environment=trusted | {"OTEL_EXPORTER_OTLP_CERTIFICATE": str(tmp_path / "none.pem")})
    call(Client(worker), fixture_bytes("photo-420.jpg"))
    assert worker.stop() == 0
    assert any("not exported" in line for line in worker.log)


def test_values_without_meaning_are_warned_of_by_name():
    worker = Worker(environment={
        "OTEL_EXPORTER_OTLP_ENDPOINT": "ftp://x", "OTEL_TRACES_SAMPLER": "some", "OTEL_BSP_SCHEDULE_DELAY": "soon"})
    call(Client(worker), fixture_bytes("photo-420.jpg"))
    assert worker.stop() == 0
    for name in ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_TRACES_SAMPLER", "OTEL_BSP_SCHEDULE_DELAY"]:
        assert any(name in line and '"warning"' in line for line in worker.log), name


def test_logs_are_json_with_trace_ids_and_go_to_the_collector_too(collector):
    worker = traced(collector, OTEL_LOGS_EXPORTER="otlp", LOG_LEVEL="INFO")
    client = Client(worker)
    call(client, fixture_bytes("photo-420.jpg"), [("traceparent", f"00-{TRACE}-{PARENT}-01")])
    assert wait_until(lambda: any(TRACE in line for line in worker.log))
    with pytest.raises(grpc.RpcError):
        call(client, b"")
    assert worker.stop() == 0
    lines = [json.loads(line) for line in worker.log]
    calls = [line for line in lines if line["message"] == "call"]
    assert [line["code"] for line in calls] == ["OK", "INVALID_ARGUMENT"]
    assert calls[0]["trace_id"] == TRACE and calls[0]["method"] == f"{METHOD}/ProcessImage"
    server = next(span for span in collector.spans() if span.parent_span_id.hex() == PARENT)
    assert calls[0]["span_id"] == server.span_id.hex() and calls[0]["duration_ms"] > 0
    assert "the image has no bytes; send the bytes of an image file" in calls[1]["error"]
    records = [record for record in collector.logs() if record.body.string_value == "call"]
    assert [record.trace_id.hex() for record in records][0] == TRACE and len(records) == 2
    assert attributes(records[0])["code"] == "OK" and records[0].severity_text == "info"


def test_the_level_and_the_form_of_the_log_are_chosen():
    def lines(*options, **variables):
        worker = Worker("--log-format", "text", *options, environment=variables)
        call(Client(worker), fixture_bytes("photo-420.jpg"))
        assert worker.stop() == 0
        return [line.split()[1] for line in worker.log]
    assert {"NOTICE", "INFO"} <= set(lines())
    assert "INFO" not in lines(LOG_LEVEL="notice")
    assert "DEBUG" in lines("--log-level", "debug", LOG_LEVEL="error")
    assert "DEBUG" in lines(LOG_LEVEL="error", IMAGE_WORKER_LOG_LEVEL="debug")


def test_process_prints_timings_and_writes_a_trace(tmp_path):
    trace = tmp_path / "trace.json"
    run = subprocess.run(
        [os.environ["IMAGE_WORKER"], "process", FIXTURES / "photo-420.jpg", FIXTURES / "photo.png", "--preset", "favicon",
         "--out", tmp_path, "--timings", "--trace-out", trace], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    tables = [line.split() for line in run.stdout.splitlines() if line.startswith("  ")]
    for stage in ["decode", "resize", "encode", "other", "total"]:
        rows = [row for row in tables if row[0] == stage]
        assert len(rows) == 2 and all(float(row[1]) >= 0 and row[3] == "%" for row in rows), stage
    assert "\u2588" in run.stdout and run.stdout.count("peak memory") == 2
    events = trace_events(trace)
    work = [event for event in events if event["ph"] == "X"]
    assert {event["name"] for event in work} == {"image", "decode", "resize", "encode"}
    assert {os.path.basename(event["args"]["image"]) for event in work} == {"photo-420.jpg", "photo.png"}
    images = [event for event in work if event["name"] == "image"]
    for event in work:
        assert any(p["ts"] <= event["ts"] and event["ts"] + event["dur"] <= p["ts"] + p["dur"] + 0.01 for p in images)
    lanes = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert {lane.split(",")[0] for lane in lanes} == {"image", "decode", "resize", "encode"}
    bad = subprocess.run(
        [os.environ["IMAGE_WORKER"], "process", FIXTURES / "photo.png", "--out", tmp_path, "--trace-out",
         tmp_path / "no" / "such"], capture_output=True, text=True)
    assert bad.returncode != 0
