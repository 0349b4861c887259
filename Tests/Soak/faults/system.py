"""What a machine does to a worker."""

import os
import random
import resource
import signal
import socket
import struct
import subprocess
import time
import zlib
from pathlib import Path

import grpc
from bystanders import connect, digest
from conftest import Client, wait_until
from fault import Fault, check, has_setting, is_before
from remains import children
from telemetry import Collector, environment


class HelpersKilled(Fault):
    name = "helpers killed or stopped"
    # An image per helper, and no other.
    cost = "the process that worked on the image"

    def missing(self):
        return "" if has_setting("--isolation") else "the worker has no --isolation"

    def options(self):
        return ["--isolation", "process"]

    def trouble(self, worker, until):
        chance, tries = random.Random(4), 0
        while is_before(until):
            time.sleep(0.1 + chance.random() / 5)
            # The process that the others are forked from stays: it is the operator's, as the worker itself.
            helpers = [pid for child in children(worker.process.pid) for pid in children(child)]
            if not helpers:
                continue
            try:
                os.kill(chance.choice(helpers), chance.choice([signal.SIGKILL, signal.SIGSTOP]))
                tries += 1
            except ProcessLookupError:
                pass
        return tries


def interlaced_png(side: int) -> bytes:
    """An image that is whole only at the end of its file, and therefore needs the disk."""
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    deflate, data = zlib.compressobj(1), b""
    for left, top, across, down in ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2),
                                    (0, 1, 1, 2)):
        row = bytes(1 + 3 * len(range(left, side, across)))
        data += b"".join(deflate.compress(row) for _ in range(top, side, down))
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 1)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data + deflate.flush())
            + chunk(b"IEND", b""))


class DiskFault(Fault):
    """Gives the worker a disk of its own, in its own mount namespace, for spooled data and cached results."""

    DISK_MIB = 64

    def missing(self):
        if os.geteuid() != 0:
            return "only root can mount a small disk"
        try:
            mount = ["unshare", "--mount", "--propagation", "private", "mount", "-t", "tmpfs", "soak", str(self.folder)]
            is_allowed = subprocess.run(mount, capture_output=True).returncode == 0
        except FileNotFoundError:
            is_allowed = False
        return "" if is_allowed else "this system does not allow mounts"

    def options(self):
        return ["--cache-directory", str(self.disk / "cache"), "--cache-disk-mib", "1",
                "--spill-directory", str(self.disk)]

    def prefix(self):
        self.disk.mkdir(exist_ok=True)
        script = f'mount -t tmpfs -o size={self.DISK_MIB}m soak "$0" && mkdir "$0/cache" && exec "$@"'
        return ("unshare", "--mount", "--propagation", "private", "sh", "-c", script, str(self.disk))

    @property
    def disk(self) -> Path:
        return self.folder / "disk"

    def seen(self, worker) -> Path:
        """Returns the disk's path outside the worker's mount namespace."""
        return Path(f"/proc/{worker.process.pid}/root{self.disk}")

    def spoil(self, worker) -> None:
        raise NotImplementedError

    def mend(self, worker) -> None:
        raise NotImplementedError

    def trouble(self, worker, until):
        image, tries = interlaced_png(2400), 0
        client = Client(worker, connect(worker.address, None))
        expected = digest(list(client.process(image, preset="favicon")))
        # Once in any case: on a busy machine, making the image alone may take a short time of trouble.
        while tries == 0 or is_before(until):
            self.spoil(worker)
            # Another image each time, so that no result is in the cache.
            for _ in range(3):
                tries += 1
                try:
                    list(client.process(image + b"%d" % tries, preset="favicon"))
                    check(False, "an image that needs the disk was processed without one")
                except grpc.RpcError as error:
                    check(error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED, error)
            time.sleep(0.2)
            self.mend(worker)
            tries += 1
            result = digest(list(client.process(image + b"%d" % tries, preset="favicon")))
            check(result == expected, "the result is another one after the disk has come back")
        client.channel.close()
        return tries


