"""Every public function with NULL for its handle and all else: no crash, and what the headers promise (reef/status.h)."""
import ctypes
import math
import os
import re
from pathlib import Path

import pytest

HEADERS = Path(__file__).resolve().parents[2] / "include/reef"
# Called by rules with what the library handed them, in inner loops: rule.h says "not NULL".
NOT_NULL = re.compile(r"reef_(points|recall)_")
INTEGERS = {"ptrdiff_t": ctypes.c_ssize_t, "size_t": ctypes.c_size_t, "int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64,
            "int": ctypes.c_int, "unsigned": ctypes.c_uint, "bool": ctypes.c_bool, "reef_status": ctypes.c_int, "reef_reason": ctypes.c_int,
            "reef_dtype": ctypes.c_int, "reef_family": ctypes.c_int}
# What is not 0, false, NaN or NULL without a handle, as its comment says.
OTHERWISE = {"reef_agg_tolerates": -1, "reef_report_dominant": -1, "reef_report_cause": -1, "reef_attack_identity": 0, "reef_csr_find": -1,
             "reef_ffi_kinds": -1, "reef_ffi_fields": -1, "reef_ffi_field_type": -1, "reef_ffi_field_limit": 0}


class Struct(ctypes.Structure):
    """Any struct that is returned in memory."""
    _fields_ = [("bytes", ctypes.c_char * 512)]


def split(parameters):
    """At commas outside of parentheses."""
    depth, parts = 0, [""]
    for character in parameters:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip() != "void"]


def prototypes():
    """(name, what it returns, parameters) of all functions of libreef."""
    for path in sorted(HEADERS.glob("*.h")):
        if path.name in ("mpi.h", "net.h"):
            continue  # of libraries of their own
        text = re.sub(r"/\*.*?\*/|^\s*#(?:\\\n|.)*?$", "", path.read_text(), flags=re.S | re.M)
        for result, name, parameters in re.findall(r"REEF_API\s+([\w\s*]*?)\b(reef_\w+)\(((?:[^()]|\([^()]*\))*)\)\s*;", text):
            yield name, result.replace("REEF_MUST_CHECK", "").strip(), split(" ".join(parameters.split()))


def returned(result):
    if result == "void":
        return None
    return ctypes.c_void_p if "*" in result else ctypes.c_double if result == "double" else INTEGERS.get(result, Struct)


def argument(parameter):
    kind = parameter.replace("const", "").split()[0]
    if "*" in parameter or kind.startswith("reef_ffi_"):
        return ctypes.c_void_p(None)  # a pointer, to a function too
    return ctypes.c_double(0) if kind == "double" else INTEGERS[kind](0)


def is_right(name, result, parameters, value):
    if result == "void" or not parameters or name in ("reef_status_text", "reef_family_name", "reef_kind_count", "reef_kind_at"):
        return True  # a constant, or NULL is the library's own context
    if result == "reef_status":
        return value != 0
    if name in OTHERWISE:
        return value == OTHERWISE[name]
    if isinstance(value, Struct):
        return not bytes(value)[:16].strip(b"\0")
    if isinstance(value, float):
        return math.isnan(value)
    return not value


def call(library, name, result, parameters):
    """In a process of its own: 0, right; 1, another value; below 0, a crash."""
    child = os.fork()
    if child == 0:
        code = 2
        try:
            function = getattr(library, name)
            function.restype = returned(result)
            value = function(*map(argument, parameters))
            code = 0 if is_right(name, result, parameters, value) else 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


FUNCTIONS = [prototype for prototype in prototypes() if not NOT_NULL.match(prototype[0])]


def test_the_headers_are_read_whole():
    listed = (HEADERS.parents[1] / "cmake/symbols.txt").read_text().split()
    assert sorted(name for name, _, _ in prototypes()) == sorted(name for name in listed if name.startswith("reef_"))


@pytest.mark.parametrize("name,result,parameters", FUNCTIONS, ids=[name for name, _, _ in FUNCTIONS])
def test_nothing_but_null(name, result, parameters):
    library = ctypes.CDLL(os.environ["REEF_LIBRARY"])
    code = call(library, name, result, parameters)
    assert code >= 0, f"ended by signal {-code}"
    assert code == 0, "returns something else than the header says"
