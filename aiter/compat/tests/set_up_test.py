# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The headers have the fields of AITER's, by the rules of TransformerEngine's set-up."""

import hashlib
import os
import re
from pathlib import Path

import pytest

from aiter.compat.fields import PASSES, PINS, STRUCTS, TABLE, layout
from aiter.compat.tests import set_up

# Of AITER's csrc/include/mha_{fwd,bwd}.h at each pin, as set_up.py reads them: the names that
# set-up sees, all declarations, and the sha256 of these, joined by newlines.
FACTS = {
    ("d32b0cb", "fwd"): (
        74,
        74,
        "5ef4eb68c1477eb56e098a2991f3b5ef6963dfa0dfd1c00d678ec6a823f1ca3c",
    ),
    ("d32b0cb", "bwd"): (
        86,
        86,
        "356e32f7974feb8bfb55b6408468e548dbd89849ed052b9afeb910a931442e14",
    ),
    ("e95f7d4", "fwd"): (
        74,
        74,
        "5ef4eb68c1477eb56e098a2991f3b5ef6963dfa0dfd1c00d678ec6a823f1ca3c",
    ),
    ("e95f7d4", "bwd"): (
        83,
        85,
        "a709c6fb4789f811ece35c270d4c784023f0ccf6aff3dc1739599843efc3f5ea",
    ),
    ("7a24cd8", "fwd"): (
        76,
        76,
        "9f952b1c435f9f2892119f0a569f06d4fd41c10143c103d75392de81c6058c89",
    ),
    ("7a24cd8", "bwd"): (
        83,
        85,
        "a709c6fb4789f811ece35c270d4c784023f0ccf6aff3dc1739599843efc3f5ea",
    ),
}


def header(pin: str, pass_name: str) -> str:
    return (
        Path(os.environ["PINS_BZL"])
        .with_name(pin)
        .joinpath(f"mha_{pass_name}.h")
        .read_text(encoding="utf-8")
    )


@pytest.mark.parametrize("pin", PINS)
@pytest.mark.parametrize("pass_name", PASSES)
def test_a_header_has_the_fields_of_its_pin(pin: str, pass_name: str):
    struct = f"mha_{pass_name}_args"
    declarations = set_up.declarations(header(pin, pass_name), struct)
    names = set_up.field_names(header(pin, pass_name), struct)
    digest = hashlib.sha256("\n".join(declarations).encode()).hexdigest()
    assert (len(names), len(declarations), digest) == FACTS[pin, pass_name]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("pin", PINS)
@pytest.mark.parametrize("pass_name", PASSES)
def test_set_up_sees_all_fields_but_those_with_braces(pin: str, pass_name: str):
    fields, _ = layout(pass_name, pin)
    wanted = [field.name for field in fields if field.default != "{}"]
    assert set_up.field_names(header(pin, pass_name), f"mha_{pass_name}_args") == wanted


def test_every_pin_has_facts():
    assert {pin for pin, _ in FACTS} == set(PINS)
    text = Path(os.environ["PINS_BZL"]).read_text(encoding="utf-8")
    listed = {
        name: sorted(re.findall(r'"(\w+)"', pins))
        for name, pins in re.findall(r"^(PINS\w*) = \[(.*?)\]$", text, re.MULTILINE | re.DOTALL)
    }

    def having(pass_name: str, field: str) -> list[str]:
        return sorted(p for p in PINS if field in {f.name for f in layout(pass_name, p)[0]})

    assert listed == {
        "PINS": sorted(PINS),
        "PINS_WITH_SPLITS": having("fwd", "num_splits"),
        "PINS_WITH_WORKSPACE": having("bwd", "workspace_alloc"),
    }


def test_the_rules_of_set_up():
    text = """\
struct mha_fwd_args
{
    bool a; // b; c
    int d,
        e = 7;
    std::pair<int, int>
        f;
    std::function<void(int g)> h{};
    const void* i =
        nullptr;
};
struct other
{
    int j;
};
"""
    assert set_up.field_names(text, "mha_fwd_args") == ["a", "e", "f", "i"]
    assert set_up.field_names(text, "other") == ["j"]
    with pytest.raises(ValueError, match="no struct mha_bwd_args that ends"):
        set_up.field_names(text, "mha_bwd_args")
    with pytest.raises(ValueError, match="no struct mha_fwd_args that ends"):
        set_up.field_names(text.replace("};", "}; //"), "mha_fwd_args")


def test_an_unknown_pin_is_refused():
    with pytest.raises(ValueError, match="pin is 1234567, but must be one of d32b0cb, e95f7d4"):
        layout("fwd", "1234567")


@pytest.mark.parametrize("table", STRUCTS)
def test_the_page_has_every_field(table: str):
    page = Path(os.environ["PAGE"]).read_text(encoding="utf-8")
    section = page.partition(f"## The fields of {STRUCTS[table]}\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    assert rows == [
        f"| {', '.join(f'`{name}`' for name in group['names'])} | "
        f"{', '.join(group.get('pins', ['all']))} | {group['here']} |"
        for group in TABLE[table]
    ]
