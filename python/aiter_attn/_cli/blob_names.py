# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Names of kernels as Composable Kernel makes them, and so the names of ck-jit's blobs: read into
traits (those of the manifest), and written as a newer Composable Kernel does."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

__all__ = ["Name", "archs_of", "blob_name", "read", "serving", "stem"]

_Trait = str | int | bool
_Traits = dict[str, _Trait]

# ck-jit's, of a compile that was ended.
_LEFTOVER = re.compile(r"\.so\.[A-Za-z0-9]{6}$")
# The archs that a name's last part stands for; without one, all.
_FAMILIES: dict[str, Callable[[str], bool]] = {
    "gfx950": lambda arch: arch == "gfx950",
    "gfx9": lambda arch: arch.startswith("gfx9") and arch != "gfx950",
    "gfx115": lambda arch: arch.startswith("gfx115"),
    "gfx11": lambda arch: arch.startswith("gfx11") and not arch.startswith("gfx115"),
    "gfx12": lambda arch: arch.startswith("gfx12") and not arch.startswith("gfx125"),
    "gfx125": lambda arch: arch.startswith("gfx125"),
}
# Of fp8, by either name.
_SCALES = {"nsquant": "none", "nqscale": "none", "squant": "pertensor"}


def _flag(trait: str) -> Callable[[str], _Traits]:
    return lambda text: {trait: not text.startswith("n")}


def _pads(**traits: str) -> Callable[[str], _Traits]:
    """traits: letters -> the trait that they are of. The letters come in this order."""
    order = re.compile("p" + "".join(f"({letters})?" for letters in traits))

    def read_pads(text: str) -> _Traits:
        padded = order.fullmatch(text)
        found = padded.groups() if padded else (None,) * len(traits)
        return {trait: bool(each) for trait, each in zip(traits.values(), found, strict=True)}

    return read_pads


def _backward_pads(text: str) -> _Traits:
    return {
        "pad_head_size_qk": bool(re.search(r"pd\d", text)),
        "pad_head_size_v": bool(re.search(r"dv\d?", text)),
    }


def _nothing(_text: str) -> _Traits:
    return {}


_QK, _V = "pad_head_size_qk", "pad_head_size_v"
_SEQ_Q, _SEQ_K = "pad_seqlen_q", "pad_seqlen_k"

