"""Formats Markdown tables and their preamble: machine, versions, date, command."""

import datetime
import os
import platform
import re
import shlex
import statistics
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from peers import GRPC, LIBVIPS
from photographs import Photograph


@dataclass
class Measured:
    """The measurements of one peer for one image and one job."""

    peer: str
    version: str = ""
    cpu_ms: list[float] = field(default_factory=list)  # by round
    start_mib: float = 0
    peak_mib: float = 0
    output_bytes: int = 0
    score: float | None = None
    failure: str = ""


@dataclass
class Row:
    photograph: Photograph
    job: str
    peers: dict[str, Measured]

    def ratio(self, peer: str, ours: str = GRPC) -> float | None:
        """Returns the peer's CPU time relative to the worker's: the median over rounds of adjacent turns."""
        pair = [self.peers.get(peer), self.peers.get(ours)]
        if any(one is None or not one.cpu_ms for one in pair):
            return None
        return statistics.median(a / b for a, b in zip(pair[0].cpu_ms, pair[1].cpu_ms))


def output_of(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def instruction_set() -> str:
    """Returns the widest instructions that the worker uses here."""
    flags = Path("/proc/cpuinfo").read_text()
    widest = next((name for name, flag in (("avx512", " avx512bw "), ("avx2", " avx2 "), ("neon", " asimd "))
                   if flag in flags), "scalar")
    limit = os.environ.get("IMAGE_WORKER_INSTRUCTION_SET", widest)
    return limit if limit == "scalar" or widest == "avx512" else widest


def machine() -> str:
    cpu = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text())
    memory = int(re.search(r"MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text())[1]) / 1048576
    system = re.search(r'PRETTY_NAME="(.*)"', Path("/etc/os-release").read_text())
    return f"{output_of('nproc')} cores of {cpu[1] if cpu else platform.machine()}, {memory:.0f} GiB; {system[1]}"


def origin() -> dict[str, str]:
    """Returns where the figures of a run come from, as in figures.json."""
    return {
        "commit": output_of("git", "describe", "--always", "--dirty"), "date": str(datetime.date.today()),
        "machine": machine(), "instruction_set": instruction_set(), "command": f"make bench{command()}"}


def environment() -> list[str]:
    found = origin()
    manifest = (Path(__file__).resolve().parents[2] / "Package.swift").read_text()
    libraries = ", ".join(f"{name} {output_of('pkg-config', '--modversion', name)}"
                          for name in re.findall(r'pkgConfig: "(.*?)"', manifest))
    return [
        f"- Machine: {found['machine']}, Linux {platform.release()}; {found['instruction_set']}.",
        f"- image-worker {found['commit']}, {output_of('swift', '--version').splitlines()[0]}, release build; {libraries}.",
        f"- {found['date']}, `{found['command']}`.",
    ]


def command() -> str:
    """Returns the arguments of `make bench`, without those that run.sh adds."""
    given, skips = [], 0
    for argument in sys.argv[2:]:
        if skips or argument in ("--python", "--simd-python", "--vips"):
            skips = 0 if skips else 1
        else:
            given.append(argument)
    return f' ARGS="{shlex.join(given)}"' if given else ""


def peer_versions(rows: list[Row]) -> list[str]:
    versions = {peer: measured.version for row in rows for peer, measured in row.peers.items() if measured.version}
    peers = ", ".join(f"{peer} ({version})" for peer, version in versions.items() if "worker" not in peer)
    absent = "" if "pillow-simd" in versions else " pillow-simd was left out or does not build here."
    return [f"- Peers: {peers}.{absent}"]


def cpu_table(rows: list[Row], peers: list[str]) -> list[str]:
    lines = ["| image | " + " | ".join(peers) + " |", "|---" * (len(peers) + 1) + "|"]
    for row in rows:
        cells = []
        for peer in peers:
            measured, ratio = row.peers.get(peer), row.ratio(peer)
            if measured is None or not measured.cpu_ms:
                cells.append(measured.failure if measured else "")
            else:
                factor = "" if ratio is None or peer == GRPC else f" ({ratio:.2f})"
                cells.append(f"{statistics.median(measured.cpu_ms):.1f}{factor}")
        lines.append(f"| {row.photograph.name} | " + " | ".join(cells) + " |")
    return lines


def detail_table(rows: list[Row], peers: list[str]) -> list[str]:
    lines = ["| image | " + " | ".join(peers) + " |", "|---" * (len(peers) + 1) + "|"]
    for row in rows:
        cells = []
        for peer in peers:
            measured = row.peers.get(peer)
            if measured is None or not measured.cpu_ms:
                cells.append("")
                continue
            above = measured.peak_mib - measured.start_mib
            score = "" if measured.score is None else f", {measured.score:.2f}"
            cells.append(f"{measured.peak_mib:.0f} (+{above:.0f}), {measured.output_bytes / 1000:.1f}{score}")
        lines.append(f"| {row.photograph.name} | " + " | ".join(cells) + " |")
    return lines


def summary(rows: list[Row]) -> list[str]:
    """Returns the comparison of libvips 8.18 with the worker, by job and kind of image."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        group = f"{row.photograph.megapixels:g} MP {row.photograph.kind}"
        groups.setdefault((row.job, group), []).append(row)
    lines = ["| job | images | libvips / over gRPC | libvips / in-process | best other peer / over gRPC | "
             "SSIMULACRA2 less libvips' |", "|---|---|---|---|---|---|"]
    for (job, group), members in groups.items():
        lines.append(f"| {job} | {group} ({len(members)}) | {spread([row.ratio(LIBVIPS) for row in members])} | "
                     f"{spread([row.ratio(LIBVIPS, 'worker in-process') for row in members])} | "
                     f"{best_other(members)} | {spread([gain(row) for row in members])} |")
    return lines


def spread(values: list[float | None]) -> str:
    """Returns the median, and the minimum if there are several values."""
    known = [value for value in values if value is not None]
    if not known:
        return ""
    least = f" (least {min(known):.2f})" if len(known) > 1 else ""
    return f"{statistics.median(known):.2f}{least}"


def best_other(rows: list[Row]) -> str:
    others = {peer for row in rows for peer in row.peers if "worker" not in peer and peer != LIBVIPS}
    medians = {peer: statistics.median(ratios) for peer in others
               if (ratios := [ratio for row in rows if (ratio := row.ratio(peer)) is not None])}
    if not medians:
        return ""
    best = min(medians, key=medians.get)
    return f"{medians[best]:.2f} ({best})"


def gain(row: Row) -> float | None:
    ours, theirs = row.peers.get(GRPC), row.peers.get(LIBVIPS)
    if ours is None or theirs is None or ours.score is None or theirs.score is None:
        return None
    return ours.score - theirs.score
