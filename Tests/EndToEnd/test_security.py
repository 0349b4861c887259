"""Tests of who may connect: addresses, Unix domain sockets, TLS, and identities."""

import hashlib
import json
import os
import queue
import re
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import threading
import time
import urllib.request
from pathlib import Path

import grpc
import pytest
import yaml
from certificates import Authority
from conftest import UNLIMITED, Client, Worker, fixture_bytes, wait_until
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2
from grpc_reflection.v1alpha.reflection_pb2_grpc import ServerReflectionStub
from grpc_status import rpc_status

WORKER = os.environ["IMAGE_WORKER"]


def start(*options: str, address: str = r"127\.0\.0\.1:(\d+)", environment=None):
    """Starts a worker on any kind of address and waits until it serves."""
    return Worker(*options, environment=environment, address=address)


def failed_start(*options: str) -> str:
    run = subprocess.run([WORKER, "serve", "--port", "0", *options], capture_output=True, text=True, timeout=60)
    assert run.returncode not in (0, None)
    return run.stderr


def is_serving(channel: grpc.Channel) -> bool:
    answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=60, wait_for_ready=True)
    return answer.status == health_pb2.HealthCheckResponse.SERVING


# MARK: addresses


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::", 0))
        return True
    except OSError:
        return False


@pytest.mark.parametrize("host", [
    "0.0.0.0", pytest.param("::", marks=pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6"))])
def test_an_address_that_others_can_reach_needs_insecure(host):
    errors = failed_start("--host", host)
    assert "can be reached from other machines, without TLS and without identities" in errors and "--insecure" in errors
    worker = start("--host", host, "--insecure", address=r"(?:0\.0\.0\.0|\[::\]):(\d+)")
    try:
        assert wait_until(lambda: any('"warning"' in line and "--insecure" in line for line in worker.log)), worker.log
        with grpc.insecure_channel(worker.address) as channel:
            assert is_serving(channel)
    finally:
        assert worker.stop() == 0


def test_the_environment_of_the_container_serves_others():
    dockerfile = (Path(__file__).parent.parent.parent / "deploy" / "Dockerfile").read_text()
    environment = dict(re.findall(r"(?:^ENV |\s)(IMAGE_WORKER_\w+)=(\S+)", dockerfile, re.M))
    assert environment["IMAGE_WORKER_HOST"] == "0.0.0.0"
    worker = start(address=r"0\.0\.0\.0:(\d+)", environment=environment)
    with grpc.insecure_channel(worker.address) as channel:
        assert is_serving(channel)
    assert worker.stop() == 0


# MARK: Unix domain sockets


def test_a_unix_socket_serves_and_is_removed(tmp_path):
    path = tmp_path / "worker.sock"
    worker = start("--unix-socket", str(path), "--unix-socket-permissions", "600", address="unix")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    client = Client(worker, channel=grpc.insecure_channel(f"unix:{path}"))
    assert [r.WhichOneof("part") for r in client.process(fixture_bytes("photo.png"), preset="favicon")][-1] == "report"
    assert "another process listens on it" in failed_start("--unix-socket", str(path))
    assert worker.stop() == 0
    assert not path.exists()


def test_a_killed_worker_leaves_a_socket_that_the_next_one_replaces(tmp_path):
    path = tmp_path / "worker.sock"
    worker = start("--unix-socket", str(path), address="unix")
    worker.process.kill()
    worker.process.wait()
    assert path.exists()
    worker = start("--unix-socket", str(path), address="unix")
    with grpc.insecure_channel(f"unix:{path}") as channel:
        assert is_serving(channel)
    assert worker.stop() == 0


# MARK: TLS


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def server_files(authority):
    return authority.issue("server")


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    """An authority that the worker does not know."""
    return Authority(tmp_path_factory.mktemp("stranger"), "stranger")


def tls_options(files, *more: str) -> list[str]:
    return ["--tls-certificate", str(files[0]), "--tls-key", str(files[1]), *more]


def secure_channel(worker: Worker, authority: Authority, client=None, token: str | None = None) -> grpc.Channel:
    files = [path.read_bytes() for path in reversed(client)] if client else [None, None]
    credentials = grpc.ssl_channel_credentials(authority.certificate.read_bytes(), *files)
    if token:
        credentials = grpc.composite_channel_credentials(credentials, grpc.access_token_call_credentials(token))
    return grpc.secure_channel(worker.address, credentials, options=UNLIMITED)


def fails_to_connect(channel: grpc.Channel) -> str:
    with channel, pytest.raises(grpc.RpcError) as caught:
        health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=60)
    assert caught.value.code() == grpc.StatusCode.UNAVAILABLE
    return caught.value.details()


def scrape(url: str, context: ssl.SSLContext | None = None) -> dict[str, float]:
    with urllib.request.urlopen(f"{url}/metrics", timeout=60, context=context) as response:
        lines = response.read().decode().splitlines()
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines if not line.startswith("#")}


def metrics_address(worker: Worker) -> str:
    assert wait_until(lambda: any('"metrics"' in line for line in worker.log))
    line = next(line for line in worker.log if '"metrics"' in line)
    return f"localhost:{re.search(r':([0-9]+)[^0-9]*$', json.loads(line)['address'])[1]}"


def handshakes(worker: Worker, outcome: str) -> float:
    return scrape(f"http://{metrics_address(worker)}").get(f'imageworker_tls_handshakes_total{{outcome="{outcome}"}}', 0)


def openssl_client(port: int, *options: str) -> str:
    run = subprocess.run(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", *map(str, options)], input="", capture_output=True,
        text=True, timeout=60)
    return run.stdout + run.stderr


def test_tls_serves_images_over_tls_1_3_alone(authority, server_files):
    worker = start(*tls_options(server_files, "--metrics-port", "0", "--tls-handshake-seconds", "5"))
    client = Client(worker, channel=secure_channel(worker, authority))
    photo = fixture_bytes("photo-420.jpg")
    assert [r.WhichOneof("part") for r in client.process(photo, preset="favicon")][-1] == "report"
    feed = [client.start("a", "favicon")] + [client.chunk("a", photo[o:o + 5000]) for o in range(0, len(photo), 5000)]
    assert list(client.batch(iter(feed + [client.end("a")])))[-1].WhichOneof("part") == "report"
    assert "TLSv1.3" in openssl_client(worker.port, "-alpn", "h2")
    assert "alert protocol version" in openssl_client(worker.port, "-tls1_2", "-alpn", "h2")
    openssl_client(worker.port)  # without ALPN
    with grpc.insecure_channel(worker.address) as channel:
        with pytest.raises(grpc.RpcError):
            health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=60)
    idle = socket.create_connection(("127.0.0.1", worker.port))
    began = time.monotonic()
    assert idle.recv(1) == b"" and 0.5 < time.monotonic() - began
    for outcome in ("ok", "unsupported_version", "no_application_protocol", "not_tls", "timeout"):
        assert wait_until(lambda: handshakes(worker, outcome) >= 1), outcome
    values = scrape(f"http://{metrics_address(worker)}")
    assert values["imageworker_tls_certificate_expiry_seconds"] > time.time() + 20 * 86400
    assert worker.stop() == 0


