"""Reports of the worker's load, as gRPC's own balancer reads them, and delays that gRPC's own retries respect."""

import base64
import concurrent.futures
import json
import socket
import time

import grpc
import h2.connection
import h2.events
import pytest
from conftest import SERVICE, UNLIMITED, Client, Worker, fixture_bytes, wait_until
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from raw import message
from test_security import AddMetadata, make_token, with_token

STREAM = "/xds.service.orca.v3.OpenRcaService/StreamCoreMetrics"


def report_class():
    """The fields of xds.data.orca.v3.OrcaLoadReport that the worker sends."""
    file = descriptor_pb2.FileDescriptorProto(name="orca.proto", package="orca", syntax="proto3")
    message = file.message_type.add(name="OrcaLoadReport")
    kind = descriptor_pb2.FieldDescriptorProto
    for name, number in [("cpu_utilization", 1), ("mem_utilization", 2), ("rps_fractional", 6), ("eps", 7)]:
        message.field.add(name=name, number=number, type=kind.TYPE_DOUBLE, label=kind.LABEL_OPTIONAL)
    entry = message.nested_type.add(name="NamedMetricsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=kind.TYPE_STRING, label=kind.LABEL_OPTIONAL)
    entry.field.add(name="value", number=2, type=kind.TYPE_DOUBLE, label=kind.LABEL_OPTIONAL)
    message.field.add(
        name="named_metrics", number=8, type=kind.TYPE_MESSAGE, label=kind.LABEL_REPEATED,
        type_name=".orca.OrcaLoadReport.NamedMetricsEntry")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("orca.OrcaLoadReport"))


Report = report_class()


@pytest.fixture(scope="module")
def reporting():
    worker = Worker("--load-reports", "--cache-memory-mib", "0", "--threads", "1")
    yield worker
    assert worker.stop() == 0, "".join(worker.log)


def trailers(worker, method: str, *messages: bytes) -> dict[bytes, bytes]:
    """The trailers of a call. gRPC's own library takes the report for its balancers, and hides it from its user."""
    connection = h2.connection.H2Connection()
    with socket.create_connection(("127.0.0.1", worker.port), timeout=120) as link:
        connection.initiate_connection()
        headers = {":method": "POST", ":scheme": "http", ":authority": "worker", ":path": f"/{SERVICE}/{method}",
                   "te": "trailers", "content-type": "application/grpc"}
        connection.send_headers(1, list(headers.items()))
        body = b"".join(message(request) for request in messages)
        for start in range(0, len(body), 16_384):
            connection.send_data(1, body[start:start + 16_384])
        connection.end_stream(1)
        while True:
            link.sendall(connection.data_to_send())
            for event in connection.receive_data(link.recv(65_536)):
                if isinstance(event, h2.events.DataReceived):
                    connection.acknowledge_received_data(event.flow_controlled_length, 1)
                if isinstance(event, h2.events.TrailersReceived):
                    return dict(event.headers)
                if isinstance(event, h2.events.ResponseReceived) and b"grpc-status" in dict(event.headers):
                    return dict(event.headers)


def report_of(trailers: dict[bytes, bytes]):
    value = trailers[b"endpoint-load-metrics-bin"]
    report = base64.b64decode(value + b"=" * (-len(value) % 4))
    assert len(report) <= 62
    return Report.FromString(report)


def favicon(client: Client) -> bytes:
    request = client.message("ProcessImageRequest")(image=fixture_bytes("photo-420.jpg"), preset="favicon")
    return request.SerializeToString()


def test_each_call_ends_with_a_report(reporting):
    client = Client(reporting)
    for _ in range(5):
        found = trailers(reporting, "ProcessImage", favicon(client))
        assert found[b"grpc-status"] == b"0"
        report = report_of(found)
    assert 0 < report.cpu_utilization <= 1 and 0 <= report.mem_utilization < 1
    assert report.rps_fractional > 0 and report.eps == 0
    assert 0 < report.named_metrics["image_seconds"] < 60


def test_a_call_that_fails_has_a_report_with_its_error(reporting):
    found = trailers(reporting, "ProcessImage", b"\x0a\x08no image")
    assert found[b"grpc-status"] == b"12" and b"grpc-status-details-bin" in found
    # It failed before its first message, so its status comes alone.
    assert found[b":status"] == b"200"
    # The image is at fault, and not the worker.
    assert report_of(found).eps == 0 and report_of(found).rps_fractional > 0


def test_a_call_without_its_message_is_the_clients_fault(reporting):
    client = Client(reporting)
    for messages in ([], [favicon(client)] * 2):
        assert trailers(reporting, "ProcessImage", *messages)[b"grpc-status"] == b"3"


def test_a_batch_reports_the_cost_of_all_its_images(reporting):
    client = Client(reporting)
    image = fixture_bytes("photo-420.jpg")
    starts = [client.start(str(index), "favicon", image).SerializeToString() for index in range(3)]
    cost = report_of(trailers(reporting, "BatchProcess", *starts)).named_metrics["image_seconds"]
    assert cost > 0


