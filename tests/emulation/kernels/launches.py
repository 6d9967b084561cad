# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The launch table through ctypes: instances, kernel arguments, code objects."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import os
from pathlib import Path

from gfxemu import code_object


class Tensor(ctypes.Structure):
    """attn_tensor"""

    _fields_ = [("data", ctypes.c_void_p), ("stride_batch", ctypes.c_int64),
                ("stride_seq", ctypes.c_int64), ("stride_head", ctypes.c_int64)]  # fmt: skip


class Problem(ctypes.Structure):
    """attn_problem"""

    _fields_ = [
        ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("stream", ctypes.c_void_p), ("dtype", ctypes.c_int32), ("batch", ctypes.c_int32),
        ("heads_q", ctypes.c_int32), ("heads_k", ctypes.c_int32),
        ("head_size_qk", ctypes.c_int32), ("head_size_v", ctypes.c_int32),
        ("seqlen_q", ctypes.c_int32), ("seqlen_k", ctypes.c_int32),
        ("total_q", ctypes.c_int32), ("total_k", ctypes.c_int32),
        ("cu_seqlens_q", ctypes.c_void_p), ("cu_seqlens_k", ctypes.c_void_p),
        ("softmax_scale", ctypes.c_float), ("mask", ctypes.c_int32),
        ("window_left", ctypes.c_int32), ("window_right", ctypes.c_int32),
    ]  # fmt: skip


class FwdArgs(ctypes.Structure):
    """attn_fwd_args"""

    _fields_ = [("struct_size", ctypes.c_uint32), ("reserved", ctypes.c_uint32),
                ("problem", Problem), ("q", Tensor), ("k", Tensor), ("v", Tensor), ("o", Tensor),
                ("lse", ctypes.c_void_p)]  # fmt: skip


class BwdArgs(ctypes.Structure):
    """attn_bwd_args"""

    _fields_ = [("struct_size", ctypes.c_uint32), ("reserved", ctypes.c_uint32),
                ("problem", Problem), ("q", Tensor), ("k", Tensor), ("v", Tensor), ("o", Tensor),
                ("dout", Tensor), ("lse", ctypes.c_void_p), ("dq", Tensor), ("dk", Tensor),
                ("dv", Tensor), ("workspace", ctypes.c_void_p),
                ("workspace_size", ctypes.c_uint64)]  # fmt: skip


class BwdBuffers(ctypes.Structure):
    _fields_ = [("delta", ctypes.c_void_p), ("dq_acc", ctypes.c_void_p), ("dk", Tensor),
                ("dv", Tensor)]  # fmt: skip


class _KernelLaunch(ctypes.Structure):
    _fields_ = [("grid", ctypes.c_uint32 * 3), ("kernarg_size", ctypes.c_uint32),
                ("kernarg", ctypes.c_ubyte * 1024)]  # fmt: skip


class Features(ctypes.Structure):
    """What CK's kernels take beyond the C ABI (../sample/direct_args.h)."""

    _fields_ = [
        ("bias", ctypes.c_void_p), ("dbias", ctypes.c_void_p),
        ("bias_stride_batch", ctypes.c_int64), ("bias_stride_head", ctypes.c_int64),
        ("bias_stride_seq", ctypes.c_int64),
        ("logits_soft_cap", ctypes.c_float), ("p_drop", ctypes.c_float),
        ("drop_seed", ctypes.c_uint64), ("drop_offset", ctypes.c_uint64),
        ("min_seqlen_q", ctypes.c_int64), ("dq_acc_stride_split", ctypes.c_int64),
        ("splits", ctypes.c_int64), ("o_acc", ctypes.c_void_p), ("lse_acc", ctypes.c_void_p),
        ("block_table", ctypes.c_void_p), ("block_table_stride", ctypes.c_int64),
        ("page_size", ctypes.c_int64), ("seqlens_k", ctypes.c_void_p),
    ]  # fmt: skip


class _DirectArgs(ctypes.Structure):
    _fields_ = [("fwd", FwdArgs), ("bwd", BwdArgs), ("buffers", BwdBuffers),
                ("features", Features)]  # fmt: skip


