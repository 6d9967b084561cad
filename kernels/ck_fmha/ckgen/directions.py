# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The directions of upstream's fused attention: how its generator describes each of them.

Upstream describes instances by Python objects before it writes files. They are read here; file
names are never parsed. Traits are read by the table of traits (kernels/launch_table/traits.toml);
the other facts of a kind are in KINDS, those of a direction in DIRECTIONS. A new one is
an entry of each, and its launch code.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from kernels.launch_table.traits import TABLE, TraitValue

# Upstream's filter for its C++ interface: fp16, bf16, and fp8 with bf16 results of one head size.
RECEIPT = 600
# No filter. It is what lists fp8 with each dtype of results, with static quantisation and without.
_RECEIPT_OF_ALL = 0


@dataclasses.dataclass(frozen=True)
class _Target:
    """Archs for which upstream has the same kernels, but for further ones of some.

    most           upstream's name of the arch that has the forward and backward kernels of all
                   these, in the order in which it tries them
    batch_prefill  whether upstream has kernels of batch prefill for them
    """

    most: str
    batch_prefill: bool


# Upstream's name of archs, the start of theirs. Its text for gfx9 is the same for gfx950, which has
# further kernels, of forward and backward with transposed loads.
_TARGETS = {
    "gfx9": _Target(most="gfx950", batch_prefill=True),
    "gfx12": _Target(most="gfx12", batch_prefill=False),
}
TARGETS = tuple(_TARGETS)
_TRANSPOSED = "qr_async_trload"  # the pipeline with transposed loads
_DTYPES = ("fp16", "bf16")
_FP8 = "fp8"  # with results of fp8; the others are there as upstream lists them
MASK_IMPLEMENTATION = "simplified"
HOST_WAVE_SIZE = 64  # in upstream's headers, as host code includes them

_EVERY_HEAD_SIZE = [-1]


class PoolError(Exception):
    """Upstream's generator says something that this reading of it does not know."""


@dataclasses.dataclass(frozen=True)
class Kind:
    """The particulars of the kernels of one kind.

    kernel  the kernel's type in upstream's text
    end     where that text goes on to upstream's dispatcher, which is cut off
    launch  the function template of launch/ that makes its arguments and grid
    header  where that is
    """

    kernel: str
    end: str
    launch: str
    header: str


KINDS = {
    "fwd": Kind("fmha_kernel_0", "using trait_0 =", "fwd_launch", "fwd.h"),
    "bwd_dot_do_o": Kind(
        "fmha_bwd_dot_do_o_kernel_0",
        "using dot_do_o_trait_0 =",
        "bwd_dot_do_o_launch",
        "bwd.h",
    ),
    "bwd_dq_dk_dv": Kind(
        "fmha_bwd_dq_dk_dv_kernel_0",
        "using dq_dk_dv_trait_0 =",
        "bwd_dq_dk_dv_launch",
        "bwd.h",
    ),
    "bwd_convert_dq": Kind(
        "fmha_bwd_convert_dq_kernel_0",
        "using convert_dq_trait_0 =",
        "bwd_convert_dq_launch",
        "bwd.h",
    ),
    # Upstream's text of both split kernels has a class template: the form for any length of keys,
    # and that for up to 2**3 splits.
    "fwd_splitkv": Kind(
        "instance<true>::fmha_kernel", "using trait_0 =", "fwd_splitkv_launch", "splitkv.h"
    ),
    "fwd_splitkv_combine": Kind(
        "instance<3>::fmha_kernel",
        "using trait_0 =",
        "fwd_splitkv_combine_launch",
        "splitkv.h",
    ),
    "fwd_pagedkv": Kind("fmha_kernel_0", "using trait_0 =", "fwd_pagedkv_launch", "pagedkv.h"),
    "fwd_appendkv": Kind("fmha_kernel_0", "using trait_0 =", "fwd_appendkv_launch", "appendkv.h"),
    "fwd_batch_prefill": Kind(
        "fmha_kernel_0", "using trait_0 =", "fwd_batch_prefill_launch", "batch_prefill.h"
    ),
    "fwd_v3": Kind("kernel_traits::kernel", "INST_FMHA_FWD_V3_DISPATCH", "fwd_v3_launch", "v3.h"),
}


