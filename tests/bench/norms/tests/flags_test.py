# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The flags of the programs, in the documents' form. There is neither torch nor the package here:
doubles stand in."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

# Runs a program up to where its main function would be called, and prints its flags instead.
_UP_TO_MAIN = """
import json, runpy, sys
from unittest import mock
from absl import app, flags
doubles = ["torch", "torch.nn", "torch.nn.functional", "triton", "triton.testing"]
doubles += ["aiter_attn", "aiter_attn._core", "aiter_attn._core.adapters"]
for name in doubles:
    sys.modules[name] = mock.MagicMock()
def run(main):
    rest = app.parse_flags_with_usage(sys.argv)[1:]
    own = flags.FLAGS.get_flags_for_module(sys.argv[0])
    print(json.dumps({flag.name: flag.value for flag in own} | {"": rest}))
app.run = run
runpy.run_module(sys.argv[1], run_name="__main__", alter_sys=False)
"""


def parse(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    code = _UP_TO_MAIN.replace("sys.argv[1]", repr(f"tests.bench.norms.{program}"))
    environment = {"PYTHONPATH": ":".join(sys.path)}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, env=environment
    )


@pytest.mark.parametrize(
    ("program", "arguments", "values"),
    [
        (
            "bench",
            ["--out", "bench.json", "--page", "bench.html"],
            {"out": "bench.json", "page": "bench.html", "budget": 500},
        ),
        (
            "bench",
            ["--peers=compile", "--peers=quack", "--budget=88"],
            {"peers": ["compile", "quack"], "budget": 88, "page": None},
        ),
        ("bench", [], {"peers": ["torch", "compile", "liger", "quack"]}),
        ("bench", ["--peers=none"], {"peers": ["none"], "dh": False}),
        ("bench", ["--dh"], {"dh": True}),
        (
            "bench",
            ["--hidden=2880", "--hidden=50257", "--dtype=fp32"],
            {"hidden": [2880, 50257], "dtype": "fp32"},
        ),
        ("small", ["--shape=1x64", "--peers=none"], {"shape": ["1x64"], "peers": ["none"]}),
        ("graphed", ["--hidden=64"], {"hidden": [64]}),
        ("small", ["--serial"], {"serial": True}),
        ("small_sweep", ["--shape=1x64", "--best=2"], {"shape": ["1x64"], "best": 2}),
        ("check", ["--small"], {"small": True}),
        ("check", [], {"small": False, "kinds": False}),
        ("check", ["--kinds"], {"small": False, "kinds": True}),
        ("compile_table", [], {"archs": ["sm_80", "sm_90", "sm_100"]}),
        ("page", ["bench.json", "--out", "x.html"], {"": ["bench.json"], "out": "x.html"}),
        (
            "sweep",
            ["--operations=rms_backward", "--hidden", "4096", "--hidden=8192", "--per_cell=300"],
            {"operations": ["rms_backward"], "hidden": [4096, 8192], "per_cell": 300},
        ),
    ],
)
def test_flags(program: str, arguments: list[str], values: dict[str, object]) -> None:
    done = parse(program, *arguments)
    assert done.returncode == 0, done.stderr
    got = json.loads(done.stdout)
    assert {name: got[name] for name in values} == values


@pytest.mark.parametrize(
    ("program", "argument", "words"),
    [
        ("bench", "--peers=nobody", ("nobody", "compile", "liger")),
        ("bench", "--dtype=fp8", ("fp8", "bf16", "fp32")),
        ("compile_table", "--archs=mi300", ("mi300", "sm_90")),
        ("sweep", "--hidden=wide", ("wide", "hidden")),
        ("check", "--processes=0", ("0", "processes")),
        ("small", "--shape=8by8", ("8by8", "64x8192")),
        ("small_sweep", "--shape=8", ("64x8192",)),
    ],
)
def test_what_is_refused(program: str, argument: str, words: tuple[str, ...]) -> None:
    done = parse(program, argument)
    assert done.returncode == 1
    for word in words:
        assert word in done.stderr + done.stdout
