# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Which transformers the attention needs."""

from __future__ import annotations

__all__ = ["check"]


def check() -> None:
    """Raises ImportError where transformers lacks the interfaces that attention is registered
    with."""
    try:
        from transformers import AttentionInterface  # noqa: F401
        from transformers.masking_utils import AttentionMaskInterface  # noqa: F401
    except ImportError as error:
        import transformers

        raise ImportError(
            f"transformers {transformers.__version__} has no lists of attention functions and of "
            "masks that this package knows; allowed: a version with AttentionMaskInterface, such "
            "as 5.23, which was tried; pip install --upgrade transformers",
            name="transformers",
        ) from error
