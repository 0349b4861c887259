#!/usr/bin/env python3
"""Lists the functions of Sources that have more lines than CONTRIBUTING.md allows, the longest first.

    .ci/check_functions.py [MAX_LINES]

Fails where one of them is not in TABLES. It does not parse: the code is formatted, so a declaration ends at the first closing brace
with its own indentation.
"""
import re
import sys
from pathlib import Path

MAX_LINES = 40
# Functions that are tables: their lines are rows.
TABLES = {
    "Sources/ImageCodecs/ImageFormat.swift:traits",
    "Sources/ImagePipeline/Configuration/ProcessingConfiguration.swift:init",
    "Sources/ImagePipeline/Warning.swift:reported",
    "Sources/image-worker/Settings/Settings.swift:imageLimits",
    "Sources/image-worker/Settings/Settings.swift:init",
}

MODIFIERS = (r"(?:@\w+(?:\([^)]*\))? |(?:public|package|internal|private|fileprivate|static|class|override|mutating"
             r"|consuming|borrowing|nonisolated|final|convenience|required|lazy|indirect)(?:\([a-z]+\))? )*")
DECLARATION = re.compile(rf"^( *){MODIFIERS}(func +[^\s(<]+|init\b|deinit\b|subscript\b|var +\w+)")


def end_of_header(lines: list[str], first: int) -> int | None:
    """Returns the line with the brace that opens a body of several lines."""
    for index in range(first, min(first + 20, len(lines))):
        if lines[index].endswith("{"):
            return index
        if not lines[index].strip() or lines[index].count("{") == lines[index].count("}") > 0:
            return None
        if lines[first].lstrip().split("(")[0].find("var ") >= 0:
            return None
    return None


def functions(path: Path):
    """Yields the name, the line and the number of lines of each function with a body of several lines."""
    lines = path.read_text().split("\n")
    for first, line in enumerate(lines):
        declaration = DECLARATION.match(line)
        opening = declaration and end_of_header(lines, first)
        if opening is None:
            continue
        closing = declaration[1] + "}"
        last = next(i for i in range(opening + 1, len(lines)) if lines[i].startswith(closing))
        yield declaration[2].removeprefix("func ").removeprefix("var "), first + 1, last - first + 1


def main() -> int:
    max_lines, tables = (int(sys.argv[1]), set()) if len(sys.argv) > 1 else (MAX_LINES, TABLES)
    root = Path(__file__).parent.parent
    found = []
    for path in sorted(root.glob("Sources/**/*.swift")):
        if "Generated" not in path.parts:
            name = path.relative_to(root)
            found += [(count, name, line, function) for function, line, count in functions(path)
                      if count > max_lines and f"{name}:{function}" not in tables]
    for count, path, line, function in sorted(found, reverse=True):
        print(f"{count:4} {path}:{line} {function}")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
