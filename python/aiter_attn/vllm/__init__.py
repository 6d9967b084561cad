# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Attention for vLLM, as its attention backend AITER_ATTN.

    vllm serve MODEL --attention-backend AITER_ATTN

The wheel's entry point in the group vllm.general_plugins registers the name in each process of
vLLM. Written for vLLM 0.33: docs/serving.md.
"""

from __future__ import annotations

import logging

from aiter_attn import _versions
from aiter_attn._core.errors import UnsupportedError

__all__ = ["NAME", "plugin", "register"]

NAME = "AITER_ATTN"
_PATH = "aiter_attn.vllm._backend.Backend"


def register() -> None:
    """Makes AITER_ATTN an attention backend of vLLM; a second call changes nothing.

    Raises:
        UnsupportedError: another version of vLLM. ValueError: another package has the name.
    """
    import vllm

    _versions.check("vllm", vllm.__version__, "0.33")
    from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend

    there = AttentionBackendEnum.__members__.get(NAME)
    if there is None:
        register_backend(NAME, _PATH)
    elif there.get_path() != _PATH:
        raise ValueError(
            f"{NAME}: registered as {there.get_path()}; allowed: no other backend of the name; "
            "leave the other plugin out, by vLLM's variable VLLM_PLUGINS"
        )


def plugin() -> None:
    """The entry point. vLLM calls it wherever this package is installed, and ends where it raises:
    so another version of vLLM is a warning, and vLLM itself refuses the name AITER_ATTN."""
    try:
        register()
    except UnsupportedError as error:
        logging.getLogger(__name__).warning("%s is not registered. %s", NAME, error)