# A part of a name: its pattern, and the traits that it says. "?" at the end of a part's name in
# _KINDS: it may be missing.
_PARTS: dict[str, tuple[str, Callable[[str], _Traits]]] = {
    "size": (r"d\d+", lambda t: {"head_size_qk": int(t[1:]), "head_size_v": int(t[1:])}),
    "dtype": (r"(?:fp16|bf16|fp32|fp8bf16|fp8fp32|fp8fp16|fp8|bf8)", lambda t: {"dtype": t}),
    "mode": (r"(?:batch|group)", lambda t: {"mode": t}),
    "tile": (r"b\d+(?:x\d+)*", _nothing),
    "waves": (r"r\d+x\d+x\d+(?:_[rw]\d+x\d+x\d+)*", _nothing),
    "occupancy": (r"om?\d+", _nothing),
    "queries": (r"maxq\d+", lambda t: {"max_seqlen_q": int(t[4:])}),
    "pipeline": (r"q[a-z0-9]+(?:_(?!v[rc])[a-z0-9]+)*", _nothing),
    "layout": (r"v(?:row|col|r|c)", _nothing),
    "unused": (r"unused", _nothing),
    "pad": (r"(?:npad|ps?(?:sk)?d?(?:dv)?)", _pads(s=_SEQ_Q, sk=_SEQ_K, d=_QK, dv=_V)),
    "pad_bwd": (r"(?:npad|pd\d+(?:dv\d+)?|pdv\d+)", _backward_pads),
    "pad_dot": (r"(?:npad|ps?(?:dv)?)", _pads(s=_SEQ_Q, dv=_V)),
    "pad_convert": (r"(?:npad|ps?d?)", _pads(s=_SEQ_Q, d=_QK)),
    "logits": (r"n?logits", _flag("logits_soft_cap")),
    "bias": (
        r"(?:nbias|bias|alibi)",
        lambda t: {"bias": {"nbias": "none", "bias": "elementwise", "alibi": "alibi"}[t]},
    ),
    "dbias": (r"n?dbias", _flag("bias_grad")),
    "mask": (r"n?mask", _flag("mask")),
    "lse": (r"n?lse", _flag("lse")),
    "dropout": (r"n?dropout", _flag("dropout")),
    "dropout_bwd": (r"(?:ndropout|dropout_wg(?:16|32))", _flag("dropout")),
    "skip": (r"n?skip", _flag("skip_min_seqlen_q")),
    "scale": (
        r"(?:nsquant|squant|nqscale|pertensor|blockscale|kv_blockscale|mx)",
        lambda t: {"scale": _SCALES.get(t, t)},
    ),
    "deterministic": (r"n?deterministic", _flag("deterministic")),
    "trload": (r"n?trload", _flag("transposed_loads")),
    "pagedkv": (r"n?pagedkv", _flag("paged_kv")),
    "rope": (
        r"(?:half|inter)",
        lambda t: {"rotary": {"half": "halves", "inter": "interleaved"}[t]},
    ),
    "sink": (r"n?sink", _flag("sink")),
    "arch": (r"gfx\d+[a-z]?", _nothing),
}
_SHAPE = "size dtype mode tile waves occupancy? pipeline layout pad logits bias mask lse"
# Kind -> the beginning of its names, and their parts in order.
_KINDS = {
    "bwd_dot_do_o": ("fmha_bwd_dot_do_o", "size dtype tile mode occupancy pad_dot arch?"),
    "bwd_convert_dq": (
        "fmha_bwd_convert_dq",
        "size dtype tile mode occupancy pad_convert deterministic arch?",
    ),
    "bwd_dq_dk_dv": (
        "fmha_bwd",
        "size dtype mode tile waves occupancy queries pad_bwd bias dbias mask dropout_bwd "
        "deterministic trload arch?",
    ),
    "fwd_splitkv_combine": (
        "fmha_fwd_splitkv_combine",
        "size dtype mode tile unused pad_dot lse scale arch?",
    ),
    "fwd_splitkv": ("fmha_fwd_splitkv", f"{_SHAPE} scale pagedkv sink? arch?"),
    "fwd_pagedkv": ("fmha_fwd_pagedkv", f"{_SHAPE} skip scale pagedkv sink? arch?"),
    "fwd_appendkv": ("fmha_fwd_appendkv", "size dtype tile layout pad rope? pagedkv? arch?"),
    "fwd_batch_prefill": ("fmha_batch_prefill", f"{_SHAPE} dropout scale sink? arch?"),
    "fwd": ("fmha_fwd", f"{_SHAPE} dropout skip scale trload sink? arch?"),
}
# Kinds of which the tile says another head size of v.
_SIZE_V_IN_TILE = ("fwd", "fwd_batch_prefill")
# Traits by which any kernel of the same others serves: how bounds are checked and memory is read.
_CHOICES = (_SEQ_Q, _SEQ_K, _QK, _V, "transposed_loads", "max_seqlen_q")
_SAME = ("tile", "waves", "pad", "pad_bwd", "pad_dot", "pad_convert", "trload")


@dataclasses.dataclass(frozen=True)
class Name:
    """A name that was read. parts: as they are spelled, in order; traits: by the manifest's names,
    and beside them `scale` and `sink`."""

    kind: str
    parts: Mapping[str, str]
    traits: Mapping[str, _Trait]

    def __str__(self) -> str:
        return "_".join([_KINDS[self.kind][0], *self.parts.values()])

    @property
    def wanted(self) -> dict[str, _Trait]:
        """The traits that a kernel must have to serve the same problems."""
        left_out = (*_CHOICES, "sink")
        return {name: value for name, value in self.traits.items() if name not in left_out}


