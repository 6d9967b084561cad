# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""`aiter-attn prebuild --qola`: the kernels that a manifest asks for, and every mistake's line."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from aiter_attn._cli import kernels as built_in
from aiter_attn._cli import qola
from aiter_attn._cli.main import main

from kernels.ck_fmha.ckgen.emission import RecordedPool
from kernels.ck_fmha.ckgen.schema import parse_variant_set
from kernels.ck_fmha.ckgen.selection import select
from kernels.qola.manifest import read
from kernels.qola.words import words

TE = Path(os.environ["TE"]).read_text("utf-8")
HEAD = '[qola]\nnamespace = "te"\n\n[build]\narchitectures = ["gfx942"]\nmode = "cpp_itfs"\n'
NARROW = (
    HEAD
    + """
[[modules]]
name = "libmha_fwd"

[[modules]]
name = "libmha_bwd"
receipt = 700

[[mha_fwd_variants]]
dtype = "fp8bf16"

[[mha_fwd_variants]]
dtype = ["fp16", "bf16"]
head_size_qk = [128, 192]
has_bias = false
has_alibi = true
has_mask = true
has_skip = false

[[mha_bwd_variants]]
dtype = "bf16"
has_dbias = true
deterministic = true
"""
)


@functools.cache
def pool() -> RecordedPool:
    return RecordedPool(Path(os.environ["POOL"]).read_text("utf-8"))


@functools.cache
def wheel() -> dict[str, Any]:
    """A wheel's manifest with all of upstream's kernels for gfx9, and one each of the others."""
    rows = json.loads(Path(os.environ["POOL"]).read_text("utf-8"))["rows"]
    names = dict.fromkeys(n for c in pool().candidates if c.target == "gfx9" for n in c.instances)
    instances = [("ck", rows[name]["kind"], name, rows[name]["traits"]) for name in names]
    others = [("asm", "fwd_asm"), ("asm", "bwd_asm"), ("own", "sum_heads")]
    instances += [(provider, kind, kind, {}) for provider, kind in others]
    return {
        "variant_set": "all",
        "instances": [
            {
                "provider": provider,
                "kind": kind,
                "traits": traits,
                "code_objects": {"gfx942": {"key": name}},
            }
            for provider, kind, name, traits in instances
        ],
    }


def keys(text: str, groups: Sequence[str] = ()) -> list[str]:
    return qola.keys_of(text, "m.toml", groups, wheel(), ["gfx942"])


def lines(text: str, groups: Sequence[str] = ()) -> list[str]:
    """The messages of a manifest that is refused."""
    with pytest.raises(ValueError) as told:
        keys(text, groups)
    return str(told.value).splitlines()


def test_the_words_are_those_of_the_build() -> None:
    file = Path(qola.__file__).with_name("qola.json")
    assert file.read_text("utf-8") == words(), (
        "write it anew: ./bazelw run //kernels/qola:words > python/aiter_attn/_cli/qola.json"
    )


@pytest.mark.parametrize("text", [TE, NARROW], ids=["te", "narrow"])
def test_it_asks_for_the_kernels_that_the_build_makes_of_it(text: str) -> None:
    variant_set = parse_variant_set(read(text, "m.toml").variant_set, "m.toml", pool().known_values)
    chosen = [c for c in select(variant_set, pool().candidates) if c.target == "gfx9"]
    expected = {name for c in chosen for name in c.instances}
    found = keys(text)
    assert len(found) == len(set(found))
    assert {"fwd_asm", "bwd_asm", "sum_heads"} <= set(found)
    assert set(found) - {"fwd_asm", "bwd_asm", "sum_heads"} == expected


def test_modules_say_whose_kernels(capsys: pytest.CaptureFixture[str]) -> None:
    forward = f'{HEAD}[[modules]]\nname = "libmha_fwd"\n'
    found = keys(f'{forward}hsa_subdirs = []\ndrop_directions = ["fwd_splitkv"]\n')
    assert found[-1] == "sum_heads" and not any(key.startswith("fmha_bwd") for key in found)
    asm = f"{forward}flags_extra_cc = [\"'-DENABLE_CK=0'\"]\n"
    assert keys(asm) == ["fwd_asm", "sum_heads"]
    assert keys(f'{forward}drop_directions = ["fwd"]\n') == ["fwd_asm", "sum_heads"]
    assert capsys.readouterr().err == ""
    assert keys(asm.replace('["gfx942"]', '["gfx1250", "gfx942"]')) == ["fwd_asm", "sum_heads"]
    said = "m.toml: kernels for gfx1250 are left out, which this wheel has none for\n"
    assert capsys.readouterr().err == said


