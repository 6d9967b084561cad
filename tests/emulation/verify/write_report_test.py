# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The report: its counts, its rows and its refusals."""

from __future__ import annotations

import copy
import html.parser
from pathlib import Path
from typing import Any

import pytest

from tests.emulation.verify.verdict import judge
from tests.emulation.verify.write_report import COLUMNS, document, page
from toolchains.pages.tests.chromium import Browser
from toolchains.pages.tests.looking import browser as browser  # a fixture
from toolchains.pages.tests.looking import look

TEMPLATE = Path(__file__).with_name("report.html").read_text("utf-8")

RESULT: dict[str, Any] = {
    "instance": "fmha_fwd_d96_x_qr_async_vr_x", "arch": "gfx942", "kind": "fwd",
    "dtype": "fp16",
    "head_size": 64, "mode": "batch", "mask": True, "features": ["ALiBi", "dropout"],
    "findings": [{"signature": "beyond-head: NaN", "message": "there", "runs": ["x [barrier]"]},
                 {"signature": "race: ds_read_b128, ds_write2_b32", "message": "where",
                  "runs": ["x [barrier]"]}],
    "runs": [
        {"case": "x", "schedule": "sliced:8", "wave_instructions": 1_500_000,
         "errors": {"o": {"rms": 0.5, "largest": 2.25, "where": [1]}}},
        {"case": "x", "schedule": "barrier", "wave_instructions": 500_000,
         "errors": {"o": {"rms": "inf", "largest": "inf", "where": [0]}}},
        {"case": "y", "schedule": "sliced:8", "stopped": "MemoryFault: ds_read_b32"},
    ],
    "profile": {"case": "x", "wave_instructions": 100, "classes": {"mfma": 7, "vector": 93},
                "mfma_share": 0.07, "lds_efficiency": {"read": 0.5, "write": None},
                "global_efficiency": {"load": 1.0, "store": 0.25, "atomic": None},
                "opcode_efficiency": {"ds_read_b32": 0.5}},
}  # fmt: skip
METADATA: dict[str, Any] = {
    "instance": "fmha_fwd_d96_x_qr_async_vr_x", "arch": "gfx942", "key": "0123", "data_symbol": "s",
    "kernel": {"vgpr_count": 128, "lds_size": 1024, "scratch_size": 0},
}  # fmt: skip


