# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Writes the wheel's compile_cost.json; compile_cost.bzl runs this.

Its seconds are those of a kernel that is compiled alone: kind -> greatest head size, ascending ->
seconds. The wheel has neither a reader of TOML for Python 3.10 nor compile groups.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from absl import app, flags

from kernels.ck_fmha.groups.cost import CostModel

_OUT = flags.DEFINE_string("out", None, "the wheel's file", required=True)
_FIGURES = flags.DEFINE_string("figures", None, "compile_cost.toml", required=True)


def main(_arguments: Sequence[str]) -> None:
    model = CostModel(Path(_FIGURES.value).read_text(encoding="utf-8"), {})
    costs = {
        kind: {str(size): round(seconds, 3) for size, seconds in by_size.items()}
        for kind, by_size in model.alone_by_head_size().items()
    }
    Path(_OUT.value).write_text(json.dumps(costs, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    app.run(main)