@dataclasses.dataclass(frozen=True)
class Tile:
    """The numbers that each dimension must be a multiple of where it is not padded; 0: none."""

    seqlen_q: int = 0
    seqlen_k: int = 0
    head_size_qk: int = 0
    head_size_v: int = 0


# Traits that take registers of their own.
_COSTLY = ("bias", "bias_grad", "deterministic", "dropout", "logits_soft_cap")


@dataclasses.dataclass(frozen=True)
class Instance:
    """One kernel instance: `upstream` is its description by upstream's generator."""

    name: str
    kind: str
    traits: Mapping[str, TraitValue]
    tile: Tile
    block: Mapping[str, int]  # {"waves": number} or {"work_items": number} per workgroup
    upstream: Any = dataclasses.field(repr=False, compare=False)
    head_size_alignment: int = 1
    tag: str = ""  # of upstream's pipeline, where a kind has several
    scaled: bool = False  # static quantisation: it takes the scales of fp8

    @property
    def pipeline(self) -> str:
        """The pipeline that options of code generation go by: fwd_qr, fwd_qr_async+alibi+dropout,
        ..."""
        values = {trait: self.traits.get(trait) for trait in _COSTLY}
        extras = [
            # ALiBi is computed where an elementwise bias is loaded.
            "alibi" if value == "alibi" else trait
            for trait, value in values.items()
            if value not in (None, False, "none")
        ]
        return "+".join(["_".join(filter(None, (self.kind, self.tag))), *extras])

    def text(self) -> str:
        """Upstream's source up to and including the kernel's type, KINDS[kind].kernel."""
        head, found, _ = self.upstream.template.partition(KINDS[self.kind].end)
        if not found:
            raise PoolError(f"{self.name}: upstream's text has no {KINDS[self.kind].end!r}")
        lines = [line for line in head.splitlines() if line not in _unused(self.upstream)]
        return "\n".join(lines).rstrip() + "\n"


def _unused(described: Any) -> tuple[str, ...]:
    """Lines of upstream's text: it leaves an instance out where it is compiled for another arch
    than its own, and a code object is for one; its printing is cut off."""
    arch = getattr(described, "F_arch", None)
    check = arch and f"#if !defined(__HIP_DEVICE_COMPILE__) || ({arch.preprocessor_check})"
    return ("#include <iostream>", check or "")[: 2 if check else 1]


@dataclasses.dataclass(frozen=True)
class Candidate:
    """The instances that upstream's dispatcher picks together; `api_trait` is their entry there.

    target  the archs that upstream has it for, one of TARGETS
    """

    direction: str
    traits: Mapping[str, TraitValue]
    instances: tuple[Instance, ...]
    api_trait: Any = dataclasses.field(repr=False, compare=False)
    target: str = TARGETS[0]


def read_traits(kind: str, described: Any) -> dict[str, TraitValue]:
    """The traits of a kind, of an object of upstream's generator. Raises PoolError."""
    out: dict[str, TraitValue] = {}
    for name, trait in TABLE.of_kind(kind).items():
        if not trait.kinds[kind]:
            continue  # no field of upstream's
        value = operator.attrgetter(trait.kinds[kind])(described)
        if not trait.is_size and str(value) not in trait.upstream:
            raise PoolError(f"{kind}: unknown value {value!r} of {trait.kinds[kind]}")
        out[name] = int(value) if trait.is_size else trait.upstream[str(value)]
    return out


def _waves(tile: Any) -> dict[str, int]:
    return {"waves": tile.F_rm0 * tile.F_rn0 * tile.F_rk0}