@functools.cache
def _pattern(kind: str) -> re.Pattern[str]:
    start, parts = _KINDS[kind]
    pattern = re.escape(start)
    for part in parts.split():
        name = part.rstrip("?")
        one = f"_(?P<{name}>{_PARTS[name][0]})"
        pattern += f"(?:{one})?" if part.endswith("?") else one
    return re.compile(pattern)


@functools.lru_cache(maxsize=1 << 16)
def read(text: str) -> Name | None:
    """A kernel's name; None: it is none that is known."""
    for kind in _KINDS:
        if found := _pattern(kind).fullmatch(text):
            break
    else:
        return None
    parts = {part: said for part, said in found.groupdict().items() if said is not None}
    traits: _Traits = {"rotary": "none", "paged_kv": False} if kind == "fwd_appendkv" else {}
    for part, said in parts.items():
        traits |= _PARTS[part][1](said)
    if kind in _SIZE_V_IN_TILE:
        tile = parts["tile"][1:].split("x")
        if len(tile) != 6:
            return None
        traits["head_size_v"] = int(tile[3])
    return Name(kind, parts, traits)


def stem(line: str) -> str:
    """The name in a line of a blob list: a path's last part up to its first dot. Raises ValueError
    for a file that ck-jit has not finished."""
    if _LEFTOVER.search(line):
        raise ValueError(
            f"{line}: a file that ck-jit did not finish, by its end; remove the line, and the file"
        )
    return line.rpartition("/")[2].partition(".")[0]


def archs_of(name: Name, archs: Iterable[str]) -> list[str]:
    """Those of the archs that a name is for."""
    family = name.parts.get("arch")
    fits = _FAMILIES.get(family or "")
    if fits is None:
        return [arch for arch in archs if family in (None, arch)]
    return [arch for arch in archs if fits(arch)]


def serving(name: Name, instances: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The instances of a manifest that serve the problems of a kernel: the one with its tile, where
    there is one; else all that have its traits. For a sink also those that apply it."""
    known = ((each, read(each["name"])) for each in _of_kind(name.kind, instances))
    wanted = name.wanted
    # A sink is applied to o by its lse.
    wanted |= {"lse": True} if name.traits.get("sink") else {}
    fitting = [(each, own) for each, own in known if own is not None and _has(each, own, wanted)]
    same = [
        each
        for each, own in fitting
        if all(own.parts.get(part) == name.parts.get(part) for part in _SAME)
    ]
    yield from same or [each for each, _ in fitting]
    if fitting and name.traits.get("sink"):
        dtype = name.traits["dtype"]
        yield from (e for e in _of_kind("sink", instances) if e["traits"].get("dtype") == dtype)


def _of_kind(kind: str, instances: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    return (each for each in instances if each["kind"] == kind)


def _has(instance: Mapping[str, Any], own: Name, wanted: Mapping[str, _Trait]) -> bool:
    """Whether an instance has these traits; `scale` is in its name alone."""
    traits = {**own.traits, **instance["traits"]}
    return all(traits.get(trait) == value for trait, value in wanted.items())


def blob_name(text: str, arch: str) -> str | None:
    """The name of ck-jit's blob of a kernel for an arch; None: there is no such blob."""
    name = read(text)
    family = next((family for family, fits in _FAMILIES.items() if fits(arch)), None)
    if name is None or family is None:
        return None
    parts = dict(name.parts)
    if "scale" in parts:
        parts["scale"] = {"none": "nqscale"}.get(str(name.traits["scale"]), "pertensor")
    if "sink?" in _KINDS[name.kind][1].split():
        parts.setdefault("sink", "nsink")
    if name.kind != "fwd_batch_prefill":  # which is for all archs
        parts["arch"] = family
    return str(dataclasses.replace(name, parts=parts))
