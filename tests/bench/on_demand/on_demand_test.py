# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The start and the table of on_demand.py; the rest is measured, not tested."""

from __future__ import annotations

import pytest
from absl import app, flags

from tests.bench.on_demand import costs, on_demand


def test_it_starts_as_bazel_runs_it() -> None:
    needed = ["ninja", "bundler", "kit", "get", "specs"]
    flags.FLAGS(["on_demand", *(f"--{name}={name}" for name in needed)])
    assert flags.FLAGS.tree == "/the/checkout"
    with pytest.raises(app.UsageError, match="'fwd_d64'"):
        on_demand.main(["on_demand", "fwd_d64"])


def test_the_table_has_each_kernel_and_all() -> None:
    measured = [
        on_demand.Measured("fwd", costs.Cost(20, 22), costs.Cost(8, 11), 0.5),
        on_demand.Measured("bwd", costs.Cost(30, 28), costs.Cost(12, 14), 0.75),
    ]
    rows = [" ".join(line.split()) for line in on_demand.table(measured).splitlines()]
    assert rows[2] == "fwd | 20.0 22.0 | 8.0 11.0 | 0.40 0.50 | 0.50"
    assert rows[-1] == "all | 50.0 50.0 | 20.0 25.0 | 0.40 0.50 | 0.75"
    assert len({line.count("|") for line in on_demand.table(measured).splitlines()}) == 1
