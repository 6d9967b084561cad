# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The table of launch configurations."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from kernels.norm import configuration
from kernels.norm.configuration import Split, TableError, load, load_split


def changed(folder: Path, change: tuple[str, str]) -> Path:
    """The table with one text in the place of another."""
    text = configuration.TABLE.read_text()
    assert change[0] in text
    table = folder / "configurations.toml"
    table.write_text(text.replace(*change, 1))
    return table


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("[64, 128, 8,", "[64, 128, 12,"), "lanes is a power of two"),
        (("[64, 128, 8, 1,", "[64, 128, 8, 2,"), "a cluster has one row"),
        (("[64, 128, 8, 1, 0,", "[64, 128, 8, 1, 2,"), "a ring feeds whole warps"),
        (("[64, 128,", "[64, 2048,"), "threads <= 1024"),
        (("[64, 128, 8,", "[9999, 128, 8,"), "hidden sizes must rise"),
        (("[64, 128, 8,", "[64, 8,"), "a row has 11 numbers"),
        (
            ("[64, 128, 8, 1, 0, 8, 0, 0, 1, 0, 0]", "[64, 128, 8, 1, 0, 8, 0, 4, 1, 0, 0]"),
            "0, 1, 2",
        ),
        (("3, 0, 1, 1, 0, 0]", "3, 0, 1, 1, 0, 1]"), "a cluster that asks for rows stays"),
        (
            (
                "[16384, 512, 512, 2, 2, 1, 1, 1, 1, 0, 0]",
                "[16384, 512, 512, 2, 2, 1, 1, 1, 1, 0, 1]",
            ),
            "change dgamma from run to run; use 0",
        ),
        (
            (
                "[16384, 512, 512, 2, 2, 1, 1, 1, 1, 0, 0]",
                "[16384, 512, 512, 2, 2, 1, 1, 3, 1, 0, 0]",
            ),
            "keep_weights is 0, 1 or 2 backward",
        ),
        (("[rms_forward]", "[group_forward]"), "operations must be"),
        (('"lag"', '"delay"'), "columns must be"),
    ],
)
def test_a_wrong_table(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    table = changed(tmp_path, change)
    with pytest.raises(TableError, match=message):
        load(table)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("[split]", "[others]"), "split must have slice, batch"),
        (("batch = 2", "rows = 2"), "split must have slice, batch"),
        (("most_parts = 128", "most_parts = 0"), "most_parts = 0: want a whole number from 1"),
        (("slice = 2048", 'slice = "2048"'), "slice = '2048': want"),
    ],
)
def test_a_wrong_split(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    table = changed(tmp_path, change)
    with pytest.raises(TableError, match=message):
        load_split(table)


def test_the_kernel_has_the_numbers_of_the_table() -> None:
    kernel = Path(os.environ["NORM_LONG"]).read_text()
    split = load_split()
    for name, number in (("SLICE", split.slice), ("BATCH", split.batch)):
        assert re.search(rf"^constexpr int {name} = {number};", kernel, re.M)


def test_parts_of_rows_that_are_split() -> None:
    split = Split(slice=2048, batch=2, most_parts=128, enough_workgroups=1024)
    assert split.slices(2049) == 2
    assert split.parts(1, 131072) == (1, 1)
    assert split.parts(8, 131072) == (4, 2)
    assert split.parts(1000, 131072) == (16, 63)
    assert split.parts(1000, 4096) == (125, 8)
    assert split.parts(5, 1 << 24) == (1, 5)
