# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The launch table through ctypes: instances, kernel arguments, code objects."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import os
from pathlib import Path

from gfxemu import code_object

KINDS = ("fwd", "bwd_dot_do_o", "bwd_dq_dk_dv", "bwd_convert_dq", "sum_heads")
DTYPES = {1: "fp16", 2: "bf16"}


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


class _Instance(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("symbol", ctypes.c_char_p)] + [
        (n, ctypes.c_int32)
        for n in ("kind", "dtype", "head_size", "group_mode", "mask", "tile_seqlen_q",
                  "tile_seqlen_k", "block_size")
    ]  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Instance:
    index: int
    name: str
    symbol: str
    kind: str
    dtype: str
    head_size: int
    group_mode: bool
    mask: bool
    tile_seqlen_q: int
    tile_seqlen_k: int
    block_size: int

    def __str__(self) -> str:
        mode = "group" if self.group_mode else "batch"
        mask = "-mask" if self.mask else ""
        return f"{self.kind}-{self.dtype}-d{self.head_size}-{mode}{mask}"


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
        out.append(
            Instance(index, row.name.decode(), row.symbol.decode(), KINDS[row.kind],
                     DTYPES[row.dtype], row.head_size, bool(row.group_mode), bool(row.mask),
                     row.tile_seqlen_q, row.tile_seqlen_k, row.block_size)
        )  # fmt: skip
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
