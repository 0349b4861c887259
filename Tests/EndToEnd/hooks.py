"""Hooks of pytest: a test that hangs fails, and run.sh learns which tests to run once more."""

import os
import signal
from pathlib import Path

import pytest

# A test that hangs is one that fails, and keeps no other from running.
LONGEST_TEST_SECONDS = 900


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    def end(*_):
        pytest.fail(f"it takes more than {LONGEST_TEST_SECONDS} seconds")

    signal.signal(signal.SIGALRM, end)
    signal.alarm(LONGEST_TEST_SECONDS)
    try:
        return (yield)
    finally:
        signal.alarm(0)


def pytest_runtest_logreport(report):
    """Notes what to run once more. What does not end well, as the worker of a module, was used by every test of the module."""
    path = os.environ.get("FAILED_TESTS")
    if path and report.failed:
        with open(path, "a") as file:
            file.write(f"{report.nodeid.split('::')[0] if report.when == 'teardown' else report.nodeid}\n")


def pytest_sessionfinish(session):
    """Notes the tests that were not reached, because a crash of a process of xdist ended the run.

    A crash is that of a library, such as gRPC's. Where xdist 3.8.0 replaces such a process, it waits for ever with
    `--dist loadfile` (its issues 1323 and 1378).
    """
    path, plugin = os.environ.get("FAILED_TESTS"), session.config.pluginmanager.get_plugin("dsession")
    if not path or not plugin or not plugin.sched or not getattr(plugin.sched, "collection", None):
        return
    reached = {report.nodeid for reports in plugin.terminal.stats.values() for report in reports
               if hasattr(report, "nodeid")}
    with open(path, "a") as file:
        file.writelines(f"{name}\n" for name in plugin.sched.collection if name not in reached)


def pytest_terminal_summary(terminalreporter):
    path = os.environ.get("TESTS_TO_TRY_AGAIN")
    if not path:
        return
    passed, failed = ([report.nodeid for kind in kinds for report in terminalreporter.stats.get(kind, [])]
                      for kinds in (["passed"], ["failed", "error"]))
    for name in Path(path).read_text().splitlines():
        ran, lost = (any(name in (one, one.split("::")[0]) for one in ends) for ends in (passed, failed))
        if ran and not lost:
            terminalreporter.write_line(f"PASSED ONLY AT THE SECOND TRY, which is a defect to mend: {name}", yellow=True)
