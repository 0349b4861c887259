"""The playground's HTTP requests."""

import http.client
import json
import os
import re
import socket
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO

import pytest
from PIL import Image

from conftest import Client, built_in, fixture_bytes, wait_until
from playground import Playground, joined, photo, playground  # noqa: F401
from processes import helpers, is_alive


def test_it_is_off_unless_asked_for(worker):
    assert wait_until(lambda: any("serving" in line for line in worker.log))
    assert not any("playground" in line for line in worker.log)


def test_the_command_serves_the_page_and_the_service(tmp_path):
    process = subprocess.Popen(
        [os.environ["IMAGE_WORKER"], "playground", "--port", "0", "--playground-port", "0", "--log-format", "json"],
        stderr=subprocess.PIPE, text=True)
    lines = []
    for line in process.stderr:
        lines.append(line)
        if sum(word in "".join(lines) for word in ('"serving"', '"playground"')) == 2:
            break
    port = int(re.search(r'"playground".*http://127\.0\.0\.1:(\d+)/', "".join(lines))[1])
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/")
    assert b"playground" in connection.getresponse().read()
    process.terminate()
    assert process.wait(timeout=60) == 0


@pytest.mark.parametrize("headers", [
    {"Host": "attacker.example"}, {"Host": "attacker.example:80"}, {"Host": "127.0.0.1.attacker.example"},
    {"Host": "192.168.1.7"}, {"Origin": "http://attacker.example"}, {"Origin": "null"}, {"Sec_Fetch_Site": "cross-site"},
])
def test_requests_of_other_sites_are_refused(playground, headers):
    """DNS rebinding shows in Host, other sites in Origin, which browsers send with each request that can change something."""
    response, contents = playground.send("GET", "/api/contract", **headers)
    assert response.status == 403, contents
    response, _ = playground.send("POST", "/api/images", fixture_bytes("photo-420.jpg"), **headers)
    assert response.status == 403
    assert playground.state["uploadCount"] == 0


def test_requests_without_an_origin_change_nothing(playground):
    response, _ = playground.send("POST", "/api/images", fixture_bytes("photo-420.jpg"), Origin=None)
    assert response.status == 403
    assert playground.state["uploadCount"] == 0


@pytest.mark.parametrize("path", ["/", "/main.js", "/api/contract", "/nothing"])
def test_every_response_restricts_the_page(playground, path):
    response, _ = playground.send("GET", path)
    policy = response.getheader("Content-Security-Policy")
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy
    assert response.getheader("X-Content-Type-Options") == "nosniff"
    assert response.getheader("Referrer-Policy") == "no-referrer"
    assert response.getheader("Cross-Origin-Resource-Policy") == "same-origin"
    assert response.getheader("Access-Control-Allow-Origin") is None


@pytest.mark.parametrize("path", ["/", "/api/contract", "/api/pages/page", "/nothing"])
def test_a_head_has_no_body(playground, path):
    # Whatever follows the head would be taken for the next response.
    request = f"HEAD {path} HTTP/1.1\r\nHost: 127.0.0.1:{playground.port}\r\nConnection: close\r\n\r\n"
    with socket.create_connection(("127.0.0.1", playground.port), timeout=60) as connection:
        connection.sendall(request.encode())
        head, body = connection.makefile("rb").read().split(b"\r\n\r\n", 1)
    status = 404 if path in ["/nothing", "/api/pages/page"] else 200
    assert head.startswith(b"HTTP/1.1 %d " % status) and body == b""
    if status == 200:
        response, contents = playground.send("GET", path)
        assert response.status == 200 and b"content-length: %d" % len(contents) in head.lower()


def test_the_page_refers_to_nothing_elsewhere(playground):
    names = re.findall(r'(?:src|href)="(/[^"]*)"', playground.send("GET", "/")[1].decode())
    files = {name: playground.send("GET", name) for name in names}
    modules = set(re.findall(r'from "(/\w+\.js)"', "".join(contents.decode() for _, contents in files.values())))
    for name in modules:
        files[name] = playground.send("GET", name)
    assert len(files) >= 10
    for name, (response, contents) in files.items():
        assert response.status == 200, name
        addresses = set(re.findall(r"https?://[^\s\"'`]*", contents.decode()))
        assert addresses <= {"http://www.w3.org/2000/svg"}, name


