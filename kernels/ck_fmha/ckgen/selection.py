# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Which candidates the selectors of a variant set file pick."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from kernels.ck_fmha.ckgen.schema import Selector, VariantSet
from kernels.launch_table.traits import TraitValue
from kernels.variants.values import VariantSetError, listing, spell


class _Candidate(Protocol):
    @property
    def direction(self) -> str: ...

    @property
    def traits(self) -> Mapping[str, TraitValue]: ...


class _Named(_Candidate, Protocol):
    @property
    def instances(self) -> tuple[str, ...]: ...

    @property
    def target(self) -> str: ...


_AnyCandidate = TypeVar("_AnyCandidate", bound=_Candidate)


def _inside(
    admitted: Mapping[str, Sequence[TraitValue]], candidate: _Candidate, but: str | None = None
) -> bool:
    return all(
        name == but or name not in candidate.traits or candidate.traits[name] in values
        for name, values in admitted.items()
    )


def admits(selector: Selector, candidate: _Candidate, but: str | None = None) -> bool:
    """Whether selector admits candidate; the trait `but` is left out of account."""
    if candidate.direction not in selector.directions:
        return False
    boxes = selector.within or ({},)
    return _inside(selector.admitted, candidate, but) and any(
        _inside(box, candidate) for box in boxes
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
        near = [c for c in candidates if admits(selector, c, but=name)]
        if near:
            has = sorted({spell(c.traits[name]) for c in near if name in c.traits})
            hints.append(
                f"{name} = {listing(values)} (with the other keys as they are: {listing(has)})"
            )
    if not hints:
        return "No single key is to blame; compare the keys with the list in README.md."
    return "In the way: " + "; ".join(hints) + "."


def _require_no_duplicate(selectors: Sequence[Selector], picked: Sequence[set[int]]) -> None:
    """Raises VariantSetError if one other table selects all that a table does."""
    for number, selector in enumerate(selectors):
        if selector.qola:
            continue
        for other, other_picked in enumerate(picked):
            # Of two that are the same, the second is the duplicate.
            same = picked[number] == other_picked
            if picked[number] < other_picked or (same and other < number):
                raise VariantSetError(
                    f"{selector.where} is a duplicate: "
                    f"{selectors[other].where.rpartition(': ')[2]} selects all that it does; "
                    "remove it."
                )


def select(variant_set: VariantSet, candidates: Sequence[_AnyCandidate]) -> list[_AnyCandidate]:
    """The candidates that any table admits, in the order of candidates, each once.

    Raises VariantSetError if a table, or one of the values it lists, picks nothing, or nothing that
    another does not.
    """
    picked: list[set[int]] = []
    for selector in variant_set.selectors:
        indices = [i for i, c in enumerate(candidates) if admits(selector, c)]
        if not indices:
            raise VariantSetError(
                f"{selector.where}: the selection is empty: no instance has these traits. "
                + _explain_empty(selector, candidates)
            )
        _require_every_value_used(selector, [candidates[i] for i in indices])
        picked.append(set(indices))
    _require_no_duplicate(variant_set.selectors, picked)
    return [candidates[i] for i in sorted(set().union(*picked))]


def select_instances(variant_set: VariantSet, candidates: Sequence[_Named]) -> list[str]:
    """The names of the instances of a selection, each once.

    Raises VariantSetError also if they are more than the set's limit.
    """
    selected = select(variant_set, candidates)
    by_target: dict[str, set[str]] = {}
    for candidate in selected:
        by_target.setdefault(candidate.target, set()).update(candidate.instances)
    most = max(map(len, by_target.values()))
    if most > variant_set.limit:
        raise VariantSetError(
            f"{variant_set.path}: selects {most} kernel instances for each arch, "
            f"and its limit is {variant_set.limit}. Narrow its tables, or write "
            f"`limit = {most}` above the first of them."
        )
    return list(dict.fromkeys(name for c in selected for name in c.instances))
