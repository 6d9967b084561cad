# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""flash-attn 3's attention functions, by this package.

    import aiter_attn.compat.flash_attn_interface

    aiter_attn.compat.flash_attn_interface.install()
    from flash_attn_interface import flash_attn_func

Beside flash-attn 2's (aiter_attn.compat.flash_attn): options lie in another order, there is no
dropout and no ALiBi, and an attention sink is s_aux, its name in vLLM's and the Hub's builds.
"""

from __future__ import annotations

import sys
from typing import Any, NoReturn

import aiter_attn
from aiter_attn._core import reading
from aiter_attn._core.errors import UnsupportedError
from aiter_attn._core.refusals import renamed
from aiter_attn.compat import _names

__all__ = [
    "flash_attn_func",
    "flash_attn_qkvpacked_func",
    "flash_attn_varlen_func",
    "flash_attn_with_kvcache",
    "install",
]

# Options go as dicts, which no overload takes.
_package: Any = aiter_attn
_SINK = {"sink": "s_aux"}


def flash_attn_func(
    q: Any,
    k: Any,
    v: Any,
    softmax_scale: float | None = None,
    causal: bool = False,
    qv: Any = None,
    q_descale: Any = None,
    k_descale: Any = None,
    v_descale: Any = None,
    window_size: tuple[int, int] = (-1, -1),
    attention_chunk: int = 0,
    softcap: float = 0.0,
    num_splits: int = 1,
    pack_gqa: bool | None = None,
    deterministic: bool = False,
    sm_margin: int = 0,
    return_attn_probs: bool = False,
    *,
    s_aux: Any = None,
) -> Any:
    """out, or (out, lse) with return_attn_probs; see aiter_attn.flash_attn_func.

    Args:
        qv, attention_chunk: None, 0.
        q_descale, k_descale, v_descale: with fp8, whose out is bfloat16, as the function above has
            them; None: 1.0.
        num_splits: 0 or 1: keys are not split.
        pack_gqa, sm_margin: not looked at: they change no result.
        s_aux: the sink, [heads_q], of any floating-point dtype.
    """
    del pack_gqa, sm_margin
    _refuse(qv=qv)
    _refuse_chunks(attention_chunk, num_splits)
    options = _options(softmax_scale, causal, window_size, softcap, s_aux)
    options.update(_fp8(q, q_descale=q_descale, k_descale=k_descale, v_descale=v_descale))
    return _without_probs(
        _package.flash_attn_func, (q, k, v), return_attn_probs, options, deterministic
    )


def flash_attn_varlen_func(
    q: Any,
    k: Any,
    v: Any,
    cu_seqlens_q: Any,
    cu_seqlens_k: Any,
    max_seqlen_q: int,
    max_seqlen_k: int,
    seqused_q: Any = None,
    seqused_k: Any = None,
    softmax_scale: float | None = None,
    causal: bool = False,
    qv: Any = None,
    q_descale: Any = None,
    k_descale: Any = None,
    v_descale: Any = None,
    window_size: tuple[int, int] = (-1, -1),
    attention_chunk: int = 0,
    softcap: float = 0.0,
    num_splits: int = 1,
    pack_gqa: bool | None = None,
    deterministic: bool = False,
    sm_margin: int = 0,
    return_attn_probs: bool = False,
    *,
    s_aux: Any = None,
) -> Any:
    """out, or (out, lse) with return_attn_probs; see aiter_attn.flash_attn_varlen_func, and
    flash_attn_func for the options."""
    del pack_gqa, sm_margin
    _refuse(qv=qv)
    _refuse_chunks(attention_chunk, num_splits)
    options = _options(softmax_scale, causal, window_size, softcap, s_aux)
    options.update(_fp8(q, q_descale=q_descale, k_descale=k_descale, v_descale=v_descale))
    options.update(seqused_q=seqused_q, seqused_k=seqused_k)
    arrays = (q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k)
    return _without_probs(
        _package.flash_attn_varlen_func, arrays, return_attn_probs, options, deterministic
    )


def flash_attn_qkvpacked_func(
    qkv: Any,
    softmax_scale: float | None = None,
    causal: bool = False,
    q_descale: Any = None,
    k_descale: Any = None,
    v_descale: Any = None,
    window_size: tuple[int, int] = (-1, -1),
    attention_chunk: int = 0,
    softcap: float = 0.0,
    deterministic: bool = False,
    num_heads_q: int | None = None,
    sm_margin: int = 0,
    return_attn_probs: bool = False,
    *,
    s_aux: Any = None,
) -> Any:
    """flash_attn_func of one array: [batch, seqlen, 3, heads, head_size], or with num_heads_q
    [batch, seqlen, heads_q + 2 heads_k, head_size]."""
    del sm_margin
    _refuse(q_descale=q_descale, k_descale=k_descale, v_descale=v_descale)
    _refuse_chunks(attention_chunk, 1)
    options = _options(softmax_scale, causal, window_size, softcap, s_aux)
    function = _package.flash_attn_qkvpacked_func
    arrays: tuple[Any, ...] = (qkv,)
    if num_heads_q is not None:
        function, arrays = _package.flash_attn_func, _parts(qkv, num_heads_q)
    return _without_probs(function, arrays, return_attn_probs, options, deterministic)


def flash_attn_with_kvcache(
    q: Any,
    k_cache: Any,
    v_cache: Any,
    k: Any = None,
    v: Any = None,
    qv: Any = None,
    rotary_cos: Any = None,
    rotary_sin: Any = None,
    cache_seqlens: Any = None,
    cache_batch_idx: Any = None,
    cache_leftpad: Any = None,
    page_table: Any = None,
    cu_seqlens_q: Any = None,
    cu_seqlens_k_new: Any = None,
    max_seqlen_q: int | None = None,
    rotary_seqlens: Any = None,
    q_descale: Any = None,
    k_descale: Any = None,
    v_descale: Any = None,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    attention_chunk: int = 0,
    softcap: float = 0.0,
    rotary_interleaved: bool = True,
    scheduler_metadata: Any = None,
    num_splits: int = 0,
    pack_gqa: bool | None = None,
    sm_margin: int = 0,
    return_softmax_lse: bool = False,
    *,
    s_aux: Any = None,
) -> Any:
    """out, or (out, lse) with return_softmax_lse; see aiter_attn.flash_attn_with_kvcache.

    Args:
        page_table: its block_table.
        cu_seqlens_q, cu_seqlens_k_new, max_seqlen_q, rotary_seqlens, scheduler_metadata: None.
        The others: see flash_attn_func.
    """
    del pack_gqa, sm_margin
    _refuse(qv=qv, q_descale=q_descale, k_descale=k_descale, v_descale=v_descale)
    _refuse(rotary_seqlens=rotary_seqlens, scheduler_metadata=scheduler_metadata)
    _refuse_chunks(attention_chunk, 0)
    for name, value in (
        ("cu_seqlens_q", cu_seqlens_q),
        ("cu_seqlens_k_new", cu_seqlens_k_new),
        ("max_seqlen_q", max_seqlen_q),
    ):
        if value is not None:
            raise UnsupportedError(
                f"{name}: given; allowed: None; aiter_attn.flash_attn_varlen_func takes packed "
                "queries over pages, with block_table"
            )
    options = _options(softmax_scale, causal, window_size, softcap, s_aux)
    with renamed(_SINK | {"block_table": "page_table"}):
        return _package.flash_attn_with_kvcache(
            q,
            k_cache,
            v_cache,
            k,
            v,
            rotary_cos,
            rotary_sin,
            cache_seqlens,
            cache_batch_idx,
            cache_leftpad,
            page_table,
            rotary_interleaved=rotary_interleaved,
            num_splits=num_splits,
            return_softmax_lse=return_softmax_lse,
            **options,
        )


def install() -> None:
    """Makes this the process's flash_attn_interface. Raises ImportError where there is one."""
    _names.install("flash_attn_interface", sys.modules[__name__], {})


