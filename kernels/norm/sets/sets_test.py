# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Lists of norm kernels are those that the library asks for, and a set's wrong words are told."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from kernels.norm.sets import sets
from kernels.variants.values import VariantSetError

PRINT_KERNELS = Path(os.environ["PRINT_KERNELS"]).absolute()
SETS = {path.stem: path for path in sets.FOLDER.glob("*.toml")}


def test_there_are_the_sets_that_documents_name() -> None:
    assert {"none", "common", "all"} <= SETS.keys()


@pytest.mark.parametrize("name", sorted(SETS))
def test_a_list_is_what_the_library_chooses(name: str) -> None:
    listed = SETS[name].with_suffix(".json").read_text("utf-8")
    assert listed == sets.kernels_of(SETS[name], PRINT_KERNELS), (
        "write the lists anew: ./bazelw run //aiter/norm:sets"
    )


def test_none_has_none_and_all_has_those_of_the_others() -> None:
    lists = {name: json.loads(path.with_suffix(".json").read_text()) for name, path in SETS.items()}
    assert lists["none"] == {}
    assert lists["common"].items() <= lists["all"].items()


def test_all_has_every_value_of_every_key() -> None:
    lines = sets.shapes(SETS["all"].read_text("utf-8"), "all.toml")
    names = json.loads(SETS["all"].with_suffix(".json").read_text())
    assert len(lines) == len(set(lines)) == 4 * (2 * 3 * 4 + 2 * 3 * 4 * 3 + 3 * 2 + 3 * 3)
    for name in (
        "layer_forward_add_zero_centred_fp16_fp8_e5m2_1024",
        "handful_rms_backward_add_fp32_8192",
        "norm_columns_fp16_2048",
        "softmax_backward_causal_fp32_1024",
        "dozens_softmax_forward_explicit_bf16_4096",
    ):
        assert name in names


def flags_by_arch(kernels: str) -> set[tuple[str, str, str]]:
    """Of a list: source, arch and flags of each kernel."""
    return {
        (
            kernel["source"],
            arch,
            " ".join(sorted([*kernel.get("shared", "").split(), *flags.split()])),
        )
        for kernel in json.loads(kernels).values()
        for archs, flags in kernel["flags"].items()
        for arch in archs.split(" ")
    }


@pytest.mark.parametrize("rows", [1, 16, 17, 64, 65, 128, 129, 256, 257, 512, 513, 100_000])
def test_all_serves_any_number_of_rows_with_a_barrier_and_without(rows: int) -> None:
    lines = sets.shapes(SETS["all"].read_text("utf-8"), "all.toml")
    listed = flags_by_arch(SETS["all"].with_suffix(".json").read_text("utf-8"))
    for barrier in (0, 1):
        calls = "\n".join(f"{line} {rows} {barrier}" for line in lines)
        called = subprocess.run(
            [PRINT_KERNELS], check=True, input=calls, capture_output=True, text=True
        ).stdout
        assert len(json.loads(called)) > len(lines) / 2
        assert flags_by_arch(called) <= listed


def test_a_key_chooses_and_an_operation_without_it_is_left_free() -> None:
    text = """
    [[norms]]
    operation = ["rms_forward", "softmax_forward"]
    dtype = "bf16"
    hidden = 768
    add = true
    zero_centred = [false]
    output = ["same", "fp8_e4m3"]
    """
    assert sets.shapes(text, "x.toml") == [
        "rms_forward bf16 bf16 768 1 0 none",
        "rms_forward bf16 fp8_e4m3 768 1 0 none",
        "softmax_forward bf16 bf16 768 0 0 none",
        "softmax_forward bf16 bf16 768 0 0 explicit",
        "softmax_forward bf16 bf16 768 0 0 causal",
    ]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('operation = "rms"\nhidden = 8', "unknown value 'rms' for operation"),
        ("hidden = 0", "hidden = 0: want numbers of columns, each from 1 to 262144"),
        ("hidden = [64, true]", "hidden = True: want numbers of columns"),
        ('dtype = "bf16"', "hidden must name the numbers of columns"),
        ('hidden = 8\nadd = "yes"', "unknown value 'yes' for add"),
        ("hidden = 8\nadds = true", "unknown key 'adds'; did you mean 'add'?"),
        ('hidden = 8\noperation = "softmax_forward"\nadd = true', "unknown key 'add'"),
        ('hidden = 8\noperation = "softmax_backward"\nmask = "explicit"', "for mask"),
        ("hidden = 8\ndtype = []", "dtype is an empty list"),
    ],
)
def test_a_wrong_word_is_told_with_its_place(table: str, message: str) -> None:
    with pytest.raises(VariantSetError, match=r"x\.toml: \[\[norms\]\] number 2: ") as error:
        sets.shapes(f"[[norms]]\nhidden = 8\n[[norms]]\n{table}\n", "x.toml")
    assert message in str(error.value)


@pytest.mark.parametrize("text", ["[[norm]]\nhidden = 8", "norms = 1", "norms = [1]", "norms"])
def test_a_file_of_another_kind_is_told(text: str) -> None:
    with pytest.raises(VariantSetError, match=r"^x\.toml: "):
        sets.shapes(text, "x.toml")


def test_a_line_that_is_no_shape_is_refused() -> None:
    for line in ("rms_forward bf16 bf16 8 0 0", "rms_forward bf17 bf16 8 0 0 none"):
        printed = subprocess.run([PRINT_KERNELS], input=line, capture_output=True, text=True)
        assert printed.returncode == 1 and printed.stdout == ""
        assert f"'{line}': " in printed.stderr
