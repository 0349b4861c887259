"""Tests of metrics as Prometheus scrapes them and a collector receives them, and of the dashboard that uses them."""

import contextlib
import json
import os
import queue
import re
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import grpc
import pytest
import yaml
from conftest import Client, Worker, fixture_bytes, wait_until
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from telemetry import Collector, attributes, traced

DEPLOY = Path(__file__).parent.parent.parent / "deploy"
SUFFIXES = ("_bucket", "_sum", "_count")


class Scraped:
    def __init__(self, worker: Worker):
        assert wait_until(lambda: any('"metrics"' in line for line in worker.log))
        line = next(line for line in worker.log if '"metrics"' in line)
        self.url = f"http://127.0.0.1:{re.search(r':([0-9]+)[^0-9]*$', json.loads(line)['address'])[1]}"

    def text(self) -> str:
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=60) as response:
            assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
            return response.read().decode()

    def values(self) -> dict[str, float]:
        return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1])
                for line in self.text().splitlines() if not line.startswith("#")}


@pytest.fixture(scope="module")
def used(tmp_path_factory):
    """A worker that has performed every kind of work, and its scrape."""
    collector = Collector(tmp_path_factory.mktemp("collector"))
    worker = traced(
        collector, "--metrics-port", "0", "--cache-memory-mib", "8", OTEL_METRICS_EXPORTER="otlp", OTEL_METRIC_EXPORT_INTERVAL="200")
    client = Client(worker)
    photo = fixture_bytes("photo-420.jpg")
    words = b"only words, many of them, and no image"
    for image, preset in [(photo, "favicon"), (photo, "preview"), (photo, "favicon"), (photo[:3000], "favicon"), (words, "")]:
        try:
            list(client.process(image, preset=preset, preview=preset == "preview"))
        except grpc.RpcError:
            pass
    feed = queue.SimpleQueue()
    call = client.batch(iter(feed.get, None), timeout=60)
    feed.put(client.start("a", "favicon"))
    feed.put(client.chunk("a", photo[:5000]))
    assert next(call).WhichOneof("part") == "header"
    call.cancel()
    feed.put(None)
    scraped = Scraped(worker)
    assert wait_until(lambda: scraped.values().get("imageworker_cancellations_total") == 1)
    # Calls are counted, and their memory is free, soon after their clients know the end.
    assert wait_until(lambda: sum(
        count for name, count in scraped.values().items()
        if name.startswith("rpc_server_call_duration_seconds_count") and "/ProcessImage" in name) == 5)
    assert wait_until(lambda: scraped.values()["imageworker_memory_budget_used_bytes"] == 0)
    assert wait_until(lambda: scraped.values().get('imageworker_telemetry_exported_total{signal="traces"}', 0) > 0)
    yield worker, scraped, collector
    assert worker.stop() == 0
    collector.kill()


def test_a_scrape_tells_what_was_done(used):
    worker, scraped, _ = used
    values = scraped.values()
    calls, method = "rpc_server_call_duration_seconds_count", 'rpc_method="imageworker.v1.ImageWorkerService/ProcessImage"'
    assert values[f'{calls}{{{method},rpc_response_status_code="OK",rpc_system_name="grpc"}}'] == 3
    unknown = "UNIMPLEMENTED"
    assert values[f'{calls}{{error_type="{unknown}",{method},rpc_response_status_code="{unknown}",rpc_system_name="grpc"}}'] == 1
    assert values['imageworker_images_total{outcome="ok"}'] == 3
    assert values['imageworker_previews_total{outcome="ok"}'] == 1
    assert values['imageworker_images_total{outcome="truncated_image"}'] == 1
    assert values['imageworker_refusals_total{reason="unknown_format"}'] == 1
    assert values['imageworker_input_bytes_total{format="jpeg"}'] == 2 * len(fixture_bytes("photo-420.jpg"))
    assert values['imageworker_input_pixels_total{format="jpeg"}'] == 2 * 240 * 160
    assert values['imageworker_stage_duration_seconds_count{format="jpeg",stage="decode"}'] == 2
    # The two images that cannot be decoded were also looked up; the aborted upload never had a cache key.
    assert values['imageworker_cache_requests_total{outcome="hit"}'] == 1
    assert values['imageworker_cache_requests_total{outcome="miss"}'] == 4
    assert 0 < values["imageworker_cache_memory_bytes"] < 8 << 20 and values["imageworker_cache_disk_bytes"] == 0
    assert values["imageworker_memory_budget_limit_bytes"] == 760 << 20  # less the cache
    assert 0 < values["imageworker_memory_budget_peak_bytes"] < 768 << 20
    assert values["imageworker_memory_budget_used_bytes"] == 0 and values["imageworker_queue_length"] == 0
    # Free memory may return to the system in between.
    assert wait_until(lambda: abs(scraped.values()["process_memory_usage_bytes"] / 2**20 - worker.rss_mib()) < 16)
    assert values["process_threads"] > 2 and values["process_cpu_time_seconds_total"] > 0