def _forward_instance(module: ModuleType, kind: str, kernel: Any, **more: TraitValue) -> Instance:
    """more: its traits that are no field of upstream's."""
    tile, pipeline = kernel.F_tile, kernel.F_pipeline
    for constraint in (tile, pipeline):
        if str(getattr(constraint, "F_constraint", "true")) != "true":
            raise PoolError(f"{kernel.name}: a constraint has no launch-table field")
    if pipeline.tag not in ("qr", "qr_async", "qr_pagedkv", _TRANSPOSED):
        raise PoolError(f"{kernel.name}: unknown pipeline {pipeline.tag}")
    # Upstream holds both head sizes against the width in which q is loaded.
    head_size_unit = module.K0_MAX_SUBMAX_MAP.get(tile.F_bk0max, tile.F_bk0max)
    # Asynchronous copies move 16 bytes at a time; the other pipelines copy by element.
    is_async = pipeline.tag in ("qr_async", _TRANSPOSED)
    alignment = 128 // module.DTYPE_BITS[kernel.F_dtype] if is_async else 1
    traits = read_traits(kind, kernel)
    if pipeline.tag == _TRANSPOSED:
        # Named without them, and dispatched for any lengths: its buffers end with the sequences.
        traits |= {"pad_seqlen_q": True, "pad_seqlen_k": True}
    return Instance(
        name=kernel.name,
        kind=kind,
        traits=traits | more,
        tile=Tile(tile.F_bm0, tile.F_bn0, head_size_unit, head_size_unit),
        block=_waves(tile),
        upstream=kernel,
        head_size_alignment=alignment,
        tag=pipeline.tag,
        scaled=getattr(pipeline, "F_squant", "f") == "t",
    )


def _other(kernel: Any, **fields: str) -> Any:
    """Another kernel: upstream's sources have it, and its lists had it once."""
    return dataclasses.replace(kernel, F_pipeline=dataclasses.replace(kernel.F_pipeline, **fields))


def _with_columns(kernel: Any) -> Iterator[Any]:
    """The kernels of fp8 to fp8, whose v lies by columns, beside one for rows."""
    if kernel.F_pipeline.F_spad == "f":
        for logits in ("f", "t") if kernel.F_pipeline.F_bias == "no" else ("f",):
            yield _other(kernel, F_vlayout="col", F_logits=logits)


def _listed_fwd(module: ModuleType, target: str) -> list[Any]:
    """Those of the target's archs in the order in which the arch that has them all tries them."""
    rest = ("", RECEIPT, _EVERY_HEAD_SIZE, MASK_IMPLEMENTATION)
    with_all = _TARGETS[target].most
    _, common = module.get_fwd_blobs([target], *rest)
    _, every = module.get_fwd_blobs([with_all], *rest)
    by_name = {kernel.name: kernel for kernel in common}
    if not by_name.keys() <= {kernel.name for kernel in every}:
        raise PoolError(f"{with_all} lacks a kernel of forward that others of {target} have")
    return [by_name.get(kernel.name, kernel) for kernel in every if kernel.F_dtype in _DTYPES]


def _sizes(kernel: Any) -> tuple[str, int, int]:
    return kernel.F_dtype, kernel.F_hdim, kernel.F_tile.F_bn1


