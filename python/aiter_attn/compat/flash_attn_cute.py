# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""flash-attn 4's attention functions, by this package.

    import aiter_attn.compat.flash_attn_cute

    aiter_attn.compat.flash_attn_cute.install()
    from flash_attn.cute import flash_attn_func

The sink is learnable_sink, a window's open side is None, there is no dropout, and the result is
always a pair. Arguments as in flash-attn's repository at 0251105 (August 2026).
"""

from __future__ import annotations

import importlib.util
import sys
from typing import Any, NoReturn

import aiter_attn
import aiter_attn.compat.flash_attn
from aiter_attn._core import reading
from aiter_attn._core.errors import UnsupportedError
from aiter_attn._core.refusals import renamed
from aiter_attn.compat import _names

__all__ = ["flash_attn_func", "flash_attn_varlen_func", "install"]

# Options go as dicts, which no overload takes.
_package: Any = aiter_attn
_NAMES = {"sink": "learnable_sink", "block_table": "page_table"}


def flash_attn_func(
    q: Any,
    k: Any,
    v: Any,
    qv: Any = None,
    gather_kv_indices: Any = None,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int | None, int | None] = (None, None),
    learnable_sink: Any = None,
    softcap: float = 0.0,
    num_splits: int = 1,
    pack_gqa: bool | None = None,
    deterministic: bool = False,
    score_mod: Any = None,
    score_mod_bwd: Any = None,
    mask_mod: Any = None,
    aux_tensors: Any = None,
    aux_scalars: Any = None,
    block_sparse_tensors: Any = None,
    block_sparse_tensors_bwd: Any = None,
    return_lse: bool = False,
) -> tuple[Any, Any]:
    """(out, lse), lse None without return_lse; see aiter_attn.flash_attn_func.

    Args:
        qv, gather_kv_indices, score_mod, score_mod_bwd, mask_mod, aux_tensors, aux_scalars,
            block_sparse_tensors, block_sparse_tensors_bwd: None.
        window_size: (left, right); None: no limit.
        learnable_sink: the sink, [heads_q], of any floating-point dtype.
        num_splits: 0 or 1: keys are not split.
        pack_gqa: not looked at: it changes no result.
    """
    del pack_gqa
    _refuse(
        qv=qv,
        gather_kv_indices=gather_kv_indices,
        score_mod=score_mod,
        score_mod_bwd=score_mod_bwd,
        mask_mod=mask_mod,
        aux_tensors=aux_tensors,
        aux_scalars=aux_scalars,
        block_sparse_tensors=block_sparse_tensors,
        block_sparse_tensors_bwd=block_sparse_tensors_bwd,
    )
    options = _options(softmax_scale, causal, window_size, softcap, learnable_sink, num_splits)
    return _pair(_package.flash_attn_func, (q, k, v), return_lse, options, deterministic)


def flash_attn_varlen_func(
    q: Any,
    k: Any,
    v: Any,
    qv: Any = None,
    cu_seqlens_q: Any = None,
    cu_seqlens_k: Any = None,
    max_seqlen_q: int | None = None,
    max_seqlen_k: int | None = None,
    min_seqlen_k: int | None = None,
    seqused_q: Any = None,
    seqused_k: Any = None,
    gather_kv_indices: Any = None,
    page_table: Any = None,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int | None, int | None] = (None, None),
    learnable_sink: Any = None,
    softcap: float = 0.0,
    num_splits: int = 1,
    pack_gqa: bool | None = None,
    deterministic: bool = False,
    score_mod: Any = None,
    score_mod_bwd: Any = None,
    mask_mod: Any = None,
    block_sparse_tensors: Any = None,
    aux_tensors: Any = None,
    aux_scalars: Any = None,
    return_lse: bool = False,
    scheduler_metadata: Any = None,
    seqlen_k_per_split: int | None = None,
    disable_scheduler_metadata: bool = False,
) -> tuple[Any, Any]:
    """(out, lse), lse None without return_lse; see aiter_attn.flash_attn_varlen_func, and
    flash_attn_func for the options.

    Args:
        cu_seqlens_q, cu_seqlens_k: both, also beside seqused_q and seqused_k.
        max_seqlen_q, max_seqlen_k: None: as many as q and k have rows, for which more workgroups
            are started than have work.
        page_table: the block_table of aiter_attn.flash_attn_varlen_func.
        min_seqlen_k, disable_scheduler_metadata: not looked at: they change no result.
    """
    del pack_gqa, min_seqlen_k, disable_scheduler_metadata
    _refuse(
        qv=qv,
        gather_kv_indices=gather_kv_indices,
        score_mod=score_mod,
        score_mod_bwd=score_mod_bwd,
        mask_mod=mask_mod,
        block_sparse_tensors=block_sparse_tensors,
        aux_tensors=aux_tensors,
        aux_scalars=aux_scalars,
        scheduler_metadata=scheduler_metadata,
        seqlen_k_per_split=seqlen_k_per_split,
    )
    for name, starts in (("cu_seqlens_q", cu_seqlens_q), ("cu_seqlens_k", cu_seqlens_k)):
        if starts is None:
            raise UnsupportedError(
                f"{name}: None; allowed: the starts of packed sequences; for a batch of one length "
                "flash_attn_func, for a cache aiter_attn.flash_attn_with_kvcache"
            )
    if page_table is not None and max_seqlen_k is None:
        raise UnsupportedError(
            "max_seqlen_k: None, but page_table is given; allowed: the longest sequence"
        )
    most_q = q.shape[0] if max_seqlen_q is None else max_seqlen_q
    most_k = k.shape[0] if max_seqlen_k is None else max_seqlen_k
    options = _options(softmax_scale, causal, window_size, softcap, learnable_sink, num_splits)
    options.update(seqused_q=seqused_q, seqused_k=seqused_k, block_table=page_table)
    arrays = (q, k, v, cu_seqlens_q, cu_seqlens_k, most_q, most_k)
    return _pair(_package.flash_attn_varlen_func, arrays, return_lse, options, deterministic)


def install() -> None:
    """Makes this the process's flash_attn.cute, and, where there is no flash_attn, the stand-in for
    it the process's flash_attn. Raises ImportError where flash_attn.cute is imported already."""
    this = sys.modules[__name__]
    if "flash_attn" not in sys.modules and importlib.util.find_spec("flash_attn") is None:
        aiter_attn.compat.flash_attn.install()
    _names.install("flash_attn.cute", this, {"interface": this})
    if "flash_attn" in sys.modules:
        # As an import of it would.
        sys.modules["flash_attn"].cute = this  # type: ignore[attr-defined]


