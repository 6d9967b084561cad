# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The measurement runs; its figures are not tested."""

from __future__ import annotations

import pytest
from absl import flags

from tests.bench import torch_front


def test_each_call_is_compared_with_both_peers(capsys: pytest.CaptureFixture[str]) -> None:
    flags.FLAGS(["torch_front", "--runs=1", "--calls=1"])
    assert torch_front.main(["torch_front"]) == 0
    _, *rows = capsys.readouterr().out.splitlines()
    peers = ["operator without work", "flash-attn without kernels"] * 3
    assert all(peer in row for row, peer in zip(rows, peers, strict=True))
