#!/usr/bin/env python3
"""Runs the code of the documentation and compares what it prints with what the page says.

    run_docs.py BUILD-FOLDER [--long] [--update] [--needs nothing|network] [PAGE.md ...]       default: README.md, CONTRIBUTING.md, docs/, experiments/

Blocks of a page run in order, in one scratch folder that has the tree's experiments/, examples/, data/, docs/ and scripts/ in it, with Reef installed
from the build folder on the PATH, for pkg-config and for Python.

    ```console   lines "$ command" run in bash; what follows each must be its output, standard error included
    ```python    runs in one interpreter per page; a ```text block right after it is its output
    ```pycon     the same for >>> lines
    ```c         compiled and run; a ```text block right after it is its output
    ```yaml      an experiment: `reef check` must accept it; an excerpt is completed by the experiment of `reef init`
    ```rules     rule strings, two blanks or more between them: reef.Rule must accept each
    ```attacks   and other families (graphs, weights, links, problems, sources, partitions, strategies): strings, each with a remark;
                 `reef list FAMILY NAME` must know the name and the parameters
    ```text      otherwise free

"..." in an expected output stands for any text; on a line of its own, for any lines. A comment before a block changes what is done:

    <!-- run: long -->            only with --long (make check-docs-long): too slow for every run
    <!-- run: skip REASON -->     not run; targets of make and commands of reef in it must still exist
    <!-- run: file NAME -->       only written to this file, for later blocks
    <!-- run: excerpt PATH -->    lines of that file of the tree, in this order
    <!-- run: fragment DECLS -->  C that compiles inside a function after these declarations
    <!-- run: setup ... -->       shell commands that the reader need not see

A page with <!-- run: needs network --> can only be run where Reef was built with libnats; --needs network runs only such pages, --needs nothing
only the others.

--update writes the outputs into the pages: look at the difference before you commit it.
"""
from __future__ import annotations

import argparse
import contextlib
import doctest
import io
import os
import re
import subprocess
import sys
import tempfile
import traceback
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RUNNABLE = {"console", "python", "pycon", "c", "yaml"}
FAMILIES = {"rules", "attacks", "graphs", "weights", "links", "problems", "sources", "partitions", "strategies"}
PROGRESS = re.compile(r"\d+ s: \d+ of \d+ configurations, ")  # what `reef run` says on slow machines, where a run takes some seconds
FREE = {"text", "json", "cmake", "toml", "ini"}
LINKED = ("experiments", "examples", "data", "docs", "scripts")


@dataclass
class Block:
    language: str
    lines: list[str]
    first: int  # index of the first line inside the fence
    mode: str = "run"
    argument: str = ""


@dataclass
class Page:
    path: Path
    lines: list[str]
    failures: list[str] = field(default_factory=list)
    changes: list[tuple[int, int, list[str]]] = field(default_factory=list)

    def complain(self, index: int, what: str) -> None:
        self.failures.append(f"{self.path}:{index + 1}: {what}")


def parse(page: Page) -> list[Block]:
    """The blocks of a page and its hidden set-up, in order. Indented code is refused: it has no language, so nobody would run it."""
    blocks, mode, argument, i = [], "run", "", 0
    lines = page.lines
    while i < len(lines):
        directive = re.match(r"<!-- run: (\w+) ?(.*?)(-->)?$", lines[i])
        fence = re.match(r"( *)```(\w*)", lines[i])
        if directive and directive[1] == "needs":
            pass  # of the whole page, see needs()
        elif directive:
            mode, argument = directive[1], directive[2].strip()
            if mode == "setup":
                end = next(n for n in range(i, len(lines)) if lines[n].endswith("-->"))
                blocks.append(Block("sh", lines[i + 1:end], i + 1))
                mode, i = "run", end
        elif fence:
            end = next(n for n in range(i + 1, len(lines)) if lines[n].strip() == "```")
            indent = len(fence[1])
            blocks.append(Block(fence[2], [line[indent:] for line in lines[i + 1:end]], i + 1, mode, argument))
            mode, argument, i = "run", "", end
        elif lines[i].startswith("    ") and not lines[i - 1].strip() and not inside_list(lines, i):
            page.complain(i, "indented code; put it between ``` with a language")
            while i + 1 < len(lines) and (lines[i + 1].startswith("    ") or not lines[i + 1].strip()):
                i += 1
        i += 1
    return blocks


