#!/usr/bin/env python3
"""The keys of experiment files from the library's field tables, as JSON schema or as a page:  make_schema.py json|page

Kinds and their parameters come from the library (REEF_LIBRARY names it), the numbers at the top level from the table in
src/experiment/config/resolve.c. Every value may be a list, which is swept.
"""
from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PARTS = {"graph": "graph", "weights": "weights", "links": "links", "problem": "problem", "strategy": "strategy", "rule": "rule",
         "attack": "attack", "placement": "placement"}
MEANINGS = {"graph": "who hears whom", "weights": "how much weight agents give to those they hear", "links": "links that fail or change",
            "problem": "what is learned", "strategy": "how agents adapt, exchange and combine", "rule": "how they combine",
            "attack": "what malicious agents send", "placement": "which agents are malicious"}
OLD_KEYS = {"liars": "malicious", "iterations": "rounds", "runs": "repetitions"}
METRICS = ["msd", "excess", "consensus", "loss", "accuracy", "worst_accuracy", "trust_honest", "trust_malicious", "trust_auc"]
PAGES = {"rule": "rules/README.md", "attack": "attacks.md", "problem": "problems.md", "strategy": "learning.md", "source": "data.md",
         "partition": "data.md", "graph": "graphs.md", "weights": "graphs.md", "links": "graphs.md"}


def top_level() -> list[dict[str, str]]:
    """Name, type, default, least, most, unit and help of the numbers at the top level, from their field table."""
    text = (ROOT / "src" / "experiment" / "config" / "resolve.c").read_text()
    table = re.search(r"rfi_number_fields\[RFI_NUMBERS\] = \{(.*?)\n\};", text, re.S)
    if not table:
        sys.exit("make_schema: src/experiment/config/resolve.c has no table rfi_number_fields any more")
    body = re.sub(r'"\s*\n\s*"', "", table[1])
    text_of = r'"((?:[^"\\]|\\.)*)"'
    found = []
    for match in re.finditer(rf"WHOLE\((\w+), {text_of}, ([\d.e]+), ([\d.e]+), {text_of},\s*{text_of}\)|FLAG\((\w+), {text_of}\)|\{{(\.name.*?)\}}",
                             body, re.S):
        if match[1]:
            found.append(dict(zip(("name", "default", "least", "most", "unit", "help"), match.groups()[:6]), type="int", words=""))
        elif match[7]:
            found.append(dict(name=match[7], type="bool", default="false", least="", most="", unit="", help=match[8], words=""))
        else:
            part = {m[1]: m[3].strip() if m[2] is None else m[2]
                    for m in re.finditer(rf"\.(\w+) = (?:{text_of}|([^,]+))", match[9])}
            found.append(dict(name=part["name"], type="malicious" if "MALICIOUS" in part["type"] else "int", default=part["preset"],
                              least=part.get("min", ""), most=part.get("max", ""), unit=part.get("unit", ""), help=part["help"],
                              words="auto" if "words" in part else ""))
    return found


def number_schema(kind: str, least: Any, most: Any, words: list[str]) -> dict[str, Any]:
    limits = {} if least in (None, "") else {"minimum": float(least), "maximum": float(most)}
    if kind == "bool":
        return {"type": "boolean"}
    if kind == "word":
        return {"enum": words}
    if kind == "text":
        return {"type": ["string", "number", "boolean"]}
    if kind == "malicious":
        return {"anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": r"^(max|[0-9.]+ ?%?)$"}]}
    one = {"type": "integer" if kind == "int" else "number", **limits}
    return {"anyOf": [one, {"enum": words}]} if words else one


def swept(one: dict[str, Any], **about: str) -> dict[str, Any]:
    """A value, or a list of values (lists of lists for fields that are lists)."""
    return {**about, "anyOf": [one, {"type": "array", "items": {"anyOf": [one, {"type": "array"}]}}]}


def field_schema(field: Any) -> dict[str, Any]:
    words = list(field.words)
    if field.type == "word" and set(words) == {"true", "false"}:
        return swept({"type": "boolean"}, description=field.help)
    unit = f" (unit: {field.unit})" if field.unit else ""
    return swept(number_schema(field.type, field.minimum, field.maximum, words), description=f"{field.help}{unit}; default {field.default}")


