# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Which candidates the selectors of a variant set file pick."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from kernels.ck_fmha.ckgen.schema import Selector
from kernels.ck_fmha.ckgen.values import VariantSetError, listing, spell
from kernels.launch_table.traits import TraitValue


class _Candidate(Protocol):
    @property
    def direction(self) -> str: ...

    @property
    def traits(self) -> Mapping[str, TraitValue]: ...


_AnyCandidate = TypeVar("_AnyCandidate", bound=_Candidate)


def _admits(selector: Selector, candidate: _Candidate, but: str | None = None) -> bool:
    """Whether selector admits candidate; the trait `but` is left out of account."""
    if candidate.direction not in selector.directions:
        return False
    return all(
        name == but or name not in candidate.traits or candidate.traits[name] in values
        for name, values in selector.admitted.items()
    )


def _require_every_value_used(selector: Selector, picked: Sequence[_Candidate]) -> None:
    """Raises VariantSetError if a word of the selector picks nothing: it would be lost silently."""
    for direction in selector.directions:
        if not any(candidate.direction == direction for candidate in picked):
            raise VariantSetError(f'{selector.where}: direction "{direction}" selects nothing.')
    for name, values in selector.admitted.items():
        have = {candidate.traits.get(name) for candidate in picked}
        for value in values:
            if value not in have:
                raise VariantSetError(
                    f"{selector.where}: {name} = {spell(value)} selects nothing together "
                    "with the other keys; remove it or widen them."
                )


def _explain_empty(selector: Selector, candidates: Sequence[_Candidate]) -> str:
    """Which single trait stands in the way, where there is one."""
    hints = []
    for name, values in selector.admitted.items():
        near = [c for c in candidates if _admits(selector, c, but=name)]
        if near:
            has = sorted({spell(c.traits[name]) for c in near if name in c.traits})
            hints.append(
                f"{name} = {listing(values)} (with the other keys as they are: {listing(has)})"
            )
    if not hints:
        return "No single key is to blame; compare the keys with the list in README.md."
    return "In the way: " + "; ".join(hints) + "."


def select(
    selectors: Sequence[Selector], candidates: Sequence[_AnyCandidate]
) -> list[_AnyCandidate]:
    """The candidates that any selector admits, in the order of candidates, each once.

    Raises VariantSetError if a selector, or one of the values it lists, picks nothing.
    """
    chosen: set[int] = set()
    for selector in selectors:
        indices = [i for i, c in enumerate(candidates) if _admits(selector, c)]
        if not indices:
            raise VariantSetError(
                f"{selector.where}: the selection is empty: no instance has these traits. "
                + _explain_empty(selector, candidates)
            )
        _require_every_value_used(selector, [candidates[i] for i in indices])
        chosen.update(indices)
    return [candidates[i] for i in sorted(chosen)]
