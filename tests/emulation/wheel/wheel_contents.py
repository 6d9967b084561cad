# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The variant set and archs of the wheel under test: --//kernels:variants and :archs have many
values."""

from __future__ import annotations

import json
from pathlib import Path

import aiter_attn

_MANIFEST = json.loads(Path(aiter_attn.__file__).with_name("manifest.json").read_text())
ARCHS: list[str] = _MANIFEST["archs"]
VARIANT_SET: str = _MANIFEST["variant_set"]
# By the symbol of a kernel.
KINDS: dict[str, str] = {i["symbol"]: i["kind"] for i in _MANIFEST["instances"]}
PROVIDERS: dict[str, str] = {i["symbol"]: i["provider"] for i in _MANIFEST["instances"]}


def has(mode: str, mask: bool, dtype: str = "fp16", head_size: int = 64) -> bool:
    """Whether there are kernels, forward and backward, for a kind of problem.

    `core` promises them: where it lacks some, tests must fail and not be left out.
    """
    if _MANIFEST["variant_set"] == "core":
        return True
    wanted = {"mode": mode, "mask": mask, "dtype": dtype, "head_size_qk": head_size}
    kinds = {i["kind"] for i in _MANIFEST["instances"] if wanted.items() <= i["traits"].items()}
    return {"fwd", "bwd_dq_dk_dv"} <= kinds
