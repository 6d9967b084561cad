# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Fused attention for AMD GPUs: Composable Kernel's kernels behind flash-attn's functions.

    import aiter_attn
    out = aiter_attn.flash_attn_func(q, k, v, causal=True)

Arrays come from numpy, torch, cupy, jax or anything with DLPack. On an AMD GPU the kernels of this
build run (kernels() lists them, explain() says which serve a call), in host memory a reference
implementation does. Importing loads no GPU runtime; the first call with GPU arrays does. LayerNorm,
RMSNorm and softmax are computed on NVIDIA's GPUs, too, by kernels compiled at their first use.
"""

from __future__ import annotations

import importlib

# "from aiter_attn import _C" would not say that it is missing.
try:
    importlib.import_module("aiter_attn._C")
except ModuleNotFoundError as error:
    if error.name != "aiter_attn._C":
        raise
    from aiter_attn import _missing

    raise ImportError(_missing.why(__path__), name=error.name) from None

from aiter_attn import _C
from aiter_attn._core.errors import (
    AttnError,
    CorruptError,
    DriverError,
    OutOfMemoryError,
    RoomError,
    UnsupportedError,
)
from aiter_attn._functions.attention import (
    flash_attn_func,
    flash_attn_varlen_func,
    mha_bwd,
    mha_fwd,
    mha_varlen_bwd,
    mha_varlen_fwd,
)
from aiter_attn._functions.kvcache import flash_attn_with_kvcache, mha_batch_prefill
from aiter_attn._functions.norms import (
    layer_norm,
    layer_norm_bwd,
    layer_norm_fwd,
    rms_norm,
    rms_norm_bwd,
    rms_norm_fwd,
    rms_norm_quantised,
    softmax,
    softmax_bwd,
    softmax_fwd,
)
from aiter_attn._functions.packed import (
    flash_attn_kvpacked_func,
    flash_attn_qkvpacked_func,
    flash_attn_varlen_kvpacked_func,
    flash_attn_varlen_qkvpacked_func,
)
from aiter_attn._functions.selection import (
    Explanation,
    WarmUp,
    configure,
    explain,
    explain_kvcache,
    kernels,
    warm_up,
)

__all__ = [
    "AttnError",
    "CorruptError",
    "DriverError",
    "Explanation",
    "OutOfMemoryError",
    "RoomError",
    "UnsupportedError",
    "WarmUp",
    "__version__",
    "configure",
    "explain",
    "explain_kvcache",
    "flash_attn_func",
    "flash_attn_kvpacked_func",
    "flash_attn_qkvpacked_func",
    "flash_attn_varlen_func",
    "flash_attn_varlen_kvpacked_func",
    "flash_attn_varlen_qkvpacked_func",
    "flash_attn_with_kvcache",
    "kernels",
    "layer_norm",
    "layer_norm_bwd",
    "layer_norm_fwd",
    "mha_batch_prefill",
    "mha_bwd",
    "mha_fwd",
    "mha_varlen_bwd",
    "mha_varlen_fwd",
    "rms_norm",
    "rms_norm_bwd",
    "rms_norm_fwd",
    "rms_norm_quantised",
    "softmax",
    "softmax_bwd",
    "softmax_fwd",
    "warm_up",
]

__version__: str = _C.version()
