"""Hooks of mkdocs (docs/mkdocs.yml). The site fetches nothing: formulas become MathML when it is built, and the script that searches from the disk
is our own. Folders in the navigation stand for all their pages."""
from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert

SHIM = '<script src="https://unpkg.com/iframe-worker/shim"></script>'


def on_config(config: Any) -> Any:
    """Rules: rules/ is the folder's README.md and all its other pages, by name."""
    def expand(entry: Any) -> Any:
        if isinstance(entry, list):
            return [expand(item) for item in entry]
        if isinstance(entry, dict):
            return {title: expand(value) for title, value in entry.items()}
        if isinstance(entry, str) and entry.endswith("/"):
            pages = sorted(path.name for path in (Path(config["docs_dir"]) / entry).glob("*.md") if path.name != "README.md")
            return [entry + name for name in ["README.md", *pages]]
        return entry

    config["nav"] = expand(config["nav"])
    return config


def on_page_content(content: str, **_: Any) -> str:
    def formula(found: re.Match[str]) -> str:
        text = html.unescape(found[2]).strip()
        display = "block" if text.startswith("\\[") else "inline"
        return convert(text[2:-2].strip(), display=display)

    return re.sub(r'<(span|div) class="arithmatex">(.*?)</\1>', formula, content, flags=re.S)


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Instead of a script of somebody else's from the network, ours from the site."""
    if SHIM not in output:
        raise ValueError("the theme has changed how it searches from the disk; see on_post_page in scripts/site_hooks.py")
    up = "../" * page.file.dest_uri.count("/")
    return output.replace(SHIM, f'<script src="{up}site.js"></script>')
