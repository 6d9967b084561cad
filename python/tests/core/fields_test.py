# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The extension module's types (_C.pyi) against the module, whose fields are aiter/fields.h's."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import aiter_attn
import pytest
from aiter_attn import _C

STUB = Path(aiter_attn.__file__).with_name("_C.pyi")
NUMBERS = {"int": 3, "float": 0.5}


def names(statements: list[ast.stmt]) -> set[str]:
    """Those that the statements define, but for what Python calls __init__ and the like."""
    found = set()
    for statement in statements:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            found.add(statement.target.id)
        elif isinstance(statement, ast.FunctionDef | ast.ClassDef):
            found.add(statement.name)
    return {name for name in found if not name.startswith("__")}


def public(thing: Any) -> set[str]:
    return {name for name in dir(thing) if not name.startswith(("__", "_pybind11"))}


MODULE = ast.parse(STUB.read_text(encoding="utf-8"))
# Dictionaries are not classes of the module.
ALL_CLASSES = {
    s.name: s for s in MODULE.body
    if isinstance(s, ast.ClassDef) and not any(ast.unparse(b) == "TypedDict" for b in s.bases)
}  # fmt: skip
# The stub alone has the classes that others share their methods by.
SHARED = {name for name in ALL_CLASSES if name.startswith("_")}
CLASSES = {name: s for name, s in ALL_CLASSES.items() if name not in SHARED}


def names_of_class(name: str) -> set[str]:
    bases = [ast.unparse(base) for base in ALL_CLASSES[name].bases]
    return names(ALL_CLASSES[name].body).union(*map(names_of_class, bases))


# struct -> its fields by name: (kind, type), as the header lists them.
LISTED = {
    found["struct"].lower(): {
        name: (kind, of_c)
        for kind, of_c, name in re.findall(r"X\((\w+), ([^,]+), (\w+)\)", found["fields"])
    }
    for found in re.finditer(
        r"#define (?P<struct>ATTN_\w+)_FIELDS\(X\)(?P<fields>(?:.*\\\n)*.*)",
        Path("aiter/fields.h").read_text(encoding="utf-8"),
    )
}
OF_C = {"int32_t": "int", "int64_t": "int", "float": "float"}


# Extents and options of a problem and of its passes, by name and type.
FIELDS = {
    name: OF_C[of_c]
    for struct in ("attn_problem", "attn_fwd_args", "attn_bwd_args")
    for name, (kind, of_c) in LISTED[struct].items()
    if kind in ("kExtent", "kOption")
}


@pytest.mark.parametrize(
    ("struct", "options"),
    [("attn_norm_problem", _C.NORM_OPTIONS), ("attn_softmax_problem", _C.SOFTMAX_OPTIONS)],
)
def test_options_of_norms_are_those_that_the_header_lists(
    struct: str, options: dict[str, int | float]
) -> None:
    listed = {n: OF_C[of_c] for n, (kind, of_c) in LISTED[struct].items() if kind == "kOption"}
    assert {name: type(value).__name__ for name, value in options.items()} == listed
    assert not any(options.values())


def test_a_kernel_has_the_answers_that_the_header_lists() -> None:
    answers = {n for n, (kind, _) in LISTED["attn_kernel_info"].items() if kind == "kAnswer"}
    assert answers == set(_C.kernel_info(0))


FUNCTIONS = {s.name: s for s in MODULE.body if isinstance(s, ast.FunctionDef)}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_stub_has_the_arguments_of_each_function(name: str) -> None:
    """By name, place and default: the first line of a function's docstring is pybind11's."""
    line = str(getattr(_C, name).__doc__).splitlines()[0]
    (told,) = ast.parse(f"def {line}: ...").body
    assert isinstance(told, ast.FunctionDef)
    stub = FUNCTIONS[name].args
    assert [a.arg for a in stub.args] == [a.arg for a in told.args.args]
    assert [ast.unparse(d) for d in stub.defaults] == [ast.unparse(d) for d in told.args.defaults]


def test_the_stub_has_the_names_of_the_module() -> None:
    assert names(MODULE.body) - SHARED - {"Kernel"} == public(_C)


@pytest.mark.parametrize("name", CLASSES)
def test_the_stub_has_the_names_of_each_class(name: str) -> None:
    listed = set(FIELDS) if name == "Problem" else set()
    assert names_of_class(name) | listed == public(getattr(_C, name))


@pytest.mark.parametrize("name", FIELDS)
def test_each_field_of_a_problem_is_kept(name: str) -> None:
    given: Any = NUMBERS[FIELDS[name]]
    problem: Any = _C.Problem(**{name: given})
    kept = getattr(problem, name)
    assert kept == given
    assert type(kept) is type(given)
    assert all(getattr(problem, other) == 0 for other in FIELDS if other != name)


def test_options_are_those_of_the_problem() -> None:
    problem: Any = _C.Problem(mask=2, softmax_scale=0.5, batch=7, min_seqlen_q=9)
    options = problem.options()
    assert (options["mask"], options["softmax_scale"]) == (2, 0.5)
    assert {"batch", "min_seqlen_q"}.isdisjoint(options)
    assert set(options) < set(FIELDS)


def test_a_kernel_has_the_fields_of_its_type() -> None:
    kernel = next(s for s in MODULE.body if isinstance(s, ast.ClassDef) and s.name == "Kernel")
    assert names(kernel.body) == set(_C.kernel_info(0))


def test_a_number_that_no_struct_has_is_refused() -> None:
    with pytest.raises(TypeError, match='no number of this call is named "heads"'):
        _C.Problem(heads=1)
