# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Choices and the table of on_demand.py; the rest is measured, not tested."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from absl import app, flags

from tests.bench.on_demand import on_demand


def test_it_starts_as_bazel_runs_it() -> None:
    needed = ["ninja", "bundler", "kit", "get", "specs"]
    flags.FLAGS(["on_demand", *(f"--{name}={name}" for name in needed)])
    assert flags.FLAGS.tree == "/the/checkout"
    with pytest.raises(app.UsageError, match="'fwd_d64'"):
        on_demand.main(["on_demand", "fwd_d64"])


def test_kernels_are_chosen_by_their_names() -> None:
    specs = [Path("a/fwd.gfx942.spec"), Path("a/bwd.gfx942.spec")]
    assert on_demand.chosen(specs, "") == specs
    assert on_demand.chosen(specs, "^b") == specs[1:]
    with pytest.raises(ValueError, match=r"finds none of:\n  fwd\.gfx942\n  bwd\.gfx942"):
        on_demand.chosen(specs, "convert")
    with pytest.raises(ValueError, match="no regular expression"):
        on_demand.chosen(specs, "(")


def test_all_of_a_process_is_counted() -> None:
    busy = "sum(range(3_000_000))"
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}]); print('ok')"
    cost, said = on_demand.first_use([sys.executable, "-c", child])
    assert said == "ok\n" and cost.cpu > 0.02 and cost.wall > 0.02
    with pytest.raises(subprocess.CalledProcessError):
        on_demand.first_use([sys.executable, "-c", "raise SystemExit(1)"])


def test_the_table_has_each_kernel_and_all() -> None:
    measured = [
        on_demand.Measured("fwd", on_demand.Cost(20, 22), on_demand.Cost(8, 11), 0.5),
        on_demand.Measured("bwd", on_demand.Cost(30, 28), on_demand.Cost(12, 14), 0.75),
    ]
    rows = [" ".join(line.split()) for line in on_demand.table(measured).splitlines()]
    assert rows[2] == "fwd | 20.0 22.0 | 8.0 11.0 | 0.40 0.50 | 0.50"
    assert rows[-1] == "all | 50.0 50.0 | 20.0 25.0 | 0.40 0.50 | 0.75"
    assert len({line.count("|") for line in on_demand.table(measured).splitlines()}) == 1
