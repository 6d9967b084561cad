# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The schema of variant manifests: which keys there are and which values they take.

A manifest is parsed into selectors. A selector maps trait names to the values it admits; a trait
it does not mention is free. Every error names the file, the table, the offending word, what is
allowed, and the nearest allowed word.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Iterable, Mapping, Sequence

import tomllib

FWD, BWD = "fwd", "bwd"

TraitValue = str | int | bool


class ManifestError(Exception):
    """What is wrong with a manifest, in one or two lines for the person who wrote it."""


# The properties of an instance that a manifest can select by, and the directions that have them.
# variants/README.md says what they mean.
TRAITS: dict[str, tuple[str, ...]] = {
    "dtype": (FWD, BWD),
    "head_size_qk": (FWD, BWD),
    "head_size_v": (FWD, BWD),
    "mode": (FWD, BWD),
    "mask": (FWD, BWD),
    "bias": (FWD, BWD),
    "bias_grad": (BWD,),
    "dropout": (FWD, BWD),
    "lse": (FWD,),
    "logits_soft_cap": (FWD,),
    "skip_min_seqlen_q": (FWD,),
    "deterministic": (BWD,),
    "pad_seqlen_q": (FWD, BWD),
    "pad_seqlen_k": (FWD, BWD),
    "pad_head_size_qk": (FWD, BWD),
    "pad_head_size_v": (FWD, BWD),
}

# QoLA's tables name the direction, and its keys are these traits by other names. has_bias and
# has_alibi together say which bias; has_sink and receipt can only be confirmed.
_QOLA_RENAMED = {
    "has_mask": "mask",
    "has_lse": "lse",
    "has_dropout": "dropout",
    "has_skip": "skip_min_seqlen_q",
    "has_dbias": "bias_grad",
}
_QOLA_BIAS = ("has_bias", "has_alibi")
_QOLA_RECEIPT = 600

_TABLES = {"variants": None, "mha_fwd_variants": FWD, "mha_bwd_variants": BWD}
_QOLA_ELSEWHERE = {
    "qola": "the symbol prefix is the build setting --//aiter:namespace",
    "build": "the architectures are the build setting --//kernels:archs",
    "modules": "what is built is the Bazel target that is asked for",
}


@dataclasses.dataclass(frozen=True)
class Selector:
    """One table of a manifest: the admitted values per trait."""

    where: str
    directions: tuple[TraitValue, ...]
    admitted: Mapping[str, tuple[TraitValue, ...]]