def test_reports_at_an_interval_end_with_the_client_or_the_drain():
    worker = Worker("--load-reports")
    channel = grpc.insecure_channel(worker.address)
    stream = channel.unary_stream(STREAM, request_serializer=bytes, response_deserializer=Report.FromString)
    # OrcaLoadReportRequest.report_interval: 0.1 seconds, of which the worker makes one.
    call = stream(b"\x0a\x05\x10" + b"\x80\xc2\xd7\x2f")
    begun = time.monotonic()
    next(call), next(call)
    assert time.monotonic() - begun > 0.9
    call.cancel()
    # Without an interval the first report comes at once; the drain ends the stream.
    call = stream(b"")
    assert isinstance(next(call), Report)
    with pytest.raises(grpc.RpcError) as error:
        next(stream(b"\x0a\xff"))
    assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert worker.stop() == 0
    with pytest.raises(StopIteration if call.code() == grpc.StatusCode.OK else grpc.RpcError):
        next(call)


def test_without_the_setting_there_are_no_reports(worker, client):
    found = trailers(worker, "ProcessImage", favicon(client))
    assert found[b"grpc-status"] == b"0" and b"endpoint-load-metrics-bin" not in found
    stream = client.channel.unary_stream(STREAM, request_serializer=bytes, response_deserializer=bytes)
    with pytest.raises(grpc.RpcError) as error:
        next(stream(b""))
    assert error.value.code() == grpc.StatusCode.UNIMPLEMENTED


def test_the_balancer_of_grpc_gives_more_calls_to_the_worker_with_more_threads():
    workers = [Worker("--load-reports", "--log-format", "json", "--cache-memory-mib", "0", "--threads", str(count))
               for count in (4, 1)]
    try:
        policy = {"weighted_round_robin": {"blackoutPeriod": "0s", "weightUpdatePeriod": "0.1s"}}
        options = [*UNLIMITED, ("grpc.service_config", json.dumps({"loadBalancingConfig": [policy]}))]
        target = "ipv4:" + ",".join(worker.address for worker in workers)
        client = Client(workers[0], grpc.insecure_channel(target, options=options))
        image = fixture_bytes("photo-420.jpg")

        def process(_):
            return [part.WhichOneof("part") for part in client.process(image, preset="upload", timeout=None)][-1]

        def counts():
            return [sum("/ProcessImage" in line for line in list(worker.log)) for worker in workers]

        # Both are about equally fast here, so the one with four times the threads reports a quarter of the utilization. Until
        # both have reported one, they take turns.
        rounds, before = [], [0, 0]
        while len(rounds) < 5 and not (rounds and rounds[-1][0] > 1.5 * rounds[-1][1]):
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                assert set(pool.map(process, range(200))) == {"report"}
            assert wait_until(lambda: sum(counts()) >= 200 * (len(rounds) + 1))
            after = counts()
            rounds.append([now - then for now, then in zip(after, before)])
            before = after
        assert rounds[-1][0] > 1.5 * rounds[-1][1], rounds
        for worker in workers:
            assert worker.stop() == 0
    finally:
        for worker in workers:
            worker.process.kill()


def test_grpc_waits_as_long_as_the_worker_asks_before_it_tries_again(tmp_path):
    token, digest = make_token("few")
    identities = {"few": {"tokens": [digest], "images_per_minute": 20}}
    path = tmp_path / "identities.yaml"
    path.write_text(json.dumps({"identities": identities}))
    worker = Worker("--identities", str(path), "--cache-memory-mib", "0")
    try:
        policy = {"maxAttempts": 5, "initialBackoff": "0.01s", "maxBackoff": "0.01s", "backoffMultiplier": 1,
                  "retryableStatusCodes": ["RESOURCE_EXHAUSTED"]}
        config = {"methodConfig": [{"name": [{}], "retryPolicy": policy}]}
        channel = grpc.insecure_channel(
            worker.address, options=[*UNLIMITED, ("grpc.service_config", json.dumps(config))])
        client = Client(
            worker, grpc.intercept_channel(channel, AddMetadata([("authorization", f"Bearer {token}")])))
        # The quota starts full, and one image is added every three seconds. Five attempts 10 ms apart would be over in
        # a twentieth of a second.
        attempts = 0
        for _ in range(200):
            call = client.process(fixture_bytes("photo-420.jpg"), preset="favicon", timeout=None)
            assert [part.WhichOneof("part") for part in call][-1] == "report"
            attempts = sum("QUOTA_EXCEEDED" in line for line in worker.log)
            if attempts:
                break
        assert 1 <= attempts <= 4
        # A client without retries sees the delay.
        with pytest.raises(grpc.RpcError) as error:
            for _ in range(25):
                plain = with_token(worker, token)
                list(plain.process(fixture_bytes("photo-420.jpg"), preset="favicon"))
        assert error.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        assert 0 < int(dict(error.value.trailing_metadata())["grpc-retry-pushback-ms"]) <= 3000
    finally:
        worker.process.kill()
