# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Records of real builds as summaries and as a page."""

from __future__ import annotations

import collections
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from toolchains.bazel import events, profile, recording, summary
from toolchains.bazel.cost import Costs
from toolchains.pages.tests.chromium import Browser
from toolchains.pages.tests.looking import browser as browser  # a fixture
from toolchains.pages.tests.looking import look
from toolchains.report import build_page, execution_log, report

_RECORDED = Path(__file__).parent / "recorded"
_CHART_JS = Path(os.environ["CHART_JS"])
_BUILDS = ("compiled", "cached")


def _kernels(build: str, recorded: dict[str, float]) -> list[summary.Kernel]:
    folder = _RECORDED / build
    plan = events.Plan(**json.loads((folder / recording.PLAN).read_text()))
    costs = Costs(recorded, plan)
    return summary.kernels(
        events.read(str(folder / "events.json")), profile.read(str(folder / "profile.gz")), costs
    )


def _line(build: str, recorded: dict[str, float]) -> dict[str, Any]:
    folder = _RECORDED / build
    return summary.history_line(
        events.read(str(folder / "events.json")),
        profile.read(str(folder / "profile.gz")),
        _kernels(build, recorded),
    )


def test_processor_time_is_shared_out_by_the_time_that_commands_ran() -> None:
    found = _kernels("compiled", {})
    assert {kernel.where for kernel in found} == {"here"}
    assert len(found) == 11
    counted = events.read(str(_RECORDED / "compiled/events.json")).processor_seconds(
        "HipCodeObject"
    )
    assert sum(kernel.seconds for kernel in found) == pytest.approx(counted)
    slowest = max(found, key=lambda kernel: kernel.seconds)
    assert slowest.key.startswith("bwd/fp16_d64/fmha_bwd_d64_fp16_batch_")


def test_saved_time_is_that_of_the_last_compile_else_an_estimate() -> None:
    took = {kernel.key: kernel.seconds for kernel in _kernels("compiled", {})}
    cached = _kernels("cached", took)
    assert {kernel.where for kernel in cached} == {"cache"}
    assert {kernel.key: kernel.seconds for kernel in cached} == took
    estimated = sum(kernel.seconds for kernel in _kernels("cached", {}))
    assert estimated == pytest.approx(sum(took.values()), rel=0.5)


def test_estimates_of_a_build_whose_costs_are_known() -> None:
    found = _kernels("compiled", {})
    known = {kernel.key: kernel.span for kernel in found}
    estimates = summary.estimates(found, known, jobs=2)
    # A tenth of eleven kernels is two of them; there is none at the end of the last.
    assert len(estimates) == 9
    assert [e.at for e in estimates] == sorted(e.at for e in estimates)
    assert len({e.took for e in estimates}) == 1
    assert all(abs(e.error) < 0.5 for e in estimates)
    assert summary.estimates([], {}, jobs=2) == []


def test_the_estimates_that_a_build_gave() -> None:
    """Of a real one on a busy machine, whose last kernel took half of the time by itself."""
    folder = _RECORDED / "compiled"
    estimates = build_page.read(folder, {}).estimates
    assert estimates
    assert all(abs(e.error) < 0.2 for e in estimates)


def test_no_estimate_was_given_of_kernels_without_a_plan(tmp_path: Path) -> None:
    shutil.copytree(_RECORDED / "compiled", tmp_path, dirs_exist_ok=True)
    plan = json.loads((tmp_path / recording.PLAN).read_text())
    (tmp_path / recording.PLAN).write_text(json.dumps(plan | {"kernels": {}}))
    build = build_page.read(tmp_path, {})
    assert build.kernels and not build.estimates


def test_closing_lines() -> None:
    assert summary.closing_line(_line("compiled", {})) == "11 kernels: 11 compiled in 67 s of CPU"
    took = {kernel.key: kernel.seconds for kernel in _kernels("compiled", {})}
    assert summary.closing_line(_line("cached", took)) == (
        "11 kernels: 11 from the disk cache, 67 s of CPU saved"
    )


