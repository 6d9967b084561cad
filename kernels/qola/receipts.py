# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Receipts: the filters of upstream's generator, which QoLA's manifests name by number.

A filter is boxes: a candidate passes where one of them admits each of its traits.
"""

from __future__ import annotations

from collections.abc import Mapping

from kernels.launch_table.traits import TraitValue
from kernels.variants.values import VariantSetError

Box = Mapping[str, tuple[TraitValue, ...]]

_16_BIT: Box = {"dtype": ("fp16", "bf16")}
_FP8: Box = {"dtype": ("fp8bf16",), "head_size_qk": (128,)}

# Receipt -> (whose it is, direction -> its filter).
RECEIPTS: dict[int, tuple[str, dict[str, tuple[Box, ...]]]] = {
    600: ("AITER's C++ interface", {"fwd": (_16_BIT, _FP8), "bwd": (_16_BIT,)}),
    700: (
        "TransformerEngine",
        {
            "fwd": (
                {
                    **_16_BIT,
                    "lse": (True,),
                    "skip_min_seqlen_q": (False,),
                    "logits_soft_cap": (False,),
                },
            ),
            "bwd": (_16_BIT,),
        },
    ),
}


def filter_of(receipt: object, direction: str, where: str) -> tuple[Box, ...]:
    """The filter that a receipt is for a direction. Raises VariantSetError for another number."""
    if isinstance(receipt, bool) or not isinstance(receipt, int) or receipt not in RECEIPTS:
        known = ", ".join(f"{number} ({whose})" for number, (whose, _) in RECEIPTS.items())
        raise VariantSetError(
            f"{where}: receipt {receipt!r} is not known. Allowed: {known}. "
            "Name one of them, or leave the key out and say by the other keys which are wanted."
        )
    return RECEIPTS[receipt][1][direction]
