# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""docs/examples/training/transformers_train.py learns to count."""

from __future__ import annotations

import os
import runpy

os.environ["HF_HUB_OFFLINE"] = "1"


def test_it_learns_to_count() -> None:
    example = runpy.run_path("docs/examples/training/transformers_train.py")
    assert example["main"]() == list(range(3, 12))
