# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Which candidates a manifest's selectors pick."""

from __future__ import annotations

from collections.abc import Sequence

from ckgen.pool import CK_KINDS, Candidate, Instance
from ckgen.schema import ManifestError, Selector


def _admits(selector: Selector, candidate: Candidate, but: str | None = None) -> bool:
    """Whether selector admits candidate; the trait `but` is left out of account."""
    if candidate.direction not in selector.directions:
        return False
    return all(
        name == but or name not in candidate.traits or candidate.traits[name] in values
        for name, values in selector.admitted.items()
    )


def _require_every_value_used(selector: Selector, picked: Sequence[Candidate]) -> None:
    """Raises ManifestError if a word of the selector picks nothing: it would be lost silently."""
    for direction in selector.directions:
        if not any(candidate.direction == direction for candidate in picked):
            raise ManifestError(f'{selector.where}: direction "{direction}" selects nothing.')
    for name, values in selector.admitted.items():
        have = {candidate.traits.get(name) for candidate in picked}
        for value in values:
            if value not in have:
                raise ManifestError(
                    f"{selector.where}: {name} = {str(value).lower()} selects nothing together "
                    "with the other keys; remove it or widen them."
                )


def _explain_empty(selector: Selector, candidates: Sequence[Candidate]) -> str:
    """Which single trait stands in the way, where there is one."""
    hints = []
    for name, values in selector.admitted.items():
        near = [c for c in candidates if _admits(selector, c, but=name)]
        if near:
            has = sorted({str(c.traits[name]).lower() for c in near if name in c.traits})
            wants = ", ".join(str(value).lower() for value in values)
            hints.append(f"{name} = {wants} (with the other keys as they are: {', '.join(has)})")
    if not hints:
        return "No single key is to blame; compare the keys with the list in README.md."
    return "In the way: " + "; ".join(hints) + "."


def select(selectors: Sequence[Selector], candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates that any selector admits, in the order of candidates, each once.

    Raises ManifestError if a selector, or one of the values it lists, picks nothing.
    """
    chosen: set[int] = set()
    for selector in selectors:
        indices = [i for i, c in enumerate(candidates) if _admits(selector, c)]
        if not indices:
            raise ManifestError(
                f"{selector.where}: the selection is empty: no instance has these traits. "
                + _explain_empty(selector, candidates)
            )
        _require_every_value_used(selector, [candidates[i] for i in indices])
        chosen.update(indices)
    return [candidates[i] for i in sorted(chosen)]


def instances_of(candidates: Sequence[Candidate]) -> list[Instance]:
    """The instances of candidates, each once: by kind, and within a kind in CK's order."""
    found: dict[str, dict[str, Instance]] = {kind: {} for kind in CK_KINDS}
    for candidate in candidates:
        for instance in candidate.instances:
            found[instance.kind].setdefault(instance.name, instance)
    return [instance for by_name in found.values() for instance in by_name.values()]
