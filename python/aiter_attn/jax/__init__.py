# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Fused attention inside jax programs: jit, grad, vmap, remat, shard_map and sharded jit.

    import aiter_attn.jax
    out = jax.jit(aiter_attn.jax.flash_attn_func, static_argnames="causal")(q, k, v, causal=True)

A call is one custom call of XLA's FFI (no callback into Python, no copy), on an AMD GPU with jax's
ROCm plugin by Composable Kernel's kernels, on the CPU by the reference. Arguments and results are
those of aiter_attn's functions of the same names; arrays may be traced, and all else is constant.

dot_product_attention has the arguments of jax.nn's.

  - Gradients: of q, k, v, bias and sink. lse has none (jax.lax.stop_gradient is applied to it).
  - A sharded program computes a device's own batch entries and heads, where the number of devices
    divides the heads of keys. Other dimensions are gathered first; so is all of a varlen call, and
    of one with dropout.
  - vmap adds batch entries. Not of varlen calls, and not with dropout.
  - TypeError, ValueError, UnsupportedError: while jax traces.
"""

from __future__ import annotations

from aiter_attn.jax import _ffi
from aiter_attn.jax._attention import RngState as RngState
from aiter_attn.jax._attention import flash_attn_func, flash_attn_varlen_func
from aiter_attn.jax._caches import flash_attn_with_kvcache
from aiter_attn.jax._ffi import export_checks
from aiter_attn.jax._nn import dot_product_attention
from aiter_attn.jax._norms import (
    layer_norm,
    layer_norm_bwd,
    layer_norm_fwd,
    rms_norm,
    rms_norm_bwd,
    rms_norm_fwd,
)
from aiter_attn.jax._softmax import softmax, softmax_bwd, softmax_fwd

__all__ = [
    "dot_product_attention",
    "export_checks",
    "flash_attn_func",
    "flash_attn_varlen_func",
    "flash_attn_with_kvcache",
    "layer_norm",
    "layer_norm_bwd",
    "layer_norm_fwd",
    "rms_norm",
    "rms_norm_bwd",
    "rms_norm_fwd",
    "softmax",
    "softmax_bwd",
    "softmax_fwd",
]

_ffi.register()
