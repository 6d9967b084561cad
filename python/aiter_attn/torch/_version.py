# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Which torch the operators need."""

from __future__ import annotations

import importlib
import re
from typing import Final

__all__ = ["check"]

# The first with torch.library.register_autograd and torch.get_autocast_dtype.
_LEAST: Final = (2, 4)


def check() -> None:
    """Raises ImportError where torch is missing or too old."""
    least = ".".join(map(str, _LEAST))
    try:
        version = importlib.import_module("torch").__version__
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ImportError(
            f"aiter_attn.torch: torch is not installed; allowed: {least} or newer; "
            "pip install aiter-attn[torch]",
            name="torch",
        ) from None
    found = re.match(r"(\d+)\.(\d+)", str(version))
    if found is None or (int(found[1]), int(found[2])) < _LEAST:
        raise ImportError(
            f"aiter_attn.torch: torch {version}; allowed: {least} or newer; upgrade torch, or call "
            "aiter_attn.mha_fwd and mha_bwd, which take tensors of every torch",
            name="torch",
        )
