#!/usr/bin/env python3
"""Renders a documentation archive of DocC as plain linked HTML pages, which open from the file system.

The pages that DocC writes load their content by script, which browsers refuse for file:// addresses. Exit status 1 when
a link between two pages leads nowhere.

Use: render_pages.py ARCHIVE OUTPUT
"""

import json
import re
import shutil
import sys
from html import escape
from pathlib import Path, PurePosixPath
from urllib.parse import quote, unquote

STYLE = """
:root { color-scheme: light dark; --line: #8886; --tint: #8882; }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 56rem; margin: 0 auto; padding: 1rem 1.5rem 4rem; }
nav { font-size: .9rem; padding-bottom: .5rem; border-bottom: 1px solid var(--line); }
nav ul { list-style: none; display: flex; flex-wrap: wrap; gap: .2rem 1rem; margin: .3rem 0; padding: 0; }
code, pre { font: .9em/1.5 ui-monospace, monospace; background: var(--tint); border-radius: 4px; }
code { padding: .1em .25em; overflow-wrap: anywhere; }
pre { padding: .8rem 1rem; overflow-x: auto; }
pre code { padding: 0; background: none; overflow-wrap: normal; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { border: 1px solid var(--line); padding: .3rem .6rem; text-align: left; vertical-align: top; }
td > p, th > p, li > p { margin: 0; }
aside { border-left: 4px solid var(--line); background: var(--tint); margin: 1rem 0; padding: .4rem 1rem; }
aside p { margin: .2rem 0; }
dt { margin-top: .6rem; }
img { max-width: 100%; }
.eyebrow { margin: 1.2rem 0 0; opacity: .7; }
h1 { margin-top: 0; overflow-wrap: anywhere; }
.abstract { font-size: 1.15rem; }
"""


class Archive:
    """The render JSON of every page, by its address, such as /documentation/imagepipeline/memory."""

    def __init__(self, folder: Path):
        self.folder = folder
        data = folder / "data"
        self.pages = {}
        for file in sorted(data.rglob("*.json")):
            self.pages["/" + file.relative_to(data).as_posix().removesuffix(".json")] = json.loads(file.read_text())
        landing = self.pages["/documentation"]
        self.modules = [landing["references"][identifier] for section in landing["topicSections"]
                        for identifier in section["identifiers"]]


