# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Input of compile.py from its surroundings; the rest is measured, not tested."""

from __future__ import annotations

import pytest
from absl import app, flags

from tests.bench.compiling import compile


def test_it_starts_as_bazel_runs_it() -> None:
    flags.FLAGS(["compile", "--ninja=ninja", "--bundler=clang-offload-bundler"])
    assert flags.FLAGS.tree == "/the/checkout"
    with pytest.raises(app.UsageError, match="'fwd_d64'"):
        compile.main(["compile", "fwd_d64"])