@pytest.mark.parametrize("path", ["/../etc/passwd", "/%2e%2e/etc/passwd", "//etc/passwd", "/Resources/index.html"])
def test_no_files_are_served(playground, path):
    assert playground.send("GET", path)[0].status == 404


@pytest.fixture(scope="module", params=["none", pytest.param("process", marks=built_in("isolation"))])
def either(request):
    """Playgrounds whose images are decoded and encoded in the worker itself, and in helper processes."""
    playground = Playground("--cache-memory-mib", "0", "--isolation", request.param)
    yield playground
    assert playground.worker.stop() == 0, "".join(playground.worker.log)


def test_a_result_is_that_of_a_call(either, playground):  # noqa: F811
    client = Client(playground.worker)
    playground = either
    image = photo(900, 600)
    request = {"preset": "thumbnail", "configuration": {"max_width": 333, "preferred_format": "OUTPUT_FORMAT_WEBP"}}
    frames = playground.frames(playground.upload(image), {**request, "preview": True})
    assert [kind for kind, _ in frames if kind not in "cC"] == ["h", "r", "H", "R", "S"]
    expected = b"".join(
        part.chunk for part in client.process(image, preset="thumbnail", max_width=333, preferred_format=4))
    assert joined(frames, "C") == expected
    assert Image.open(BytesIO(joined(frames, "c"))).width == 333
    report = json.loads(joined(frames, "R"))
    assert report["output"]["width"] == 333 and report["output_bytes"] == len(expected)
    spans = {span["name"]: span for span in json.loads(joined(frames, "S"))}
    assert {"playground", "queue", "decode", "resize", "encode"} <= set(spans)
    call = spans["playground"]
    assert all(call["start"] <= span["start"] <= span["end"] <= call["end"] for span in spans.values())


def test_errors_are_those_of_a_call(playground):
    image = playground.upload(photo(300, 200))
    frames = playground.frames(image, {"configuration": {"max_width": 70000}})
    error = json.loads(joined(frames, "E"))
    assert error["reason"] == "INVALID_FIELD" and error["field"] == "configuration.max_width" and "65500" in error["message"]
    assert playground.send("POST", f"/api/results?image={image}&view=x", b'{"no_field": 1}')[0].status == 400
    assert playground.send("POST", f"/api/results?image={image}&view=x", b'{"image": "AAAA"}')[0].status == 400
    assert playground.send("POST", "/api/results?image=none&view=x", b"{}")[0].status == 410
    named = b'{"auxiliary_images": [{"name": "mark"}]}'
    for auxiliary, status in {"": 400, "&auxiliary=": 400, f"&auxiliary={image},{image}": 400, "&auxiliary=none": 410}.items():
        assert playground.send("POST", f"/api/results?image={image}&view=x{auxiliary}", named)[0].status == status, auxiliary
    with_bytes = b'{"auxiliary_images": [{"name": "mark", "image": "AAAA"}]}'
    assert playground.send("POST", f"/api/results?image={image}&view=x&auxiliary={image}", with_bytes)[0].status == 400
    response, contents = playground.send("POST", "/api/images", b"no image")
    assert response.status == 422 and json.loads(contents)["reason"] == "UNKNOWN_FORMAT"


def test_the_newest_request_of_a_view_cancels_the_one_before(either):
    playground = either
    image = playground.upload(photo(5000, 4000))
    slow = {"configuration": {"filters": [{"name": "blur", "intensity": 1, "parameters": {"radius": 50}}] * 8}}
    ended = {}

    def first():
        frames = playground.frames(image, slow, view="slider")
        ended["error"] = json.loads(joined(frames, "E"))["code"]

    thread = threading.Thread(target=first)
    thread.start()
    assert wait_until(lambda: playground.state["memoryUsed"] > 0)
    frames = playground.frames(image, {"preset": "favicon"}, view="slider")
    assert joined(frames, "R")
    thread.join(timeout=60)
    assert ended["error"] == "cancelled"


