# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The extension module's types (_C.pyi) against the module, whose fields are aiter/fields.h's."""

from __future__ import annotations

import ast
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
CLASSES = {
    s.name: s for s in MODULE.body
    if isinstance(s, ast.ClassDef) and not any(ast.unparse(b) == "TypedDict" for b in s.bases)
}  # fmt: skip
FIELDS = {
    s.target.id: ast.unparse(s.annotation) for s in CLASSES["Problem"].body
    if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)
}  # fmt: skip


def test_the_stub_has_the_names_of_the_module() -> None:
    assert names(MODULE.body) - {"Kernel"} == public(_C)


@pytest.mark.parametrize("name", CLASSES)
def test_the_stub_has_the_names_of_each_class(name: str) -> None:
    assert names(CLASSES[name].body) == public(getattr(_C, name))


@pytest.mark.parametrize("name", FIELDS)
def test_each_field_of_a_problem_is_kept(name: str) -> None:
    given: Any = NUMBERS[FIELDS[name]]
    problem: Any = _C.Problem(**{name: given})
    kept = getattr(problem, name)
    assert kept == given
    assert type(kept) is type(given)
    assert all(getattr(problem, other) == 0 for other in FIELDS if other != name)


def test_options_are_those_of_the_problem() -> None:
    problem: Any = _C.Problem(mask=2, softmax_scale=0.5, batch=7, min_seqlen_q=9)  # type: ignore[call-arg]
    options = problem.options()
    assert (options["mask"], options["softmax_scale"]) == (2, 0.5)
    assert {"batch", "min_seqlen_q"}.isdisjoint(options)
    assert set(options) < set(FIELDS)


def test_a_kernel_has_the_fields_of_its_type() -> None:
    kernel = next(s for s in MODULE.body if isinstance(s, ast.ClassDef) and s.name == "Kernel")
    assert names(kernel.body) == set(_C.kernel_info(0))


def test_a_number_that_no_struct_has_is_refused() -> None:
    with pytest.raises(TypeError, match='no number of this call is named "heads"'):
        _C.Problem(heads=1)  # type: ignore[call-arg]