def test_a_drain_over_tls_lets_calls_finish(authority, server_files):
    worker = start(*tls_options(server_files))
    client = Client(worker, channel=secure_channel(worker, authority))
    photo = fixture_bytes("photo-420.jpg")
    sent = threading.Event()

    def feed():
        yield client.start("a", "favicon")
        yield client.chunk("a", photo[:3000])
        sent.wait(120)
        yield client.chunk("a", photo[3000:])
        yield client.end("a")

    responses = client.batch(feed())
    assert next(responses).WhichOneof("part") == "header"
    worker.process.terminate()
    time.sleep(0.5)
    sent.set()
    parts = []
    try:
        for response in responses:
            parts.append(response.WhichOneof("part"))
    except grpc.RpcError as error:  # the stream ends as soon as no item is left
        assert error.code() == grpc.StatusCode.UNAVAILABLE
    assert parts[-1] == "report"
    assert worker.process.wait(timeout=60) == 0


def test_a_client_that_does_not_trust_the_worker_is_counted(authority, stranger, server_files):
    worker = start(*tls_options(server_files, "--metrics-port", "0"))
    fails_to_connect(secure_channel(worker, stranger))
    openssl_client(worker.port, "-alpn", "h2", "-CAfile", stranger.certificate, "-verify_return_error")
    assert wait_until(lambda: handshakes(worker, "refused_by_client") >= 1), worker.log
    assert worker.stop() == 0


