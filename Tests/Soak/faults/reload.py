"""What an operator does to a worker under load."""

import os
import re
import shutil
import signal
import subprocess
import time

import grpc
import yaml
from certificates import Authority
from conftest import wait_until
from fault import Fault, check, has_setting, is_before


def replace_until(until, worker, install, spoil) -> int:
    """Replaces files and has the worker read them, every fifth time also with broken ones; returns how often."""
    def reload():
        worker.process.send_signal(signal.SIGHUP)
        time.sleep(0.2)

    tries = 0
    while is_before(until):
        tries += 1
        install(tries)
        reload()
        if tries % 5 == 0:
            spoil()
            reload()
    return tries


class SecureFault(Fault):
    """Gives the worker a certificate."""

    def __init__(self, folder):
        super().__init__(folder)
        self.issuer = Authority(folder)
        self.certificate, self.key = folder / "tls.pem", folder / "tls.key"
        self.issued = [self.issuer.issue(name) for name in ("first", "second", "third")]
        self.install(0)

    def install(self, number: int) -> None:
        # One after the other, as operators do: in between, they do not match.
        for path, new in zip((self.certificate, self.key), self.issued[number % len(self.issued)]):
            shutil.copy(new, f"{path}.new")
            os.replace(f"{path}.new", path)

    def options(self):
        return ["--tls-certificate", str(self.certificate), "--tls-key", str(self.key), "--reload-seconds", "1"]

    def credentials(self):
        return grpc.ssl_channel_credentials(self.issuer.certificate.read_bytes())

    def authority(self):
        return self.issuer.certificate


class Certificates(SecureFault):
    name = "certificates rotated under load"

    def spoil(self):
        self.certificate.write_text("broken")

    def trouble(self, worker, until):
        tries = replace_until(until, worker, self.install, self.spoil)
        self.install(tries)
        reloads = sum("TLS files reloaded" in line for line in worker.log)
        check(reloads >= tries / 2, f"{reloads} of {tries} certificates were used")
        return tries


class Configuration(SecureFault):
    name = "tokens and presets reloaded under load"

    def __init__(self, folder):
        super().__init__(folder)
        self.identities, self.presets = folder / "identities.yaml", folder / "presets.yaml"
        text = subprocess.run(
            [os.environ["IMAGE_WORKER"], "token", "bystander"], capture_output=True, text=True, check=True).stdout
        self.token = re.match(r"token: (\S+)", text)[1]
        self.entry = yaml.safe_load(text.split("\n", 2)[2])["identities"]["bystander"]
        self.write(0)

    def write(self, number: int) -> None:
        others = {f"other-{number}": {"tokens": [f"{number:064x}"], "images_per_minute": 1 + number}}
        new = self.identities.with_suffix(".new")
        new.write_text(yaml.safe_dump({"identities": {"bystander": self.entry, **others}}))
        new.replace(self.identities)
        new.write_text(yaml.safe_dump({"presets": {f"preset-{number}": {"max_width": 1 + number}}}))
        new.replace(self.presets)

    def options(self):
        return [*super().options(), "--identities", str(self.identities), "--presets", str(self.presets)]

    def credentials(self):
        return grpc.composite_channel_credentials(super().credentials(), grpc.access_token_call_credentials(self.token))

    def spoil(self):
        self.identities.write_text("identities: {broken: {}}")
        self.presets.write_text("presets: {broken: {max_width: -1}}")

    def trouble(self, worker, until):
        tries = replace_until(until, worker, self.write, self.spoil)
        self.write(0)
        reloads = sum("identities reloaded" in line for line in worker.log)
        check(reloads >= tries / 2, f"{reloads} of {tries} files were used")
        return tries


class RollingRestart(Fault):
    name = "rolling restart"

    def missing(self):
        return "" if has_setting("--reuse-port") else "the worker has no --reuse-port"

    def options(self):
        return ["--reuse-port"]

    def trouble(self, worker, until):
        tries = 0
        while is_before(until):
            time.sleep(0.5)
            # In place, as everybody else refers to this worker.
            old, successor = worker.process, self.start("--port", str(worker.port))
            worker.process, worker.log, worker.reader = successor.process, successor.log, successor.reader
            old.terminate()
            check(wait_until(lambda: old.poll() is not None, 30), "the old worker does not end")
            check(old.returncode == 0, f"the old worker ended with {old.returncode}")
            tries += 1
        return tries