class DiskFull(DiskFault):
    name = "disk full"

    def spoil(self, worker):
        with open(self.seen(worker) / "ballast", "wb", buffering=0) as file:
            try:
                while file.write(b"\0" * 65536):
                    pass
            except OSError:
                pass

    def mend(self, worker):
        (self.seen(worker) / "ballast").unlink()


class ReadOnlyDisk(DiskFault):
    name = "read-only disk"

    def options(self):
        # No cache, whose open file would keep the disk from becoming read-only.
        return ["--spill-directory", str(self.disk)]

    def remount(self, worker, mode: str) -> int:
        return subprocess.run(
            ["nsenter", "--target", str(worker.process.pid), "--mount", "mount", "-o", f"remount,{mode}", str(self.disk)],
            stderr=subprocess.DEVNULL).returncode

    def spoil(self, worker):
        check(wait_until(lambda: self.remount(worker, "ro") == 0), "the disk stays busy")

    def mend(self, worker):
        check(self.remount(worker, "rw") == 0, "the disk stays read-only")


class DescriptorLimit(Fault):
    name = "descriptor limit"
    takes_connections = False

    def trouble(self, worker, until):
        pid, tries = worker.process.pid, 0
        soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        while is_before(until):
            used = len(os.listdir(f"/proc/{pid}/fd"))
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + 20, hard))
            connections = []
            for _ in range(100):
                connection = socket.socket()
                connection.setblocking(False)
                connection.connect_ex(("127.0.0.1", worker.port))
                connections.append(connection)
                tries += 1
            time.sleep(1)
            for connection in connections:
                connection.close()
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
            time.sleep(0.5)
        return tries


class CollectorGone(Fault):
    name = "collector gone, hanging, or back"

    def __init__(self, folder):
        super().__init__(folder)
        # What the collector has received is not a file of the worker.
        self.exports = folder.with_name(folder.name + ".collector")

    def environment(self):
        self.exports.mkdir(exist_ok=True)
        self.collector = Collector(self.exports)
        return environment(self.collector, OTEL_METRICS_EXPORTER="otlp", OTEL_LOGS_EXPORTER="otlp",
                           OTEL_METRIC_EXPORT_INTERVAL="200")

    def trouble(self, worker, until):
        port, tries = str(self.collector.port), 0
        while is_before(until):
            for options in ([], ["--hang"], ["--refuse", "20"]):
                self.collector.kill()
                time.sleep(0.2)
                self.collector = Collector(self.exports, "--port", port, *options)
                time.sleep(0.5)
                tries += 1
        self.collector.kill()
        for file in self.exports.iterdir():
            file.unlink()
        self.exports.rmdir()
        return tries


class ClockJumps(Fault):
    name = "clock jumps"

    LIBRARIES = [Path(f"/usr/lib/{machine}/faketime/libfaketimeMT.so.1")
                 for machine in (f"{os.uname().machine}-linux-gnu", "faketime")]

    def library(self) -> Path | None:
        return next((path for path in self.LIBRARIES if path.exists()), None)

    def missing(self):
        return "" if self.library() else "libfaketime is not installed"

    def environment(self):
        self.offset = self.folder / "offset"
        self.offset.write_text("+0")
        return {"LD_PRELOAD": str(self.library()), "FAKETIME_TIMESTAMP_FILE": str(self.offset), "FAKETIME_NO_CACHE": "1",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1"}

    def prefix(self):
        # The library moves the environment of the first program that loads it, next to which Swift looks for arguments.
        return ("env",)

    def trouble(self, worker, until):
        chance, tries = random.Random(5), 0
        while is_before(until):
            # Replaced, not written, so that nobody reads half of it.
            new = self.offset.with_suffix(".new")
            new.write_text(f"{chance.choice([-86_400 * 400, -3600, -1, 1, 3600, 86_400 * 400]):+d}")
            new.replace(self.offset)
            tries += 1
            time.sleep(0.3)
        self.offset.write_text("+0")
        return tries