def test_mutual_tls_accepts_only_certificates_of_its_authority(authority, stranger, server_files):
    worker = start(*tls_options(server_files, "--tls-client-ca", str(authority.certificate), "--metrics-port", "0"))
    known = authority.issue("thumbnails", "DNS:thumbnails.internal,URI:spiffe://example/thumbnails")
    client = Client(worker, channel=secure_channel(worker, authority, known))
    assert [r.WhichOneof("part") for r in client.process(fixture_bytes("photo.png"), preset="favicon")][-1] == "report"
    expired = authority.issue("expired", "DNS:old.internal", ("20200101000000Z", "20210101000000Z"))
    fails_to_connect(secure_channel(worker, authority))
    fails_to_connect(secure_channel(worker, authority, stranger.issue("thumbnails")))
    fails_to_connect(secure_channel(worker, authority, expired))
    assert wait_until(lambda: handshakes(worker, "no_client_certificate") >= 1)
    assert wait_until(lambda: handshakes(worker, "bad_client_certificate") >= 2)
    identity = '"identity":"URI:spiffe://example/thumbnails"'
    assert wait_until(lambda: any(identity in line.replace("\\/", "/") for line in worker.log))
    assert worker.stop() == 0


def test_files_that_cannot_be_used_are_named(authority, server_files, tmp_path):
    certificate, key = server_files
    expired = authority.issue("expired-server", valid=("20200101000000Z", "20210101000000Z"))
    future = authority.issue("future-server", valid=("20990101000000Z", "21000101000000Z"))
    words, missing = tmp_path / "words.pem", tmp_path / "missing.pem"
    words.write_text("no PEM")
    for options, error in [
            ((missing, key), f"--tls-certificate {missing} cannot be read: No such file"),
            ((certificate, missing), f"--tls-key {missing} cannot be read: No such file"),
            ((words, key), f"--tls-certificate {words} contains no certificate in PEM"),
            ((certificate, words), f"--tls-key {words} contains no private key in PEM"),
            ((certificate, authority.key), f"--tls-key {authority.key} is not the key of the certificate"),
            (expired, f"--tls-certificate {expired[0]} expired on 2021-01-01T00:00:00Z"),
            (future, f"--tls-certificate {future[0]} is not valid before 2099-01-01T00:00:00Z"),
            ((certificate, key, "--tls-client-ca", str(words)), f"--tls-client-ca {words} contains no certificate"),
    ]:
        assert error in failed_start(*tls_options(options, *options[2:])), error
    assert "it needs --tls-key" in failed_start("--tls-certificate", str(certificate))


def fingerprint(port: int) -> str:
    return ssl.get_server_certificate(("127.0.0.1", port), timeout=60)