def inside_list(lines: list[str], i: int) -> bool:
    """Whether an indented line goes on with an item of a list or an admonition."""
    while i > 0 and (not lines[i].strip() or lines[i].startswith("  ")):
        i -= 1
    return bool(re.match(r"([-*]|\d+\.|!!!|\?\?\?|===) ", lines[i]))


def matches(expected: list[str], actual: list[str]) -> bool:
    """Whether the actual lines are the expected ones, in which "..." stands for anything."""
    def clean(lines: list[str]) -> str:
        return "\n".join(line.rstrip() for line in lines).strip("\n")

    pattern = re.escape(clean(expected))
    pattern = re.sub(r"(?m)^\\\.\\\.\\\.(?:\\\n|$)", "(?:.*\\\\n)*?.*", pattern).replace(r"\.\.\.", "[^\\n]*")
    return re.fullmatch(pattern, clean(actual)) is not None


class Runner:
    """Runs the blocks of one page in a scratch folder."""

    def __init__(self, page: Page, prefix: Path, long: bool, scratch: Path) -> None:
        self.page, self.long, self.scratch = page, long, scratch
        self.names: dict = {"__name__": "__main__"}
        library = next(prefix.rglob("libreef.so")).parent
        (prefix / "bin" / "python3").unlink(missing_ok=True)
        (prefix / "bin" / "python3").symlink_to(sys.executable)  # the one that has numpy
        os.environ.update(PATH=f"{prefix / 'bin'}{os.pathsep}{os.environ['PATH']}", LD_LIBRARY_PATH=str(library),
                          PKG_CONFIG_PATH=str(library / "pkgconfig"), REEF_LIBRARY=str(library / "libreef.so"),
                          REEF_DATA=str(ROOT / "data"), PYTHONPATH=str(ROOT / "python"), LC_ALL="C.UTF-8", COLUMNS="100",
                          OMP_NUM_THREADS="1", MPLBACKEND="agg", NO_COLOR="1", REEF_SOURCE=str(ROOT))
        sys.path.insert(0, str(ROOT / "python"))
        os.environ.pop("REEF_PLUGINS", None)
        for name in LINKED:
            (scratch / name).symlink_to(ROOT / name)
        os.chdir(scratch)

    def shell(self, command: str) -> list[str]:
        done = subprocess.run(["bash", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False)
        return [line for line in done.stdout.splitlines() if not PROGRESS.match(line)]

    def compare(self, index: int, expected: list[str], actual: list[str], what: str) -> None:
        """Index: where the expected lines begin in the page."""
        if matches(expected, actual):
            return
        self.page.complain(index - 1, f"{what} prints\n    " + "\n    ".join(actual or ["(nothing)"]) + "\n  where the page has\n    " +
                           "\n    ".join(expected or ["(nothing)"]))
        self.page.changes.append((index, index + len(expected), actual))

    def console(self, block: Block) -> None:
        at = 0
        while at < len(block.lines):
            first = at
            if not block.lines[at].startswith("$ "):
                self.page.complain(block.first + at, "a console block begins with '$ command'")
                return
            command = block.lines[at][2:]
            at += 1
            while command.endswith("\\") or (at < len(block.lines) and block.lines[at].startswith("> ")):
                command += "\n" + block.lines[at].removeprefix("> ")
                at += 1
            start = at
            while at < len(block.lines) and not block.lines[at].startswith("$ "):
                at += 1
            expected = block.lines[start:at]
            self.compare(block.first + start, expected, self.shell(command.split("  # ")[0]), f"`{block.lines[first][2:]}`")

    def python(self, block: Block) -> list[str]:
        output = io.StringIO()
        try:
            with contextlib.redirect_stdout(output):
                exec(compile("\n" * block.first + "\n".join(block.lines), str(self.page.path), "exec"), self.names)
        except Exception:
            self.page.complain(block.first, "raises\n" + traceback.format_exc(limit=-3))
        return output.getvalue().splitlines()

    def pycon(self, block: Block) -> None:
        test = doctest.DocTestParser().get_doctest("\n".join(block.lines) + "\n", self.names, str(self.page.path), None, block.first)
        output = io.StringIO()
        result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL & 0).run(
            test, out=output.write, clear_globs=False)
        if result.failed:
            self.page.complain(block.first, output.getvalue())

    def c(self, block: Block) -> list[str]:
        (self.scratch / "it.c").write_text("\n".join(block.lines) + "\n")
        said = self.shell("cc -std=c11 -Wall -Wextra -Werror it.c -o it $(pkg-config --cflags --libs reef) && ./it")
        return said

    def yaml(self, block: Block) -> None:
        given = "\n".join(block.lines) + "\n"
        keys = set(re.findall(r"(?m)^(\w+):", given))
        rest, keep = [], True
        for line in self.shell("rm -f init.yaml && reef init init.yaml >/dev/null && cat init.yaml"):
            start = re.match(r"(\w+):", line)
            keep = start[1] not in keys if start else keep and not line.startswith("#")
            if keep:
                rest.append(line)
        (self.scratch / "block.yaml").write_text(given + "\n".join(rest) + "\n")
        done = subprocess.run(["reef", "check", "block.yaml"], capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1):
            self.page.complain(block.first, f"`reef check` of this experiment says\n{done.stderr}{done.stdout[-500:]}")

    def strings(self, block: Block) -> None:
        import reef

        for line in block.lines:
            cells = [cell for cell in re.split(r" {2,}", line.strip()) if cell]
            try:
                for text in cells if block.language == "rules" else []:
                    reef.Rule(text)
            except reef.ReefError as error:
                self.page.complain(block.first, f"'{line}': {error}")
            if block.language != "rules" and cells:
                self.named(block, cells[0])

    def named(self, block: Block, text: str) -> None:
        """A string of another family: its name and the names of its parameters."""
        name, _, keys = text.partition(":")
        found = subprocess.run(["reef", "list", block.language, name], capture_output=True, text=True, check=False)
        keys = re.findall(r"(?:^|,)(\w+)=", re.sub(r"\(.*?\)", "", keys))
        wrong = [key for key in keys if not re.search(rf"(?m)^  {key}\b", found.stdout)]
        if found.returncode or wrong:
            self.page.complain(block.first, f"'{text}': {found.stderr}{' '.join(wrong)}")

    def fragment(self, block: Block) -> None:
        headers = "".join(f"#include <{name}>\n" for name in ("reef/reef.h", "stdint.h", "stdio.h", "stdlib.h"))
        body = "\n".join(block.lines)
        (self.scratch / "part.c").write_text(f"{headers}{block.argument}\nvoid part(void);\nvoid part(void)\n{{\n{body}\n}}\n")
        said = self.shell("cc -std=c11 -Wall -Wno-unused-variable -Werror -fsyntax-only part.c $(pkg-config --cflags reef)")
        if said:
            self.page.complain(block.first, "the fragment does not compile:\n" + "\n".join(said))

    def excerpt(self, block: Block) -> None:
        lines = iter((ROOT / block.argument).read_text().splitlines())
        for line in block.lines:
            if line.strip() not in ("", "...") and not any(line.strip() == found.strip() for found in lines):
                self.page.complain(block.first, f"{block.argument} has no line '{line.strip()}' (after the lines before it)")
                return

    def run(self, blocks: list[Block]) -> None:
        for number, block in enumerate(blocks):
            following = blocks[number + 1] if number + 1 < len(blocks) else None
            if block.mode == "skip" or (block.mode == "long" and not self.long):
                check_names(self.page, block)
            elif block.mode == "file":
                (self.scratch / block.argument).write_text("\n".join(block.lines) + "\n")
            elif block.mode in ("excerpt", "fragment"):
                getattr(self, block.mode)(block)
            elif block.language == "sh":
                said = subprocess.run(["bash", "-euo", "pipefail", "-c", "\n".join(block.lines)], stdin=subprocess.DEVNULL,
                                      capture_output=True, text=True, check=False)
                if said.returncode:
                    self.page.complain(block.first, f"the set-up fails: {said.stderr}{said.stdout}")
            elif block.language in ("python", "c"):
                said = getattr(self, block.language)(block)
                is_next = following and following.language == "text" and following.first - block.first - len(block.lines) <= 4
                if is_next and following:
                    self.compare(following.first, following.lines, said, f"the {block.language} block above")
                elif block.language == "c" and said:
                    self.page.complain(block.first, "prints what the page does not show:\n" + "\n".join(said))
            elif block.language in FAMILIES:
                self.strings(block)
            elif block.language in RUNNABLE:
                getattr(self, block.language)(block)