def _fwd(module: ModuleType, target: str) -> Iterator[Candidate]:
    rest = (_EVERY_HEAD_SIZE, MASK_IMPLEMENTATION)
    _, scaled = module.get_fwd_blobs([target], "*_fp8*_squant_*", _RECEIPT_OF_ALL, *rest)
    listed = _listed_fwd(module, target)
    by_columns = map(_with_columns, (kernel for kernel in scaled if kernel.F_dtype == _FP8))
    by_rows = [kernel for kernel in scaled if kernel.F_dtype != _FP8]
    kernels = [*listed, *itertools.chain.from_iterable(by_columns), *by_rows]
    # Those with the greatest tile of queries serve any number, the others what is in one tile.
    greatest: dict[tuple[str, int, int], int] = {}
    for kernel in kernels:
        greatest[_sizes(kernel)] = max(greatest.get(_sizes(kernel), 0), kernel.F_tile.F_bm0)
    tried: set[frozenset[tuple[str, TraitValue]]] = set()
    for kernel in kernels:
        rows = kernel.F_tile.F_bm0
        most = 0 if rows == greatest[_sizes(kernel)] else rows
        instance = _forward_instance(module, "fwd", kernel, max_seqlen_q=most)
        exact = frozenset(
            (name, value)
            for name, value in instance.traits.items()
            if TABLE.traits[name].in_exact_key
        )
        # Upstream lists these behind others for the same problems, and so it never picks them but
        # for head sizes that their copies of 16 bytes do not fit.
        if instance.traits["transposed_loads"] and exact in tried:
            continue
        if not instance.traits["transposed_loads"]:
            tried.add(exact)
        yield Candidate("fwd", instance.traits, (instance,), kernel.api_trait())


def _fwd_pagedkv(module: ModuleType, target: str) -> Iterator[Candidate]:
    _, kernels = module.get_fwd_blobs([target], "", RECEIPT, _EVERY_HEAD_SIZE, MASK_IMPLEMENTATION)
    for listed in kernels:
        for kernel in (_other(listed, F_skip="t"), listed):
            instance = _forward_instance(module, "fwd_pagedkv", kernel)
            yield Candidate("fwd_pagedkv", instance.traits, (instance,), kernel.api_trait())


_COMBINE_WAVES, _COMBINE_TILE = 4, 32  # fixed in upstream's templates


def _fwd_splitkv(module: ModuleType, target: str) -> Iterator[Candidate]:
    combines = {}
    for kernel in module.get_fwd_splitkv_combine_blobs([target], "", RECEIPT, _EVERY_HEAD_SIZE):
        instance = Instance(
            name=kernel.name,
            kind="fwd_splitkv_combine",
            traits=read_traits("fwd_splitkv_combine", kernel),
            tile=Tile(seqlen_q=_COMBINE_TILE),
            block={"waves": _COMBINE_WAVES},
            upstream=kernel,
        )
        combines[frozenset(instance.traits.items())] = instance
    for kernel in module.get_fwd_splitkv_blobs(
        [target], "", RECEIPT, MASK_IMPLEMENTATION, _EVERY_HEAD_SIZE
    ):
        split = _forward_instance(module, "fwd_splitkv", kernel)
        for lse in (True, False):
            traits = {**split.traits, "lse": lse}
            wanted = {name: traits[name] for name in TABLE.of_kind("fwd_splitkv_combine")}
            combine = combines[frozenset(wanted.items())]
            api_trait = _splitkv_api_trait(module, kernel, combine.upstream)
            yield Candidate("fwd_splitkv", traits, (split, combine), api_trait)


def _splitkv_api_trait(module: ModuleType, kernel: Any, combine: Any) -> Any:
    """The entry of a dispatcher, which upstream makes where it writes one."""
    fields = {
        "arch": kernel.F_arch,
        "pipeline_tag": kernel.F_pipeline.tag,
        "bn1comb": combine.F_tile.F_bn1,
    }
    for field in dataclasses.fields(module.FmhaFwdSplitKVApiTrait):
        for part in (kernel, kernel.F_tile, kernel.F_pipeline):
            if field.name not in fields and hasattr(part, f"F_{field.name}"):
                fields[field.name] = getattr(part, f"F_{field.name}")
    return module.FmhaFwdSplitKVApiTrait(**fields)


_APPEND_BLOCK = {"work_items": 256}  # fixed in upstream's headers


