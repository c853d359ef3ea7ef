"""The JSON schema on standard input accepts every published experiment and refuses what `reef check` refuses."""
import copy
import json
import re
import sys
from pathlib import Path

import jsonschema
import yaml

ROOT = Path(__file__).resolve().parents[2]


class Loader(yaml.SafeLoader):
    """YAML 1.2 as editors and Reef read it: on and off are words, 1e3 is a number."""


Loader.yaml_implicit_resolvers = {key: [(tag, pattern) for tag, pattern in found if tag not in ("tag:yaml.org,2002:bool",
                                                                                              "tag:yaml.org,2002:float")]
                                  for key, found in yaml.SafeLoader.yaml_implicit_resolvers.items()}
Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^(true|false)$"), list("tf"))
Loader.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"^[-+]?(\d+\.\d*|\.\d+|\d+)([eE][-+]?\d+)?$"), list("-+.0123456789"))


def main():
    schema = json.load(sys.stdin)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    paths = sorted((ROOT / "experiments").glob("*.yaml"))
    assert len(paths) > 20
    for path in paths:
        errors = [f"{error.json_path}: {error.message[:300]}" for error in validator.iter_errors(yaml.load(path.read_text(), Loader))]
        assert not errors, f"{path}: {errors}"
    good = yaml.load((ROOT / "experiments" / "colluders.yaml").read_text(), Loader)
    wrong = {"an unknown key": ("sed", 1), "an unknown rule": ("rule", "reff"), "a negative number": ("rounds", -1),
             "an unknown parameter": ("attack", {"kind": "alie", "zz": 1}), "a word for a number": ("agents", "many")}
    for what, (key, value) in wrong.items():
        bad = copy.deepcopy(good)
        bad[key] = value
        assert list(validator.iter_errors(bad)), f"the schema accepts {what}"


main()