def test_buckets_add_up(used):
    values = used[1].values()
    for name, count in values.items():
        if "_count" not in name:
            continue
        bucket = name.replace("_count", "_bucket")
        bucket = f'{bucket[:-1]},le="+Inf"}}' if bucket.endswith("}") else f'{bucket}{{le="+Inf"}}'
        assert values[bucket] == count, name


def test_promtool_finds_nothing_to_say(used):
    promtool = shutil.which("promtool")
    assert promtool, "promtool is missing: run.sh fetches it on Debian and Ubuntu"
    run = subprocess.run([promtool, "check", "metrics"], input=used[1].text(), capture_output=True, text=True)
    assert run.returncode == 0 and not run.stderr, run.stderr


def test_the_collector_gets_the_same_metrics(used):
    worker, scraped, collector = used
    scraped_names = set(re.findall(r"^# HELP (\S+)", scraped.text(), re.M))

    def exported():
        return {metric.name: metric for _, request in collector.exports("metrics")
                for metric in request.resource_metrics[0].scope_metrics[0].metrics}
    assert wait_until(lambda: len(exported()) >= len(scraped_names))
    metrics = exported()
    units = {"s": "_seconds", "By": "_bytes"}
    names = {name.replace(".", "_") + units.get(metric.unit, "") + ("_total" if metric.HasField("sum") else "")
             for name, metric in metrics.items()}
    assert names == scraped_names
    images = {attributes(point)["outcome"]: point.as_double for point in metrics["imageworker.images"].sum.data_points}
    assert images["ok"] == 3
    calls = metrics["rpc.server.call.duration"].histogram
    assert calls.aggregation_temporality == 2 and all(sum(p.bucket_counts) == p.count for p in calls.data_points)


def metric_names(expression: str) -> set[str]:
    """Returns the metrics that a query uses."""
    bare = re.sub(r'"[^"]*"', "", expression)
    bare = re.sub(r"\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)", "", bare)
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]", "", bare)
    return {word for word in re.findall(r"\b[a-z][a-z0-9_]*_[a-z0-9_]+\b(?!\s*\()", bare)}


def queries() -> list[tuple[str, str]]:
    dashboard = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
    found = [(panel["title"], target["expr"]) for panel in dashboard["panels"] for target in panel.get("targets", [])]
    rules = yaml.safe_load((DEPLOY / "prometheus-alerts.yaml").read_text())
    return found + [(rule["alert"], rule["expr"]) for group in rules["groups"] for rule in group["rules"]]


def test_dashboard_and_alerts_ask_only_for_metrics_that_exist(used):
    known = set(re.findall(r"^# HELP (\S+)", used[1].text(), re.M))
    # Only with TLS and with identities: see test_security.py.
    known |= {"imageworker_tls_certificate_expiry_seconds", "imageworker_authentication_failures_total"}
    assert len(queries()) > 12
    for title, expression in queries():
        names = {re.sub("|".join(f"{s}$" for s in SUFFIXES), "", n) if n not in known else n
                 for n in metric_names(expression)}
        assert names and names <= known, (title, names - known)


