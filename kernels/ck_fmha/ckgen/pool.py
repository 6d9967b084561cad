# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""CK's fused-attention generator as data: every instance it knows, with its traits.

CK's generator describes instances by Python objects before it writes files. They are read here;
file names are never parsed. The pool is the one CK makes for its C++ attention interface
(receipt 600): fp16 and bf16, row-major v, no static quantisation.
"""

from __future__ import annotations

import dataclasses
import importlib
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from ckgen.schema import BWD, FWD, TraitValue

RECEIPT = 600
MASK_IMPLEMENTATION = "simplified"
WAVEFRONT_SIZE = 64

KIND_FWD = "fwd"
KIND_DOT_DO_O = "bwd_dot_do_o"
KIND_DQ_DK_DV = "bwd_dq_dk_dv"
KIND_CONVERT_DQ = "bwd_convert_dq"
CK_KINDS = (KIND_FWD, KIND_DOT_DO_O, KIND_DQ_DK_DV, KIND_CONVERT_DQ)

# The name, in CK's template, of the alias that is the kernel, and the alias that comes next: the
# one that connects the instance to CK's own dispatcher.
_KERNEL_ALIASES = {
    KIND_FWD: ("fmha_kernel", "trait"),
    KIND_DOT_DO_O: ("fmha_bwd_dot_do_o_kernel", "dot_do_o_trait"),
    KIND_DQ_DK_DV: ("fmha_bwd_dq_dk_dv_kernel", "dq_dk_dv_trait"),
    KIND_CONVERT_DQ: ("fmha_bwd_convert_dq_kernel", "convert_dq_trait"),
}

_BIAS = {"no": "none", "bias": "elementwise", "alibi": "alibi"}
_MASK = {"s_no": False, "s_mask": True}
_FLAG = {"t": True, "f": False}
# Threads per workgroup of the two elementwise backward kernels, fixed in CK's templates.
_DOT_DO_O_BLOCK = 64
_CONVERT_DQ_BLOCK = 256


class PoolError(Exception):
    """CK's generator says something that this reading of it does not know."""


@dataclasses.dataclass(frozen=True)
class Tile:
    """What each dimension must be a multiple of where it is not padded."""

    seqlen_q: int
    seqlen_k: int
    head_size_qk: int
    head_size_v: int


@dataclasses.dataclass(frozen=True)
class Instance:
    """One kernel instance.

    traits holds what the launch table records; a trait that the kind does not have is absent.
    render(index) is CK's source text up to and including the kernel's alias, whose aliases all end
    in _<index>.
    """

    name: str
    kind: str
    traits: Mapping[str, TraitValue]
    tile: Tile
    head_size_alignment: int
    block_size: int
    render: Callable[[int], str] = dataclasses.field(repr=False, compare=False)

    def kernel_alias(self, index: int) -> str:
        """The alias of the kernel type in render(index)."""
        return f"{_KERNEL_ALIASES[self.kind][0]}_{index}"


@dataclasses.dataclass(frozen=True)
class Candidate:
    """What CK's dispatcher picks as one: a forward instance, or the three of a backward pass."""

    direction: str
    traits: Mapping[str, TraitValue]
    instances: tuple[Instance, ...]
    ck_trait: Any = dataclasses.field(repr=False, compare=False)