def test_certificates_rotate_under_load_without_a_lost_call(authority, tmp_path):
    certificate, key = tmp_path / "tls.pem", tmp_path / "tls.key"

    def install(name):
        files = authority.issue(name)
        # One after the other, as operators do: in between, they do not match.
        for path, new in zip((certificate, key), files):
            shutil.copy(new, f"{path}.new")
            os.replace(f"{path}.new", path)
        return files[0].read_text().strip()

    install("first")
    worker = start(*tls_options((certificate, key), "--reload-seconds", "1"))
    photo, stop, failures, counts = fixture_bytes("photo-420.jpg"), threading.Event(), [], [0, 0]
    kept = Client(worker, channel=secure_channel(worker, authority))

    def call(index):
        client = kept
        while not stop.is_set():
            try:
                if index:  # a new connection each time
                    client = Client(worker, channel=grpc.secure_channel(
                        worker.address, grpc.ssl_channel_credentials(authority.certificate.read_bytes()),
                        options=UNLIMITED + [("grpc.use_local_subchannel_pool", 1)]))
                assert [r.WhichOneof("part") for r in client.process(photo, preset="favicon")][-1] == "report"
                counts[index] += 1
                if index:
                    client.channel.close()
            except Exception as error:  # noqa: BLE001
                failures.append(error)

    threads = [threading.Thread(target=call, args=(index,)) for index in (0, 0, 1)]
    for thread in threads:
        thread.start()
    for name in ("second", "third"):
        text = install(name)
        assert wait_until(lambda: fingerprint(worker.port).strip() == text)
    before = list(counts)
    assert wait_until(lambda: all(now > then for now, then in zip(counts, before)))
    certificate.write_text("broken")
    assert wait_until(lambda: any("the previous ones stay in effect" in line and str(certificate) in line
                                  for line in worker.log)), worker.log
    assert fingerprint(worker.port).strip() == text
    text = install("fourth")
    worker.process.send_signal(signal.SIGHUP)
    assert wait_until(lambda: fingerprint(worker.port).strip() == text)
    stop.set()
    for thread in threads:
        thread.join()
    assert not failures, failures[:3]
    assert worker.stop() == 0


def test_metrics_over_tls(authority, server_files):
    options = ["--tls-client-ca", str(authority.certificate), "--metrics-port", "0", "--metrics-tls"]
    worker = start(*tls_options(server_files, *options))
    address, client = metrics_address(worker), authority.issue("prometheus")
    context = ssl.create_default_context(cafile=authority.certificate)
    with pytest.raises(OSError):
        scrape(f"https://{address}", context)
    context.load_cert_chain(*client)
    assert scrape(f"https://{address}", context)["process_threads"] > 2
    context.set_alpn_protocols(["h2", "http/1.1"])
    assert scrape(f"https://{address}", context)["process_threads"] > 2
    with pytest.raises(OSError):
        scrape(f"http://{address}")
    assert "it needs --tls-certificate" in failed_start("--metrics-tls", "--metrics-port", "0")
    assert worker.stop() == 0


# MARK: identities


def make_token(name: str) -> tuple[str, str]:
    """Returns a token and its hash, from `image-worker token`."""
    text = subprocess.run([WORKER, "token", name], capture_output=True, text=True, check=True).stdout
    token = re.match(r"token: (iw_[\w-]{43})\n", text)[1]
    entry = yaml.safe_load(text.split("\n", 2)[2])
    digest = entry["identities"][name]["tokens"][0]
    assert digest == hashlib.sha256(token.encode()).hexdigest()
    return token, digest


def with_token(worker: Worker, token: str) -> Client:
    """Returns a client on a plaintext channel that sends a token with each call."""
    channel = grpc.insecure_channel(worker.address, options=UNLIMITED)
    return Client(worker, channel=grpc.intercept_channel(channel, AddMetadata([("authorization", f"Bearer {token}")])))


class AddMetadata(grpc.UnaryUnaryClientInterceptor, grpc.UnaryStreamClientInterceptor,
                  grpc.StreamStreamClientInterceptor):
    def __init__(self, metadata):
        self.metadata = metadata

    def intercept(self, proceed, details, request):
        return proceed(details._replace(metadata=list(details.metadata or []) + self.metadata), request)

    intercept_unary_unary = intercept_unary_stream = intercept_stream_stream = intercept


