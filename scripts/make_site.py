#!/usr/bin/env python3
"""Stages the documentation for mkdocs:  make_site.py REEF-LIBRARY        pages go to build/site-src, docs/mkdocs.yml builds them

Pages keep their places; README.md becomes the front page. Links to pages lead to pages, links to other files of the tree to a page that shows
the file: the site is complete by itself. Generated beside them: commands (from the man pages), the keys of experiments (from the field
tables, also as JSON schema), the Python interface (for mkdocstrings) and the C interface (Doxygen, which must have run).
"""
from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STAGE = ROOT / "build" / "site-src"
ELSEWHERE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "THIRD_PARTY.md": "third-party.md",
    "experiments/README.md": "published-experiments.md",
    "data/README.md": "data-licence.md",
}
LANGUAGES = {".c": "c", ".h": "c", ".py": "python", ".sh": "bash", ".yaml": "yaml", ".bats": "bash", ".toml": "toml", ".cff": "yaml"}
UNSEARCHED = "---\nsearch:\n  exclude: true\n---\n\n"
STYLE = """.md-typeset pre > code { font-size: 0.62rem; }
.md-typeset table:not([class]) { font-size: 0.7rem; }
.md-typeset td:first-child code { white-space: nowrap; } /* names are not broken; wide tables scroll */
.md-typeset math[display="block"] { overflow-x: auto; overflow-y: hidden; padding: 0.4em 0; }
.doc-contents p { white-space: pre; overflow-x: auto; font: 0.62rem/1.5 monospace; } /* docstrings have columns */
.md-grid { max-width: 72rem; }
"""


def staged_name(path: str) -> str | None:
    """Where a file of the tree is staged as it is; None: not at all."""
    if path in ELSEWHERE:
        return ELSEWHERE[path]
    if path.startswith("docs/") and path.endswith((".md", ".png", ".svg", ".ipynb", ".js")):
        return path.removeprefix("docs/")
    return None


class Stage:
    """Writes pages, and remembers which files of the tree they show."""

    def __init__(self) -> None:
        self.sources: set[str] = set()

    def target(self, page: str, link: str) -> str:
        """The link of a page (a path in the tree) as the staged page must have it."""
        if re.match(r"[a-z]+:|#", link):
            return link
        path, mark, anchor = link.partition("#")
        found = os.path.normpath(os.path.join(os.path.dirname(page), path))
        to = staged_name(found)
        if to is None:
            self.sources.add(found)
            to = f"source/{found}/index.md" if (ROOT / found).is_dir() else f"source/{found}.md"
        return os.path.relpath(to, os.path.dirname(staged_name(page) or page)) + mark + anchor

    def rewrite(self, page: str, text: str) -> str:
        parts = re.split(r"(^ *```.*?^ *```$|`[^`\n]*`)", text, flags=re.M | re.S)
        for i in range(0, len(parts), 2):
            parts[i] = re.sub(r"\]\(([^() ]+)\)", lambda found: f"]({self.target(page, found[1])})", parts[i])
        # Links around `code` are split by the pattern above: their ends begin the next part.
        return "".join(parts)

    def write(self, name: str, text: str) -> None:
        path = STAGE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def page(self, path: str) -> None:
        text = (ROOT / path).read_text()
        self.write(staged_name(path) or path, self.rewrite(path, re.sub(r"<!-- run:.*?-->\n", "", text, flags=re.S)))

    def show_sources(self) -> None:
        """A page for every file that a page links to; of folders, for every file in them."""
        todo = sorted(self.sources)
        while todo:
            path = todo.pop()
            if (ROOT / path).is_dir():
                files = sorted(str(f.relative_to(ROOT)) for f in (ROOT / path).iterdir() if f.suffix in LANGUAGES)
                items = "".join(f"- [{Path(f).name}]({Path(f).name}.md)\n" for f in files)
                self.write(f"source/{path}/index.md", f"{UNSEARCHED}# {path}\n\n{items or 'A folder of the source tree.'}\n")
                todo += [f for f in files if f not in self.sources]
                self.sources.update(files)
                continue
            fence = "~" * 8
            language = LANGUAGES.get(Path(path).suffix, "text")
            self.write(f"source/{path}.md", f"{UNSEARCHED}# {path}\n\n{fence}{language}\n{(ROOT / path).read_text()}\n{fence}\n")


