# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Attention for SGLang, as its attention backend aiter_attn.

    python -m sglang.launch_server --attention-backend aiter_attn \
        --cuda-graph-backend-decode disabled --cuda-graph-backend-prefill disabled ...

The wheel's entry point in the group sglang.srt.plugins registers the name in each process of
SGLang. Written for SGLang 0.5.23: docs/serving.md.
"""

from __future__ import annotations

from typing import Any

from aiter_attn import _versions

__all__ = ["NAME", "create", "register"]

NAME = "aiter_attn"


def create(runner: Any) -> Any:
    """The backend of a model: SGLang calls it with its ModelRunner.

    Raises UnsupportedError for a model, or an option, that it does not serve.
    """
    from aiter_attn.sglang._backend import Backend

    return Backend(runner)


def register() -> None:
    """Makes aiter_attn an attention backend of SGLang; a second call changes nothing.

    Raises:
        UnsupportedError: another version of SGLang, which tells it in its log, and goes on where
            it is a plugin that raises. ValueError: another package has the name.
    """
    import sglang

    _versions.check("sglang", sglang.__version__, "0.5.23")
    from sglang.srt.layers.attention.attention_registry import (
        ATTENTION_BACKENDS,
        register_attention_backend,
    )
    from sglang.srt.server_args import ATTENTION_BACKEND_CHOICES, add_attention_backend_choices

    there = ATTENTION_BACKENDS.get(NAME, create)
    if there is not create:
        raise ValueError(
            f"{NAME}: registered as {there.__module__}.{there.__qualname__}; allowed: no other "
            "backend of the name; leave the other plugin out, by SGLang's variable SGLANG_PLUGINS"
        )
    register_attention_backend(NAME)(create)
    if NAME not in ATTENTION_BACKEND_CHOICES:
        add_attention_backend_choices([NAME])
