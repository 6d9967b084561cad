# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The words of a variant set file, and the message about a wrong one.

Every error names the file, the table, the offending word, the allowed ones, and the nearest of
these.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from kernels.launch_table.traits import TraitValue


class VariantSetError(Exception):
    """A mistake in a variant set file, in one or two lines for the person who wrote it."""


def spell(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def listing(values: Iterable[object]) -> str:
    return ", ".join(spell(value) for value in values)


def _suggestion(word: object, allowed: Sequence[object]) -> str:
    """'; did you mean X?' where something allowed resembles word, else '.'

    Of numbers that is the next one: kernels for a head size serve lesser ones, too.
    """
    if type(word) is int:
        greater = [a for a in allowed if type(a) is int and a > word]
        return f"; did you mean {min(greater)}, which serves lesser ones?" if greater else "."
    near = difflib.get_close_matches(str(word), [str(a) for a in allowed], n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else "."


def require_known(word: str, allowed: Sequence[str], what: str, where: str) -> None:
    if word not in allowed:
        raise VariantSetError(
            f"{where}: unknown {what} {word!r}{_suggestion(word, allowed)} "
            f"Allowed: {listing(sorted(allowed))}."
        )


def admitted_values(
    raw: object, key: str, allowed: Sequence[TraitValue], where: str
) -> tuple[TraitValue, ...]:
    """The values that a key admits, each once. Raises VariantSetError."""
    values = raw if isinstance(raw, list) else [raw]
    if not values:
        raise VariantSetError(
            f"{where}: {key} is an empty list, which selects nothing. "
            "Leave the key out to admit every value."
        )
    for value in values:
        if not isinstance(value, str | int | bool):
            raise VariantSetError(
                f"{where}: {key} = {value!r}: values are strings, integers or booleans, "
                "or a list of them."
            )
        # True == 1 in Python: compare types too.
        if not any(type(value) is type(a) and value == a for a in allowed):
            raise VariantSetError(
                f"{where}: unknown value {spell(value)!r} for {key}{_suggestion(value, allowed)} "
                f"Allowed: {listing(allowed)}."
            )
    return tuple(dict.fromkeys(values))