def suggestion(word: object, allowed: Sequence[object]) -> str:
    """'; did you mean X?' where something allowed resembles word, else '.'"""
    near = difflib.get_close_matches(str(word), [str(a) for a in allowed], n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else "."


def _spell(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _listing(values: Iterable[object]) -> str:
    return ", ".join(_spell(value) for value in values)


def _require_known(word: str, allowed: Sequence[str], what: str, where: str) -> None:
    if word not in allowed:
        raise ManifestError(
            f"{where}: unknown {what} {word!r}{suggestion(word, allowed)} "
            f"Allowed: {_listing(sorted(allowed))}."
        )


def _as_values(raw: object, key: str, where: str) -> tuple[TraitValue, ...]:
    values = raw if isinstance(raw, list) else [raw]
    if not values:
        raise ManifestError(
            f"{where}: {key} is an empty list, which selects nothing. "
            "Leave the key out to admit every value."
        )
    for value in values:
        if not isinstance(value, str | int | bool):
            raise ManifestError(
                f"{where}: {key} = {value!r}: values are strings, integers or booleans, "
                "or a list of them."
            )
    return tuple(dict.fromkeys(values))


def _check_values(
    key: str,
    values: tuple[TraitValue, ...],
    allowed: Sequence[TraitValue],
    where: str,
) -> None:
    for value in values:
        # True == 1 in Python: compare types too.
        if not any(type(value) is type(a) and value == a for a in allowed):
            raise ManifestError(
                f"{where}: unknown value {_spell(value)!r} for {key}{suggestion(value, allowed)} "
                f"Allowed: {_listing(allowed)}."
            )


def _qola_bias(table: Mapping[str, object], where: str) -> tuple[TraitValue, ...] | None:
    """The bias that QoLA's has_bias and has_alibi admit together; None: any."""
    if not any(key in table for key in _QOLA_BIAS):
        return None
    admitted = []
    for key in _QOLA_BIAS:
        values = _as_values(table.get(key, [False, True]), key, where)
        _check_values(key, values, (False, True), where)
        admitted.append(values)
    result: dict[TraitValue, None] = {}
    for has_bias in admitted[0]:
        for has_alibi in admitted[1]:
            result["elementwise" if has_bias else "alibi" if has_alibi else "none"] = None
    return tuple(result)


def _parse_table(
    table: Mapping[str, object],
    table_direction: str | None,
    known_values: Mapping[str, Sequence[TraitValue]],
    where: str,
) -> Selector:
    table = dict(table)
    admitted: dict[str, tuple[TraitValue, ...]] = {}
    spelled: dict[str, str] = {}

    directions: tuple[TraitValue, ...] = (FWD, BWD)
    if table_direction is not None:
        directions = (table_direction,)
    elif "direction" in table:
        directions = _as_values(table.pop("direction"), "direction", where)
        _check_values("direction", directions, (FWD, BWD), where)

    own_keys = [name for name, has in TRAITS.items() if set(has) & set(directions)]
    allowed_keys = list(own_keys)
    if table_direction is None:
        allowed_keys.append("direction")
    else:
        allowed_keys += [key for key, name in _QOLA_RENAMED.items() if name in own_keys]
        allowed_keys += [*_QOLA_BIAS, "receipt"]
        if table_direction == FWD:
            allowed_keys.append("has_sink")
    for key in table:
        if key in TRAITS and key not in own_keys:
            raise ManifestError(
                f"{where}: {key} is a trait of {_listing(TRAITS[key])} only, "
                f"and this table selects {_listing(directions)}."
            )
        _require_known(key, allowed_keys, "key", where)

    if table_direction is not None:
        bias = _qola_bias(table, where)
        if bias is not None:
            admitted["bias"] = bias
            spelled["bias"] = "has_bias/has_alibi"
        if "receipt" in table:
            _check_values(
                "receipt",
                _as_values(table["receipt"], "receipt", where),
                (_QOLA_RECEIPT,),
                where,
            )
        if "has_sink" in table:
            values = _as_values(table["has_sink"], "has_sink", where)
            _check_values("has_sink", values, (False, True), where)
            if False not in values:
                raise ManifestError(
                    f"{where}: has_sink = true selects nothing: this Composable Kernel has no "
                    "instance with sink tokens. Leave the key out or set it to false."
                )
        for key in (*_QOLA_BIAS, "receipt", "has_sink"):
            table.pop(key, None)

    for key, raw in table.items():
        name = _QOLA_RENAMED.get(key, key) if table_direction is not None else key
        if name in admitted:
            raise ManifestError(f"{where}: {spelled[name]} and {key} both set {name}; keep one.")
        values = _as_values(raw, key, where)
        _check_values(key, values, known_values[name], where)
        admitted[name] = values
        spelled[name] = key
    return Selector(where=where, directions=directions, admitted=admitted)


def parse_manifest(
    text: str,
    path: str,
    known_values: Mapping[str, Sequence[TraitValue]],
) -> list[Selector]:
    """The selectors of a manifest, in its order. Raises ManifestError.

    known_values has, per trait, every value that an instance of CK's can take.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ManifestError(f"{path}: not TOML: {error}") from None
    selectors = []
    for name, tables in document.items():
        if name in _QOLA_ELSEWHERE:
            raise ManifestError(
                f"{path}: [{name}] is for QoLA's own builder; here {_QOLA_ELSEWHERE[name]}. "
                "Remove the table."
            )
        _require_known(name, list(_TABLES), "table", path)
        if not isinstance(tables, list) or not all(isinstance(t, dict) for t in tables):
            raise ManifestError(f"{path}: {name} must be written as [[{name}]] tables.")
        for number, table in enumerate(tables, start=1):
            where = f"{path}: [[{name}]] #{number}"
            selectors.append(_parse_table(table, _TABLES[name], known_values, where))
    if not selectors:
        raise ManifestError(
            f"{path}: selects nothing: it has no table. Allowed: "
            + ", ".join(f"[[{name}]]" for name in _TABLES)
            + "."
        )
    return selectors


_SET_NAME = re.compile(r"[a-z][a-z0-9_]*")


def variant_set_name(stem: str, path: str) -> str:
    """The variant set that a manifest file defines: its stem. Raises ManifestError."""
    if not _SET_NAME.fullmatch(stem):
        raise ManifestError(
            f"{path}: {stem!r} cannot name a variant set: lower-case letters, digits and "
            "underscores, a letter first."
        )
    return stem


@dataclasses.dataclass(frozen=True)
class Arch:
    """A GPU architecture that code objects can be built for."""

    name: str
    products: str


def parse_archs(text: str, path: str) -> list[Arch]:
    """The architectures of archs.toml, sorted by name. Raises ManifestError."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ManifestError(f"{path}: not TOML: {error}") from None
    fields = {field.name for field in dataclasses.fields(Arch)} - {"name"}
    archs = []
    for name, table in sorted(document.items()):
        where = f"{path}: [{name}]"
        if not isinstance(table, dict):
            raise ManifestError(f"{where}: an architecture is a table.")
        for key in table:
            _require_known(key, sorted(fields), "key", where)
        missing = sorted(fields - table.keys())
        if missing:
            raise ManifestError(f"{where}: {_listing(missing)} is missing.")
        archs.append(Arch(name=name, **table))
    if not archs:
        raise ManifestError(f"{path}: no architecture.")
    return archs
