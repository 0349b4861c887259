#!/usr/bin/env python3
"""Writes the manual pages of a built worker: one for the program and one for each of its commands.

Use: manual.py PROGRAM DIRECTORY

The date of the pages is SOURCE_DATE_EPOCH, in seconds since 1970, or today.
"""

import json
import os
import subprocess
import time
import sys
from pathlib import Path


def escaped(text: str) -> str:
    """Text that has no meaning for troff."""
    lines = text.replace("\\", "\\e").replace("-", "\\-").split("\n")
    return "\n".join("\\&" + line if line.startswith((".", "'")) else line for line in lines)


def usage(argument: dict) -> str:
    """An argument as it is written on the command line."""
    value = argument.get("valueName", "value")
    if argument["kind"] == "positional":
        return f"\\fI{escaped(value)}\\fR"
    names = [("--" if len(name["name"]) > 1 else "-") + name["name"] for name in argument.get("names", [])]
    text = ", ".join(f"\\fB{escaped(name)}\\fR" for name in names)
    return f"{text} \\fI{escaped(value)}\\fR" if argument["kind"] == "option" else text


def synopsis(argument: dict) -> str:
    """A positional argument in the first line."""
    text = usage(argument) + (" ..." if argument.get("isRepeating") else "")
    return f"[{text}]" if argument.get("isOptional") else text


def page(command: dict, parents: list[str], version: str) -> str:
    name = "-".join([*parents, command["commandName"]])
    arguments = [argument for argument in command.get("arguments", []) if argument.get("shouldDisplay", True)]
    positional = [synopsis(argument) for argument in arguments if argument["kind"] == "positional"]
    date = time.strftime("%Y-%m-%d", time.gmtime(float(os.environ.get("SOURCE_DATE_EPOCH", time.time()))))
    lines = [
        f'.TH "{escaped(name.upper())}" 1 "{date}" "image-worker {escaped(version)}"', ".SH NAME",
        f"{escaped(name)} \\- {escaped(command.get('abstract', '').rstrip('.'))}", ".SH SYNOPSIS",
        " ".join([f"\\fB{escaped(' '.join([*parents, command['commandName']]))}\\fR", "[\\fIoptions\\fR]", *positional])]
    if command.get("discussion"):
        lines += [".SH DESCRIPTION", escaped(command["discussion"]).replace("\n\n", "\n.PP\n")]
    sections: dict[str, list[dict]] = {}
    for argument in arguments:
        sections.setdefault(argument.get("sectionTitle") or "OPTIONS", []).append(argument)
    for title, members in sections.items():
        lines.append(f".SH {escaped(title.upper())}")
        for argument in members:
            text = " ".join(part for part in [argument.get("abstract"), argument.get("discussion")] if part)
            if argument.get("defaultValue"):
                text += f" (default: {argument['defaultValue']})"
            lines += [".TP", usage(argument), escaped(text)]
    below = [each for each in command.get("subcommands", []) if each["commandName"] != "help"]
    if below:
        lines.append(".SH COMMANDS")
        for each in below:
            lines += [".TP", f"\\fB{escaped(name)}\\-{escaped(each['commandName'])}\\fR(1)", escaped(each.get("abstract", ""))]
    return "\n".join(lines) + "\n"


def main() -> None:
    program, directory = sys.argv[1], Path(sys.argv[2])
    dump = json.loads(subprocess.run(
        [program, "--experimental-dump-help"], capture_output=True, text=True, check=True).stdout)
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    root = dump["command"]
    commands = [each for each in root.get("subcommands", []) if each["commandName"] != "help"]
    (directory / f"{root['commandName']}.1").write_text(page(root, [], version))
    for each in commands:
        (directory / f"{root['commandName']}-{each['commandName']}.1").write_text(
            page(each, [root["commandName"]], version))


if __name__ == "__main__":
    main()
