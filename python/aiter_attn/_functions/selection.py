# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The kernels of this build, and those that would serve a call: asked without launching
anything."""

from __future__ import annotations

import functools
import math
import operator
from typing import Any, NamedTuple, SupportsIndex, TypeAlias

from aiter_attn import _C
from aiter_attn._core import cache_problems, fp8_scales, problems, reading
from aiter_attn._core.adapters import Array, adapter_of
from aiter_attn._core.adapters.generic import SAME_STREAM
from aiter_attn._core.options import options
from aiter_attn._core.refusals import ARGUMENTS, asked

__all__ = [
    "Explanation",
    "WarmUp",
    "configure",
    "explain",
    "explain_kvcache",
    "kernels",
    "warm_up",
]

_ArrayOrShape: TypeAlias = "Array | tuple[int, ...] | list[int]"
_SHAPE = (tuple, list)


class Explanation(NamedTuple):
    """kernels: those that a call launches, in this order, with kernels()'s fields. text: that in
    words, and why the others would not serve."""

    kernels: list[_C.Kernel]
    text: str

    def __str__(self) -> str:
        return self.text


def kernels() -> list[_C.Kernel]:
    """All kernels of this build: name (upstream's), arch, key (of the code object), kind (fwd,
    bwd_dot_do_o, ...), provider (ck: Composable Kernel, asm: AITER's assembly, own: this project),
    code_object_size (bytes; 0: it was not built, and is compiled at its first use) and
    embedded_size (bytes)."""
    return [_C.kernel_info(index) for index in range(_C.kernel_count())]


def configure(*, kernels: str | None) -> None:
    """Sets the process's preference among providers of kernels, for calls on GPU arrays to come.

    Args:
        kernels: "fastest": AITER's assembly where AITER takes it, else Composable Kernel's; "ck":
            Composable Kernel's; "asm": AITER's, and forward and backward calls that it does not
            serve are refused. None, which is how a process starts: what the environment variable
            AITER_ATTN_KERNELS says, without it "fastest". Passes that one provider alone has
            kernels for take these.

    Raises:
        TypeError, ValueError: of another value; the message has those that there are.
    """
    if kernels is not None and not isinstance(kernels, str):
        raise TypeError(f"kernels: {reading.shown(kernels)}; allowed: fastest, ck, asm, or None")
    _C.set_kernels(kernels)


def explain(
    q: _ArrayOrShape,
    k: _ArrayOrShape,
    v: _ArrayOrShape,
    *,
    backward: bool = False,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    sequences: tuple[SupportsIndex, SupportsIndex, SupportsIndex] | None = None,
    dropout_p: float = 0.0,
    softcap: float = 0.0,
    bias: str | None = None,
    bias_grad: bool = False,
    deterministic: bool = False,
    min_seqlen_q: SupportsIndex = 0,
    sink: bool = False,
    dtype: str | None = None,
    out_dtype: str | None = None,
    arch: str | None = None,
) -> Explanation:
    """Which kernels would serve a call, and why the others would not.

    Args:
        q, k, v: the call's arrays, of which no data is read; or shapes alone, with dtype.
        backward: whether the call is mha_bwd or mha_varlen_bwd, not a forward pass.
        causal, window_size: as the call gets them (see flash_attn_func).
        sequences: of a varlen call: (batch, max_seqlen_q, max_seqlen_k). q, k and v are then
            [total, heads, head_size].
        dropout_p, softcap, bias_grad, deterministic, min_seqlen_q: as the call gets them.
        bias: "elementwise" where the call gets a bias, "alibi" where it gets alibi_slopes.
        sink: whether the call gets one; a backward pass gives its gradient then.
        dtype: of shapes: "float16", "bfloat16", or of flash_attn_func with fp8 "float8_e4m3fn" or
            "float8_e4m3fnuz". Arrays have their own.
        out_dtype: with fp8, as the call gets it.
        arch: the GPU's, such as "gfx942"; it need not be here. None: that of the GPU that holds the
            arrays, for shapes that of the first GPU.

    Returns:
        Its kernels are none for arrays in host memory without an arch, which the CPU reference
        serves, and where there is nothing to compute.

    Raises:
        UnsupportedError: no kernel of this build serves the call; the message has the reason.
        DriverError: no arch is given and there is no GPU. TypeError, ValueError: of
            shapes, dtypes and numbers as the call raises them.
    """
    _check_arch(arch)
    lengths = None if sequences is None else _lengths(sequences)
    described_q, described_k = _describe("q", q, dtype), _describe("k", k, dtype)
    described_v = _describe("v", v, dtype)
    is_backward = reading.flag("backward", backward)
    scales = None
    if is_backward:
        fp8_scales.check_none((None, None, None, None, out_dtype), "backward is True")
    else:
        # Which numbers scales are does not matter.
        out_scale = None if out_dtype is not None else 1.0
        is_fp8 = described_q.dtype in _C.FORWARD_FP8_DTYPES
        ones = (1.0, 1.0, 1.0, out_scale) if is_fp8 else (None,) * 4
        scales = fp8_scales.read((*ones, out_dtype), described_q, 0, 0)
    problem = problems.attention(
        described_q,
        described_k,
        described_v,
        options(
            dropout_p=dropout_p,
            causal=causal,
            window_size=window_size,
            softcap=softcap,
            deterministic=deterministic,
            bias_grad=bias_grad,
            min_seqlen_q=min_seqlen_q,
        ),
        lengths,
        problems.beside(
            **_bias(bias, described_q, described_k, lengths),
            scales=scales,
            # As kernels take it.
            v_columns=scales is not None and out_dtype is None and lengths is None,
        ),
    ).problem
    asked_for = problem.on(*_device(q, arch), 0), arch, reading.flag("sink", sink)
    if is_backward:
        indices, text = _C.plan_bwd(*asked_for), _C.explain_bwd(*asked_for)
    else:
        indices, text = _C.plan_fwd(*asked_for), _C.explain_fwd(*asked_for)
    return Explanation([_C.kernel_info(index) for index in indices], text)


def explain_kvcache(
    q: _ArrayOrShape,
    k: _ArrayOrShape,
    v: _ArrayOrShape,
    *,
    block_table: _ArrayOrShape | None = None,
    sequences: tuple[SupportsIndex, SupportsIndex, SupportsIndex] | None = None,
    causal: bool = False,
    window_size: tuple[int, int] = (-1, -1),
    softcap: float = 0.0,
    alibi: bool = False,
    cache_seqlens: bool = True,
    seqlen_new: SupportsIndex = 0,
    rotary: str | None = None,
    num_splits: SupportsIndex = 0,
    return_lse: bool = False,
    sink: bool = False,
    dtype: str | None = None,
    arch: str | None = None,
) -> Explanation:
    """explain() for calls over a key-value cache.

    Args:
        q, k, v: the call's arrays (k_cache and v_cache of flash_attn_with_kvcache), of which no
            data is read; or shapes alone, with dtype.
        block_table: the call's, or its shape.
        sequences: None where the call is flash_attn_with_kvcache. Else (batch, max_seqlen_q,
            max_seqlen_k): the call is flash_attn_varlen_func, without block_table
            mha_batch_prefill.
        causal, window_size, softcap, num_splits: as the call gets them.
        alibi: whether it gets alibi_slopes.
        cache_seqlens: whether flash_attn_with_kvcache gets any.
        seqlen_new: how many keys of each sequence it appends: what launches for that comes first.
        rotary: "interleaved" or "halves" where it gets rotary_cos and rotary_sin: for whole heads,
            as far as they are whole multiples of 16.
        return_lse: whether the call returns the lse, too.
        sink: whether it gets one.
        dtype, arch: see explain.

    Returns, raises: see explain.
    """
    _check_arch(arch)
    lengths = None if sequences is None else _lengths(sequences)
    described_q = _describe("q", q, dtype)
    is_list = lengths is not None and block_table is None
    table = None
    if block_table is not None:
        table = _describe("block_table", block_table, "int32")
    over = cache_problems.cached(
        described_q,
        _describe("k", k, dtype),
        _describe("v", v, dtype),
        ("k", "v"),
        block_table=table,
        page_list=is_list,
        chooses_entries=True,
        sequences=lengths,
        options=options(causal=causal, window_size=window_size, softcap=softcap),
        alibi_slopes=_slopes(described_q) if reading.flag("alibi", alibi) else None,
        splits=num_splits,
    )
    problem = over.attention.problem.on(*_device(q, arch), 0)
    new = reading.integer("seqlen_new", seqlen_new)
    # The arrays that a plan depends on.
    arrays = ["page_indptr"] if is_list else []
    if reading.flag("return_lse", return_lse):
        arrays.append("lse")
    if reading.flag("sink", sink):
        arrays.append("sink")
    if reading.flag("cache_seqlens", cache_seqlens) and lengths is None:
        arrays.append("seqlens_k")
    elif new:
        raise ValueError(
            f"seqlen_new: {new}; allowed here: 0, as only flash_attn_with_kvcache with "
            "cache_seqlens appends"
        )
    appended: tuple[dict[str, int], dict[str, _C.Tensor]] | None = None
    if new or rotary is not None:
        appended = over.numbers | _appended(over, described_q, new, rotary), {}
    numbers = over.numbers | {"splits": over.splits}
    indices = asked(ARGUMENTS, _C.plan_kvcache_fwd, problem, numbers, arrays, arch, appended)
    text = asked(ARGUMENTS, _C.explain_kvcache_fwd, problem, numbers, arrays, arch, appended)
    return Explanation([_C.kernel_info(index) for index in indices], text)


@functools.cache
def _indices() -> dict[str, int]:
    """The index of a kernel by its key, as aiter/attn.h counts them."""
    return {kernel["key"]: index for index, kernel in enumerate(kernels())}


class WarmUp(NamedTuple):
    """Kernels that warm_up had made; kernels: with kernels()'s fields, each once."""

    kernels: list[_C.Kernel]

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until all are made, at most so many seconds; returns whether they are.

        Raises:
            AttnError: of the first that could not be made, as a call would raise it.
            ValueError: timeout is negative or no number.
        """
        if timeout is None:
            milliseconds = -1
        elif timeout >= 0 and math.isfinite(timeout):
            milliseconds = math.ceil(1000 * timeout)
        else:
            raise ValueError(f"timeout: {timeout}; allowed: seconds, 0 or more, or None")
        indices = [_indices()[kernel["key"]] for kernel in self.kernels]
        return _C.warm_up_wait(indices, milliseconds) == 0


def warm_up(*calls: Explanation) -> WarmUp:
    """Has the kernels of coming calls fetched or compiled into the cache in the background, several
    at a time, where the calls would have that done first; returns at once. A call that comes
    meanwhile waits for its own kernels.

    Args:
        calls: what explain and explain_kvcache say of them. A training step has two:
            warm_up(explain(q, k, v), explain(q, k, v, backward=True)).

    Raises:
        TypeError: calls has another value. OutOfMemoryError: no thread can be started.
    """
    for call in calls:
        if not isinstance(call, Explanation):
            raise TypeError(
                f"calls: {reading.shown(call)}; allowed: results of explain and explain_kvcache"
            )
    wanted = {kernel["key"]: kernel for call in calls for kernel in call.kernels}
    _C.warm_up([_indices()[key] for key in wanted])
    return WarmUp(list(wanted.values()))


def _appended(
    over: cache_problems.Cached, q: problems.HasShape, new: int, kind: str | None
) -> dict[str, int]:
    """attn_append_kv's numbers, with tables that are long enough."""
    p = over.attention.problem
    turned = cache_problems.Rotary()
    if kind is not None:
        if kind not in ("interleaved", "halves"):
            raise ValueError(
                f'rotary: {reading.shown(kind)}; allowed: "interleaved", "halves", or None'
            )
        if not new:
            raise ValueError(f"rotary: {kind}, but seqlen_new is 0; allowed: None without new keys")
        pairs = p.head_size_qk // 16 * 8
        tables = problems.ShapeDtype((over.room + p.seqlen_q, pairs), q.dtype)
        turned = cache_problems.rotary(tables, tables, q, kind == "interleaved")
    rows = (p.batch, new, p.heads_k)
    return cache_problems.appended(
        over,
        problems.ShapeDtype((*rows, p.head_size_qk), q.dtype),
        problems.ShapeDtype((*rows, p.head_size_v), q.dtype),
        turned,
    )


def _device(q: _ArrayOrShape, arch: str | None) -> tuple[int, int]:
    """Where the call is planned for."""
    device = None if isinstance(q, _SHAPE) else adapter_of("q", q).device("q", q)
    if device is None or (arch is not None and device[0] == _C.DEVICE_CPU):
        return _C.DEVICE_ROCM, 0
    return device


def _slopes(q: problems.HasShape) -> problems.ShapeDtype:
    return problems.ShapeDtype(q.shape[-2:-1], "float32")


def _check_arch(arch: Any) -> None:
    """Which archs there are is the library's to say."""
    is_name = isinstance(arch, str) and arch and arch.isascii() and arch.isprintable()
    if arch is not None and not is_name:
        raise TypeError(f'arch: {reading.shown(arch)}; allowed: a name such as "gfx942", None')


def _bias(
    kind: Any, q: problems.HasShape, k: problems.HasShape, lengths: problems.Lengths | None
) -> dict[str, problems.HasShape]:
    """An array such as the call gets: which of those that fit does not matter."""
    if kind is None:
        return {}
    if kind == "alibi":
        return {"alibi_slopes": _slopes(q)}
    if kind == "elementwise":
        keys = k.shape[1:2] if lengths is None else (lengths.max_seqlen_k,)
        ones = (1,) * (len(q.shape) - 1)
        return {"bias": problems.ShapeDtype((*ones, *keys), q.dtype)}
    raise ValueError(f'bias: {reading.shown(kind)}; allowed: "elementwise", "alibi", or None')


def _lengths(sequences: Any) -> problems.Lengths:
    try:
        batch, max_seqlen_q, max_seqlen_k = sequences
    except (TypeError, ValueError):
        raise TypeError(
            f"sequences: {reading.shown(sequences)}; allowed: (batch, max_seqlen_q, "
            "max_seqlen_k), or None"
        ) from None
    return problems.lengths(batch, max_seqlen_q, max_seqlen_k)


def _describe(name: str, array: _ArrayOrShape, dtype: str | None) -> problems.HasShape:
    if isinstance(array, _SHAPE):
        if not isinstance(dtype, str):
            raise TypeError(
                f"dtype: {reading.shown(dtype)}, but {name} is a shape; allowed: float16, bfloat16"
            )
        return problems.ShapeDtype(tuple(_extent(name, size) for size in array), dtype)
    adapter = adapter_of(name, array)
    device = adapter.device(name, array)
    stream = None if device[0] == _C.DEVICE_CPU else SAME_STREAM
    return adapter.borrow(name, array, device, stream)


def _extent(name: str, size: Any) -> int:
    try:
        return operator.index(size)
    except TypeError:
        raise TypeError(f"{name}: {reading.shown(size)} in a shape; allowed: integers") from None