class Page:
    """One page of the archive, and its HTML."""

    def __init__(self, archive: Archive, address: str):
        self.archive = archive
        self.address = address
        self.node = archive.pages[address]
        self.references = self.node.get("references", {})

    def html(self) -> str:
        metadata = self.node["metadata"]
        title = metadata["title"]
        parts = [
            "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'>",
            "<meta name='viewport' content='width=device-width, initial-scale=1'>",
            f"<title>{escape(title)}</title>",
            f"<link rel='stylesheet' href='{self.relative('/style.css')}'></head><body>",
            self.navigation(),
            f"<main><p class='eyebrow'>{escape(metadata.get('roleHeading', ''))}</p><h1>{escape(title)}</h1>",
        ]
        if self.node.get("abstract"):
            parts.append(f"<p class='abstract'>{self.inlines(self.node['abstract'])}</p>")
        parts += [self.section(section) for section in self.node.get("primaryContentSections", [])]
        for key, heading in [("topicSections", "Topics"), ("defaultImplementationsSections", "Implementations"),
                             ("relationshipsSections", "Relationships"), ("seeAlsoSections", "See also")]:
            parts.append(self.links(heading, self.node.get(key, [])))
        return "\n".join(part for part in parts if part) + "\n</main></body></html>\n"

    def relative(self, target: str) -> str:
        """The link from this page to an address or a file of the site."""
        path, _, anchor = target.partition("#")
        if path in self.archive.pages:
            path += "/index.html"
        up = len(PurePosixPath(self.address).parts) - 1
        link = "../" * up + quote(path.lstrip("/"))
        return escape(link + (f"#{quote(anchor, safe='')}" if anchor else ""))

    def link(self, identifier: str, text: str = "") -> str:
        reference = self.references.get(identifier, {})
        shown = text or escape(reference.get("title", identifier))
        if reference.get("kind") == "symbol" and not text:
            shown = f"<code>{shown}</code>"
        url = reference.get("url", identifier)
        if article := re.fullmatch(r"([\w-]+)\.md(#.*)?", url):
            url = self.article(article[1]) + (article[2] or "")
        if url.startswith("/"):
            return f"<a href='{self.relative(url)}'>{shown}</a>"
        if re.match(r"https?:|mailto:", url):
            return f"<a href='{escape(url)}'>{shown}</a>"
        return shown

    def article(self, name: str) -> str:
        """The address of an article of this page's module, to which articles link by its file: a browser of the repository
        knows no other form, and DocC leaves it as it is."""
        module = "/".join(self.address.split("/")[:3])
        return f"{module}/{name.lower()}"

    def navigation(self) -> str:
        modules = [f"<a href='{self.relative('/documentation')}'>All modules</a>"]
        modules += [f"<a href='{self.relative(module['url'])}'>{escape(module['title'])}</a>"
                    for module in self.archive.modules]
        lists = ["<ul><li>" + "</li><li>".join(modules) + "</li></ul>"]
        paths = self.node.get("hierarchy", {}).get("paths", [])
        if paths and paths[0]:
            trail = [self.link(identifier) for identifier in paths[0]]
            lists.append("<ul><li>" + " /</li><li>".join(trail) + " /</li></ul>")
        return "<nav>" + "".join(lists) + "</nav>"

    def section(self, section: dict) -> str:
        match section["kind"]:
            case "declarations":
                return "".join(self.declaration(declaration) for declaration in section["declarations"])
            case "parameters":
                rows = [f"<dt><code>{escape(parameter['name'])}</code></dt><dd>{self.blocks(parameter['content'])}</dd>"
                        for parameter in section["parameters"]]
                return "<h2>Parameters</h2><dl>" + "".join(rows) + "</dl>"
            case "content":
                return self.blocks(section["content"])
            case "mentions":
                rows = [f"<li>{self.link(identifier)}</li>" for identifier in section["mentions"]]
                return "<h2>Mentioned in</h2><ul>" + "".join(rows) + "</ul>"
            case kind:
                raise ValueError(f"{self.address}: unknown section {kind}")

    def declaration(self, declaration: dict) -> str:
        tokens = []
        for token in declaration["tokens"]:
            text = escape(token["text"])
            known = token.get("identifier") in self.references
            tokens.append(self.link(token["identifier"], text) if known else text)
        return "<pre><code>" + "".join(tokens) + "</code></pre>"

    def links(self, heading: str, sections: list) -> str:
        parts = []
        for section in sections:
            if section.get("title"):
                parts.append(f"<h3>{escape(section['title'])}</h3>")
            rows = []
            for identifier in section["identifiers"]:
                abstract = self.inlines(self.references.get(identifier, {}).get("abstract", []))
                rows.append(f"<dt>{self.link(identifier)}</dt><dd>{abstract}</dd>")
            parts.append("<dl>" + "".join(rows) + "</dl>")
        return f"<h2>{heading}</h2>" + "\n".join(parts) if parts else ""

    def blocks(self, blocks: list) -> str:
        return "\n".join(self.block(block) for block in blocks)

    def block(self, block: dict) -> str:
        match block["type"]:
            case "paragraph":
                return f"<p>{self.inlines(block['inlineContent'])}</p>"
            case "heading":
                level = block["level"]
                return f"<h{level} id='{escape(block['anchor'])}'>{escape(block['text'])}</h{level}>"
            case "codeListing":
                return "<pre><code>" + escape("\n".join(block["code"])) + "</code></pre>"
            case "unorderedList" | "orderedList" as kind:
                tag = "ul" if kind == "unorderedList" else "ol"
                items = [f"<li>{self.blocks(item['content'])}</li>" for item in block["items"]]
                return f"<{tag}>" + "".join(items) + f"</{tag}>"
            case "termList":
                items = [f"<dt>{self.inlines(item['term']['inlineContent'])}</dt>"
                         f"<dd>{self.blocks(item['definition']['content'])}</dd>" for item in block["items"]]
                return "<dl>" + "".join(items) + "</dl>"
            case "table":
                rows = []
                for index, row in enumerate(block["rows"]):
                    tag = "th" if index == 0 and block.get("header") in ("row", "both") else "td"
                    rows.append("<tr>" + "".join(f"<{tag}>{self.blocks(cell)}</{tag}>" for cell in row) + "</tr>")
                return "<table>" + "\n".join(rows) + "</table>"
            case "aside":
                name = block.get("name") or block["style"].capitalize()
                return f"<aside><p><strong>{escape(name)}</strong></p>{self.blocks(block['content'])}</aside>"
            case "thematicBreak":
                return "<hr>"
            case kind:
                raise ValueError(f"{self.address}: unknown block {kind}")

    def inlines(self, inlines: list) -> str:
        return "".join(self.inline(inline) for inline in inlines)

    def inline(self, inline: dict) -> str:
        match inline["type"]:
            case "text":
                return escape(inline["text"])
            case "codeVoice":
                return f"<code>{escape(inline['code'])}</code>"
            case "emphasis":
                return f"<em>{self.inlines(inline['inlineContent'])}</em>"
            case "strong":
                return f"<strong>{self.inlines(inline['inlineContent'])}</strong>"
            case "reference":
                return self.link(inline["identifier"])
            case "link":
                return f"<a href='{escape(inline['destination'])}'>{escape(inline.get('title', inline['destination']))}</a>"
            case "image":
                image = self.references[inline["identifier"]]
                return f"<img src='{self.relative(image['variants'][0]['url'])}' alt='{escape(image.get('alt') or '')}'>"
            case kind:
                raise ValueError(f"{self.address}: unknown inline {kind}")


