# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The measurement runs; its figures are not tested."""

from __future__ import annotations

import pytest
from absl import flags

from tests.bench import norm_front


def test_each_call_is_compared_with_torchs(capsys: pytest.CaptureFixture[str]) -> None:
    flags.FLAGS(["norm_front", "--runs=1", "--calls=1"])
    assert norm_front.main(["norm_front"]) == 0
    _, *rows = capsys.readouterr().out.splitlines()
    names = ["rms_norm", "layer_norm", "softmax"]
    kinds = {"forward": 2, "forward and backward": 3}  # and their peers
    expected = [f"{name}: {kind}" for name in names for kind, n in kinds.items() for _ in range(n)]
    assert all(row.startswith(name) for row, name in zip(rows, expected, strict=True))
