# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""QoLA's tables of variants, translated to those of variant set files.

A table of QoLA's names its direction, and its keys are traits by other names. has_bias and
has_alibi together say which bias; has_sink can only be confirmed; receipt names upstream's filter.
"""

from __future__ import annotations

from collections.abc import Mapping

from kernels.launch_table.traits import TraitValue
from kernels.qola.receipts import Box, filter_of
from kernels.variants.values import VariantSetError, admitted_values

TABLES = {"mha_fwd_variants": "fwd", "mha_bwd_variants": "bwd"}  # table -> direction

# Tables of QoLA's own builder, and the setting that does their work here.
ELSEWHERE = {
    "qola": "the symbol prefix is the build setting --//aiter:namespace",
    "build": "the archs are the build setting --//kernels:archs",
    "modules": "what is built is the Bazel target that is asked for",
}

_FWD_KEYS = {"has_lse": "lse", "has_skip": "skip_min_seqlen_q"}
_BWD_KEYS = {"has_dbias": "bias_grad"}
_KEYS = {"has_mask": "mask", "has_dropout": "dropout"}
BIAS = ("has_bias", "has_alibi")
SINK = "has_sink"


def keys_of(direction: str) -> dict[str, str]:
    """QoLA's keys of a direction's table -> the traits that they are."""
    return _KEYS | (_FWD_KEYS if direction == "fwd" else _BWD_KEYS)


def _bias(table: dict[str, object], where: str) -> list[TraitValue]:
    """The bias that has_bias and has_alibi admit together, which are taken out of the table."""
    has_bias, has_alibi = (
        admitted_values(table.pop(key, [False, True]), key, (False, True), where) for key in BIAS
    )
    result: dict[TraitValue, None] = {}
    for bias in has_bias:
        for alibi in has_alibi:
            # As in QoLA, an elementwise bias comes before ALiBi.
            result["elementwise" if bias else "alibi" if alibi else "none"] = None
    return list(result)


def translate(
    name: str, table: Mapping[str, object], where: str
) -> tuple[dict[str, object], dict[str, str], list[str], tuple[Box, ...]]:
    """(the table with traits for keys, trait -> key as it was spelled, QoLA's keys, its receipt's
    filter, empty where it has none).

    Raises VariantSetError. Keys that are not QoLA's are left as they are.
    """
    forward = TABLES[name] == "fwd"
    renamed = keys_of(TABLES[name])
    rest = dict(table)
    within: tuple[Box, ...] = ()
    if "receipt" in rest:
        within = filter_of(rest.pop("receipt"), TABLES[name], where)
    out: dict[str, object] = {}
    spelled: dict[str, str] = {}

    def put(trait: str, key: str, value: object) -> None:
        if trait in out:
            raise VariantSetError(
                f"{where}: {spelled[trait]} and {key} both set {trait}; keep one."
            )
        out[trait], spelled[trait] = value, key

    if rest.keys() & set(BIAS):
        put("bias", "has_bias/has_alibi", _bias(rest, where))
    if forward and SINK in rest:
        values = admitted_values(rest.pop(SINK), SINK, (False, True), where)
        if False not in values:
            raise VariantSetError(
                f"{where}: has_sink = true selects nothing: this Composable Kernel has no "
                "instance with sink tokens. Leave the key out or set it to false."
            )
    for key, value in rest.items():
        put(renamed.get(key, key), key, value)
    return out, spelled, [*renamed, *BIAS, "receipt", *([SINK] if forward else [])], within