def dead_links(output: Path) -> list[str]:
    """Every link of the site to a file, or to a heading of a file, that does not exist."""
    texts = {file: file.read_text() for file in output.rglob("*.html")}
    anchors = {file.resolve(): set(re.findall(r" id='([^']*)'", text)) for file, text in texts.items()}
    dead = []
    for file, text in texts.items():
        for link in re.findall(r"(?:href|src)='([^']*)'", text):
            if re.match(r"https?:|mailto:", link):
                continue
            path, _, anchor = unquote(link).partition("#")
            target = (file.parent / path).resolve()
            if not target.is_file() or (anchor and escape(anchor) not in anchors[target]):
                dead.append(f"{file}: {link}")
    return dead


def main() -> int:
    archive, output = Archive(Path(sys.argv[1])), Path(sys.argv[2])
    shutil.rmtree(output, ignore_errors=True)
    for address in archive.pages:
        file = output / address.lstrip("/") / "index.html"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(Page(archive, address).html())
    (output / "style.css").write_text(STYLE.lstrip())
    (output / "index.html").write_text(
        "<!DOCTYPE html><meta charset='utf-8'><title>Documentation</title>"
        "<meta http-equiv='refresh' content='0; url=documentation/index.html'>"
        "<a href='documentation/index.html'>Documentation</a>\n")
    if (archive.folder / "images").is_dir():
        shutil.copytree(archive.folder / "images", output / "images")
    dead = dead_links(output)
    print("\n".join(f"error: dead link in {link}" for link in dead), file=sys.stderr, end="\n" if dead else "")
    print(f"{len(archive.pages)} pages: {(output / 'index.html').resolve()}")
    return 1 if dead else 0


if __name__ == "__main__":
    sys.exit(main())
