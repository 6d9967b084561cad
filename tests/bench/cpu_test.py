# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The benchmark on the CPU: both sides compute the same, and each is measured."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
import torch
from absl import flags

from tests.bench import cpu


@pytest.fixture(autouse=True)
def small() -> Iterator[None]:
    flags.FLAGS(["cpu", "--batch=2", "--heads=2", "--seqlen=24", "--head_size=16", "--causal"])
    yield
    flags.FLAGS.unparse_flags()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_both_compute_the_same(dtype: torch.dtype) -> None:
    bound = 1e-5 if dtype == torch.float32 else 3e-2
    passes = cpu.calls(dtype)
    ours, theirs = (call() for call in passes["forward"])
    torch.testing.assert_close(ours.transpose(1, 2), theirs, rtol=bound, atol=bound)
    ours, theirs = (call() for call in passes["backward"])
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine.transpose(1, 2), other, rtol=bound, atol=bound)


def test_times_are_of_one_call() -> None:
    calls = []
    ours, theirs = cpu.least((lambda: calls.append(0), lambda: calls.append(1)), 3)
    assert calls == [0, 1] * 3
    assert 0 <= ours.passed < 1000 and 0 <= theirs.processors < 1000


def test_the_table() -> None:
    program = [sys.executable, cpu.__file__, "--seqlen=24", "--runs=1", "--dtypes=float32"]
    text = subprocess.run(program, check=True, stdout=subprocess.PIPE, text=True).stdout
    assert [line.split()[:2] for line in text.splitlines()[2:]] == [
        ["float32", "forward"],
        ["float32", "backward"],
    ]


def test_unknown_dtypes_are_refused() -> None:
    program = [sys.executable, cpu.__file__, "--dtypes=int8"]
    refused = subprocess.run(program, stderr=subprocess.PIPE, text=True)
    assert refused.returncode == 1
    assert "--dtypes: int8; allowed: float32" in refused.stderr