def test_promtool_takes_the_alerts():
    run = subprocess.run(
        [shutil.which("promtool"), "check", "rules", DEPLOY / "prometheus-alerts.yaml"], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


OPEN_METRICS = "application/openmetrics-text"


def test_openmetrics_have_exemplars_that_lead_to_the_traces_of_calls(used):
    worker, scraped, collector = used
    accept = f"{OPEN_METRICS};version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
    request = urllib.request.Request(f"{scraped.url}/metrics", headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=60) as response:
        assert response.headers["content-type"] == f"{OPEN_METRICS}; version=1.0.0; charset=utf-8"
        families = {family.name: family for family in text_string_to_metric_families(response.read().decode())}
    assert {f"{name}_total" if family.type == "counter" else name for name, family in families.items()} == set(
        re.findall(r"^# HELP (\S+)", scraped.text(), re.M))
    for name in ["rpc_server_call_duration_seconds", "imageworker_image_duration_seconds", "imageworker_stage_duration_seconds"]:
        found = [sample.exemplar for sample in families[name].samples if sample.exemplar]
        traces = {exemplar.labels["trace_id"] for exemplar in found}
        assert found and wait_until(lambda: traces <= {span.trace_id.hex() for span in collector.spans()}), name
        assert all(abs(float(exemplar.timestamp) - time.time()) < 3600 for exemplar in found)


def test_requests_whose_answers_nobody_reads_wait():
    worker = Worker("--metrics-port", "0")
    scraped = Scraped(worker)
    with socket.create_connection(("127.0.0.1", int(scraped.url.rsplit(":", 1)[1])), timeout=5) as flood:
        with contextlib.suppress(TimeoutError):
            flood.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 10_000)
        began = time.monotonic()
        # Connections go to one event loop after the other, and one that answered them all would be busy.
        for _ in range(2 * os.cpu_count()):
            assert scraped.text()
        assert time.monotonic() - began < 5
    assert worker.stop() == 0


def test_connections_that_send_nothing_give_way_to_probes():
    worker = Worker("--metrics-port", "0")
    scraped = Scraped(worker)
    address = ("127.0.0.1", int(scraped.url.rsplit(":", 1)[1]))
    silent = [socket.create_connection(address) for _ in range(40)]
    for connection in silent:
        connection.sendall(b"GET /health HTTP/1.1\r\nX: ")
    for _ in range(3):
        with urllib.request.urlopen(f"{scraped.url}/health", timeout=60) as response:
            assert response.read() == b"SERVING\n"
    for connection in silent:
        connection.close()
    assert worker.stop() == 0


def test_health_is_that_of_the_health_service():
    worker = Worker("--metrics-port", "0", "--drain-timeout-seconds", "30")
    url = f"{Scraped(worker).url}/health"
    with urllib.request.urlopen(url, timeout=60) as response:
        assert response.status == 200 and response.read() == b"SERVING\n"
    # It drains while a call is in progress.
    client, feed = Client(worker), queue.SimpleQueue()
    call = client.batch(iter(feed.get, None), timeout=60)
    feed.put(client.start("a", "favicon"))
    feed.put(client.chunk("a", fixture_bytes("photo-420.jpg")[:5000]))
    assert next(call).WhichOneof("part") == "header"
    worker.process.terminate()
    assert wait_until(lambda: any('"draining"' in line for line in worker.log))
    with pytest.raises(urllib.error.HTTPError) as error:
        urllib.request.urlopen(url, timeout=60)
    assert error.value.code == 503 and error.value.read() == b"NOT_SERVING\n"
    call.cancel()
    feed.put(None)
    assert worker.process.wait(timeout=60) == 0


def test_open_descriptors_are_counted(used):
    worker, scraped, _ = used
    folder = Path(f"/proc/{worker.process.pid}/fd")
    assert wait_until(lambda: abs(scraped.values()["imageworker_descriptors_open"] - len(list(folder.iterdir()))) <= 2)
    limit = re.search(r"Max open files\s+(\d+)", Path(f"/proc/{worker.process.pid}/limits").read_text())[1]
    assert scraped.values()["imageworker_descriptors_limit"] == int(limit)


def test_the_endpoint_answers_nothing_but_metrics_and_health(used):
    url = used[1].url
    for path, method, code in [
            ("/", "GET", 404), ("/metrics/x", "GET", 404), ("/metrics", "POST", 405), ("/health", "POST", 405)]:
        with pytest.raises(urllib.error.HTTPError) as error:
            urllib.request.urlopen(urllib.request.Request(url + path, method=method), timeout=60)
        assert error.value.code == code
    with urllib.request.urlopen(urllib.request.Request(f"{url}/metrics?x=1", method="HEAD"), timeout=60) as response:
        assert response.status == 200 and not response.read()


def test_the_endpoint_is_off_unless_asked_for_and_a_taken_port_is_told():
    worker = Worker()
    assert not any('"metrics"' in line for line in worker.log)
    run = subprocess.run(
        [worker.process.args[0], "serve", "--port", "0", "--metrics-port", str(worker.port)], capture_output=True,
        text=True, timeout=60)
    assert run.returncode != 0
    assert worker.stop() == 0