def error_of(call) -> tuple[grpc.StatusCode, str, dict]:
    """Returns the code of a failed call, its reason, and its details by type."""
    with pytest.raises(grpc.RpcError) as caught:
        list(call)
    status = rpc_status.from_call(caught.value)
    details = {}
    for detail in status.details:
        kind = {"ErrorInfo": error_details_pb2.ErrorInfo, "RetryInfo": error_details_pb2.RetryInfo,
                "QuotaFailure": error_details_pb2.QuotaFailure}.get(detail.type_url.rsplit(".", 1)[-1])
        if kind:
            details[kind.__name__] = kind.FromString(detail.value)
    return caught.value.code(), details["ErrorInfo"].reason, details


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """A worker with identities, their tokens, and the file."""
    path = tmp_path_factory.mktemp("identities") / "identities.yaml"
    tokens = {name: make_token(name) for name in ("all", "presets", "few", "bytes", "cpu", "one", "facts")}
    entries = {name: {"tokens": [digest]} for name, (_, digest) in tokens.items()}
    entries["presets"].update(presets=["favicon"], reflection=False)
    entries["few"].update(images_per_minute=2)
    entries["bytes"].update(bytes_per_minute=1000)
    entries["cpu"].update(cpu_seconds_per_hour=0.0001)
    entries["one"].update(max_images=1)
    entries["facts"].update(images_per_minute=1)
    path.write_text(yaml.safe_dump({"identities": entries}))
    worker = start(
        "--identities", str(path), "--reload-seconds", "1", "--metrics-port", "0", "--cache-memory-mib", "0")
    yield worker, {name: token for name, (token, _) in tokens.items()}, path
    assert worker.stop() == 0