def from_scdoc(text: str) -> str:
    """The few things that our man pages use, as Markdown."""
    lines = text.splitlines()
    out = [f"# {lines[0].split('(')[0].replace('-', ' ', 1)}", ""]
    for line in lines[1:]:
        if line.startswith("#"):
            mark, _, title = line.partition(" ")
            out.append(f"#{mark} {title.capitalize()}")
            continue
        inner = line.lstrip("\t")
        inner = inner.replace("<", "&lt;").replace("|", "\\|").replace("`", "\\`")
        inner = re.sub(r"(?<![\w\\])_([^_\s][^_]*)_", r"§\1§", inner)
        inner = re.sub(r"(?<!\\)\*([^*]+)\*", r"**\1**", inner).replace("§", "*")
        inner = re.sub(r"\*\*(reef-\w+)\*\*\(1\)", r"[\1](\1.md)", inner)
        inner = re.sub(r"\*\*reef\*\*\(1\)", "[reef](README.md)", inner)
        out.append(("    " if line.startswith("\t") and inner.strip() else "") + inner)
    return definitions("\n".join(out)) + "\n"


def definitions(text: str) -> str:
    """A paragraph with an indented one under it becomes an item of a list."""
    text = re.sub(r"(?m)^(\S.*)\n((?:    .*\n?)+)", lambda m: f"- {m[1]}  \n{m[2]}", text)
    return re.sub(r"(?m)^    (?=\S)", "  ", text)


def write_commands(stage: Stage) -> None:
    pages = sorted((ROOT / "docs" / "man").glob("*.scd"))
    for page in pages:
        name = page.name.removesuffix(".1.scd")
        stage.write("man/README.md" if name == "reef" else f"man/{name}.md", from_scdoc(page.read_text()))
    items = [page.name.removesuffix(".1.scd") for page in pages if page.name != "reef.1.scd"]
    listing = "\n## All pages\n\n" + "".join(f"- [{name.replace('-', ' ')}]({name}.md)\n" for name in items)
    path = STAGE / "man" / "README.md"
    path.write_text(path.read_text() + listing)


def write_reference(stage: Stage) -> None:
    import make_schema

    stage.write("reference/experiment.schema.json", make_schema.as_json())
    stage.write("reference/yaml.md", make_schema.as_page())
    stage.write("reference/python.md", "# Python API\n\n[Reef in Python](../python.md) is the guide; this is every public name.\n\n" + "".join(
        f"## {title}\n\n{text}\n\n" + "".join(f"::: {name}\n\n" for name in names) for title, text, names in PYTHON))
    stage.write("reference/c.md", C_PAGE)
    shutil.copytree(ROOT / "build" / "doxygen" / "html", STAGE / "c-api")


PYTHON = [
    ("Aggregation", "", ["reef.aggregate", "reef.Rule", "reef.Report", "reef.State", "reef.ReefError"]),
    ("What there is", "", ["reef.rules", "reef.attacks", "reef.kinds", "reef.Kind", "reef.Field", "reef.load_plugin"]),
    ("Learning and experiments", "", ["reef.run", "reef.Results", "reef.simulate", "reef.Simulation", "reef.Step"]),
    ("Threads", "", ["reef.get_threads", "reef.set_threads"]),
    ("Flower", "Needs `flwr`.", ["reef.flower.RobustFedAvg", "reef.flower.FedREF", "reef.flower.FedVREF", "reef.flower.FedMREF",
                                 "reef.flower._legacy.LegacyRobust"]),
]

C_PAGE = """# C API

[The reference of all public headers](../c-api/index.html), made by Doxygen. [Using Reef from C](../c.md) is the guide.

| header | what is in it |
|---|---|
"""


def header_rows() -> str:
    rows = ""
    for header in sorted((ROOT / "include" / "reef").glob("*.h")):
        brief = re.search(r"/\*\*?\s*(?:@file\s*)?(.*?)(?:\.\s|\*/|\n\s*\*?\s*\n)", header.read_text(), re.S)
        words = re.sub(r"\s*\n\s*\*?\s*", " ", brief[1]).strip() if brief else ""
        page = STAGE / "c-api" / (header.name.replace("_", "__").replace(".", "_8") + ".html")
        name = f"[{header.name}](../c-api/{page.name})" if page.exists() else header.name
        rows += f"| {name} | {words.replace('|', '/')} |\n"
    return rows


def main() -> None:
    os.environ["REEF_LIBRARY"] = str(Path(sys.argv[1]).resolve())
    sys.path[:0] = [str(ROOT / "python"), str(ROOT / "scripts")]
    shutil.rmtree(STAGE, ignore_errors=True)
    stage = Stage()
    for path in sorted((ROOT / "docs").rglob("*")):
        name = str(path.relative_to(ROOT))
        if path.suffix == ".md":
            stage.page(name)
        elif staged_name(name):
            (STAGE / (staged_name(name) or "")).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, STAGE / (staged_name(name) or ""))
    for path in ELSEWHERE:
        stage.page(path)
    write_commands(stage)
    write_reference(stage)
    stage.write("reference/c.md", C_PAGE + header_rows())
    stage.write("site.css", STYLE)
    stage.show_sources()


if __name__ == "__main__":
    main()
