# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Of sglang/srt/layers/attention/attention_registry.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

ATTENTION_BACKENDS: dict[str, Callable[[Any], Any]] = {}


def register_attention_backend(name: str) -> Callable[[Any], Any]:
    def keep(made: Any) -> Any:
        ATTENTION_BACKENDS[name] = made
        return made

    return keep