def test_a_page_that_leaves_stops_the_work(either):
    playground = either
    image = playground.upload(photo(5000, 4000))
    slow = {"configuration": {"filters": [{"name": "blur", "intensity": 1, "parameters": {"radius": 50}}] * 32}}
    connection = http.client.HTTPConnection("127.0.0.1", playground.port, timeout=60)
    connection.request(
        "POST", f"/api/results?image={image}&view=leaver", json.dumps(slow).encode(),
        {"Host": playground.authority, "Origin": f"http://{playground.authority}"})
    assert wait_until(lambda: playground.state["memoryUsed"] > 0)
    connection.sock.shutdown(2)
    connection.close()
    assert wait_until(lambda: playground.state["memoryUsed"] == 0)


@pytest.mark.parametrize("isolation", ["none", pytest.param("process", marks=built_in("isolation"))])
def test_a_worker_that_stops_waits_for_no_page(isolation):
    playground = Playground("--cache-memory-mib", "0", "--isolation", isolation)
    image = playground.upload(photo(5000, 4000))
    slow = {"configuration": {"filters": [{"name": "blur", "intensity": 1, "parameters": {"radius": 50}}] * 32}}
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(playground.frames, image, slow)
        assert wait_until(lambda: playground.state["memoryUsed"] > 0)
        processes = helpers(playground.worker)
        assert len(processes) == 0 or isolation == "process"
        assert playground.worker.stop() == 0, "".join(playground.worker.log)
        # The page learns of it.
        assert json.loads(joined(call.result(), "E"))["code"] == "cancelled"
    assert wait_until(lambda: not any(is_alive(process) for process in processes))


def test_a_worker_that_stops_waits_for_no_result_that_nobody_reads():
    playground = Playground("--cache-memory-mib", "0")
    image = playground.upload(photo(3000, 2000))
    body = b'{"configuration":{"preferredFormat":"OUTPUT_FORMAT_PNG"}}'
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", playground.port))
        connection.sendall(
            f"POST /api/results?image={image}&view=v HTTP/1.1\r\nHost: {playground.authority}\r\n"
            f"Origin: http://{playground.authority}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        assert wait_until(lambda: playground.state["memoryUsed"] > 0)
        time.sleep(1)
        assert playground.worker.stop() == 0, "".join(playground.worker.log)


def test_images_are_charged_limited_and_forgotten():
    playground = Playground("--memory-limit-mib", "64", "--max-message-mib", "10")
    try:
        before = playground.state
        assert before["uploadBytes"] == before["memoryBuffered"] == 0
        image = photo(3000, 2000)
        id = playground.upload(image)
        state = playground.state
        assert state["uploadBytes"] == state["memoryBuffered"] == len(image)
        # Refused by its announced size, before any of it is received.
        response, contents = playground.send("POST", "/api/images", b"", Content_Length=str(11 << 20))
        assert response.status == 413 and b"max_message_bytes" in contents
        ids = [id]
        while True:
            response, contents = playground.send("POST", "/api/images", image)
            if response.status != 200:
                break
            ids.append(json.loads(contents)["id"])
            assert len(ids) < 64
        assert response.status == 507
        assert len(ids) * len(image) <= (64 << 20) // 4
        assert playground.json("POST", "/api/images/keep", ids + ["unknown"]) == ids
        for id in ids:
            assert playground.send("DELETE", f"/api/images/{id}")[0].status == 204
        assert playground.json("POST", "/api/images/keep", ids) == []
        state = playground.state
        assert state["uploadBytes"] == state["memoryBuffered"] == state["uploadCount"] == 0
    finally:
        assert playground.worker.stop() == 0


def failed_start(*options: str) -> str:
    done = subprocess.run(
        [os.environ["IMAGE_WORKER"], "serve", "--port", "0", "--playground-port", "0", *options], capture_output=True,
        text=True, timeout=60)
    assert done.returncode != 0
    return done.stderr


def test_it_is_not_served_to_others_by_mistake(tmp_path):
    assert "--insecure" in failed_start("--playground-host", "0.0.0.0")
    identities = tmp_path / "identities.yaml"
    identities.write_text("identities: {}\n")
    assert "cannot be combined" in failed_start("--identities", str(identities))
