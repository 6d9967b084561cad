# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The calls of attention that `aiter-attn validate` makes: as few as reach all the kernels of a
build that a public function can be brought to, and those that everybody makes."""

from __future__ import annotations

import dataclasses
import fnmatch
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import aiter_attn
from aiter_attn._cli import kernels as built_in

__all__ = ["DTYPES", "Case", "Planned", "candidates", "choose", "fits", "plan", "unreached"]

DTYPES = {"fp16": "float16", "bf16": "bfloat16"}
_MASKS: tuple[dict[str, Any], ...] = ({}, {"causal": True}, {"window": (9, 4)})
# Beside the tiles of all kernels, and on those of most.
_EDGES, _TILES = ((77, 130),), ((128, 256),)
_RAGGED = ((19, 40), (5, 0), (0, 7), (64, 33), (1, 1), (70, 161))
_RAGGED_TILES = ((128, 128), (256, 128))
# Fills a GPU: many workgroups at once, of which each has many tiles.
_LARGE, _COPIES = ((512, 640),), 16


@dataclasses.dataclass(frozen=True)
class Case:
    """A call, and with `backward` the gradients' after it.

    lengths: (seqlen_q, seqlen_k) of sequences with data of their own. copies: how often the call
    has them all, so that a reference of few sequences serves a call that fills a GPU.
    """

    dtype: str
    head_size: int
    head_size_v: int
    lengths: tuple[tuple[int, int], ...]
    copies: int = 1
    heads_q: int = 2
    heads_k: int = 2
    causal: bool = False
    window: tuple[int, int] = (-1, -1)
    varlen: bool = False
    bias: str = ""  # elementwise, alibi
    dropout: float = 0.0
    softcap: float = 0.0
    sink: bool = False
    backward: bool = True
    deterministic: bool = False
    kernels: str = "fastest"  # the preference among providers
    base: bool = False  # worth a run whatever it reaches

    @property
    def name(self) -> str:
        sizes = f"{self.head_size}"
        if self.head_size_v != self.head_size:
            sizes += f"/{self.head_size_v}"
        lengths = "_".join(f"{q}x{k}" for q, k in self.lengths)
        words = [
            next(short for short, name in DTYPES.items() if name == self.dtype),
            f"d{sizes}",
            "varlen" if self.varlen else "batch",
            lengths + (f"*{self.copies}" if self.copies > 1 else ""),
            f"h{self.heads_q}/{self.heads_k}",
            "causal" if self.causal else "",
            f"window{self.window[0]},{self.window[1]}" if self.window != (-1, -1) else "",
            self.bias,
            "dropout" if self.dropout else "",
            "softcap" if self.softcap else "",
            "sink" if self.sink else "",
            "fwd+bwd" if self.backward else "fwd",
            "deterministic" if self.deterministic else "",
            self.kernels if self.kernels != "fastest" else "",
        ]
        return " ".join(word for word in words if word)

    @property
    def options(self) -> dict[str, Any]:
        """The options that forward and backward passes and explain() take by the same names."""
        return {"causal": self.causal, "window_size": self.window, "dropout_p": self.dropout,
                "softcap": self.softcap}  # fmt: skip

    @property
    def is_plain(self) -> bool:
        """Whether other packages' functions have such a call: in batch mode, with a causal mask or
        none."""
        return not (
            self.varlen or self.window != (-1, -1) or self.bias or self.dropout or self.softcap
            or self.sink or self.deterministic
        )  # fmt: skip

    @property
    def sequences(self) -> tuple[tuple[int, int], ...]:
        """All of them."""
        return self.lengths * self.copies

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Of q, k and v."""
        all_of_them = self.sequences
        rows: Iterable[tuple[int, ...]]
        if self.varlen:
            rows = [(sum(pair[side] for pair in all_of_them),) for side in (0, 1)]
        else:
            rows = [(len(all_of_them), all_of_them[0][side]) for side in (0, 1)]
        rows_q, rows_k = rows
        return (
            (*rows_q, self.heads_q, self.head_size),
            (*rows_k, self.heads_k, self.head_size),
            (*rows_k, self.heads_k, self.head_size_v),
        )

    def explained(self, arch: str, backward: bool) -> aiter_attn.Explanation:
        """Raises UnsupportedError where no kernel serves the pass."""
        longest_q, longest_k = (max(pair[side] for pair in self.lengths) for side in (0, 1))
        return aiter_attn.explain(
            *self.shapes,
            backward=backward,
            sequences=(len(self.sequences), longest_q, longest_k) if self.varlen else None,
            bias=self.bias or None,
            sink=self.sink,
            deterministic=self.deterministic and backward,
            dtype=self.dtype,
            arch=arch,
            **self.options,
        )