def _fwd_appendkv(module: ModuleType, target: str) -> Iterator[Candidate]:
    # Upstream's filter is not applied to what appends: fp8 is listed too.
    _, kernels = module.get_fwd_appendkv_blobs(
        [target], "", RECEIPT, MASK_IMPLEMENTATION, _EVERY_HEAD_SIZE
    )
    for kernel in kernels:
        if kernel.F_dtype not in _DTYPES:
            continue
        tile = kernel.F_tile
        instance = Instance(
            name=kernel.name,
            kind="fwd_appendkv",
            traits=read_traits("fwd_appendkv", kernel),
            tile=Tile(tile.F_bs, tile.F_bsk, tile.F_bd, tile.F_bdv),
            block=_APPEND_BLOCK,
            upstream=kernel,
        )
        yield Candidate("fwd_appendkv", instance.traits, (instance,), kernel.api_trait())


def _fwd_batch_prefill(module: ModuleType, target: str) -> Iterator[Candidate]:
    if not _TARGETS[target].batch_prefill:
        return  # upstream has one list, whichever the arch
    _, kernels = module.get_fwd_blobs("", RECEIPT, _EVERY_HEAD_SIZE, MASK_IMPLEMENTATION)
    for kernel in kernels:
        # Each is there once more with a smaller tile of queries, for calls that leave compute units
        # idle: how many there are is known at run time only. The larger tile serves them, too.
        if str(kernel.F_tile.F_constraint) != "true":
            continue
        instance = _forward_instance(module, "fwd_batch_prefill", kernel)
        yield Candidate("fwd_batch_prefill", instance.traits, (instance,), kernel.api_trait())


@dataclasses.dataclass(frozen=True)
class _V3:
    """A kernel that upstream's generator does not know: its sources are checked in."""

    template: str


# The tile and the traits of all of them are fixed in upstream's header.
_V3_HEAD_SIZE = 128
_V3_TRAITS: dict[str, TraitValue] = {
    "head_size_qk": _V3_HEAD_SIZE,
    "head_size_v": _V3_HEAD_SIZE,
    "window": False,
    "bias": "none",
    "lse": False,
    "dropout": False,
    "logits_soft_cap": False,
    "skip_min_seqlen_q": False,
    "pad_seqlen_q": True,
    "pad_seqlen_k": True,
    "pad_head_size_qk": False,
    "pad_head_size_v": False,
    "transposed_loads": True,
}
_V3_TILE = Tile(256, 32, _V3_HEAD_SIZE, _V3_HEAD_SIZE)
_V3_TEXT = """#include "fmha_fwd_v3_impl.hpp"

using kernel_traits = ck_tile::fmha_fwd_v3_kernel_traits<
    ck_tile::fmha_fwd_v3_args::data_type_enum::{dtype}, {lengths}, {mask}>;
INST_FMHA_FWD_V3_DISPATCH(kernel_traits)
"""
_V3_CHOICE = re.compile(
    r"fmha_fwd_v3_kernel_traits<fmha_fwd_v3_args::data_type_enum::(\w+), (\w+), (\w+)>"
)


# As upstream's dispatcher answers where it has no kernel.
_NO_V3 = """#include "fmha_fwd_v3.hpp"

namespace ck_tile {
std::pair<bool, float> fmha_fwd_v3(const fmha_fwd_v3_args&, const stream_config&)
{
    return std::make_pair(false, -1.f);
}
} // namespace ck_tile
"""


def _fmha_folder(module: ModuleType) -> Path:
    """Upstream's 01_fmha folder, of a module of its codegen.ops."""
    return Path(str(module.__file__)).parents[2]


def _fwd_v3(module: ModuleType, target: str) -> Iterator[Candidate]:
    if target != TARGETS[0]:
        return
    for file in sorted(_fmha_folder(module).glob("instances/fmha_fwd_v3_*.cpp")):
        text = file.read_text("utf-8")
        chosen = _V3_CHOICE.search(text)
        if not chosen or chosen[1] not in _DTYPES or {*chosen.groups()[1:]} - {"true", "false"}:
            raise PoolError(f"{file.name}: no choice of a dtype, lengths and a mask")
        dtype, mode = chosen[1], "group" if chosen[2] == "true" else "batch"
        traits = {**_V3_TRAITS, "dtype": dtype, "mode": mode, "mask": chosen[3] == "true"}
        instance = Instance(
            name=file.stem,
            kind="fwd_v3",
            traits=traits,
            tile=_V3_TILE,
            block={"waves": 8},
            upstream=_V3(_V3_TEXT.format(dtype=chosen[1], lengths=chosen[2], mask=chosen[3])),
            head_size_alignment=_V3_HEAD_SIZE,
        )
        yield Candidate("fwd_v3", traits, (instance,), api_trait=None)


