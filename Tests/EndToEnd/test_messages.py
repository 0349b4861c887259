"""What a person reads when something is wrong: which option, which file, and what would be right."""

import json
import os
import re
import socket
import subprocess

import pytest
import yaml
from certificates import Authority
from conftest import FIXTURES, Worker, fixture_bytes, wait_until

PROGRAM = os.environ["IMAGE_WORKER"]
TIMEOUT = 120


@pytest.fixture
def photo(tmp_path):
    path = tmp_path / "a.jpg"
    path.write_bytes(fixture_bytes("photo-420.jpg"))
    return path


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("stranger"), "stranger")


def run(*arguments, **options):
    called = subprocess.run(
        [PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=TIMEOUT, **options)
    return called.returncode, called.stdout, called.stderr


def remote(photo, out, port, *options):
    """A batch that would wait for lost workers until `run` gives up."""
    status, _, errors = run(
        "batch", photo, "--out", out, "--preset", "favicon", "--to", f"localhost:{port}", "--give-up-seconds", "600", *options)
    return status, errors


def served(authority, *options, names="DNS:localhost,IP:127.0.0.1"):
    certificate, key = authority.issue("worker", names)
    return Worker("--tls-certificate", str(certificate), "--tls-key", str(key), *options)


def test_a_certificate_that_is_refused_ends_the_batch_at_once(photo, tmp_path, authority, stranger):
    worker = served(authority)
    try:
        for options, hint in [
            (["--tls"], "set --tls-ca to its authority"), (["--tls-ca", stranger.certificate], "check --tls-ca"),
        ]:
            status, errors = remote(photo, tmp_path / "out", worker.port, *options)
            assert status == 69
            assert f"localhost:{worker.port}: its certificate is not trusted" in errors and hint in errors, errors
        assert remote(photo, tmp_path / "out", worker.port, "--tls-ca", authority.certificate)[0] == 0
        # As certificate stores of Windows write it.
        exported = tmp_path / "exported.pem"
        exported.write_bytes(b"subject=CN = authority\r\n" + authority.certificate.read_bytes().replace(b"\n", b"\r\n"))
        assert remote(photo, tmp_path / "out", worker.port, "--tls-ca", exported)[0] == 0
    finally:
        assert worker.stop() == 0


def test_a_certificate_for_another_name_names_the_option(photo, tmp_path, authority):
    worker = served(authority, names="DNS:worker.internal")
    try:
        trust = ["--tls-ca", authority.certificate]
        status, errors = remote(photo, tmp_path / "out", worker.port, *trust)
        assert status == 69
        assert "for another host name" in errors and "--tls-server-name" in errors, errors
        assert remote(photo, tmp_path / "out", worker.port, *trust, "--tls-server-name", "worker.internal")[0] == 0
    finally:
        assert worker.stop() == 0


def test_client_certificates_and_plaintext_are_named(photo, tmp_path, authority, stranger):
    worker = served(authority, "--tls-client-ca", str(authority.certificate))
    trust = ["--tls-ca", authority.certificate]
    theirs, their_key = stranger.issue("theirs")
    try:
        status, errors = remote(photo, tmp_path / "out", worker.port, *trust)
        assert status == 69 and "set --tls-certificate and --tls-key" in errors, errors
        status, errors = remote(
            photo, tmp_path / "out", worker.port, *trust, "--tls-certificate", theirs, "--tls-key", their_key)
        assert status == 69 and "check --tls-certificate" in errors, errors
        # A worker with TLS does not answer a client without, nor does it say why.
        status, errors = remote(photo, tmp_path / "out", worker.port, "--give-up-seconds", "1")
        assert status == 69 and "a worker with TLS does so" in errors, errors
    finally:
        assert worker.stop() == 0
    worker = Worker()
    try:
        status, errors = remote(photo, tmp_path / "out", worker.port, "--tls")
        assert status == 69 and "it does not use TLS; leave out --tls" in errors, errors
    finally:
        assert worker.stop() == 0


def test_nobody_at_an_address_is_reported_while_the_batch_waits(photo, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        status, errors = remote(photo, tmp_path / "out", port, "--give-up-seconds", "4")
    lines = errors.splitlines()
    assert status == 69 and len(lines) == 2, errors
    assert lines[0] == f"localhost:{port}: connection refused; trying again (--give-up-seconds 4)"
    assert lines[1].startswith("Error: no worker could be reached for 4") and "connection refused" in lines[1]


def test_a_preset_that_no_worker_has_is_one_error(tmp_path):
    for name in ["a.jpg", "b.jpg", "c.jpg"]:
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / "in" / name).write_bytes(fixture_bytes("photo-420.jpg"))
    (tmp_path / "presets.yaml").write_text("presets: {square: {max_width: 40, max_height: 40}}")
    worker = Worker("--presets", str(tmp_path / "presets.yaml"))
    to = ["--out", tmp_path / "out", "--to", worker.address]
    try:
        status, output, errors = run("batch", tmp_path / "in", *to, "--preset", "sqare")
        assert status == 64 and not output and len(errors.splitlines()) == 1, errors
        assert "thumbnail" in errors and errors.rstrip().endswith("did you mean square?"), errors
        status, _, errors = run("batch", tmp_path / "in", *to, "--preset", "sqare", "--dry-run")
        assert status == 64 and "did you mean square?" in errors
        (tmp_path / "list.csv").write_text(f"path,preset\n{tmp_path}/in/a.jpg,square\n{tmp_path}/in/b.jpg,none\n")
        status, _, errors = run("batch", "--manifest", tmp_path / "list.csv", *to)
        assert status == 64 and 'no preset "none"' in errors
        status, output, errors = run("batch", tmp_path / "in", *to, "--preset", "square")
        assert status == 0 and output.count("40x27") == 3, errors
    finally:
        assert worker.stop() == 0


def test_presets_that_a_file_leaves_as_they_are_are_sent_by_name(photo, tmp_path):
    """Workers that serve only presets refuse fields."""
    (tmp_path / "presets.yaml").write_text("presets: {square: {max_width: 40, max_height: 40}}")
    options = ["--presets", tmp_path / "presets.yaml"]
    worker = Worker("--only-presets")
    try:
        status, _, errors = run(
            "batch", photo, "--out", tmp_path / "out", *options, "--preset", "favicon", "--to", worker.address)
        assert status == 0, errors
        status, _, errors = run(
            "batch", photo, "--out", tmp_path / "out", *options, "--preset", "square", "--to", worker.address)
        assert status == 1 and "only presets" in errors, errors
    finally:
        assert worker.stop() == 0


@pytest.mark.parametrize("arguments, message", [
    (["batch", "--manifest", "/nope", "--out", "o"], "Error: --manifest /nope cannot be read: No such file or directory"),
    (["batch", "--list", "/nope", "--out", "o"], "Error: --list /nope cannot be read: No such file or directory"),
    (["inspect", "nope.jpg"], "Error: nope.jpg cannot be read: No such file or directory"),
    (["inspect", "/"], "Error: / cannot be read: Is a directory"),
    (["batch", "a.jpg", "--out", "/proc/x"], "Error: --out /proc/x cannot be created: No such file or directory"),
    (["process", "a.jpg", "--out", "/proc/x"], "Error: --out /proc/x cannot be created: No such file or directory"),
    (["process", "a.jpg", "--out", "a.jpg/"], "Error: --out a.jpg cannot be created: Not a directory"),
    (["process", "a.jpg", "--out", "o", "--trace-out", "/nope/x"],
     "Error: --trace-out /nope/x cannot be written: No such file or directory"),
    (["batch", "a.jpg", "--out", "o", "--trace-out", "/nope/x"],
     "Error: --trace-out /nope/x cannot be written: No such file or directory"),
    (["batch", "a.jpg", "--out", "o", "--to", "w:1", "--tls", "--token-file", "/nope"],
     "Error: --token-file /nope cannot be read: No such file or directory"),
    (["batch", "a.jpg", "--out", "o", "--to", "w:1", "--tls-ca", "/nope"],
     "Error: --tls-ca /nope cannot be read: No such file or directory"),
    (["batch", "a.jpg", "--out", "o", "--to", "w:1", "--tls-ca", "a.jpg"],
     "Error: --tls-ca a.jpg cannot be used: it contains no CERTIFICATE in PEM format"),
])
def test_an_error_names_the_option_and_the_file(arguments, message, photo):
    status, output, errors = run(*arguments, cwd=photo.parent)
    assert (status, output, errors.rstrip()) == (1, "", message)


def test_a_url_is_no_address(photo, tmp_path):
    for address, hint in [("http://w:50051/", "as in w:50051"), ("https://w", "as in w:50051, and set --tls")]:
        status, _, errors = run("batch", photo, "--out", tmp_path / "out", "--to", address)
        assert status == 64 and hint in errors.splitlines()[0], errors
    assert not (tmp_path / "out").exists()


def test_a_port_in_use_names_the_address_and_the_option(worker):
    # Where the worker's own port, that of metrics or that of the playground is taken.
    for option in ["--port", "--metrics-port", "--playground-port"]:
        ports = {"--port": "0", "--playground-port": "0", option: str(worker.port)}
        status, _, errors = run("serve", *(word for pair in ports.items() for word in pair))
        last = errors.splitlines()[-1]
        assert (status, last) == (1, f"Error: address already in use: {worker.address} ({option})")
    status, _, errors = run("serve", "--host", "worker.invalid", "--insecure")
    assert status == 1 and errors.splitlines()[-1] == "Error: --host worker.invalid cannot be resolved"
    # Ports that were set are not replaced by others.
    status, _, errors = run("playground", "--playground-port", "0", "--port", worker.port)
    assert status == 1 and f"{worker.address} (--port)" in errors


def test_the_playground_finds_a_free_port():
    """Next to a worker, and to another playground, on their usual ports."""
    listeners = []
    for port in [8080, 50051]:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
            listener.listen()
            listeners.append(listener)
        except OSError:
            listener.close()  # somebody else has it, which serves as well
    process = subprocess.Popen([PROGRAM, "playground", "--log-format", "json"], stderr=subprocess.PIPE, text=True)
    try:
        found = {}
        while len(found) < 2:
            line = process.stderr.readline()
            assert line, found
            told = json.loads(line)
            if told["message"] in ("serving", "playground"):
                found[told["message"]] = int(re.search(r":(\d+)/?$", told["address"])[1])
        assert found["serving"] not in (0, 50051) and found["playground"] not in (0, 8080)
    finally:
        process.terminate()
        assert process.wait(timeout=TIMEOUT) == 0
        for listener in listeners:
            listener.close()


def test_identities_are_checked_at_the_start(tmp_path):
    token = subprocess.run([PROGRAM, "token", "a"], capture_output=True, text=True, check=True, timeout=TIMEOUT).stdout
    entry = token.split("\n", 1)[1].lstrip()
    path = tmp_path / "identities.yaml"
    for text, message in [
        (entry + "    presets: [favicon, tumbnail]\n", 'line 5: identities.a.presets has "tumbnail"'),
        ("identities:\n  a:\n    certificates: [CN=a]\n", "line 3: identities.a.certificates needs --tls-client-ca"),
    ]:
        path.write_text(text)
        status, _, errors = run("serve", "--port", "0", "--identities", path)
        assert status == 1 and f"--identities {path}: {message}" in errors, errors
    # A preset of the worker's own file is one of its presets.
    path.write_text(entry + "    presets: [square]\n")
    presets = tmp_path / "presets.yaml"
    presets.write_text("presets: {square: {max_width: 40}}")
    worker = Worker("--identities", str(path), "--presets", str(presets), "--reload-seconds", "1")
    # The files may be replaced one after the other: until both are there, nobody is turned away.
    path.write_text(yaml.safe_dump({"identities": {"a": {**yaml.safe_load(entry)["identities"]["a"], "presets": ["later"]}}}))
    assert wait_until(lambda: any("identities reloaded" in line for line in worker.log))
    assert worker.stop() == 0


def test_links_in_folders_are_followed_and_loops_counted(tmp_path):
    photo = fixture_bytes("photo-420.jpg")
    for name in ["in/a.jpg", "in/below/b.jpg", "elsewhere/c.jpg"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(photo)
    for name, target in [
        ("copy.jpg", "a.jpg"), ("outside.jpg", "../elsewhere/c.jpg"), ("linked", "../elsewhere"), ("below/up", ".."),
        ("nowhere.jpg", "missing.jpg"),
    ]:
        (tmp_path / "in" / name).symlink_to(target)
    (tmp_path / "elsewhere/back").symlink_to("../in")
    out = tmp_path / "out"
    status, output, errors = run("batch", tmp_path / "in", "--out", out, "--preset", "favicon")
    results = sorted(str(path.relative_to(out)) for path in out.rglob("*.jpg"))
    assert status == 0 and results == ["a.jpg", "below/b.jpg", "copy.jpg", "linked/c.jpg", "outside.jpg"], errors
    assert "symbolic links not followed: 3" in errors
    status, output, _ = run("batch", tmp_path / "in", "--out", out, "--preset", "favicon", "--json")
    summary = json.loads(output.splitlines()[-1])["summary"]
    assert status == 0 and summary["skipped"] == summary["total"] == 5 and summary["skipped_links"] == 3


def test_a_lowered_quality_is_in_json(photo, tmp_path):
    worker = Worker()
    try:
        for to in [[], ["--to", worker.address]]:
            status, output, errors = run(
                "batch", photo, "--out", tmp_path / f"out{len(to)}", "--preset", "thumbnail", "--always-encode",
                "--format", "webp", "--json", *to)
            line, summary = map(json.loads, output.splitlines())
            assert status == 0 and 0 < line["quality"] <= 1, errors
            assert summary["summary"]["interrupted"] is False
    finally:
        assert worker.stop() == 0


def test_an_empty_value_may_follow_an_equals_sign():
    worker = Worker("--spill-directory=")
    assert worker.stop() == 0


@pytest.mark.parametrize("command", ["process", "batch", "inspect"])
def test_an_overlay_that_is_not_there_is_named(photo, tmp_path, command):
    out = [] if command == "inspect" else ["--out", tmp_path / "out"]
    for options, place in [([], "DIRECTORY"), (["--overlays", tmp_path], tmp_path)]:
        status, _, errors = run(command, photo, "--overlay", "missing.png,x=3", *options, *out)
        assert status == 1 and errors == (
            'Error: the overlay "missing.png" is not there; specify the path of an image, or the name of one in '
            f"--overlays {place}\n")


def test_quiet_leaves_out_the_quality_that_never_larger_has_lowered(photo, tmp_path):
    lowered = ["process", photo, "--preset", "thumbnail", "--max-width", "235", "--out", tmp_path / "out"]
    status, output, errors = run(*lowered)
    assert status == 0 and "\n  warning: the quality is " in output and not errors
    assert run(*lowered, "--quiet") == (0, "", "")


def test_an_unknown_filter_has_a_suggestion(photo):
    status, _, errors = run("inspect", photo, "--filter", "sepa=1")
    assert status == 64 and 'name is "sepa"' in errors and "did you mean sepia?" in errors, errors


@pytest.mark.parametrize("variable, message", [
    ("IMAGE_WORKER_CONFIG", "name the file with --config"), ("IMAGE_WORKER_PROT", "did you mean IMAGE_WORKER_PORT?")])
def test_an_unknown_variable_is_explained(variable, message):
    status, _, errors = run("serve", "--port", "0", env={**os.environ, variable: "x"})
    assert status == 1 and message in errors


def test_an_unknown_command_has_a_suggestion(photo):
    status, _, errors = run("proces", photo)
    assert status == 64 and errors.splitlines()[0] == 'Error: there is no command "proces"; did you mean process?'


def test_a_full_output_is_named(photo, tmp_path):
    with open("/dev/full", "w") as full:
        called = subprocess.run(
            [PROGRAM, "process", photo, "-o", tmp_path / "out", "--format", "jpg"], stdout=full, stderr=subprocess.PIPE,
            text=True, timeout=TIMEOUT)
    assert called.returncode == 1
    assert called.stderr == "Error: standard output cannot be written: No space left on device\n"


def test_process_says_what_to_do_with_a_folder(tmp_path):
    status, _, errors = run("process", FIXTURES, "--out", tmp_path / "deep/out", "--quiet")
    assert status == 1 and "use image-worker batch for folders" in errors
    assert (tmp_path / "deep/out").is_dir()