_TEXTS = ("name", "kind", "dtype", "bias")
_NUMBERS = ("head_size_qk", "head_size_v", "tile_seqlen_q", "tile_seqlen_k", "block_size")
_FLAGS = ("group_mode", "mask", "bias_grad", "lse", "dropout", "logits_soft_cap",
          "skip_min_seqlen_q", "deterministic", "pad_seqlen_q", "pad_seqlen_k", "pad_head_size_qk",
          "pad_head_size_v", "paged_kv")  # fmt: skip


class _Instance(ctypes.Structure):
    """LaunchesInstance (launches.h)"""

    _fields_ = [
        *((name, ctypes.c_char_p) for name in _TEXTS),
        *((name, ctypes.c_int32) for name in _NUMBERS),
        *((name, ctypes.c_bool) for name in _FLAGS),
    ]


@dataclasses.dataclass(frozen=True)
class Instance:
    """A kernel instance: its name, which is its symbol too, and its traits."""

    index: int
    name: str
    kind: str
    dtype: str
    bias: str  # "none", "elementwise", "alibi"
    head_size_qk: int
    head_size_v: int
    tile_seqlen_q: int
    tile_seqlen_k: int
    block_size: int
    group_mode: bool
    mask: bool
    bias_grad: bool
    lse: bool
    dropout: bool
    logits_soft_cap: bool
    skip_min_seqlen_q: bool
    deterministic: bool
    pad_seqlen_q: bool
    pad_seqlen_k: bool
    pad_head_size_qk: bool
    pad_head_size_v: bool
    paged_kv: bool

    @property
    def symbol(self) -> str:
        return self.name

    def __str__(self) -> str:
        mode = "group" if self.group_mode else "batch"
        mask = "-mask" if self.mask else ""
        return f"{self.kind}-{self.dtype}-d{self.head_size_qk}-{mode}{mask}"


@dataclasses.dataclass(frozen=True)
class KernelArguments:
    grid: tuple[int, int, int]
    data: bytes


@functools.cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(os.path.abspath(os.environ["EMULATION_LAUNCHES"]))


@functools.cache
def instances() -> tuple[Instance, ...]:
    out = []
    for index in range(_library().launches_count()):
        row = _Instance()
        _library().launches_instance(index, ctypes.byref(row))
        texts = (getattr(row, name).decode() for name in _TEXTS)
        out.append(Instance(index, *texts, *(getattr(row, n) for n in (*_NUMBERS, *_FLAGS))))
    return tuple(out)


def _arguments(function: str, index: int, *structures: ctypes.Structure) -> KernelArguments:
    launch = _KernelLaunch()
    getattr(_library(), function)(index, *map(ctypes.byref, structures), ctypes.byref(launch))
    return KernelArguments(tuple(launch.grid), bytes(launch.kernarg[: launch.kernarg_size]))


def make_fwd(instance: Instance, args: FwdArgs) -> KernelArguments:
    args.struct_size = ctypes.sizeof(args)
    return _arguments("launches_make_fwd", instance.index, args)


def make_bwd(instance: Instance, args: BwdArgs, buffers: BwdBuffers) -> KernelArguments:
    args.struct_size = ctypes.sizeof(args)
    return _arguments("launches_make_bwd", instance.index, args, buffers)


def is_direct() -> bool:
    """Whether the library is one of ../sample, whose kernels make_direct launches."""
    return hasattr(_library(), "launches_make_direct")


def make_direct(
    instance: Instance, args: FwdArgs | BwdArgs, buffers: BwdBuffers | None, features: Features
) -> KernelArguments:
    """As make_fwd and make_bwd, for libraries of ../sample."""
    args.struct_size = ctypes.sizeof(args)
    direct = _DirectArgs(features=features)
    if isinstance(args, FwdArgs):
        direct.fwd = args
    else:
        direct.bwd, direct.buffers = args, buffers
    return _arguments("launches_make_direct", instance.index, direct)


@functools.cache
def _code_objects() -> dict[tuple[str, str], bytes]:
    """(arch, kernel symbol) -> code object."""
    out = {}
    for path in os.environ["EMULATION_CODE_OBJECTS"].split():
        data = Path(path).read_bytes()
        parsed = code_object.parse(data)
        for symbol in parsed.kernels:
            out[parsed.arch, symbol] = data
    return out


def code(instance: Instance, arch: str) -> bytes:
    return _code_objects()[arch, instance.symbol]


def archs() -> list[str]:
    return sorted({arch for arch, _ in _code_objects()})
