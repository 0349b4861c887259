"""Tests of the files in deploy/ that need no worker: they are valid, say the same as each other, and fit the worker's limits."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys

import kubernetes_validate
import pytest
import yaml
from python_client import ROOT, run

# Those of the validator about its own libraries.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
DEPLOY = ROOT / "deploy"
MIB = {"Mi": 1, "Gi": 1024, "g": 1024, "m": 1}


def loaded(path):
    """The module of a script."""
    specification = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def render():
    return loaded(DEPLOY / "render.py").render


def mebibytes(text: str) -> int:
    number, unit = re.fullmatch(r"(\d+)(\D+)", text).groups()
    return int(number) * MIB[unit]


def needed_mebibytes(environment: dict[str, str]) -> float:
    """The memory that the article on deploying asks for."""
    return 1.5 * int(environment["IMAGE_WORKER_MEMORY_LIMIT_MIB"]) + int(environment["IMAGE_WORKER_CACHE_MEMORY_MIB"]) + 50


def of_kind(manifests, kind):
    return next((manifest for manifest in manifests if manifest["kind"] == kind), None)


def test_the_units_of_systemd_are_valid_and_fit_the_worker(tmp_path):
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not installed")
    for unit in (DEPLOY / "systemd").iterdir():
        # The worker is not installed here.
        text = unit.read_text().replace("/usr/local/bin/image-worker", os.environ["IMAGE_WORKER"])
        (tmp_path / unit.name).write_text(text)
    units = sorted(tmp_path.iterdir())
    checked = subprocess.run(["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True)
    assert checked.returncode == 0 and str(tmp_path) not in checked.stderr, checked.stderr
    # 10 is a service without any hardening.
    audited = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=25", tmp_path / "image-worker.service"],
        capture_output=True, text=True)
    assert audited.returncode == 0, audited.stdout + audited.stderr
    service = (DEPLOY / "systemd/image-worker.service").read_text()
    usage = subprocess.run([os.environ["IMAGE_WORKER"], "serve", "--help"], capture_output=True, text=True).stdout
    drain = int(re.search(r"--drain-timeout-seconds <.*?Default:\s+(\d+)", usage, re.S)[1])
    stuck = int(re.search(r"--stuck-thread-seconds <.*?Default:\s+(\d+)", usage, re.S)[1])
    assert int(re.search(r"^TimeoutStopSec=(\d+)", service, re.M)[1]) >= drain + 5 + 15
    assert int(re.search(r"^WatchdogSec=(\d+)", service, re.M)[1]) > stuck
    listener = (DEPLOY / "systemd/image-worker.socket").read_text()
    assert int(re.search(r"^Backlog=(\d+)", listener, re.M)[1]) == 4096


VALUES = [
    {}, {"autoscaling": {"enabled": False}, "networkPolicy": {"enabled": False}},
    {"presets": "presets:\n  - name: tiny\n    configuration:\n      maxWidth: 10\n", "telemetry": {"endpoint": "http://otel:4317"},
     "autoscaling": {"queueLength": ""}, "env": [{"name": "OTEL_TRACES_SAMPLER", "value": "always_off"}],
     "nodeSelector": {"kubernetes.io/arch": "amd64"}, "tolerations": [{"key": "images", "operator": "Exists"}]},
    {"tls": {"secretName": "certificate", "clientAuthoritySecretName": "authority"}, "identities": {"secretName": "callers"},
     "presets": "presets: []\n", "autoscaling": {"queueLength": "4"}}]


@pytest.mark.parametrize("values", VALUES, ids=["defaults", "less", "more", "secured"])
def test_manifests_are_valid_and_strict(render, values):
    manifests = list(yaml.safe_load_all(render(values)))
    for manifest in manifests:
        kubernetes_validate.validate(manifest, "1.30", strict=True)
    assert bool(of_kind(manifests, "HorizontalPodAutoscaler")) == bool(of_kind(manifests, "NetworkPolicy")) == (values != VALUES[1])
    assert ("replicas" in of_kind(manifests, "Deployment")["spec"]) == (values == VALUES[1])
    pod = of_kind(manifests, "Deployment")["spec"]["template"]["spec"]
    [container] = pod["containers"]
    environment = {each["name"]: each["value"] for each in container["env"]}
    if "telemetry" in values:
        assert yaml.safe_load(of_kind(manifests, "ConfigMap")["data"]["presets.yaml"])["presets"][0]["name"] == "tiny"
        assert environment["OTEL_TRACES_SAMPLER"] == "always_off"
    # The memory limit fits the settings, and the time to stop fits the drain.
    assert mebibytes(container["resources"]["limits"]["memory"]) >= needed_mebibytes(environment)
    assert pod["terminationGracePeriodSeconds"] >= (
        container["lifecycle"]["preStop"]["sleep"]["seconds"] + int(environment["IMAGE_WORKER_DRAIN_TIMEOUT_SECONDS"]) + 5)
    # What the restricted pod security standard asks for, and more.
    security = container["securityContext"]
    assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert security["readOnlyRootFilesystem"] and not security["allowPrivilegeEscalation"]
    assert security["capabilities"] == {"drop": ["ALL"]} and not pod["automountServiceAccountToken"]
    # Kubernetes cannot probe gRPC over TLS.
    probe = "httpGet" if "tls" in values else "grpc"
    assert all(probe in container[name] for name in ["startupProbe", "readinessProbe", "livenessProbe"])
    assert environment["IMAGE_WORKER_INSECURE"] == ("false" if "tls" in values else "true")
    # What is mounted exists, nothing is mounted into another mount, and each file of the settings is in one.
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    assert sorted(mounts.values()) == sorted(volume["name"] for volume in pod["volumes"])
    assert not any(inner.startswith(f"{outer}/") for inner in mounts for outer in mounts)
    files = [value for value in environment.values() if value.startswith("/etc/")]
    assert len(files) == {0: 0, 1: 0, 2: 1, 3: 5}[VALUES.index(values)]
    assert all(os.path.dirname(file) in mounts for file in files)


def test_empty_lists_of_the_network_policy_admit_nobody(render):
    def policy(**lists):
        return of_kind(yaml.safe_load_all(render({"networkPolicy": lists})), "NetworkPolicy")["spec"]

    nobody = policy(clients=[], monitoring=[], collector=[])
    assert "ingress" not in nobody and [list(rule) for rule in nobody["egress"]] == [["ports"]]
    assert [rule["ports"] for rule in policy(monitoring=[])["ingress"]] == [[{"port": "grpc"}]]


def test_settings_are_rendered_as_they_were_written(render):
    values = {"settings": {"MAX_PIXELS": 640000000, "DRAIN_TIMEOUT_SECONDS": None}}
    pod = of_kind(yaml.safe_load_all(render(values)), "Deployment")["spec"]["template"]["spec"]
    environment = {each["name"]: each["value"] for each in pod["containers"][0]["env"]}
    assert environment["IMAGE_WORKER_MAX_PIXELS"] == "640000000" and "IMAGE_WORKER_DRAIN_TIMEOUT_SECONDS" not in environment
    assert pod["terminationGracePeriodSeconds"] >= pod["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"] + 30 + 5


def test_secrets_are_mounted_for_the_worker_alone(render):
    deployment = of_kind(yaml.safe_load_all(render(VALUES[3])), "Deployment")
    secrets = {each["name"]: each["secret"] for each in deployment["spec"]["template"]["spec"]["volumes"] if "secret" in each}
    assert {name: secret["secretName"] for name, secret in secrets.items()} == {
        "tls": "certificate", "client-authority": "authority", "identities": "callers"}
    assert all(secret["defaultMode"] == 0o440 for secret in secrets.values())
    assert secrets["client-authority"]["items"] == [{"key": "ca.crt", "path": "ca.crt"}]


@pytest.mark.parametrize("limit, setting, fits", [
    ("608Mi", "512", True), ("607Mi", "512", False), ("1Gi", "928", True), ("1Gi", 929, False), ("1.5Gi", "1440", True),
    ("640M", "512", True), ("630M", "512", False), (637534208, 512, True), (637534207, 512, False), ("2Ti", "1048576", True),
    (None, "1048576", True), ("1Gi", None, True)])
def test_memory_that_the_pod_does_not_have_is_not_rendered(render, limit, setting, fits):
    values = {"resources": {"limits": {"memory": limit}}, "settings": {"MEMORY_LIMIT_MIB": setting}}
    if fits:
        assert "kind: Deployment" in render(values)
    else:
        with pytest.raises(Exception, match=rf"settings.MEMORY_LIMIT_MIB is {setting}, but resources.limits.memory is {limit}"):
            render(values)


def test_values_that_the_chart_cannot_follow_are_named(render):
    for values, message in [
        ({"resources": {"limits": {"memory": "1e3Q"}}}, "resources.limits.memory is .*1e3Q.*; it must be"),
        ({"settings": {"PORT": "9000"}}, "settings.PORT: the pod listens on port 50051"),
        ({"settings": {"UNIX_SOCKET": "/run/w"}}, "settings.UNIX_SOCKET: the pod listens on port 50051"),
        ({"settings": {"METRICS_TLS": "true"}}, "settings.METRICS_TLS: probes and Prometheus ask"),
        ({"settings": {"TLS_KEY": "k.pem"}, "tls": {"secretName": "certificate"}}, "settings.TLS_KEY: the chart sets"),
        ({"settings": {"METRICS_PORT": "9000"}}, "settings.METRICS_PORT: the chart sets IMAGE_WORKER_METRICS_PORT itself; remove it"),
        ({"tls": {"clientAuthoritySecretName": "authority"}}, "tls.clientAuthoritySecretName needs tls.secretName")]:
        with pytest.raises(Exception, match=message):
            render(values)


def test_values_may_be_empty(render):
    assert "kind: Deployment" in render({"settings": None, "resources": None})


def test_the_autoscaler_scales_down_by_default(render):
    """It does not while one of its metrics is missing, and only the resource metrics are in every cluster."""
    def kinds(values):
        scaler = of_kind(yaml.safe_load_all(render(values)), "HorizontalPodAutoscaler")
        return [metric["type"] for metric in scaler["spec"]["metrics"]]
    assert kinds({}) == ["Resource"]
    assert kinds({"autoscaling": {"queueLength": "4"}}) == ["Resource", "Pods"]


def test_a_wrong_manifest_is_found(render):
    deployment = of_kind(yaml.safe_load_all(render()), "Deployment")
    deployment["spec"]["template"]["spec"]["containers"][0]["livenessProbes"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(deployment, "1.30", strict=True)


def test_the_plain_manifests_are_those_of_the_chart():
    run(sys.executable, DEPLOY / "render.py", "--check")


def test_the_worker_accepts_the_settings_of_the_deployment(render, tmp_path):
    """All of them at once: the name and range of each is checked before anything else, and an unknown one is an error."""
    from conftest import Worker
    manifests = list(yaml.safe_load_all(render()))
    [container] = of_kind(manifests, "Deployment")["spec"]["template"]["spec"]["containers"]
    environment = {each["name"]: each["value"] for each in container["env"]}
    compose = yaml.safe_load((DEPLOY / "compose/compose.yaml").read_text())["x-worker"]["environment"]
    for variables in (environment, compose):
        ours = {name: value for name, value in variables.items() if name.startswith("IMAGE_WORKER_")}
        assert Worker(environment=ours | {"IMAGE_WORKER_METRICS_PORT": "0"}, address=r"0\.0\.0\.0:(\d+)").stop() == 0


def test_compose_mounts_what_exists_and_fits_the_limits():
    path = DEPLOY / "compose/compose.yaml"
    compose = yaml.safe_load(path.read_text())
    assert set(compose["services"]) == {"worker-1", "worker-2", "worker-3", "haproxy", "collector", "prometheus", "grafana"}
    mounts = [mount.split(":")[0] for service in compose["services"].values() for mount in service.get("volumes", [])
              if isinstance(mount, str)]
    assert len(mounts) == 7 and all((path.parent / mount).is_file() for mount in mounts)
    assert (path.parent / compose["x-worker"]["build"]["context"] / compose["x-worker"]["build"]["dockerfile"]).is_file()
    assert mebibytes(compose["x-worker"]["mem_limit"]) >= needed_mebibytes(compose["x-worker"]["environment"])
    # The servers of HAProxy and the targets of Prometheus are the workers.
    workers = re.findall(r"server (worker-\d) \1:50051", (DEPLOY / "proxies/haproxy.cfg").read_text())
    [scraped] = yaml.safe_load((path.parent / "prometheus.yaml").read_text())["scrape_configs"]
    assert [f"{worker}:9464" for worker in workers] == scraped["static_configs"][0]["targets"]
    assert all(worker in compose["services"] for worker in workers) and len(workers) == 3
    dashboard = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
    assert dashboard["uid"] == "image-worker"


def test_prometheus_accepts_its_configuration(tmp_path):
    for name in ["compose/prometheus.yaml", "prometheus-alerts.yaml"]:
        (tmp_path / name.rsplit("/")[-1]).write_text((DEPLOY / name).read_text())
    run("promtool", "check", "config", tmp_path / "prometheus.yaml")


RULES, RULE_TESTS = DEPLOY / "prometheus-alerts.yaml", ROOT / "Tests/EndToEnd/alert_rules.yaml"


def alerts() -> list[str]:
    return [rule["alert"] for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def verdict(rules: str, folder) -> subprocess.CompletedProcess:
    """Runs the tests of the rules against these."""
    (folder / "rules.yaml").write_text(rules)
    tests = yaml.safe_load(RULE_TESTS.read_text()) | {"rule_files": ["rules.yaml"]}
    (folder / "tests.yaml").write_text(yaml.safe_dump(tests))
    return subprocess.run(["promtool", "test", "rules", folder / "tests.yaml"], capture_output=True, text=True)


def test_alerts_fire_and_rest_as_they_should(tmp_path):
    assert yaml.safe_load(RULE_TESTS.read_text())["rule_files"] == ["../../deploy/prometheus-alerts.yaml"]
    checked = verdict(RULES.read_text(), tmp_path)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("expression", ["vector(1)", "vector(1) > 1"], ids=["always", "never"])
@pytest.mark.parametrize("alert", alerts())
def test_an_alert_that_fires_always_or_never_is_found(alert, expression, tmp_path):
    rules = yaml.safe_load(RULES.read_text())
    for rule in [rule for group in rules["groups"] for rule in group["rules"] if rule["alert"] == alert]:
        rule["expr"] = expression
    checked = verdict(yaml.safe_dump(rules), tmp_path)
    assert checked.returncode != 0 and f"alertname: {alert}," in checked.stdout + checked.stderr


@pytest.mark.parametrize("name, other", [
    ("imageworker.queue.length", "imageworker.queue.size"), ("rpc.server.call.duration", "rpc.server.duration"),
    ("ImageWorkerOverloaded", "ImageWorkerBusy"), ("--max-queue-seconds", "--max-queue-time"),
    ("an image thread is stuck; not serving", "an image thread is stuck, not serving"),
    ("Tests/EndToEnd/test_overload.py", "Tests/EndToEnd/test_load.py")])
def test_names_in_the_page_of_operators_exist(name, other):
    check = loaded(ROOT / ".ci/check_documentation.py")
    page = check.PAGE.read_text()
    assert name in page and check.unknown_names(page) == []
    assert any(other in problem for problem in check.unknown_names(page.replace(name, other)))


def test_every_alert_is_in_the_page_of_operators():
    check = loaded(ROOT / ".ci/check_documentation.py")
    page = check.PAGE.read_text()
    for alert in alerts():
        assert f"the alert {alert} is missing" in check.unknown_names(page.replace(f"`{alert}`", "an alert"))


def test_no_alert_depends_on_the_name_of_a_job():
    assert alerts() and not re.search(r"\bjob\s*=", RULES.read_text())


def test_envoy_accepts_its_configuration(tmp_path):
    configuration = (DEPLOY / "proxies/envoy.yaml").read_text()
    assert "OK" in run("envoy", "--mode", "validate", "-c", DEPLOY / "proxies/envoy.yaml")
    (tmp_path / "envoy.yaml").write_text(configuration.replace("health_checks:", "health_check:"))
    refused = subprocess.run(
        ["envoy", "--mode", "validate", "-c", tmp_path / "envoy.yaml"], capture_output=True, text=True)
    assert refused.returncode != 0 and "health_check" in refused.stderr


def test_yaml_and_the_dockerfile_have_no_faults():
    files = [path for path in DEPLOY.rglob("*.yaml") if "templates" not in path.parts]
    assert len(files) >= 10
    run("yamllint", "--strict", "-c", DEPLOY / "yamllint.yaml", *files)
    run("hadolint", "--no-color", "-c", DEPLOY / "hadolint.yaml", DEPLOY / "Dockerfile")


def test_the_fleet_on_paper_follows_from_the_measured_costs():
    printed = run(
        sys.executable, ROOT / "Benchmarks/tables/fleet.py", "--print", "--images-per-day", 86_400_000, "--peak", 1, "--utilization", 1)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in printed.splitlines() if "86,400,000" in line]
    assert [row[0] for row in rows] == ["web", "phone"]
    for _, _, second, milliseconds, cores, machines, *_ in rows:
        # A thousand images a second need as many cores as one image needs milliseconds.
        assert second == "1,000" and abs(float(cores) - float(milliseconds)) < 0.06 and int(machines) >= 3


def test_every_file_is_in_the_readme():
    readme = (DEPLOY / "README.md").read_text()
    tracked = subprocess.run(["git", "ls-files", "."], cwd=DEPLOY, capture_output=True, text=True).stdout.split()
    missing = {name.split("/")[0] for name in tracked} - {"README.md"} - set(re.findall(r"^\| `([\w.-]+)/?` \|", readme, re.M))
    assert not missing


def test_the_cache_of_manifests_depends_on_the_libraries_that_are_installed(tmp_path):
    # A program in the place of swift prints what the cache's key contains.
    (tmp_path / "swift").write_text('#!/bin/sh\necho "$IMAGE_WORKER_LIBRARIES $*"\n')
    (tmp_path / "swift").chmod(0o755)
    libraries = tmp_path / "libraries"
    libraries.mkdir()
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PKG_CONFIG_PATH": f"/nowhere:{libraries}"}

    def key():
        return subprocess.run(
            [DEPLOY / "swift.sh", "build", "a b"], env=environment, capture_output=True, text=True, check=True).stdout

    without = key()
    assert without.endswith(" build a b\n") and without[0].isdigit() and key() == without
    (libraries / "libtiff-4.pc").touch()
    assert key() != without
    (libraries / "libtiff-4.pc").unlink()
    assert key() == without
    # Each place in which the manifest looks.
    manifest = (ROOT / "Package.swift").read_text()
    assert 'let prefixes = ["/usr", "/usr/local", "/opt/homebrew"]' in manifest
    assert '(["lib", "lib64", "share"] + triples).map { "\\(prefix)/\\($0)/pkgconfig" }' in manifest


def test_nothing_calls_swift_without_that_cache():
    files = [ROOT / "Makefile", *DEPLOY.glob("*.sh"), *(ROOT / "Protos").glob("*.sh"), *(ROOT / "Tests").rglob("*.sh")]
    calls = [f"{path}: {line}" for path in files for line in path.read_text().splitlines()
             if re.search(r"(?<![\w/`.])swift (build|test|package) ", line) and not re.match(r"\s*(#|@?echo)", line)]
    assert [call for call in calls if "swift package clean" not in call] == []


@pytest.mark.parametrize("arguments, port", [
    ("", 50051), ("--metrics-port 9464", 50051), ("--port 8080 --kserve", 8080), ("--metrics-port 9464 --port=81", 81)])
def test_make_run_prints_a_call_to_its_port(arguments, port):
    printed = subprocess.run(
        ["make", "--dry-run", "run", f"ARGS={arguments}"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert f'--to 127.0.0.1:{port}"' in printed