def family_schema(family: str) -> dict[str, Any]:
    import reef

    kinds = reef.kinds(family)
    names = "|".join(sorted(map(re.escape, [*kinds, "none"] if family == "attack" else kinds)))
    string = {"type": "string", "pattern": rf"^ *({names}) *(:.*|\|.*)?$", "examples": sorted(kinds)}
    maps = []
    for kind in kinds.values():
        fields = {field.name: field_schema(field) for field in kind.fields}
        maps.append({"type": "object", "description": kind.summary, "required": ["kind"], "additionalProperties": False,
                     "properties": {"kind": {"const": kind.name}, **fields}})
    default = {"strategy": "diffusion", "placement": "random"}.get(family)
    if default:
        maps.append({**maps[list(kinds).index(default)], "required": []})
    return swept({"anyOf": [string, *maps]}, description=MEANINGS[family])


def schema() -> dict[str, Any]:
    properties: dict[str, Any] = {"name": {"type": "string", "description": "name of the results folder; default: the file's name"}}
    for number in top_level():
        one = number_schema(number["type"], number["least"], number["most"], [number["words"]] if number["words"] else [])
        unit = f" (unit: {number['unit']})" if number["unit"] else ""
        properties[number["name"]] = swept(one, description=f"{number['help']}{unit}; default {number['default']}")
    properties.update({part: family_schema(family) for part, family in PARTS.items()})
    properties["metrics"] = {"description": "what is measured", "anyOf": [{"enum": METRICS}, {"type": "array", "items": {"enum": METRICS}}]}
    properties["zip"] = {"description": "lists that are swept in parallel, instead of each value with each", "type": "array"}
    for old, new in OLD_KEYS.items():
        properties[old] = {**properties[new], "deprecated": True, "description": f"old name of {new}"}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "An experiment of Reef", "type": "object",
            "additionalProperties": False, "required": ["problem"], "properties": properties}


def as_json() -> str:
    return json.dumps(schema(), indent=1) + "\n"


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def takes(field: Any) -> str:
    limits = f"{field.minimum:g} to {field.maximum:g}" if field.minimum is not None else ""
    words = ", ".join(f"`{word}`" for word in field.words)
    kind = {"real": "number", "int": "whole number", "bool": "`true`, `false`", "malicious": "count, fraction or `max`", "text": "text"}
    return ", ".join(part for part in ((limits or kind.get(field.type, "")), words) if part)


def as_page() -> str:
    import reef

    out = ["# YAML schema", "", "Every key of an experiment file, from the library's own tables. [Experiments](../experiments.md) is the guide.", "",
           "The same as a [JSON schema](experiment.schema.json): editors with the YAML language server complete and check experiments if the "
           "file begins with", "", "```yaml", "# yaml-language-server: $schema=PATH/TO/experiment.schema.json", "```", "",
           "## Top level", "", "| key | default | takes | meaning |", "|---|---|---|---|"]
    for number in top_level():
        limits = f"{float(number['least']):g} to {float(number['most']):g}" if number["least"] else \
            {"bool": "`true`, `false`"}.get(number["type"], "count, fraction or `max`")
        words = f", `{number['words']}`" if number["words"] else ""
        unit = f" (unit: {number['unit']})" if number["unit"] else ""
        out.append(f"| `{number['name']}` | `{number['default']}` | {limits}{words} | {cell(number['help'])}{unit} |")
    for part, meaning in MEANINGS.items():
        out.append(f"| `{part}` | | [a kind](#{part}) | {meaning} |")
    out += ["| `metrics` | all of the problem | " + ", ".join(f"`{name}`" for name in METRICS) + " | what is measured |",
            "| `zip` | | lists of keys | lists that are swept in parallel |", "",
            "Old names that are still accepted: " + ", ".join(f"`{old}` (now `{new}`)" for old, new in OLD_KEYS.items()) + ".", ""]
    for family in [*PARTS.values(), "source", "partition"]:
        guide = f" [Guide.](../{PAGES[family]})" if family in PAGES else ""
        about = MEANINGS.get(family, "a value of problems that learn from data: " + {"source": "`data`", "partition": "`partition`"}.get(family, ""))
        out += [f"## {family}", "", f"{about[0].upper()}{about[1:]}.{guide}", ""]
        for kind in reef.kinds(family).values():
            out += [f"### {family}: {kind.name}", "", cell(kind.summary[0].upper() + kind.summary[1:]) + ".", ""]
            if kind.fields:
                out += ["| parameter | default | takes | meaning |", "|---|---|---|---|"]
                for field in kind.fields:
                    unit = f" (unit: {field.unit})" if field.unit else ""
                    out.append(f"| `{field.name}` | `{field.default}` | {takes(field)} | {cell(field.help)}{unit} |")
                out.append("")
    return "\n".join(out).replace("| `` |", "| |") + "\n"


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "python"))
    print(as_page() if sys.argv[1:] == ["page"] else as_json(), end="")
