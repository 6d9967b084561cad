# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Attention for Hugging Face transformers.

    import aiter_attn.transformers
    aiter_attn.transformers.register()
    model = AutoModelForCausalLM.from_pretrained(name, attn_implementation="aiter_attn")

Padded batches are computed without their padding, packed ones (cu_seq_lens_q, or position_ids that
begin anew) sequence by sequence, and a static cache as far as it is filled. A model whose mask is
not one that kernels take, or that computes attention itself, is refused: docs/transformers.md.
"""

from __future__ import annotations

import functools
from typing import Any

from aiter_attn._core.errors import UnsupportedError
from aiter_attn.transformers import _version

_version.check()

from transformers import (  # noqa: E402  # it has what these need
    AttentionInterface,
    PreTrainedModel,
)
from transformers.masking_utils import AttentionMaskInterface  # noqa: E402

from aiter_attn.transformers._attention import attention  # noqa: E402
from aiter_attn.transformers._masks import ELSE, mask  # noqa: E402

__all__ = ["attention", "mask", "register"]

_names: set[str] = set()


def register(name: str = "aiter_attn") -> None:
    """Makes attn_implementation=name available to all models.

    Raises ValueError for a name with "flash" in it, which transformers keeps for flash-attn.
    """
    if "flash" in name:
        raise ValueError(
            f"name: {name!r}; allowed: a name without 'flash', as transformers loads flash-attn "
            "for every name that has it"
        )
    AttentionInterface.register(name, attention)
    AttentionMaskInterface.register(name, mask)
    if not _names:
        _refuse_own_attention()
    _names.add(name)


def _refuse_own_attention() -> None:
    """Has models that look up their attention in a table of their own, such as GPT-J, say so, where
    they would raise KeyError."""
    original = PreTrainedModel.get_correct_attn_implementation

    @functools.wraps(original)
    def checked(self: Any, requested_attention: str | None, *rest: Any, **named: Any) -> Any:
        is_own = type(self).__module__.startswith("transformers.")
        if requested_attention in _names and is_own and not self._can_set_attn_implementation():
            raise UnsupportedError(
                f"attn_implementation: {requested_attention}; {type(self).__name__} computes "
                f"attention itself, without transformers' AttentionInterface; {ELSE}"
            )
        return original(self, requested_attention, *rest, **named)

    PreTrainedModel.get_correct_attn_implementation = checked
