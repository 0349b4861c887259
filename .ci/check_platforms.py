#!/usr/bin/env python3
"""Finds what exists on Linux alone, outside the places that are for Linux, and kernels that only x86-64 has.

No machine of this project's tests has Darwin. So that the sources still compile there, headers, functions, constants and
files that only Linux has may be used:
- in Sources/CSandbox, whose elsewhere.c replaces it on other systems;
- between `#if` and `#endif` of a condition that names Linux or its C library;
- where ALLOWED says why.

Each file of kernels for AVX2 has one for NEON next to it, unless WITHOUT_NEON says why not.

Exit status 1 if anything is used elsewhere, or a file is missing.

Use: check_platforms.py
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

LINUX = re.compile(
    r"\b(linux/\w+|sys/(?:epoll|prctl|syscall|eventfd|signalfd|timerfd|sendfile|auxv|sysinfo|inotify|random)\.h"
    r"|malloc\.h|epoll_\w+|prctl|syscall|eventfd|signalfd|timerfd_\w+|inotify_\w+|memfd_create|pidfd_\w+|accept4|pipe2|dup3"
    r"|getrandom|getauxval|secure_getenv|sched_[gs]etaffinity|posix_fadvise|posix_fallocate|fallocate|copy_file_range|splice|statx"
    r"|renameat2|mremap|mallopt|malloc_trim|malloc_usable_size|mallinfo2?|gettid|program_invocation_name|qsort_r"
    r"|O_TMPFILE|O_PATH|MSG_NOSIGNAL|SOCK_CLOEXEC|SOCK_NONBLOCK|SO_PEERCRED|SO_REUSEPORT_LB|MAP_POPULATE|MADV_\w*HUGEPAGE"
    r"|MFD_\w+|F_ADD_SEALS|F_SEAL_\w+|TCP_DEFER_ACCEPT|TCP_USER_TIMEOUT|TCP_QUICKACK|EPOLL\w+|CLONE_\w+"
    r"|import Glibc)\b|\"(/proc/[^\"]*|/sys/[^\"]*)\"")
CONDITION = re.compile(r"\b(Linux|__linux__|Glibc|__GLIBC__|MREMAP_DONTUNMAP)\b")
# A file, what it uses, and why it compiles and works elsewhere.
ALLOWED = {
    ("CCodecs/memory/spill_socket.c", "MSG_NOSIGNAL"): "the file defines it as 0",
    ("image-worker/SystemMemory.swift", "/proc/"): "a file that does not exist is no limit",
    ("image-worker/SystemMemory.swift", "/sys/fs/cgroup"): "as /proc/",
    ("WorkerService/Isolation/CodecHelper.swift", "/proc/self/fd/"): "helpers exist on Linux alone",
    ("WorkerService/Jobs/SharedMemory.swift", "posix_fallocate"): "the text of an error that Linux alone can have",
    ("WorkerTelemetry/Metrics/ProcessStatus.swift", "/proc/"): "a file that does not exist is 0",
    ("WorkerIsolation/HelperZygote.swift", "/proc/self/exe"): "helpers exist on Linux alone",
}
# A file of kernels for AVX2, and why there is none for NEON.
WITHOUT_NEON = {
    "CCodecs/jpeg/jpeg_ahead_blocks_avx2.c": "whether blocks in lockstep pay must be measured, and no machine is at hand",
    "CCodecs/png/png_filter_avx2.c": "NEON is in png_filter_base.c, as the vectors of clang",
    "CPixels/network_avx2.c": "NEON is in network_scalar.c, as the vectors of clang",
    "CCodecs/palette/palette_nearest_avx2.c": "the search is in palette_nearest.c, as the vectors of clang; error diffusion waits for a machine",
}


def code(text: str) -> str:
    """The text without comments; lines keep their numbers."""
    text = re.sub(r"/\*.*?\*/", lambda match: "\n" * match[0].count("\n"), text, flags=re.S)
    return re.sub(r"//.*", "", text)


def uses(path: Path):
    """The lines of a file that need Linux: their number and what they use."""
    conditions: list[bool] = []
    for number, line in enumerate(code(path.read_text()).splitlines(), 1):
        if directive := re.match(r"\s*#\s*(if|elif|elseif|else|endif)\w*(.*)", line):
            kind, condition = directive.groups()
            if kind == "if":
                conditions.append(bool(CONDITION.search(condition)))
            elif kind in ("elif", "elseif"):
                conditions[-1] = conditions[-1] or bool(CONDITION.search(condition))
            elif kind == "endif":
                conditions.pop()
        elif not any(conditions):
            for match in LINUX.finditer(line):
                yield number, match[1] or match[2]


def lacking_neon(sources: Path) -> list[str]:
    """The files of kernels for AVX2 that have no counterpart, and reasons that are no longer needed."""
    lacking = {str(path.relative_to(sources)) for path in sources.rglob("*_avx2.c")
               if not path.with_name(path.name.replace("_avx2", "_neon")).exists()}
    return [f"Sources/{name} has no counterpart for NEON" for name in sorted(lacking - WITHOUT_NEON.keys())] + [
        f"{name} has a counterpart, or is gone: remove it from WITHOUT_NEON" for name in WITHOUT_NEON.keys() - lacking]


def main() -> int:
    sources = ROOT / "Sources"
    paths = [path for pattern in ("*.swift", "*.c", "*.h") for path in sources.rglob(pattern)]
    problems, needed = [], set()
    for path in sorted(paths):
        name = str(path.relative_to(sources))
        if name.startswith(("CSandbox/", "WorkerProtocol/Generated/")):
            continue
        for number, use in uses(path):
            reason = next(((file, part) for file, part in ALLOWED if file == name and use.startswith(part)), None)
            if reason:
                needed.add(reason)
            else:
                problems.append(f"Sources/{name}:{number}: {use} exists on Linux alone")
    problems += [f"{file} no longer uses {use}: remove it from ALLOWED" for file, use in ALLOWED.keys() - needed]
    problems += lacking_neon(sources)
    print("\n".join(problems) or f"{len(paths)} source files use nothing that exists on Linux alone")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
