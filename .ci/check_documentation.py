#!/usr/bin/env python3
"""Finds declarations without documentation, links of documents that lead nowhere, and names that do not exist in the
operators' page.

Declarations of access level `package` need a documentation comment, which swift-format does not see: its
rule AllPublicDeclarationsHaveDocumentation looks at `public` and `open` alone, which only the client library has.

Members of protocols and cases have no access level of their own and are not checked. Three kinds of declarations
need no comment, because it would repeat another one:
- memberwise initializers, whose parameters are documented properties;
- members that implement a documented requirement of a protocol in Sources;
- members that implement a requirement of another package's protocol.

Links and images of the Markdown files must work in a browser of the repository and in DocC, which finds images by their
names alone, wherever they are. So an article links to `[Title](Article.md)`, which Documentation/render_pages.py takes to
the page, has its images in its own folder, and has no link of the form `<doc:Article>`.

Every metric, alert, setting, log line and test that Overload.md names must exist, and it must name every alert.

Exit status 1 if any other declaration has no comment, a link is dead, or a name does not exist.

Use: check_documentation.py
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

DECLARATION = re.compile(
    r"^\s*(?:@\w+(?:\([^)]*\))?\s+)*package\s+(?!import\b)(?:\w+\s+|\w+\(\w+\)\s+)*?"
    r"(func|var|let|init|struct|class|enum|protocol|typealias|subscript|actor)\b\s*([\w`]*)")
PROTOCOL = re.compile(r"^\s*(?:\w+\s+)?protocol (\w+)(?:: ([^{]*))?")
REQUIREMENT = re.compile(r"^\s*(?:(?:mutating|static)\s+)*(func|var|init|subscript)\b\s*([\w`]*)")
TYPE = re.compile(r"^(\s*)(?:@?\w+\s+)*?(?:extension|struct|class|enum|actor) ([\w.]+|\[[^\]]*\])[^:{]*(?::([^{]*))?\{")
# Their meaning is that of the protocol which asks for them: the standard library's, or those of the packages for gRPC,
# metrics, tracing and logging.
CONFORMANCES = {
    "description", "debugDescription", "hash", "encode", "id", "rawValue", "errorDescription", "next", "enqueue",
    "intercept", "makeListeningChannel", "deserialize", "serverReflectionInfo", "processImage", "batchProcess",
    "inspectImage", "listPresets", "log", "startSpan", "setStatus", "addEvent", "addLink", "recordError", "extract",
    "inject", *(verb + noun for verb in ("make", "destroy")
                for noun in ("Counter", "FloatingPointCounter", "Meter", "Recorder", "Timer")),
}


def is_assigning_initializer(lines: list[str], index: int) -> bool:
    """Whether the initializer's body only assigns parameters to properties of the same name."""
    text = "\n".join(lines[index:index + 60])
    opening = re.search(r"\)\s*(?:throws(?:\([^)]*\))?\s*)?\{", text)
    if not opening:
        return False
    body = text[opening.end():].split("}", 1)[0]
    statements = [part.strip() for part in re.split(r"[\n;]", body) if part.strip()]
    return all(re.fullmatch(r"self\.\w+ = \w+", statement) for statement in statements)


def signature(kind: str, name: str, lines: list[str], index: int) -> str:
    """The name of a member with the labels and types of its parameters, as in `init(_:Int,field:String)`."""
    if kind in ("var", "let"):
        return name
    text = " ".join(lines[index:index + 20])
    start = text.index("(", text.index(kind))
    depth, end = 0, start
    for end in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        if depth == 0:
            break
    parameters = re.sub(r"\b(\w+) \w+:", r"\1:", text[start:end + 1])
    return (name or kind) + re.sub(r"\s", "", parameters)


class Protocols:
    """The documented requirements of the protocols in Sources."""

    def __init__(self, paths: list[Path]):
        self.inherited: dict[str, list[str]] = {}
        self.requirements: dict[str, set[str]] = {}
        for path in paths:
            self._read(path.read_text().splitlines())

    def _read(self, lines: list[str]) -> None:
        name, previous = None, ""
        for index, line in enumerate(lines):
            if match := PROTOCOL.match(line):
                name = match[1]
                self.inherited[name] = names(match[2])
                self.requirements[name] = set()
            elif line.startswith("}"):
                name = None
            elif name and (match := REQUIREMENT.match(line)) and previous.startswith("///"):
                self.requirements[name].add(signature(match[1], match[2], lines, index))
            previous = line.strip()

    def require(self, protocol: str, member: str) -> bool:
        """Whether `protocol` or one that it inherits from has the documented requirement `member`."""
        return member in self.requirements.get(protocol, ()) or any(
            self.require(parent, member) for parent in self.inherited.get(protocol, ()))