def test_only_known_tokens_are_served_and_health_always_is(known):
    worker, tokens, _ = known
    photo = fixture_bytes("photo.png")
    client = with_token(worker, tokens["all"])
    assert [r.WhichOneof("part") for r in client.process(photo, preset="favicon")][-1] == "report"
    with grpc.insecure_channel(worker.address) as channel:
        assert is_serving(channel)
        call = channel.unary_stream(
            "/imageworker.v1.ImageWorkerService/ProcessImage",
            request_serializer=client.message("ProcessImageRequest").SerializeToString,
            response_deserializer=client.message("ProcessImageResponse").FromString)
        request = client.message("ProcessImageRequest")(image=photo, preset="favicon")
        for metadata in [
                [], [("authorization", "Bearer wrong")], [("authorization", tokens["all"])],
                [("authorization", f"Bearer {tokens['all']} x")], [("authorization", "Basic x")],
                [("authorization", f"Bearer {tokens['all']}")] * 2, [("image-worker-identity", "all")],
                [("authorization", "Bearer " + tokens["all"][:-1])]]:
            code, reason, _ = error_of(call(request, metadata=metadata, timeout=60))
            assert (code, reason) == (grpc.StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED"), metadata
        with pytest.raises(grpc.RpcError) as caught:
            list(ServerReflectionStub(channel).ServerReflectionInfo(
                iter([reflection_pb2.ServerReflectionRequest(list_services="")]), timeout=60))
        assert caught.value.code() == grpc.StatusCode.UNAUTHENTICATED
        with pytest.raises(grpc.RpcError) as caught:
            list(ServerReflectionStub(channel).ServerReflectionInfo(
                iter([reflection_pb2.ServerReflectionRequest(list_services="")]), timeout=60,
                metadata=[("authorization", f"Bearer {tokens['presets']}")]))
        assert caught.value.code() == grpc.StatusCode.PERMISSION_DENIED
    assert wait_until(lambda: any('"identity":"all"' in line for line in worker.log))
    assert not any(token in line for token in tokens.values() for line in worker.log)


def test_an_inspection_with_facts_is_one_image(known):
    worker, tokens, _ = known
    client = with_token(worker, tokens["facts"])
    client.pool = with_token(worker, tokens["all"]).pool
    request = client.message("InspectImageRequest")(image=fixture_bytes("photo-420.jpg"), facts=True)
    response = client.call("InspectImage", "unary_unary")(request, timeout=60)
    assert response.HasField("facts")
    with pytest.raises(grpc.RpcError) as caught:
        client.call("InspectImage", "unary_unary")(request, timeout=60)
    assert caught.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED


def test_scopes_and_quotas(known):
    worker, tokens, _ = known
    photo = fixture_bytes("photo-420.jpg")
    reader = with_token(worker, tokens["all"])

    def process(name, preset="favicon", image=photo, **configuration):
        client = with_token(worker, tokens[name])
        client.pool = reader.pool
        return client.process(image, preset=preset, **configuration)

    assert list(process("presets"))[-1].WhichOneof("part") == "report"
    for call in (process("presets", preset="preview"), process("presets", preset=""), process("presets", max_width=9)):
        code, reason, _ = error_of(call)
        assert (code, reason) == (grpc.StatusCode.PERMISSION_DENIED, "PERMISSION_DENIED")
    limited = with_token(worker, tokens["presets"])
    limited.pool = reader.pool
    for renditions in [[], [{"rendition_id": "a", "preset": "favicon"}]]:
        request = reader.message("ProcessImageRequest")(
            image=photo, preset="" if renditions else "favicon", renditions=renditions,
            auxiliary_images=[{"name": "a", "image": photo}])
        code, _, details = error_of(limited.call("ProcessImage", "unary_stream")(request, timeout=60))
        assert code == grpc.StatusCode.PERMISSION_DENIED and details["ErrorInfo"].metadata["field"] == "auxiliary_images"
    request = reader.message("ListPresetsRequest")()
    listed = limited.call("ListPresets", "unary_unary")(request, timeout=60)
    assert [preset.name for preset in listed.presets] == ["favicon"]

    for _ in range(2):
        list(process("few"))
    code, reason, details = error_of(process("few"))
    assert (code, reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "QUOTA_EXCEEDED")
    assert 20 < details["RetryInfo"].retry_delay.seconds <= 30
    assert details["QuotaFailure"].violations[0].subject == "identity:few"
    assert "images_per_minute of 2" in details["QuotaFailure"].violations[0].description

    assert len(photo) > 1000
    list(process("bytes"))  # more than it has, which is known afterwards
    assert "bytes_per_minute of 1000" in error_of(process("bytes"))[2]["QuotaFailure"].violations[0].description
    list(process("cpu"))
    assert "cpu_seconds_per_hour of 0.0001" in error_of(process("cpu"))[2]["QuotaFailure"].violations[0].description

    one = with_token(worker, tokens["one"])
    one.pool = reader.pool
    feed = queue.SimpleQueue()
    responses = one.batch(iter(feed.get, None))
    feed.put(one.start("a", "favicon"))
    feed.put(one.chunk("a", photo[:3000]))
    assert next(responses).item_id == "a"
    feed.put(one.start("b", "favicon", photo))
    refused = next(response for response in responses if response.item_id == "b")
    assert refused.error.code == grpc.StatusCode.RESOURCE_EXHAUSTED.value[0]
    assert "max_images is 1" in refused.error.message
    feed.put(one.chunk("a", photo[3000:]))
    feed.put(one.end("a"))
    feed.put(None)
    assert list(responses)[-1].WhichOneof("part") == "report"

    values = scrape(f"http://{metrics_address(worker)}")
    assert values['imageworker_identity_images_total{identity="few"}'] == 2
    assert values['imageworker_identity_refusals_total{identity="few"}'] == 1
    assert values['imageworker_identity_input_bytes_total{identity="bytes"}'] == len(photo)
    assert 0 < values['imageworker_identity_cpu_time_seconds_total{identity="cpu"}'] < 5
    assert values['imageworker_refusals_total{reason="quota_exceeded"}'] >= 3


def test_failures_of_callers_are_counted_from_zero(known):
    """Prometheus does not see the first failures of a series that begins with them."""
    values = scrape(f"http://{metrics_address(known[0])}")
    for reason in ["missing", "malformed", "unknown_token", "unknown_certificate", "reflection_not_allowed"]:
        assert f'imageworker_authentication_failures_total{{reason="{reason}"}}' in values


def test_a_batch_waits_for_what_its_identity_may_have_in_progress(known, tmp_path):
    worker, tokens, _ = known
    token, images = tmp_path / "token", tmp_path / "in"
    token.write_text(tokens["one"])
    images.mkdir()
    for number in range(40):
        (images / f"{number:02}.jpg").write_bytes(fixture_bytes("photo-420.jpg") + bytes([number]))
    done = subprocess.run(
        [os.environ["IMAGE_WORKER"], "batch", images, "--preset", "favicon", "--out", tmp_path / "out", "--to",
         worker.address, "--token-file", token, "--json"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert len([line for line in done.stdout.splitlines() if '"done"' in line and '"output"' in line]) == 40


def test_identities_are_reloaded(known):
    worker, tokens, path = known
    text = path.read_text()
    token, digest = make_token("new")
    old = with_token(worker, tokens["all"])
    photo = fixture_bytes("photo.png")

    def reloads() -> int:
        return sum("identities reloaded" in line for line in worker.log)

    assert list(old.process(photo, preset="favicon"))[-1].WhichOneof("part") == "report"
    path.write_text(text.replace("\n  all:", "\n  removed:") + f"  new:\n    tokens: [{digest}]\n")
    assert wait_until(lambda: reloads() > 0)
    new = with_token(worker, token)
    assert list(new.process(photo, preset="favicon"))[-1].WhichOneof("part") == "report"
    path.write_text("identities: {bad: {}}")
    assert wait_until(lambda: any("bad needs tokens or certificates" in line for line in worker.log))
    assert list(new.process(photo, preset="favicon"))[-1].WhichOneof("part") == "report"
    before = reloads()
    path.write_text(text)
    worker.process.send_signal(signal.SIGHUP)
    assert wait_until(lambda: reloads() > before)
    code, _, _ = error_of(new.process(photo, preset="favicon"))
    assert code == grpc.StatusCode.UNAUTHENTICATED


def test_a_client_certificate_is_an_identity(authority, server_files, tmp_path):
    path = tmp_path / "identities.yaml"
    path.write_text("identities: {web: {certificates: ['DNS:web.internal']}, common: {certificates: ['CN=common']}}")
    worker = start(*tls_options(
        server_files, "--tls-client-ca", str(authority.certificate), "--identities", str(path), "--log-level", "debug"))
    photo = fixture_bytes("photo.png")
    for name, names in [("web", "DNS:web.internal"), ("common", "DNS:other.internal")]:
        client = Client(worker, channel=secure_channel(worker, authority, authority.issue(name, names)))
        assert list(client.process(photo, preset="favicon"))[-1].WhichOneof("part") == "report"
        assert wait_until(lambda: any(f'"identity":"{name}"' in line for line in worker.log))
    unknown = authority.issue("unknown", "DNS:unknown.internal")
    with secure_channel(worker, authority, unknown) as channel:
        assert is_serving(channel)
        with pytest.raises(grpc.RpcError) as caught:
            list(ServerReflectionStub(channel).ServerReflectionInfo(
                iter([reflection_pb2.ServerReflectionRequest(list_services="")]), timeout=60))
        assert caught.value.code() == grpc.StatusCode.UNAUTHENTICATED
        assert "DNS:unknown.internal, CN=unknown" in caught.value.details()
    assert worker.stop() == 0