def _options(
    softmax_scale: Any, causal: Any, window_size: Any, softcap: Any, s_aux: Any
) -> dict[str, Any]:
    options = {
        "softmax_scale": softmax_scale,
        "causal": causal,
        "window_size": window_size,
        "softcap": softcap,
    }
    if s_aux is not None:
        # torch's is of the model's dtype.
        options["sink"] = s_aux.float() if hasattr(s_aux, "float") else s_aux
    return options


def _fp8(q: Any, **descales: Any) -> dict[str, Any]:
    """The options of fp8; descales beside another dtype are refused."""
    if "float8" not in str(getattr(q, "dtype", "")):
        _refuse(**descales)
        return {}
    given = {name: 1.0 if descale is None else descale for name, descale in descales.items()}
    given["out_dtype"] = "bfloat16"
    return given


def _without_probs(
    function: Any,
    arrays: tuple[Any, ...],
    with_lse: Any,
    options: dict[str, Any],
    deterministic: Any,
) -> Any:
    """out, or (out, lse): flash-attn 3 has no probabilities."""
    wants = reading.flag("return_attn_probs", with_lse)
    with renamed(_SINK):
        result = function(*arrays, deterministic=deterministic, return_attn_probs=wants, **options)
    return result[:2] if wants else result


def _parts(qkv: Any, heads_q: Any) -> tuple[Any, Any, Any]:
    most = qkv.shape[2] if len(qkv.shape) == 4 else 0
    heads = reading.integer("num_heads_q", heads_q)
    if not 0 < heads < most or (most - heads) % 2:
        raise ValueError(
            f"num_heads_q: {heads}, with qkv of shape {tuple(qkv.shape)}; allowed: [batch, seqlen, "
            "heads_q + 2 heads_k, head size]"
        )
    heads_k = (most - heads) // 2
    return qkv[:, :, :heads], qkv[:, :, heads : heads + heads_k], qkv[:, :, heads + heads_k :]


_ELSEWHERE = {
    "qv": "pass q and qv side by side as q, with keys and values as k",
    "scheduler_metadata": "splits are chosen from the shapes",
    "rotary_seqlens": "new keys are rotated by their places in the cache",
}


def _refuse(**given: Any) -> None:
    """Raises UnsupportedError for the first that is not None."""
    for name, value in given.items():
        if value is not None:
            instead = _ELSEWHERE.get(name, "flash_attn_func takes it beside q, k and v of fp8")
            raise UnsupportedError(f"{name}: given; allowed: None; {instead}")


def _refuse_chunks(attention_chunk: Any, num_splits: Any) -> None:
    if reading.integer("attention_chunk", attention_chunk) != 0:
        raise UnsupportedError(
            f"attention_chunk: {attention_chunk}; allowed: 0; window_size limits keys, too"
        )
    if reading.integer("num_splits", num_splits) > 1:
        raise UnsupportedError(
            f"num_splits: {num_splits}; allowed: 0, 1; flash_attn_with_kvcache splits keys"
        )


def __getattr__(name: str) -> NoReturn:
    raise _names.missing("flash_attn_interface", name, __all__)