class Pool:
    """Every candidate, in the order in which CK's dispatcher tries them.

    fmha_dir is CK's example folder that holds the `codegen` package.
    """

    def __init__(self, fmha_dir: Path):
        # The one environment variable that changes CK's tiles; the pool is the same everywhere.
        os.environ.pop("CK_TILE_FMHA_FWD_CUSTOM_FACTORY", None)
        self._fwd, self._bwd = _import_generator(fmha_dir)
        self.candidates: list[Candidate] = [*self._fwd_candidates(), *self._bwd_candidates()]

    def known_values(self) -> dict[str, list[TraitValue]]:
        """Per trait, the values that occur, sorted."""
        values: dict[str, set[TraitValue]] = {}
        for candidate in self.candidates:
            for name, value in candidate.traits.items():
                values.setdefault(name, set()).add(value)
        return {name: sorted(found) for name, found in values.items()}

    def fwd_dispatcher(self, candidates: list[Candidate]) -> str:
        """CK's own forward dispatcher, in C++, over some of the candidates."""
        pool = self._fwd.FmhaFwdApiPool(MASK_IMPLEMENTATION)
        for candidate in candidates:
            if candidate.direction == FWD:
                pool.register_traits(candidate.ck_trait)
        return str(pool.api)

    def bwd_dispatcher(self, candidates: list[Candidate]) -> str:
        """CK's own backward dispatcher, in C++, over some of the candidates."""
        pool = self._bwd.FmhaBwdApiPool(MASK_IMPLEMENTATION)
        for candidate in candidates:
            if candidate.direction == BWD:
                pool.register_dq_dk_dv_traits(candidate.ck_trait)
        return str(pool.api)

    def _fwd_candidates(self) -> list[Candidate]:
        _, kernels = self._fwd.get_fwd_blobs("", RECEIPT, [-1], MASK_IMPLEMENTATION)
        return [self._fwd_candidate(kernel) for kernel in kernels]

    def _fwd_candidate(self, kernel: Any) -> Candidate:
        tile, pipeline = kernel.F_tile, kernel.F_pipeline
        for constraint in (tile.F_constraint, pipeline.F_constraint):
            if str(constraint) != "true":
                raise PoolError(f"{kernel.name}: constraint {constraint} has no launch-table field")
        is_async = pipeline.tag == "qr_async"
        if not is_async and pipeline.tag != "qr":
            raise PoolError(f"{kernel.name}: unknown pipeline {pipeline.tag}")
        # CK holds both head sizes against the width in which q is loaded.
        head_size_unit = self._fwd.K0_MAX_SUBMAX_MAP.get(tile.F_bk0max, tile.F_bk0max)
        traits: dict[str, TraitValue] = {
            "dtype": kernel.F_dtype,
            "head_size_qk": kernel.F_hdim,
            "head_size_v": tile.F_bn1,
            "mode": kernel.F_mode,
            "mask": _MASK[pipeline.F_mask],
            "bias": _BIAS[pipeline.F_bias],
            "dropout": _FLAG[pipeline.F_dropout],
            "lse": _FLAG[pipeline.F_lse],
            "logits_soft_cap": _FLAG[pipeline.F_logits],
            "skip_min_seqlen_q": _FLAG[pipeline.F_skip],
            "pad_seqlen_q": _FLAG[pipeline.F_spad],
            "pad_seqlen_k": _FLAG[pipeline.F_skpad],
            "pad_head_size_qk": _FLAG[pipeline.F_dpad],
            "pad_head_size_v": _FLAG[pipeline.F_dvpad],
        }
        instance = Instance(
            name=kernel.name,
            kind=KIND_FWD,
            traits=traits,
            tile=Tile(tile.F_bm0, tile.F_bn0, head_size_unit, head_size_unit),
            # Asynchronous copies move 16 bytes at a time; the other pipeline copies by element.
            head_size_alignment=128 // self._fwd.DTYPE_BITS[kernel.F_dtype] if is_async else 1,
            block_size=tile.F_rm0 * tile.F_rn0 * tile.F_rk0 * WAVEFRONT_SIZE,
            render=_renderer(kernel, KIND_FWD),
        )
        return Candidate(FWD, traits, (instance,), kernel.api_trait())

    def _bwd_candidates(self) -> list[Candidate]:
        api_pool, *_ = self._bwd.get_bwd_blobs("", RECEIPT, MASK_IMPLEMENTATION, [-1])
        candidates = []
        for by_head_size in api_pool.dq_dk_dv_pool.values():
            for traits in by_head_size.values():
                # Instances that write out their random numbers are CK's debugging aid.
                candidates += [
                    self._bwd_candidate(trait)
                    for trait in traits
                    if not trait.dropout.endswith("storerandval")
                ]
        return candidates

    def _bwd_candidate(self, trait: Any) -> Candidate:
        tile = trait.tile
        common: dict[str, TraitValue] = {
            "dtype": trait.dtype,
            "head_size_qk": trait.hdim,
            "head_size_v": trait.hdim,
            "mode": trait.mode,
        }
        pad_q = {"pad_seqlen_q": _FLAG[trait.spad]}
        pad_q1 = {"pad_seqlen_q": _FLAG[trait.spad1]}
        pad_qk = {"pad_head_size_qk": _FLAG[trait.dpad]}
        pad_v = {"pad_head_size_v": _FLAG[trait.dvpad]}
        deterministic = {"deterministic": _FLAG[trait.deterministic]}
        traits = {
            **common,
            "mask": _MASK[trait.mask],
            "bias": _BIAS[trait.bias],
            "bias_grad": _FLAG[trait.dbias],
            "dropout": trait.dropout != "no",
            **deterministic,
            **pad_q,
            "pad_seqlen_k": _FLAG[trait.skpad],
            **pad_qk,
            **pad_v,
        }
        dot_do_o = trait.dot_do_o_kernel
        dq_dk_dv = trait.dq_dk_dv_kernel
        # CK's dispatcher asks for the convert kernel that pads as dot_do_o does.
        convert_dq = dataclasses.replace(trait.convert_dq_kernel, F_spad=trait.spad1)
        instances = (
            Instance(
                name=dot_do_o.name,
                kind=KIND_DOT_DO_O,
                traits={**common, **pad_q1, **pad_v},
                tile=Tile(_DOT_DO_O_BLOCK, 0, 0, trait.bhdv),
                head_size_alignment=1,
                block_size=_DOT_DO_O_BLOCK,
                render=_renderer(dot_do_o, KIND_DOT_DO_O),
            ),
            Instance(
                name=dq_dk_dv.name,
                kind=KIND_DQ_DK_DV,
                traits=traits,
                tile=Tile(tile.F_bm0, tile.F_bn0, trait.bhdq, trait.bhdv),
                head_size_alignment=1,
                block_size=tile.F_rm0 * tile.F_rn0 * tile.F_rk0 * WAVEFRONT_SIZE,
                render=_renderer(dq_dk_dv, KIND_DQ_DK_DV),
            ),
            Instance(
                name=convert_dq.name,
                kind=KIND_CONVERT_DQ,
                traits={**common, **deterministic, **pad_q1, **pad_qk},
                tile=Tile(convert_dq.F_bm0, convert_dq.F_bn0, trait.bhdq, 0),
                head_size_alignment=1,
                block_size=_CONVERT_DQ_BLOCK,
                render=_renderer(convert_dq, KIND_CONVERT_DQ),
            ),
        )
        return Candidate(BWD, traits, instances, trait)


def _import_generator(fmha_dir: Path) -> tuple[ModuleType, ModuleType]:
    if not (fmha_dir / "codegen" / "ops" / "fmha_fwd.py").is_file():
        raise PoolError(f"{fmha_dir}: no codegen/ops/fmha_fwd.py: not CK's 01_fmha example folder")
    sys.path.insert(0, str(fmha_dir))
    try:
        fwd = importlib.import_module("codegen.ops.fmha_fwd")
        bwd = importlib.import_module("codegen.ops.fmha_bwd")
    finally:
        sys.path.remove(str(fmha_dir))
    return fwd, bwd


def _renderer(kernel: Any, kind: str) -> Callable[[int], str]:
    """A function index -> CK's text for the kernel, cut behind the kernel's alias."""

    def render(index: int) -> str:
        alias, successor = (f"using {name}_{index} =" for name in _KERNEL_ALIASES[kind])
        text = str(dataclasses.replace(kernel, F_idx=index).template)
        head, found, _ = text.partition(successor)
        if not found or alias not in head:
            raise PoolError(f"{kernel.name}: CK's template has no {alias!r} before {successor!r}")
        return head.rstrip() + "\n"

    return render