def test_a_group_leaves_others_out() -> None:
    text = (
        f'{HEAD}[[modules]]\nname = "libmha_bwd"\ngroup = "attention"\n'
        '[[modules]]\nname = "module_moe"\ngroup = "moe"\n[[mha_fwd_variants]]\ndtype = "bf16"\n'
    )
    assert lines(text) == [
        "m.toml:11: the module 'module_moe' has no kernels of attention here. Allowed: libmha_fwd, "
        "libmha_bwd; --group chooses the modules of a group alone"
    ]
    assert all(
        key.startswith(("fmha_bwd", "bwd_asm", "sum_heads")) for key in keys(text, ["attention"])
    )
    assert lines(text, ["attn"])[0].startswith("m.toml:7: no module is of the group 'attn'; its ")


def test_every_mistake_is_told_with_its_line() -> None:
    text = """\
[qola]
namespace = "te"
comit = "33f2e6a"
[build]
architectures = ["gfx1250"]
mode = "both"

[[modules]]
name = "libmha_fwd"
receipt = 601
drop_directions = ["fwd_splitk"]
[[modules]]
name = "libmha_fwd"
[[modules]]
name = "libmha_bwd"
hsa_subdirs = "fmha_v3_bwd"
drop_dirs = []

[[mha_fwd_variants]]
dtype = "fp12"
has_lse = 1
head_size_qk = "64"
has_sink = true
mask = true
has_mask = true

[[mha_bwd_variants]]
has_lse = true
# a comment
receipt = 700
bias = []

[[variants]]
direction = "fwd"
"""
    found = lines(text)
    numbers = [int(line.split(":")[1]) for line in found]
    assert numbers == [3, 5, 6, 10, 11, 13, 16, 17, 20, 21, 22, 23, 25, 28, 30, 31, 33]
    told = dict(zip(numbers, found, strict=True))
    assert "unknown key 'comit'; did you mean 'aiter_commit'?" in told[3]
    assert told[5].endswith("gfx1250: this wheel has kernels for gfx942")
    assert "receipt 601 is not known. Allowed: 600, 700" in told[10]
    assert "did you mean 'fwd_splitkv'?" in told[11]
    assert "unknown value 'fp12' for dtype. Allowed: " in told[20]
    assert "unknown value '1' for has_lse. Allowed: false, true" in told[21]
    assert "mask and has_mask both set mask; keep one" in told[25]
    assert "receipt is 700, and that of the library is 600; keep one" in told[30]
    assert "unknown table 'variants'" in told[33]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[qola]\nnamespace = te\n", "m.toml:2: not TOML: "),
        ("[qola]\nnamespace =", "m.toml:2: not TOML: "),
        ("", "m.toml:1: asks for no kernel: add [[modules]] with name = libmha_fwd, libmha_bwd"),
        ("qola = 1\n", "m.toml:1: qola must be written as a table [qola]"),
        ("\nmodules = 1\n", "m.toml:2: modules must be written as [[modules]] tables"),
        ("a = " + "[" * 100000, "m.toml:1: not TOML"),
    ],
)
def test_what_is_no_manifest(text: str, message: str) -> None:
    assert lines(text)[0].startswith(message)


def test_kernels_that_the_wheel_lacks_are_told_with_their_line() -> None:
    forward = f'{HEAD}[[modules]]\nname = "libmha_fwd"\n[[mha_fwd_variants]]\n'
    assert lines(f"{forward}head_size_qk = 1000\n") == [
        "m.toml:9: this wheel's set, all, has no kernel of fwd with these traits; take a wheel of "
        "a wider set, such as te"
    ]
    (said,) = lines(f'{forward}dtype = "bf16"\nhead_size_qk = [64, 1000]\n')
    assert said.startswith("m.toml:11: head_size_qk = 1000: this wheel's set, all, has no kernel ")
    assert "where there is " in said and "64" in said


def test_the_command_takes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def told(*arguments: str) -> tuple[int, str, str]:
        status = main(["prebuild", *arguments])
        return status, *capsys.readouterr()

    first = next(each for each in built_in.manifest()["instances"] if each["kind"] == "fwd")
    arch = next(iter(first["code_objects"]))
    file = tmp_path / "qola.toml"
    file.write_text(
        f'[build]\narchitectures = ["{arch}"]\n[[modules]]\nname = "libmha_fwd"\n'
        f'[[mha_fwd_variants]]\ndtype = "{first["traits"]["dtype"]}"\n'
    )
    status, listed, _ = told("list", "--qola", str(file))
    assert status == 0
    assert f"{arch} {first['name']}: the library" in listed.splitlines()
    assert told("verify", "--qola", str(file))[0] == 0
    file.write_text(file.read_text().replace("dtype", "dtyp"))
    status, out, said = told("build", "--qola", str(file))
    assert (status, out) == (1, "")
    assert said.startswith(f"prebuild: {file}:6: unknown key 'dtyp'; did you mean 'dtype'?")
    assert "give one: the variant set, " in told("list")[2]
    assert "give one: the variant set, " in told("list", "core", "--qola", str(file))[2]
    assert "--group: not without --qola" in told("list", "core", "--group", "x")[2]
    file.write_bytes(b"\xff\xfe")
    assert "is no text" in told("build", "--qola", str(file))[2]
