# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Wrong numbers, flags, streams and names: each refusal has its name, its value and the allowed
ones."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiter_attn
import numpy
import pytest
from aiter_attn import _C
from aiter_attn._core.options import FIELDS, Options, folded, options, schema

from tests.support.python.calls import (
    Q,
    Refusal,
    backward,
    check_refused,
    draw,
    explained,
    flash,
    forward,
    varlen,
)
from tests.support.python.dlpack_exporter import KDL_ROCM, Exporter

FLAGS = numpy.array([True, False])
ONES = numpy.ones(2)
SCALES = "allowed: 1.18e-38 to 3.4e+38, or None; for a scale below 0 pass -q"


class Broken:
    def __repr__(self) -> str:
        raise RuntimeError("no text")

    def __index__(self) -> int:
        raise TypeError("no number")


def on_gpu(**changes: Any) -> Any:
    return forward(q=Exporter(Q, device=(KDL_ROCM, 0)), **changes)


WRONG: dict[str, Refusal] = {
    "a window of one number": (
        forward,
        {"window_size": 3},
        TypeError,
        "window_size: 3; allowed: two integers (left, right), -1: no bound",
    ),
    "a window of three numbers": (
        forward,
        {"window_size": (1, 2, 3)},
        TypeError,
        "window_size: (1",
    ),
    "a window of fractions": (forward, {"window_size": (0.5, 1)}, TypeError, "window_size: (0.5"),
    "a window of nothing": (
        forward,
        {"window_size": None},
        TypeError,
        "window_size: None; allowed",
    ),
    "a window of arrays": (
        forward,
        {"window_size": (numpy.zeros((9, 9)), 1)},
        TypeError,
        "window_size: a tuple; allowed: two integers",
    ),
    "a scale of zero": (
        forward,
        {"softmax_scale": 0.0},
        ValueError,
        f"softmax_scale: 0.0; {SCALES}",
    ),
    "a scale below zero": (
        forward,
        {"softmax_scale": -0.5},
        ValueError,
        f"softmax_scale: -0.5; {SCALES}",
    ),
    "a scale that is NaN": (
        forward,
        {"softmax_scale": float("nan")},
        ValueError,
        "softmax_scale: nan; allowed: ",
    ),
    "a scale beyond float32": (
        forward,
        {"softmax_scale": 1e39},
        ValueError,
        "softmax_scale: 1e+39; allowed: ",
    ),
    "a scale beyond float64": (
        forward,
        {"softmax_scale": 10**400},
        ValueError,
        "softmax_scale: an int; allowed: a number, or None",
    ),
    "a scale of text": (
        forward,
        {"softmax_scale": "abc"},
        TypeError,
        "softmax_scale: 'abc'; allowed: a number, or None",
    ),
    "a scale of digits": (
        forward,
        {"softmax_scale": "0.5"},
        TypeError,
        "softmax_scale: '0.5'; all",
    ),
    "a list of scales": (forward, {"softmax_scale": [1]}, TypeError, "softmax_scale: [1]; allowed"),
    "an array of scales": (forward, {"softmax_scale": ONES}, TypeError, "softmax_scale: array([1."),
    "a complex scale": (forward, {"softmax_scale": 1j}, TypeError, "softmax_scale: 1j; allowed"),
    "flags for causal": (
        forward,
        {"causal": FLAGS},
        TypeError,
        "causal: array([ True, False]); allowed: True or False",
    ),
    "many flags for causal": (
        forward,
        {"causal": numpy.zeros((9, 9), bool)},
        TypeError,
        "causal: a ndarray; allowed: True or False",
    ),
    "text for causal": (forward, {"causal": "False"}, TypeError, "causal: 'False'; allowed"),
    "nothing for causal": (forward, {"causal": None}, TypeError, "causal: None; allowed"),
    "flags for deterministic": (
        backward,
        {"deterministic": FLAGS},
        TypeError,
        "deterministic: array([ True, False]); allowed: True or False",
    ),
    "flags for return_attn_probs": (
        flash,
        {"return_attn_probs": FLAGS},
        TypeError,
        "return_attn_probs: array([ True, False]); allowed: True or False",
    ),
    "a class without a text": (
        varlen,
        {"max_seqlen_q": Broken()},
        TypeError,
        "max_seqlen_q: a Broken; allowed: an integer",
    ),
    # Streams.
    "a stream for host memory": (
        forward,
        {"stream": 3},
        ValueError,
        "stream: the arrays are in host memory; pass stream=None",
    ),
    "a stream below zero": (
        on_gpu,
        {"stream": -1},
        ValueError,
        "stream: -1; allowed: a hipStream_t as int, or None",
    ),
    "a stream of more than 64 bits": (
        on_gpu,
        {"stream": 2**64},
        ValueError,
        "stream: 18446744073709551616; allowed: a hipStream_t as int, or None",
    ),
    "text for a stream": (
        on_gpu,
        {"stream": "x"},
        TypeError,
        "stream: 'x'; allowed: a hipStream_t",
    ),
    "a fraction for a stream": (on_gpu, {"stream": 1.5}, TypeError, "stream: 1.5; allowed"),
    # The workspace, also where none is needed.
    "text for a workspace": (
        backward,
        {"workspace": "garbage"},
        TypeError,
        "workspace: str is no array; allowed: numpy",
    ),
    "a workspace elsewhere": (
        backward,
        {"workspace": Exporter(draw(64), device=(KDL_ROCM, 0))},
        ValueError,
        "workspace: on ROCm:0, but q is on CPU",
    ),
    "a workspace with holes": (
        backward,
        {"workspace": draw(64)[::2]},
        ValueError,
        "workspace: strides (2,)",
    ),
    # Dropout and soft caps.
    "dropout of all": (flash, {"dropout_p": 1.0}, ValueError, "dropout_p: 1.0; allowed: a prob"),
    "dropout below zero": (forward, {"dropout_p": -0.1}, ValueError, "dropout_p: -0.1; allowed"),
    "dropout of NaN": (flash, {"dropout_p": float("nan")}, ValueError, "dropout_p: nan; allowed"),
    "dropout of nothing": (
        flash,
        {"dropout_p": None},
        TypeError,
        "dropout_p: None; allowed: a probability below 1; 0.0: none",
    ),
    "dropouts": (varlen, {"dropout_p": ONES}, TypeError, "dropout_p: array([1., 1.]); allowed: a"),
    "a soft cap below zero": (
        flash,
        {"softcap": -1.0},
        ValueError,
        "softcap: -1.0; allowed: 1.18e-38 to 3.4e+38; 0.0: no cap",
    ),
    "soft caps": (flash, {"softcap": ONES}, TypeError, "softcap: array([1., 1.]); allowed: a num"),
    "no soft cap": (flash, {"softcap": None}, TypeError, "softcap: None; allowed: a number above"),
    # Options that flash-attn has and this version has not.
    # Questions.
    "an arch by number": (
        explained,
        {"arch": 942},
        TypeError,
        'arch: 942; allowed: a name such as "g',
    ),
    "an arch of no encoding": (
        explained,
        {"arch": "\udcff"},
        TypeError,
        "arch: '\\udcff'; allowed: a",
    ),
    "an arch with a zero in it": (explained, {"arch": "gfx942\0"}, TypeError, "arch: 'gfx942"),
    "a dtype by number": (
        explained,
        {"dtype": 16},
        TypeError,
        "dtype: 16, but q is a shape; allowed",
    ),
    "dtypes": (
        explained,
        {"dtype": ["float16"]},
        TypeError,
        "dtype: ['float16'], but q is a shape",
    ),
    "a shape of text": (
        explained,
        {"k": (1, "4", 2, 64)},
        TypeError,
        "k: '4' in a shape; allowed: in",
    ),
    "one number for sequences": (
        explained,
        {"sequences": 5},
        TypeError,
        "sequences: 5; allowed: (batch, max_seqlen_q, max_seqlen_k), or None",
    ),
    "directions": (
        explained,
        {"backward": FLAGS},
        TypeError,
        "backward: array([ True, False]); allo",
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_refused(wrong: str) -> None:
    check_refused(WRONG[wrong])


def test_a_window_is_checked_however_often_it_was_right() -> None:
    forward(window_size=(1, 2))
    with pytest.raises(TypeError, match="window_size"):
        forward(window_size=(1.0, 2.0))


@pytest.mark.parametrize("flag", [True, numpy.True_, 1], ids=["bool", "numpy", "int"])
def test_what_is_a_flag(flag: Any) -> None:
    q = numpy.random.default_rng(0).standard_normal((1, 5, 1, 8))
    q = q.astype(numpy.float32)
    numpy.testing.assert_array_equal(
        aiter_attn.flash_attn_func(q, q, q, causal=flag),
        aiter_attn.flash_attn_func(q, q, q, window_size=(-1, 0)),
    )


@pytest.mark.parametrize("scale", [numpy.float32(0.5), numpy.array(0.5), 1], ids=type)
def test_what_is_a_number(scale: Any) -> None:
    q = numpy.random.default_rng(0).standard_normal((1, 5, 1, 8)).astype(numpy.float32)
    numpy.testing.assert_array_equal(
        aiter_attn.flash_attn_func(q, q, q, softmax_scale=scale),
        aiter_attn.flash_attn_func(q, q, q, softmax_scale=float(scale)),
    )


FUNCTIONS = [
    function
    for function in (getattr(aiter_attn, name) for name in aiter_attn.__all__)
    if inspect.isfunction(function) and "softcap" in inspect.signature(function).parameters
]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_signatures_are_those_of_the_record(function: Callable[..., Any]) -> None:
    """By name and default; and each function has all options that its kind has."""
    parameters = inspect.signature(function).parameters
    have = {name: parameters[name].default for name in Options._fields if name in parameters}
    assert have == {name: Options._field_defaults[name] for name in have}
    needed = {"causal", "window_size", "softcap"}
    if not function.__name__.startswith("explain"):
        needed |= {"softmax_scale"}
    if "rng_state" in parameters:
        needed |= {"dropout_p"}
    assert needed <= have.keys()


def written(front: str) -> dict[str, dict[str, Any]]:
    """The functions of a front that take options: their arguments with defaults, as the file says
    them; the front is not imported for that."""
    functions = {}
    for path in sorted((Path(aiter_attn.__file__).parent / front).glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
                continue
            by_place = [argument.arg for argument in node.args.args]
            if "softcap" not in (*by_place, *(a.arg for a in node.args.kwonlyargs)):
                continue
            defaults = dict(zip(reversed(by_place), reversed(node.args.defaults), strict=False))
            arguments: dict[str, Any] = dict.fromkeys(by_place, inspect.Parameter.empty)
            by_name = zip((a.arg for a in node.args.kwonlyargs), node.args.kw_defaults, strict=True)
            for name, default in [*defaults.items(), *by_name]:
                is_there = default is not None
                arguments[name] = ast.literal_eval(default) if is_there else inspect.Parameter.empty
            if "softcap" in arguments and arguments["softcap"] is not inspect.Parameter.empty:
                functions[node.name] = arguments
    return functions


# The arguments of a front's functions that the package's lack, and the other way.
MORE = {
    ("torch", "mha_fwd"): {"deterministic"},  # their backward passes come by themselves
    ("torch", "mha_varlen_fwd"): {"deterministic"},
    ("jax", "flash_attn_func"): {"bias"},
}
_MEMORY = {"out", "lse", "stream"}
_FP8 = {"q_descale", "k_descale", "v_descale", "out_scale", "out_dtype"}
LESS = {
    ("torch", "mha_fwd"): _MEMORY,
    ("torch", "mha_varlen_fwd"): {*_MEMORY, "min_seqlen_q"},
    ("jax", "flash_attn_func"): _FP8,
    ("jax", "flash_attn_with_kvcache"): {"workspace"},
    ("jax", "flash_attn_varlen_func"): {
        *_FP8, "block_table", "seqused_q", "seqused_k", "workspace",
    },
}  # fmt: skip


@pytest.mark.parametrize("front", ["torch", "jax"])
def test_signatures_of_fronts_are_those_of_the_record_and_of_the_package(front: str) -> None:
    functions = written(front)
    wanted = {"flash_attn_func", "flash_attn_varlen_func"}
    wanted |= {"flash_attn_with_kvcache"}
    if front == "torch":
        wanted |= {"mha_fwd", "mha_varlen_fwd"}
    assert functions.keys() == wanted
    for function, arguments in functions.items():
        of_record = {name: arguments[name] for name in Options._fields if name in arguments}
        assert of_record == {name: Options._field_defaults[name] for name in of_record}
        parameters = inspect.signature(getattr(aiter_attn, function)).parameters
        more, less = (x.get((front, function), set()) for x in (MORE, LESS))
        assert set(arguments) - set(parameters) == more, function
        assert set(parameters) - set(arguments) == less, function
        for name in set(arguments) - more:
            assert arguments[name] == parameters[name].default, (function, name)
        by_place = [n for n, p in parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
        order = [name for name in arguments if name in by_place]
        assert order == [name for name in by_place if name not in less], function


def test_every_option_becomes_a_field_of_the_problem() -> None:
    assert len(FUNCTIONS) == 14
    assert tuple(FIELDS) == Options._fields
    problem = _C.Problem()
    for field in FIELDS.values():
        for name in field.c:
            getattr(problem, name)


def test_the_record_is_checked_when_it_is_made() -> None:
    assert options() == Options()
    made = options(dropout_p=numpy.float32(0.5), causal=1, window_size=[3, numpy.int64(-1)])
    assert made == Options(dropout_p=0.5, causal=True, window_size=(3, -1))
    assert [type(x) for x in (made.dropout_p, made.causal)] == [float, bool]
    with pytest.raises(TypeError):
        options(casual=True)  # type: ignore[call-arg]


def test_an_operator_gets_the_record_flat() -> None:
    names = ("softmax_scale", "window_size", "softcap")
    told = "float? softmax_scale, SymInt window_left, SymInt window_right, float softcap"
    assert schema(names) == told
    assert folded(names, (0.5, 1, 2, 3.0)) == {
        "softmax_scale": 0.5,
        "window_size": (1, 2),
        "softcap": 3.0,
    }
