#!/usr/bin/env python3
"""Runs the built Swift tests with the options of `swift test`, and those that fail once more: what fails twice fails the run.

A run that names no test that failed, as one that crashed, is repeated as a whole.
"""

import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as tree
from pathlib import Path

COMMAND = [Path(__file__).parent.parent / "deploy/swift.sh", "test", "--skip-build"]


def run(*options: str) -> int:
    """Returns the status as a shell does."""
    status = subprocess.run([*COMMAND, *options]).returncode
    return status if status >= 0 else 128 - status


def outcomes(folder: str) -> dict[str, bool]:
    """Returns whether each test passed, according to the reports in a folder; none if one is not whole."""
    try:
        return {f"{case.get('classname')}.{case.get('name')}": case.find("failure") is None
                for report in Path(folder).iterdir() for case in tree.parse(report).iter("testcase")}
    except tree.ParseError:
        return {}


def only(tests: list[str], options: list[str]) -> list[str]:
    """Returns the options that run these tests alone, one after the other."""
    kept = [option for before, option in zip(["", *options], options)
            if not {before, option} & {"--filter", "--skip", "--no-parallel"}]
    # Tests are separated from their suites by other characters than in reports.
    names = (re.escape(test).replace(r"\.", "[./]") for test in tests)
    return [*kept, "--no-parallel", "--filter", "|".join(f"^{name}" for name in names)]


def main() -> int:
    options = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        status = run(*options, "--xunit-output", f"{folder}/tests.xml")
        if status in (0, 130, 143):  # the last two are those of interrupts
            return status
        failed = [test for test, passed in outcomes(folder).items() if not passed]
    told = "\n".join(failed) or "all of them, as it names none"
    print(f"\nThe run ended with status {status}. These tests run once more:\n{told}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        status = run(*(only(failed, options) if failed else options), "--xunit-output", f"{folder}/tests.xml")
        if status == 0 and not set(failed) <= outcomes(folder).keys():
            print("FAILED: the options of the second run do not choose these tests")
            return 1
    if status == 0:
        print(f"PASSED ONLY AT THE SECOND TRY, which is a defect to mend:\n{told}", flush=True)
    return status


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