@pytest.mark.parametrize(
    ("compiled", "cached", "actions", "said"),
    [
        (0, 0, {}, ""),
        (1, 0, {}, "1 kernel: 1 compiled in 2 min of CPU"),
        (0, 2, {"remote cache hit": 9}, "2 kernels: 2 from the cache server, 3.0 h of CPU saved"),
        (
            1,
            2,
            {"remote cache hit": 9, "disk cache hit": 1},
            "3 kernels: 1 compiled in 2 min of CPU, 2 from the disk cache and the cache server, "
            "3.0 h of CPU saved",
        ),
    ],
)
def test_closing_lines_of_other_builds(
    compiled: int, cached: int, actions: dict[str, int], said: str
) -> None:
    line = {
        "compiled": compiled,
        "cached": cached,
        "actions": actions,
        "compile_seconds": 101,
        "saved_seconds": 10800,
    }
    assert summary.closing_line(line) == said


def test_the_history_line_of_a_real_build() -> None:
    line = _line("compiled", {})
    assert (line["command"], line["targets"], line["exit"]) == (
        "build",
        ["//kernels:launch_table"],
        "SUCCESS",
    )
    assert line["actions"] == {"internal": 2, "linux-sandbox": 33}
    assert 0 < line["critical_path"] < line["seconds"]


@pytest.mark.parametrize("build", _BUILDS)
def test_the_execution_log_says_what_the_events_say(build: str) -> None:
    spawns = execution_log.read(_RECORDED / build / "execution.zst")
    runners = collections.Counter(spawn.runner for spawn in spawns)
    counted = events.read(str(_RECORDED / build / "events.json")).runners
    assert runners == {name: count for name, count in counted.items() if name != "internal"}
    assert {spawn.cached for spawn in spawns} == {build == "cached"}
    objects = [spawn for spawn in spawns if spawn.mnemonic == "HipCodeObject"]
    assert len(objects) == 11
    for spawn in objects:
        ((path, size),) = spawn.outputs
        assert path.endswith(".hsaco")
        assert 4000 < size < 100_000
        assert path.rpartition("/")[2] == spawn.label.rpartition(":")[2] + ".hsaco"


@pytest.mark.parametrize("content", [b"", b"text", b"\x28\xb5\x2f\xfd\x04\x00\x01\x00\x00\x99"])
def test_no_execution_log(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "log").write_bytes(content)
    with pytest.raises(ValueError, match="want a"):
        execution_log.read(tmp_path / "log")


def test_no_events(tmp_path: Path) -> None:
    (tmp_path / "events.json").write_text("{}\n")
    with pytest.raises(ValueError, match="want a file of --build_event_json_file"):
        events.read(str(tmp_path / "events.json"))


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with two builds in its history, the second of them the last."""
    monkeypatch.setenv("BAZELW_CACHE", str(tmp_path / "cache"))
    records = Path(recording.folder_of(str(tmp_path), os.environ))
    shutil.copytree(_RECORDED / "cached", records / "last")
    lines = [json.dumps(_line(build, {})) + "\n" for build in _BUILDS]
    (records / "history.jsonl").write_text("".join(lines))
    return tmp_path


@pytest.mark.parametrize("build", _BUILDS)
def test_the_page_in_a_browser(browser: Browser, workspace: Path, build: str) -> None:
    last = Path(recording.folder_of(str(workspace), os.environ)) / "last"
    shutil.rmtree(last)
    shutil.copytree(_RECORDED / build, last)
    page = report.write(workspace, None, _CHART_JS)
    assert page == last.parent / "pages/build.html"
    # Kernels that nothing compiled are in no plot of compiles; there are other actions then.
    look(browser, page, plots=7 if build == "compiled" else 5)
    text = browser.evaluate("document.body.innerText")
    assert summary.closing_line(_line(build, {})) in text
    heads = "[...document.querySelectorAll('h2')].map(head => head.textContent)"
    assert browser.evaluate(heads) == ["Kernels", "Critical path", "Builds of this workspace"]
    tables = "[...document.querySelectorAll('table.sorted')].map(t => t.tBodies[0].rows.length)"
    kernels, _, builds = browser.evaluate(tables)
    assert (kernels, builds) == (11, 2)
    look(browser, page.with_name("index.html"), plots=0)


def test_to_a_folder(workspace: Path) -> None:
    page = report.write(workspace, workspace / "a/b", _CHART_JS)
    assert page == workspace / "a/b/build.html"
    assert sorted(file.name for file in page.parent.iterdir()) == ["build.html", "index.html"]


def test_nothing_recorded(workspace: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no build of /nowhere is recorded; run \./bazelw"):
        report.write(Path("/nowhere"), None, _CHART_JS)