# Work-items per workgroup of the two elementwise backward kernels, fixed in upstream's templates.
_DOT_DO_O_BLOCK, _CONVERT_DQ_BLOCK = 64, 256


def _listed_bwd(module: ModuleType, arch: str) -> list[Any]:
    api_pool, *_ = module.get_bwd_blobs([arch], "", RECEIPT, MASK_IMPLEMENTATION, _EVERY_HEAD_SIZE)
    return [
        trait
        for by_dtype in api_pool.dq_dk_dv_pool.values()
        for by_head_size in by_dtype.values()
        for traits in by_head_size.values()
        for trait in sorted(traits, key=api_pool.max_seq_q_sort_key)
    ]


def _bwd(module: ModuleType, target: str) -> Iterator[Candidate]:
    """In the order in which the arch that has them all tries them."""
    with_all = _TARGETS[target].most
    common = {dataclasses.replace(trait, arch=None): trait for trait in _listed_bwd(module, target)}
    every = {
        dataclasses.replace(trait, arch=None): trait for trait in _listed_bwd(module, with_all)
    }
    if not common.keys() <= every.keys():
        raise PoolError(f"{with_all} lacks a kernel of backward that others of {target} have")
    yield from map(bwd_candidate, filter(_is_candidate, (every | common).values()))


def _is_candidate(trait: Any) -> bool:
    """Not those that write out their random numbers, upstream's debugging aid; nor those that check
    one head size by elements and the other by 8 of them, where checking both by elements serves;
    nor those for few queries that read an elementwise bias: behind each tile of keys they go on to
    further rows of it, and not to the keys of the next tile."""
    wrong_bias = trait.bias == "bias" and trait.tile.max_seq_q != 0
    is_aid = trait.dropout.endswith("storerandval")
    return not wrong_bias and not is_aid and {trait.dpad, trait.dvpad} != {1, 8}


def _bwd_pipeline(trait: Any) -> str:
    """The pipeline that upstream's headers choose (block_fmha_bwd_dq_dk_dv_pipeline_selector)."""
    if trait.tr_load == "t":
        return "trload_qr_qtr_dor" if trait.tile.max_seq_q else "trload_kr_ktr_vr"
    return "kr_ktr_vr" if 1 in (trait.dpad, trait.dvpad) else "kr_ktr_vr_iglp"


def _max_seqlen_k(trait: Any) -> int:
    """The most keys that upstream's dispatcher takes it for; 0: any number."""
    if not trait.extra_cond:
        return 0
    found = re.fullmatch(r" && \(a\.seqlen_k <= (\d+)\)", trait.extra_cond)
    if not found:
        raise PoolError(
            f"{trait.dq_dk_dv_kernel.name}: {trait.extra_cond!r} has no launch-table field"
        )
    return int(found[1])


def _head_size_step(trait: Any) -> int:
    """Padded head sizes must be a multiple of it."""
    return 8 if 8 in (trait.dpad, trait.dvpad) else 1


