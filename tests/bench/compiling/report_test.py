# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Ratios, their spread, and the table."""

from __future__ import annotations

import pytest

from tests.bench.compiling import report
from tests.bench.compiling.runner import Usage


def measured(size: int, peers: float, ours: float, memory: float = 1.0) -> report.Measured:
    return report.Measured(
        size,
        Usage(cpu=peers, wall=peers + 1, memory=int(memory * 1e9), size=2000 * size),
        Usage(cpu=ours, wall=ours + 1, memory=int(memory * 5e8), size=1000 * size),
    )


def test_a_ratio_is_of_the_sums_and_its_spread_of_single_groups():
    ratio = report.ratio_of([measured(4, 120, 20), measured(1, 30, 30)])
    assert ratio == report.Ratio(pytest.approx(3.0), pytest.approx(1.0), pytest.approx(6.0))


def test_the_ratio_has_a_line_of_its_own():
    lines = report.table([measured(4, 120, 20), measured(1, 30, 30)], 1).splitlines()
    assert lines[-2:] == ["ratio 3.0", "spread 1.0 to 6.0"]


def row(text: str, name: str) -> list[str]:
    (found,) = [line for line in text.splitlines() if line.startswith(name + " ")]
    return found.removeprefix(name).replace("|", " ").split()


def test_a_row_has_sums_peaks_and_the_ratio():
    text = report.table([measured(4, 100, 25, 1.0), measured(4, 140, 35, 1.5)], 1)
    assert row(text, "groups of 4") == [
        *("8", "240.0", "242.0", "1.50", "16,000"),
        *("60.0", "62.0", "0.75", "8,000"),
        *("4.00", "4.00", "4.00"),
    ]


def test_sizes_have_their_own_ratios_and_groups_are_summed_without_what_is_alone():
    text = report.table([measured(8, 200, 40), measured(4, 120, 40), measured(1, 30, 20)], 1)
    assert row(text, "groups of 8")[-3:] == ["5.00", "5.00", "5.00"]
    assert row(text, "groups of 4")[-3:] == ["3.00", "3.00", "3.00"]
    assert row(text, "alone")[-3:] == ["1.50", "1.50", "1.50"]
    assert row(text, "all groups")[-3:] == ["4.00", "3.00", "5.00"]
    assert row(text, "overall")[-3:] == ["3.50", "1.50", "5.00"]
    assert row(text, "overall")[0] == "13"


def test_a_repeated_build_is_counted_once_and_its_spread_in_full():
    text = report.table([measured(4, 100, 25), measured(4, 140, 20)], 2)
    assert row(text, "overall")[:2] == ["4", "120.0"]
    assert row(text, "overall")[-3:] == ["5.33", "4.00", "7.00"]