def check_names(page: Page, block: Block) -> None:
    """What is not run must at least exist, and say why it is not run."""
    if block.mode == "skip" and len(block.argument) < 8:
        page.complain(block.first, "a block that is not run needs a reason: <!-- run: skip REASON -->")
    targets = set(re.findall(r"(?m)^([a-z][a-z0-9-]*):", (ROOT / "Makefile").read_text()))
    for line in block.lines:
        for target in re.findall(r"^(?:\$ )?make ([a-z][a-z0-9-]*)", line):
            if target not in targets:
                page.complain(block.first, f"there is no `make {target}`")
        for command in re.findall(r"^\$ (?:.*/)?reef ([a-z]+)", line):
            if subprocess.run(["reef", command, "--help"], capture_output=True, check=False).returncode:
                page.complain(block.first, f"there is no `reef {command}`")


def check_languages(page: Page, blocks: list[Block]) -> None:
    for block in blocks:
        if block.mode not in ("run", "long", "skip", "file", "excerpt", "fragment"):
            page.complain(block.first, f"unknown directive '{block.mode}'")
        if block.language not in RUNNABLE | FAMILIES | FREE | {"sh"}:
            page.complain(block.first, f"language '{block.language}'; known are {', '.join(sorted(RUNNABLE | FAMILIES | FREE))}")
        elif block.mode == "run" and block.language == "text" and any(line.startswith("$ ") for line in block.lines):
            page.complain(block.first, "commands belong into a console block, which is run")


