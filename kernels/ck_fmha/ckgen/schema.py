# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A variant set file as selectors. Its schema is in kernels/variants/README.md."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import tomllib

from kernels.launch_table.traits import TABLE, TraitValue
from kernels.qola import tables as qola
from kernels.qola.receipts import Box
from kernels.variants.values import (
    VariantSetError,
    admitted_values,
    listing,
    require_known,
    spell,
)

# More instances than all of forward and backward has: any set of those two directions, of QoLA's
# tables too, is below it. A larger set has left out a key by mistake, or has a limit of its own.
DEFAULT_LIMIT = 8000


@dataclasses.dataclass(frozen=True)
class Selector:
    """One table of a variant set file: the admitted values per trait. Others are free.

    within  the filter of a receipt (kernels/qola): any of these, or empty
    qola    QoLA folds candidates that its tables select twice, so they are no error there
    """

    where: str
    directions: tuple[TraitValue, ...]
    admitted: Mapping[str, tuple[TraitValue, ...]]
    within: tuple[Box, ...] = ()
    qola: bool = False


@dataclasses.dataclass(frozen=True)
class VariantSet:
    """A variant set file; it may select `limit` kernel instances."""

    path: str
    selectors: tuple[Selector, ...]
    limit: int = DEFAULT_LIMIT


def known_values(traits: Sequence[Mapping[str, TraitValue]]) -> dict[str, list[TraitValue]]:
    """Per trait, the values that occur, sorted."""
    values: dict[str, set[TraitValue]] = {}
    for each in traits:
        for name, value in each.items():
            values.setdefault(name, set()).add(value)
    return {name: sorted(found) for name, found in values.items()}


def _require_once(value: object, key: str, where: str) -> None:
    values = value if isinstance(value, list) else []
    for number, each in enumerate(values):
        if each in values[:number]:
            raise VariantSetError(f"{where}: {key} lists {spell(each)} twice; remove one.")


def parse_table(
    raw: Mapping[str, object],
    qola_table: str | None,
    known: Mapping[str, Sequence[TraitValue]],
    where: str,
) -> Selector:
    """One table; qola_table is its name where it is one of QoLA's. Raises VariantSetError."""
    table, spelled, foreign, within = dict(raw), {}, [], ()
    directions: tuple[TraitValue, ...] = tuple(TABLE.directions)
    if qola_table is not None:
        table, spelled, foreign, within = qola.translate(qola_table, table, where)
        directions = (qola.TABLES[qola_table],)
    elif "direction" in table:
        value = table.pop("direction")
        directions = admitted_values(value, "direction", directions, where)
        _require_once(value, "direction", where)

    own = dict.fromkeys(name for d in directions for name in TABLE.of_direction(str(d)))
    allowed = [*own, *foreign, *([] if qola_table else ["direction"])]
    admitted = {}
    for name, value in table.items():
        key = spelled.get(name, name)
        if key not in own and (owners := _owners(key)):
            raise VariantSetError(
                f"{where}: {key} is a trait of {listing(owners)} only, "
                f"and this table selects {listing(directions)}."
            )
        if name not in own:
            require_known(key, allowed, "key", where)
        admitted[name] = admitted_values(value, key, known[name], where)
        if qola_table is None:
            _require_once(value, key, where)
    return Selector(where, directions, admitted, within, qola=qola_table is not None)


def _parse_limit(value: object, path: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        shown = spell(value)
        raise VariantSetError(
            f"{path}: limit = {shown}: it is the most kernel instances that the set may select, "
            f"an integer from 1; {DEFAULT_LIMIT} where it is left out."
        )
    return value


def parse_variant_set(
    text: str, path: str, known: Mapping[str, Sequence[TraitValue]]
) -> VariantSet:
    """A variant set file, its selectors in its order. Raises VariantSetError.

    known has, per trait, every value that an instance can take.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise VariantSetError(f"{path}: not TOML: {error}") from None
    except RecursionError:
        raise VariantSetError(f"{path}: not TOML that can be read: nested too deep") from None
    limit = _parse_limit(document.pop("limit", DEFAULT_LIMIT), path)
    names = ["variants", *qola.TABLES]
    selectors = []
    for name, tables in document.items():
        if name in qola.ELSEWHERE:
            raise VariantSetError(
                f"{path}: [{name}] is for QoLA's own builder; here {qola.ELSEWHERE[name]}. "
                "Remove the table."
            )
        require_known(name, [*names, "limit"], "table", path)
        if not isinstance(tables, list) or not all(isinstance(t, dict) for t in tables):
            raise VariantSetError(f"{path}: {name} must be written as [[{name}]] tables.")
        for number, table in enumerate(tables, start=1):
            where = f"{path}: [[{name}]] #{number}"
            qola_table = name if name in qola.TABLES else None
            selectors.append(parse_table(table, qola_table, known, where))
    if not selectors:
        raise VariantSetError(
            f"{path}: selects nothing: it has no table. Allowed: "
            + ", ".join(f"[[{name}]]" for name in names)
            + "."
        )
    return VariantSet(path, tuple(selectors), limit)


def _owners(trait: str) -> list[str]:
    """The directions whose candidates have a trait."""
    return [d for d in TABLE.directions if trait in TABLE.of_direction(d)]


def documentation(known: Mapping[str, Sequence[TraitValue]]) -> str:
    """The table of keys in kernels/variants/README.md."""
    rows = [("direction", list(TABLE.directions), "", "what is selected, below")]
    for name, trait in TABLE.traits.items():
        owners = _owners(name)
        if not owners:
            continue  # a trait of other providers' kernels
        of = "all" if len(owners) == len(TABLE.directions) else listing(owners)
        rows.append((name, list(known[name] if trait.is_size else trait.values), of, trait.doc))
    text = "| key | values | of | selects |\n|---|---|---|---|\n"
    for name, values, of, doc in rows:
        shown = " ".join(f'`"{v}"`' if isinstance(v, str) else f"{str(v).lower()}" for v in values)
        text += f"| `{name}` | {shown} | {of} | {doc} |\n"
    text += "\n| direction | its candidates |\n|---|---|\n"
    for name, direction in TABLE.directions.items():
        text += f"| `{name}` | {direction['doc']} |\n"
    return text