class _Table(html.parser.HTMLParser):
    """Texts of the cells, row by row, and whether every element is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("meta", "input", "br"):
            return
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "td" in self.open or "th" in self.open:
            self.rows[-1][-1] += data


def _parsed(report: dict[str, Any]) -> _Table:
    table = _Table()
    table.feed(page(report, TEMPLATE))
    assert not table.open
    return table


def test_document() -> None:
    report = document([RESULT], [METADATA])
    assert (report["code_objects"], report["failed"]) == (1, 0)
    assert report["wave_instructions"] == 2_000_000
    assert report["results"][0]["code_object"] == {"key": "0123", "kernel": METADATA["kernel"]}


def test_figures_are_of_kinds_and_features() -> None:
    """A kernel counts for each of its features; an error that is infinite is not lost."""
    run = {"case": "z", "schedule": "sliced:8", "wave_instructions": 1,
           "errors": {"o": {"rms": "inf", "largest": "inf", "where": [0]}}}  # fmt: skip
    other = {**RESULT, "instance": "fmha_fwd_d2_x", "features": ["dropout"], "findings": [],
             "runs": [run]}  # fmt: skip
    report = document([RESULT, other], [METADATA, {**METADATA, "instance": other["instance"]}])
    figures = {(f.pop("kind"), f.pop("feature")): f for f in copy.deepcopy(report["figures"])}
    of_both = {"code_objects": 2, "failed": 1, "runs": 4, "worst_rms": "inf", "worst": "inf"}
    of_one = {"code_objects": 1, "failed": 0, "runs": 3, "worst_rms": 0.5, "worst": 2.25}
    kind = "fwd"
    assert figures == {(kind, ""): of_both, (kind, "dropout"): of_both, (kind, "ALiBi"): of_one}
    assert ["forward", "ALiBi", "1", "0", "3", "0.50", "2.25"] in _parsed(report).rows


def test_a_kind_without_a_name_of_its_own_is_in_both_tables() -> None:
    own = {**RESULT, "kind": "dropout_mask", "features": []}
    rows = _parsed(document([own], [METADATA])).rows
    assert any("dropout mask" in r and "own" in r for r in rows if len(r) == len(COLUMNS))
    assert ["dropout mask", "all", "1", "1", "3", "inf", "inf"] in rows


def test_coverage_is_of_values_of_traits_and_of_what_was_not_executed() -> None:
    traits = {"dropout": True, "head_size_qk": 64}
    failed = {**RESULT, "instance": "fmha_fwd_d2_x", "traits": {**traits, "dropout": False}}
    results = [{**RESULT, "traits": traits}, failed]
    metadata = [METADATA, {**METADATA, "instance": failed["instance"]}]
    drawn_from = {"fwd": {"dropout": {"false": 5, "true": 7}, "head_size_qk": {"64": 9, "96": 3}},
                  "bwd_convert_dq": {"dropout": {"false": 2}}}  # fmt: skip
    report = document(results, metadata, drawn_from)
    failures = sum(row["verdict"] == "FAIL" for row in report["results"])
    rows = [[str(cell) for cell in c.values()] for c in report["coverage"]]
    assert [row[1:] for row in rows] == [
        ["fwd", "dropout", "False", "5", "1", str(failures)],
        ["fwd", "dropout", "True", "7", "1", "0"],
        ["fwd", "head_size_qk", "64", "9", "2", str(failures)],
        ["fwd", "head_size_qk", "96", "3", "0", "0"],
        ["bwd_convert_dq", "dropout", "False", "2", "0", "0"],
    ]
    assert ["gfx942", "forward", "head_size_qk", "96", "3", "0", "0"] in _parsed(report).rows


def test_results_and_metadata_must_agree() -> None:
    with pytest.raises(ValueError, match=r"fwd_b\.gfx942 has a result or metadata, but not both"):
        document([RESULT, {**RESULT, "instance": "fwd_b"}], [METADATA])


def test_known_defects_are_no_clean_pass() -> None:
    clean = {**RESULT, "instance": "fmha_fwd_d99_x", "findings": [], "runs": RESULT["runs"][:1]}
    metadata = [METADATA, {**METADATA, "instance": clean["instance"]}]
    report = document([RESULT, clean], metadata)
    assert (report["failed"], report["with_known_defects"], report["passed"]) == (0, 1, 1)
    assert report["known_defects"] == {"C": 1, "H": 1}
    assert [r["verdict"] for r in report["results"]] == ["known: C, H", "pass"]
    text = page(report, TEMPLATE)
    assert "2 code objects, 1 with known defects, 1 pass" in text
    title = "the first slice of V is stored to LDS while other waves may still read K there"
    assert ["1", "C", title] in _parsed(report).rows


def test_patches_leave_no_race(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CK_PATCHES", "default")
    report = document([RESULT], [METADATA])
    assert (report["patches"], report["failed"], report["known_defects"]) == ("default", 1, {})
    assert "new finding: race" in report["results"][0]["failures"][-1]


def test_excused_errors_do_not_count() -> None:
    """The race is known, and its o may be wrong where the waves do not advance together."""
    verdict = judge(RESULT)
    assert not verdict.failures and (verdict.worst_rms, verdict.worst) == (0.5, 2.25)
    wrong = copy.deepcopy(RESULT)
    wrong["runs"][1]["schedule"] = "sliced:8"
    assert "o is inf units off" in judge(wrong).failures[0]


def test_findings_are_expected_exactly() -> None:
    assert "new finding: race" in judge(RESULT, known={}).failures[-1]
    known = {finding["signature"]: "C" for finding in RESULT["findings"]}
    assert "not found any more" in judge(RESULT, known | {"race: nowhere": "C"}).failures[0]


def test_page() -> None:
    text = page(document([RESULT], [METADATA]), TEMPLATE)
    assert "{{" not in text and "http" not in text, "self-contained"
    table = _parsed(document([RESULT], [METADATA]))
    assert table.rows[0] == [name for name, _, _ in COLUMNS]
    cells = dict(zip(table.rows[0], table.rows[1], strict=True))
    assert (cells["Result"], cells["Kernel"], cells["d"]) == ("known: C, H", "forward", "64")
    assert cells["Provider"] == "ck"
    assert (cells["Error"], cells["Largest"], cells["MFMA %"]) == ("0.50", "2.25", "7")
    assert (cells["LDS read %"], cells["LDS write %"], cells["Store %"]) == ("50", "", "25")
    assert ["1", "race: ds_read_b128, ds_write2_b32"] in table.rows
    assert ["y", "sliced:8", "", "stopped by MemoryFault: ds_read_b32"] in table.rows


def test_a_failure_is_seen() -> None:
    failed = {**RESULT, "findings": [{"signature": "race: <new>", "message": "", "runs": []}]}
    text = page(document([failed], [METADATA]), TEMPLATE)
    assert "1 fail" in text and "race: &lt;new&gt;" in text
    assert _parsed(document([failed], [METADATA])).rows[1][0] == "FAIL"


def test_in_a_browser(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "verification.html"
    file.write_text(page(document([RESULT], [METADATA]), TEMPLATE), "utf-8")
    look(browser, file, plots=0)
    # A line unfolds by the keyboard.
    browser.evaluate("document.querySelector('.row').focus()")
    assert browser.evaluate("document.querySelector('.details').checkVisibility()") is False
    browser.press("Enter")
    assert browser.evaluate("document.querySelector('.details').checkVisibility()") is True