def run_page(path: Path, prefix: Path, long: bool, update: bool) -> list[str]:
    page = Page(path, path.read_text().splitlines())
    blocks = parse(page)
    check_languages(page, blocks)
    if not page.failures:
        with tempfile.TemporaryDirectory(prefix="reef-docs-") as scratch:
            Runner(page, prefix, long, Path(scratch)).run(blocks)
            os.chdir(ROOT)
    if update and page.changes:
        for first, last, lines in sorted(page.changes, reverse=True):
            page.lines[first:last] = lines
        path.write_text("\n".join(page.lines) + "\n")
    return page.failures


def all_pages() -> list[Path]:
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", ROOT / "experiments" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def needs(path: Path) -> str:
    """What must be part of the build to run this page."""
    found = re.search(r"(?m)^<!-- run: needs (\w+) -->$", path.read_text())
    return found[1] if found else "nothing"


def in_process(path: Path, prefix: Path, long: bool, update: bool) -> bool:
    """A page in a process of its own, because it may change the interpreter or crash it."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            failures = run_page(path, prefix, long, update)
        except Exception:
            failures = [f"{path}: {traceback.format_exc()}"]
        for failure in failures:
            print(failure, flush=True)
        os._exit(1 if failures else 0)
    return os.waitpid(child, 0)[1] == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("pages", nargs="*", type=Path)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--needs", choices=("nothing", "network"))
    options = parser.parse_intermixed_args()
    pages = [page.resolve() for page in options.pages] or all_pages()
    if options.needs:
        pages = [page for page in pages if needs(page) == options.needs]
    with tempfile.TemporaryDirectory(prefix="reef-docs-") as folder:
        done = subprocess.run(["cmake", "--install", options.build.resolve(), "--prefix", f"{folder}/reef"], capture_output=True, text=True,
                              check=False)
        if done.returncode:
            sys.exit(f"run_docs: cannot install {options.build}: {done.stderr}")
        failed = [page for page in pages if not in_process(page, Path(folder) / "reef", options.long, options.update)]
    print(f"run_docs: {len(pages)} pages, {len(failed)} with failures")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
