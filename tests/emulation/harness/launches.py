# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The launch table through ctypes: instances, and the arguments of their kernels.

Traits come from the table of traits, structs from the library itself: nothing here repeats them.
"""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kernels.launch_table.traits import TABLE, Trait, TraitValue
from tests.emulation.harness.structs import structures

_MOST_KERNARG_BYTES = 4096


@dataclasses.dataclass(frozen=True)
class Instance:
    """A row of the launch table. Its name is the kernel's symbol, too.

    `traits` are by field of C++'s Traits, and attributes as well: instance.mask, instance.dtype.
    A trait that its kind does not have is False, 0 or the first of an enum's names.
    """

    index: int
    name: str
    kind: str
    tile_seqlen_q: int
    tile_seqlen_k: int
    traits: Mapping[str, TraitValue] = dataclasses.field(hash=False, compare=False, repr=False)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["traits"][name]
        except KeyError:
            raise AttributeError(f"{name!r}: no trait of a kernel") from None

    def named_traits(self) -> dict[str, TraitValue]:
        """Those that its kind has, by name, with the values that the table of traits has."""
        own = {n: trait for n, trait in TABLE.traits.items() if self.kind in trait.kinds}
        values = {name: self.traits[trait.field] for name, trait in own.items()}
        return {n: own[n].values[bool(v)] if own[n].is_flag else v for n, v in values.items()}

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
    library = ctypes.CDLL(os.path.abspath(os.environ["EMULATION_LAUNCHES"]))
    library.launches_name.restype = ctypes.c_char_p
    return library


@functools.cache
def _structs() -> tuple[type[ctypes.Structure], ...]:
    path = Path(os.environ["EMULATION_LAUNCHES"])
    return structures(path, ("Row", "Launch", "LaunchArgs", "attn_tensor"))


def launch_args() -> Any:
    """A LaunchArgs (kernels/launch_table/launch_table.h), all zero."""
    return _structs()[2]()


def tensor(address: int, stride_batch: int, stride_seq: int, stride_head: int) -> Any:
    """An attn_tensor; strides in elements."""
    return _structs()[3](address, stride_batch, stride_seq, stride_head)


def _trait(trait: Trait, number: int) -> TraitValue:
    if trait.is_size:
        return number
    if trait.is_flag:
        return bool(number)
    return next((name for name, n in TABLE.enums[trait.type].items() if n == number), "")


@functools.cache
def instances() -> tuple[Instance, ...]:
    out, kinds = [], list(TABLE.kinds)
    for index in range(_library().launches_count()):
        row: Any = _structs()[0]()
        _library().launches_row(index, ctypes.byref(row))
        traits = {
            trait.field: _trait(trait, getattr(row.traits, trait.field))
            for trait in TABLE.traits.values()
        }
        name = _library().launches_name(index).decode()
        kind = kinds[row.traits.kind]
        out.append(Instance(index, name, kind, row.tile_seqlen_q, row.tile_seqlen_k, traits))
    return tuple(out)


def make(instance: Instance, args: Any) -> KernelArguments:
    """The grid, block and kernel arguments that the instance's launch function makes of a
    LaunchArgs."""
    kernarg = (ctypes.c_uint64 * (_MOST_KERNARG_BYTES // 8))()
    launch: Any = _structs()[1](kernarg=ctypes.addressof(kernarg))
    _library().launches_make(instance.index, ctypes.byref(args), ctypes.byref(launch))
    return KernelArguments(tuple(launch.grid), bytes(kernarg)[: launch.kernarg_size])
