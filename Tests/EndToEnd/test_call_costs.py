"""The allocations and the system calls of a call, which do not depend on how fast or how busy the machine is."""

import os
import shutil
import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "Benchmarks/experiments")]
from call_costs import count_allocations, count_system_calls  # noqa: E402

# The most that a call may need: a tenth more allocations than it does, and half more system calls, as how many events are handled
# together depends on the machine.
MOST = {"PNG of 64x64 to 32x32": (460, 30), "JPEG of 640x480 to 300x225": (870, 32)}
CALLS = 200

pytestmark = [
    pytest.mark.skipif("/debug/" in os.environ["IMAGE_WORKER"], reason="these are the counts of a release build"),
    pytest.mark.skipif(sys.platform != "linux", reason="the counts are those of Linux"),
]


@pytest.mark.skipif(shutil.which("cc") is None, reason="counting allocations needs a C compiler, cc")
def test_a_call_needs_few_allocations():
    for image, (count, _) in count_allocations(CALLS).items():
        most = MOST[image][0]
        assert most / 2 < count <= most, (
            f"{image}: {count:.0f} allocations of at most {most}; `Benchmarks/experiments/call_costs.py --stacks 40` lists them")


@pytest.mark.skipif(shutil.which("strace") is None, reason="counting system calls needs strace")
def test_a_call_needs_few_system_calls():
    for image, counts in count_system_calls(CALLS).items():
        count, most = counts.total() / CALLS, MOST[image][1]
        if count == 0:
            pytest.skip("strace cannot trace a process here")
        assert count <= most, f"{image}: {count:.1f} system calls of at most {most}: {dict(counts)}"