def names(clause: str | None) -> list[str]:
    """The types in an inheritance clause."""
    return [name.strip() for name in re.split(r"[,&]", re.split(r"\bwhere\b", clause or "")[0])]


def enclosing_types(lines: list[str], index: int) -> list[str]:
    """The extended or declared type around a line, and the types that its inheritance clause names."""
    indentation = len(lines[index]) - len(lines[index].lstrip())
    for above in range(index - 1, -1, -1):
        match = TYPE.match(lines[above])
        if match and len(match[1]) < indentation:
            return [match[2], *names(match[3])]
    return []


def undocumented(path: Path, protocols: Protocols) -> list[tuple[int, str]]:
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
        if match[1] == "init" and is_assigning_initializer(lines, index):
            continue
        if match[1] in ("var", "let", "init", "subscript") or (match[1] == "func" and match[2]):
            member = signature(match[1], match[2], lines, index)
            if any(protocols.require(name, member) for name in enclosing_types(lines, index)):
                continue
        found.append((index + 1, line.strip()))
    return found


LINK = re.compile(r"(!?)\[[^\]]*\]\(<?([^)>\s]+)>?\)")


def dead_links(path: Path) -> list[tuple[int, str]]:
    """The links and images of a Markdown file that do not work, in a browser or in DocC."""
    is_article = path.parent.suffix == ".docc"
    found, is_code = [], False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        if is_code:
            continue
        text = re.sub(r"`[^`]*`", "", line)
        if is_article and "<doc:" in text:
            found.append((number, "<doc:...> is dead in a browser of the repository; write [Title](Article.md)"))
        for image, target in LINK.findall(text):
            file = target.partition("#")[0]
            if re.match(r"\w[\w+.-]*:", target) or not file:
                continue
            if not (path.parent / file).exists():
                found.append((number, f"{target} does not exist"))
            elif is_article and "/" in file:
                found.append((number, f"{target} is dead in DocC, which knows the files of this folder"))
            elif is_article and not image and not file.endswith(".md"):
                found.append((number, f"{target} is no article"))
    return found


PAGE = ROOT / "Sources/image-worker/Documentation.docc/Overload.md"
ALERTS = ROOT / "deploy/prometheus-alerts.yaml"


def unknown_names(page: str) -> list[str]:
    """The names in the operators' page that nothing has, and the alerts that it does not have."""
    catalog = (ROOT / "Sources/WorkerTelemetry/Metrics/MetricCatalog.swift").read_text()
    # A test keeps the table equal to the settings of the program.
    settings = (ROOT / "Sources/image-worker/Documentation.docc/Deploying.md").read_text()
    # Joined where a string literal continues on the next line.
    code = re.sub(r'"\s*\+ "', "", "".join(path.read_text() for path in sorted((ROOT / "Sources").rglob("*.swift"))))
    alerts = set(re.findall(r"alert: (\w+)", ALERTS.read_text()))
    quoted = re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", page, flags=re.S))
    problems = [f"{name} is no alert" for name in sorted(set(re.findall(r"\bImageWorker[A-Z]\w+", page)) - alerts)]
    problems += [f"the alert {name} is missing" for name in sorted(alerts) if f"`{name}`" not in page]
    for name in quoted:
        if re.fullmatch(r"(imageworker|process|rpc)(\.\w+)+", name):
            is_known = f'"{name}"' in catalog or f'("{name}"' in code
        elif option := re.match(r"--[a-z-]+(?= \S+$|$)", name):
            is_known = f"| `{option[0]}` |" in settings
        elif name.startswith(("Tests/", "Benchmarks/", "deploy/")):
            is_known = (ROOT / name).exists()
        elif name.count(" ") > 2:
            is_known = f'"{name}' in code
        else:
            continue
        if not is_known:
            problems.append(f"`{name}` does not exist")
    return problems


def main() -> int:
    paths = [path for path in sorted((ROOT / "Sources").rglob("*.swift")) if "Generated" not in path.parts]
    protocols = Protocols(paths)
    places = [
        f"{path.relative_to(ROOT)}:{number}: {text}"
        for path in paths for number, text in undocumented(path, protocols)]
    if places:
        print(*places, sep="\n")
    print(f"{len(places)} package declarations without documentation")
    files = subprocess.run(
        ["git", "ls-files", "*.md"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    dead = [f"{file}:{number}: {problem}" for file in files for number, problem in dead_links(ROOT / file)]
    if dead:
        print(*dead, sep="\n")
    print(f"{len(dead)} dead links in {len(files)} documents")
    unknown = [f"{PAGE.relative_to(ROOT)}: {problem}" for problem in unknown_names(PAGE.read_text())]
    if unknown:
        print(*unknown, sep="\n")
    print(f"{len(unknown)} names that do not exist")
    return 1 if places or dead or unknown else 0


if __name__ == "__main__":
    sys.exit(main())
