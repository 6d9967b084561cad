# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""docs/examples/training/flax_train.py learns, and writes by its cache what it learned."""

from __future__ import annotations

import math
import os
import runpy

os.environ["JAX_PLATFORMS"] = "cpu"


def test_it_learns_to_copy() -> None:
    example = runpy.run_path("docs/examples/training/flax_train.py")
    losses, right = example["main"]()
    assert losses[0] > math.log(example["NUMBERS"]) / 2
    assert losses[-1] < 0.1
    assert right > 0.95