def _options(
    softmax_scale: Any,
    causal: Any,
    window_size: Any,
    softcap: Any,
    learnable_sink: Any,
    num_splits: Any,
) -> dict[str, Any]:
    if reading.integer("num_splits", num_splits) > 1:
        raise UnsupportedError(
            f"num_splits: {num_splits}; allowed: 0, 1; aiter_attn.flash_attn_with_kvcache splits "
            "keys"
        )
    options = {
        "softmax_scale": softmax_scale,
        "causal": causal,
        "window_size": tuple(-1 if side is None else side for side in window_size),
        "softcap": softcap,
    }
    if learnable_sink is not None:
        # torch's is of the model's dtype.
        has_float = hasattr(learnable_sink, "float")
        options["sink"] = learnable_sink.float() if has_float else learnable_sink
    return options


def _pair(
    function: Any,
    arrays: tuple[Any, ...],
    return_lse: Any,
    options: dict[str, Any],
    deterministic: Any,
) -> tuple[Any, Any]:
    wants = reading.flag("return_lse", return_lse)
    with renamed(_NAMES):
        result = function(*arrays, deterministic=deterministic, return_attn_probs=wants, **options)
    return (result[0], result[1]) if wants else (result, None)


_INSTEAD = {
    "qv": "pass q and qv side by side as q, with keys and values as k",
    "gather_kv_indices": "aiter_attn.flash_attn_with_kvcache takes keys in listed pages",
    "mask_mod": "causal, window_size and aiter_attn.flash_attn_func's bias hide keys",
    "score_mod": "softcap, alibi_slopes and bias of aiter_attn.flash_attn_func change scores",
    "scheduler_metadata": "splits are chosen from the shapes",
}


def _refuse(**given: Any) -> None:
    """Raises UnsupportedError for the first that is not None."""
    for name, value in given.items():
        if value is not None:
            instead = _INSTEAD.get(name, "there are no functions of scores, nor sparse blocks")
            raise UnsupportedError(f"{name}: given; allowed: None; {instead}")


def __getattr__(name: str) -> NoReturn:
    raise _names.missing("flash_attn.cute", name, __all__)