@dataclasses.dataclass(frozen=True)
class Planned:
    """A case, and the kernels that its passes launch, in order."""

    case: Case
    forward: tuple[Any, ...]
    backward: tuple[Any, ...]

    @property
    def kernels(self) -> tuple[Any, ...]:
        return self.forward + self.backward


def candidates(arch: str, quick: bool) -> Iterator[Case]:
    """Calls for every dtype and head size that the build has kernels for, the plainest first.
    quick: without those that fill a GPU."""
    kinds = sorted(
        {
            (DTYPES[traits["dtype"]], traits["head_size_qk"], traits["head_size_v"])
            for instance in built_in.manifest()["instances"]
            if arch in instance["code_objects"]
            for traits in [instance["traits"]]
            if instance["kind"] in ("fwd", "bwd_dq_dk_dv")
            if traits.get("dtype") in DTYPES and {"head_size_qk", "head_size_v"} <= traits.keys()
        }
    )
    providers = {kernel["provider"] for kernel in aiter_attn.kernels() if kernel["arch"] == arch}
    either = ("fastest", "ck") if "asm" in providers else ("fastest",)
    shapes = (
        (False, _EDGES, 2), (False, _LARGE, _COPIES), (False, _TILES, 1),
        (True, _RAGGED, 1), (True, _RAGGED_TILES, 1),
    )  # fmt: skip
    plain = [
        Case(
            dtype=dtype, head_size=head_size, head_size_v=head_size_v, lengths=lengths,
            copies=copies, varlen=varlen, kernels=kernels, **mask,
        )
        for kernels, (dtype, head_size, head_size_v), (varlen, lengths, copies), mask in (
            itertools.product(either, kinds, shapes, _MASKS)
        )
        if not (quick and lengths is _LARGE)
    ]  # fmt: skip
    for case in plain:
        yield dataclasses.replace(case, base=case.lengths not in (_TILES, _RAGGED_TILES))
        yield dataclasses.replace(case, backward=False)
        if case.lengths in (_EDGES, _RAGGED):
            yield dataclasses.replace(case, heads_q=4, base=case.causal)
            yield dataclasses.replace(case, sink=True, base=case.causal)
    # Features, of which a kernel has any or none.
    for case in plain:
        if case.lengths is _LARGE:
            continue
        for bias, dropout, softcap, backward, deterministic in itertools.product(
            ("", "elementwise", "alibi"), (0.0, 0.25), (0.0, 20.0), (True, False), (False, True)
        ):
            is_plain = not (bias or dropout or softcap or deterministic)
            if is_plain or (backward and softcap) or (deterministic and not backward):
                continue
            if bias == "alibi" and case.window != (-1, -1):
                continue
            yield dataclasses.replace(
                case, bias=bias, dropout=dropout, softcap=softcap, backward=backward,
                deterministic=deterministic,
            )  # fmt: skip
    for dtype, head_size, head_size_v in kinds:
        yield Case(dtype, head_size, head_size_v, ((33, 0),))


def plan(case: Case, arch: str) -> Planned | None:
    """None where no kernel serves a pass of it."""
    aiter_attn.configure(kernels=case.kernels)
    try:
        forward = case.explained(arch, backward=False).kernels
        backward = case.explained(arch, backward=True).kernels if case.backward else []
    except aiter_attn.UnsupportedError:
        return None
    finally:
        aiter_attn.configure(kernels=None)
    return Planned(case, tuple(forward), tuple(backward))


def choose(cases: Iterable[Case], arch: str, pattern: str | None) -> list[Planned]:
    """The cases that reach a kernel of the pattern which none before does, and base cases."""
    reached: set[str] = set()
    chosen: dict[tuple[Any, ...], Planned] = {}
    for case in cases:
        planned = plan(case, arch)
        if planned is None:
            continue
        keys = {kernel["key"] for kernel in planned.kernels if fits(kernel, pattern)}
        # Two preferences among providers may come to the same call.
        keyed = tuple(kernel["key"] for kernel in planned.kernels)
        same = (dataclasses.replace(case, kernels="", base=False), keyed)
        if not keys or same in chosen or (keys <= reached and not case.base):
            continue
        reached |= keys
        chosen[same] = planned
    return list(chosen.values())


def fits(kernel: Any, pattern: str | None) -> bool:
    """As `info --kernels` takes patterns."""
    texts = (kernel["name"], kernel["kind"], kernel["arch"], kernel["key"], kernel["provider"])
    return pattern is None or any(fnmatch.fnmatch(text, pattern) for text in texts)


def unreached(chosen: Sequence[Planned], arch: str, pattern: str | None) -> list[Any]:
    """The kernels of attention that no case launches."""
    reached = {kernel["key"] for planned in chosen for kernel in planned.kernels}
    return [
        kernel
        for kernel in aiter_attn.kernels()
        if kernel["arch"] == arch and kernel["key"] not in reached and fits(kernel, pattern)
    ]
