# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""aiter_attn's functions as operators of PyTorch: differentiable, traceable, compilable.

    import aiter_attn
    out = aiter_attn.flash_attn_func(q, k, v, causal=True)  # torch tensors come here by themselves

The functions of flash-attn's names have the arguments of those in aiter_attn. mha_fwd and
mha_varlen_fwd give (out, lse) and take an elementwise bias, of which there is a gradient; rms_norm,
layer_norm, softmax and their passes are those of aiter_attn, but for results in fp8.
scaled_dot_product_attention is torch's, and within sdpa() torch's is that one. Rules of all:

  - Each computes by operators of torch.library (torch.ops.aiter_attn) with fake kernels. All but
    calls over key-value caches (block_table too), calls of fp8, and _bwd have a backward pass.
    There is no second derivative.
  - Within torch.autocast floating-point arguments get its dtype, but float64.
  - Strides are any: an array that the kernels cannot read is copied.
  - rng_state may be left out where there is dropout: seed and offset are then drawn from torch's
    default generator on the CPU, so that torch.manual_seed and checkpointing replay them.
  - The backward pass is deterministic where that is asked for by the argument or by
    torch.use_deterministic_algorithms.

docs/pytorch.md says more. Raises ImportError for a torch older than 2.4.
"""

from __future__ import annotations

from aiter_attn.torch import _version

_version.check()

from aiter_attn.torch._attention import (  # noqa: E402  # torch has what these need
    flash_attn_func,
    flash_attn_kvpacked_func,
    flash_attn_qkvpacked_func,
    flash_attn_varlen_func,
    flash_attn_varlen_kvpacked_func,
    flash_attn_varlen_qkvpacked_func,
    flash_attn_with_kvcache,
    mha_fwd,
    mha_varlen_fwd,
)
from aiter_attn.torch._norms import (  # noqa: E402
    layer_norm,
    layer_norm_bwd,
    layer_norm_fwd,
    rms_norm,
    rms_norm_bwd,
    rms_norm_fwd,
    softmax,
    softmax_bwd,
    softmax_fwd,
)
from aiter_attn.torch._provider import register as _register  # noqa: E402
from aiter_attn.torch._sdpa import scaled_dot_product_attention, sdpa  # noqa: E402

_register()

__all__ = [
    "flash_attn_func",
    "flash_attn_kvpacked_func",
    "flash_attn_qkvpacked_func",
    "flash_attn_varlen_func",
    "flash_attn_varlen_kvpacked_func",
    "flash_attn_varlen_qkvpacked_func",
    "flash_attn_with_kvcache",
    "layer_norm",
    "layer_norm_bwd",
    "layer_norm_fwd",
    "mha_fwd",
    "mha_varlen_fwd",
    "rms_norm",
    "rms_norm_bwd",
    "rms_norm_fwd",
    "scaled_dot_product_attention",
    "sdpa",
    "softmax",
    "softmax_bwd",
    "softmax_fwd",
]
