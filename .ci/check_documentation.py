#!/usr/bin/env python3
"""Finds declarations of access level `package` without a documentation comment, which swift-format does not see: its
rule AllPublicDeclarationsHaveDocumentation looks at `public` and `open` alone, and this package has none of either.

Members of protocols and cases have no access level of their own and are not looked at. Initialisers that only assign
their parameters need no comment, and neither do members that a protocol of another package asks for. Exit status
1 when there are more of them than the ceiling, which may only fall.

Use: check_documentation.py [--list]
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CEILING = 113

DECLARATION = re.compile(
    r"^\s*(?:@\w+(?:\([^)]*\))?\s+)*package\s+(?!import\b)(?:\w+\s+|\w+\(\w+\)\s+)*?"
    r"(func|var|let|init|struct|class|enum|protocol|typealias|subscript|actor)\b\s*([\w`]*)")
# Their meaning is that of the protocol which asks for them: the standard library's, or those of the packages for gRPC,
# metrics, tracing and logging.
CONFORMANCES = {
    "description", "debugDescription", "hash", "encode", "id", "rawValue", "errorDescription", "next", "enqueue",
    "intercept", "makeListeningChannel", "deserialize", "serverReflectionInfo", "processImage", "batchProcess",
    "inspectImage", "listPresets", "log", "startSpan", "setStatus", "addEvent", "addLink", "recordError", "extract",
    "inject", *(verb + noun for verb in ("make", "destroy")
                for noun in ("Counter", "FloatingPointCounter", "Meter", "Recorder", "Timer")),
}


def is_assigning_initialiser(lines: list[str], index: int) -> bool:
    """Whether the initialiser's body only assigns parameters to properties of the same name."""
    text = "\n".join(lines[index:index + 60])
    opening = re.search(r"\)\s*(?:throws(?:\([^)]*\))?\s*)?\{", text)
    if not opening:
        return False
    body = text[opening.end():].split("}", 1)[0]
    statements = [part.strip() for part in re.split(r"[\n;]", body) if part.strip()]
    return all(re.fullmatch(r"self\.\w+ = \w+", statement) for statement in statements)


def undocumented(path: Path) -> list[tuple[int, str]]:
    lines = path.read_text().splitlines()
    found = []
    for index, line in enumerate(lines):
        match = DECLARATION.match(line)
        if not match or match[2] in CONFORMANCES or " override " in line:
            continue
        above = index - 1
        while above >= 0 and re.match(r"\s*(@|#if|#endif|#else)", lines[above]):
            above -= 1
        if above >= 0 and lines[above].lstrip().startswith("///"):
            continue
        if match[1] == "init" and is_assigning_initialiser(lines, index):
            continue
        found.append((index + 1, line.strip()))
    return found


def main() -> int:
    places = [
        f"{path.relative_to(ROOT)}:{number}: {text}"
        for path in sorted((ROOT / "Sources").rglob("*.swift")) if "Generated" not in path.parts
        for number, text in undocumented(path)]
    if len(places) > CEILING or "--list" in sys.argv:
        print(*places, sep="\n")
    print(f"{len(places)} package declarations without documentation, {CEILING} allowed")
    if len(places) < CEILING:
        print(f"lower the ceiling in .ci/{Path(__file__).name} to {len(places)}")
    return 1 if len(places) > CEILING else 0


if __name__ == "__main__":
    sys.exit(main())
