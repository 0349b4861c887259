"""A fleet shares its caches: proxies with the lines of consistent hashing turned on, and the Python client."""

import hashlib

import pytest
from conftest import FIXTURES, Client, Worker, wait_until
from grpc_health.v1 import health_pb2
from test_proxies import CONFIGURATIONS, FILES, Proxy, programs, status  # noqa: F401

#: No multiple of the number of workers: in turn, each image goes to another worker the second time.
COUNT = 31
PHOTO = (FIXTURES / "photo-420.jpg").read_bytes()
#: The lines of each configuration that are replaced by those commented below them. Envoy has a test in test_proxies.py.
REPLACED = {
    "haproxy": ("    balance leastconn\n", "    balance hdr(x-image-key)\n    hash-type consistent\n"),
    "nginx": ("        least_conn;\n", "        hash $http_x_image_key consistent;\n"),
}


@pytest.fixture
def workers():
    workers = [Worker("--threads", "1") for _ in range(3)]
    yield workers
    for worker in workers:
        worker.process.kill()
        worker.process.wait()


def image(number):
    """Different images with the same pixels."""
    return PHOTO + b"%d" % number


def hits(address):
    client, found = Client(address), 0
    for number in range(COUNT):
        request = client.message("ProcessImageRequest")(image=image(number), preset="thumbnail")
        key = hashlib.sha256(request.image).hexdigest()
        responses = list(client.call("ProcessImage", "unary_stream")(request, timeout=60, metadata=[("x-image-key", key)]))
        found += responses[-1].report.cache_hit
    return found


@pytest.mark.parametrize("name", REPLACED)
@pytest.mark.parametrize("shared", [True, False], ids=["hash", "fewest"])
def test_a_proxy_sends_the_same_image_to_the_same_worker(name, shared, programs, workers, tmp_path):  # noqa: F811
    usual, hashed = REPLACED[name]
    text = (CONFIGURATIONS / FILES[name]).read_text()
    assert all(f"#   {line.strip()}\n" in text for line in hashed.splitlines())
    proxy = Proxy(programs, name, workers, tmp_path, [(usual, hashed)] if shared else [])
    try:
        assert wait_until(lambda: status(proxy.address) == health_pb2.HealthCheckResponse.SERVING)
        assert hits(proxy) == 0
        again = hits(proxy)
        assert again == COUNT if shared else again < COUNT / 2
        if name == "haproxy" and shared:
            workers[0].process.kill()
            workers[0].process.wait()
            assert wait_until(lambda: "worker-1 is DOWN" in proxy.log)
            # The images of the lost worker moved, and no others.
            assert 0 < COUNT - hits(proxy) < COUNT * 0.7
            assert hits(proxy) == COUNT
    finally:
        proxy.stop()