def bwd_candidate(trait: Any) -> Candidate:
    """Upstream's entry of its dispatcher as a candidate."""
    tile = trait.tile
    dot_do_o, dq_dk_dv = trait.dot_do_o_kernel, trait.dq_dk_dv_kernel
    convert_dq = trait.convert_dq_kernel
    described = {
        "bwd_dot_do_o": (
            dot_do_o,
            Tile(_DOT_DO_O_BLOCK, 0, 0, trait.bhdv),
            {"work_items": _DOT_DO_O_BLOCK},
        ),
        "bwd_dq_dk_dv": (
            dq_dk_dv,
            Tile(tile.F_bm0, tile.F_bn0, trait.bhdq, trait.bhdv),
            _waves(tile),
        ),
        "bwd_convert_dq": (
            convert_dq,
            Tile(convert_dq.F_bm0, convert_dq.F_bn0, trait.bhdq, 0),
            {"work_items": _CONVERT_DQ_BLOCK},
        ),
    }
    step = _head_size_step(trait)
    main = {
        **read_traits("bwd_dq_dk_dv", trait),
        "head_size_step": step,
        "max_seqlen_k": _max_seqlen_k(trait),
    }
    # It writes dq itself.
    if convert_dq.disabled:
        del described["bwd_convert_dq"]
    instances = tuple(
        Instance(
            # A symbol: upstream's names may have an occupancy of -1.
            kernel.name.replace("-", "m"),
            kind,
            main if kernel is dq_dk_dv else read_traits(kind, trait),
            kernel_tile,
            block,
            kernel,
            head_size_alignment=step if kernel is dq_dk_dv else 1,
            tag=_bwd_pipeline(trait) if kernel is dq_dk_dv else "",
        )
        for kind, (kernel, kernel_tile, block) in described.items()
    )
    traits = {**read_traits("bwd_dot_do_o", trait), **main}
    return Candidate("bwd", traits, instances, trait)


@dataclasses.dataclass(frozen=True)
class Direction:
    """A direction in upstream's generator.

    module      of upstream's codegen.ops
    candidates  from that module for one of TARGETS, in the order in which upstream's dispatcher
                tries them
    api_pool    its class that writes the dispatcher, and the method that takes an api_trait;
                None: the dispatcher is checked in, too
    """

    module: str
    candidates: Callable[[ModuleType, str], Iterator[Candidate]]
    api_pool: tuple[str, str] | None

    def dispatcher(self, module: ModuleType, candidates: list[Candidate]) -> str:
        """Upstream's dispatcher, in C++, over some of the direction's candidates."""
        if not self.api_pool:
            known = _fmha_folder(module).joinpath("fmha_fwd_v3.cpp").read_text("utf-8")
            return known if candidates else _NO_V3
        cls, register = self.api_pool
        pool = getattr(module, cls)(MASK_IMPLEMENTATION)
        # Candidates of split keys with an lse and without have one entry, which is asked for both.
        entries = {repr(candidate.api_trait): candidate.api_trait for candidate in candidates}
        for entry in entries.values():
            getattr(pool, register)(entry)
        return str(pool.api)


DIRECTIONS = {
    "fwd": Direction("fmha_fwd", _fwd, ("FmhaFwdApiPool", "register_traits")),
    "bwd": Direction("fmha_bwd", _bwd, ("FmhaBwdApiPool", "register_dq_dk_dv_traits")),
    "fwd_splitkv": Direction(
        "fmha_fwd_splitkv", _fwd_splitkv, ("FmhaFwdSplitKVApiPool", "register_traits")
    ),
    "fwd_pagedkv": Direction(
        "fmha_pagedkv_prefill", _fwd_pagedkv, ("FmhaFwdApiPool", "register_traits")
    ),
    "fwd_appendkv": Direction(
        "fmha_fwd_appendkv", _fwd_appendkv, ("FmhaFwdAppendKVApiPool", "register_traits")
    ),
    "fwd_v3": Direction("fmha_fwd", _fwd_v3, None),
    "fwd_batch_prefill": Direction(
        "fmha_batch_prefill", _fwd_batch_prefill, ("FmhaFwdApiPool", "register_traits")
    ),
}


@functools.cache
def direction_of(kind: str) -> str:
    """The direction whose candidates have kernels of a kind."""
    return next(name for name, entry in TABLE.directions.items() if kind in entry["kinds"])
