# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""List scheduling, the actions of a set, sizes of a build, and the page."""

from __future__ import annotations

import collections
import os
import random
from pathlib import Path

import pytest
from absl import flags

from kernels.ck_fmha.ckgen.emission import RecordedPool
from kernels.ck_fmha.groups.cost import FIGURES as COSTS
from kernels.ck_fmha.groups.cost import CostModel
from kernels.cluster import cluster
from kernels.cluster.graph import FIGURES, Figures, cut, graph
from kernels.cluster.schedule import Action, Costs, critical_path, makespan
from kernels.cluster.simulation import CUTS, WORKERS, duration
from kernels.matrix.counts import Row, rows_of_set
from toolchains.pages.tests.chromium import Browser
from toolchains.pages.tests.looking import browser as browser  # a fixture
from toolchains.pages.tests.looking import look
from toolchains.report.execution_log import Spawn

_FREE = Costs()
_DIAMOND = [
    Action("a", 1.0),
    Action("b", 2.0, (0,)),
    Action("c", 3.0, (0,)),
    Action("d", 4.0, (1, 2)),
]


@pytest.fixture(scope="module")
def pool() -> RecordedPool:
    return RecordedPool(Path(os.environ["POOL"]).read_text("utf-8"))


@pytest.fixture(scope="module")
def model(pool: RecordedPool) -> CostModel:
    return CostModel(COSTS.read_text("utf-8"), pool.rows)


@pytest.fixture(scope="module")
def figures() -> Figures:
    return Figures.read(FIGURES.read_text("utf-8"))


def rows(pool: RecordedPool, variant_set: str) -> list[Row]:
    file = Path(os.environ["README"]).with_name(f"{variant_set}.toml")
    return [row for row in rows_of_set(pool, file) if "gfx942" not in row.get("left_out", {})]


def test_a_diamond() -> None:
    assert makespan(_DIAMOND, 1, _FREE) == 10
    assert makespan(_DIAMOND, 2, _FREE) == makespan(_DIAMOND, 9, _FREE) == 8
    assert critical_path(_DIAMOND, _FREE) == 8
    assert makespan([], 3, _FREE) == critical_path([], _FREE) == 0


def test_what_comes_on_top() -> None:
    assert makespan(_DIAMOND, 2, Costs(action=0.5, worker=10)) == 10 + 8 + 3 * 0.5
    assert critical_path(_DIAMOND, Costs(action=0.5, worker=10)) == 19.5
    # The client starts the fourth 3 s after the first.
    assert makespan([Action("a", 1.0)] * 4, 4, Costs(asked=1)) == 4
    # Each worker fetches for itself.
    assert makespan([Action("a", 1.0)] * 4, 2, Costs(worker=5)) == 7


def test_a_result_makes_others_ready_while_workers_are_busy() -> None:
    actions = [Action("a", 1.0), Action("b", 5.0), Action("c", 1.0, (0,)), Action("d", 1.0, (2,))]
    assert makespan(actions, 2, _FREE) == 5
    assert makespan(actions, 1, _FREE) == 8


@pytest.mark.parametrize("seed", range(5))
def test_bounds_of_any_schedule(seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311
    actions = [
        Action("x", draw.random(), tuple(draw.sample(range(at), min(at, draw.randrange(3)))))
        for at in range(300)
    ]
    work, chain = sum(action.seconds for action in actions), critical_path(actions, _FREE)
    for workers in (1, 2, 3, 10, 300):
        took = makespan(actions, workers, _FREE)
        assert max(work / workers, chain) - 1e-9 <= took <= work / workers + chain
    assert makespan(actions, 300, _FREE) == pytest.approx(chain)


def test_no_workers_and_no_groups() -> None:
    with pytest.raises(ValueError, match=r"0 workers.*from 1"):
        makespan(_DIAMOND, 0, _FREE)
    with pytest.raises(ValueError, match=r"groups of 0.*from 1"):
        list(cut([["x:a"]], 0))


def test_cuts() -> None:
    group = [f"x:{name}" for name in "abcdefg"]
    assert list(cut([group], 8)) == [list("abcdefg")]
    assert list(cut([group, ["x:z"]], 3)) == [list("abc"), list("def"), ["g"], ["z"]]


@pytest.mark.parametrize("variant_set", ["smoke", "core", "te"])
def test_the_cost_is_that_of_the_matrix(
    pool: RecordedPool, model: CostModel, figures: Figures, variant_set: str
) -> None:
    of = rows(pool, variant_set)
    actions = graph({"gfx942": of}, pool, model, figures, 8)
    kinds = collections.Counter(action.kind for action in actions)
    estimate = model.estimate([row["name"] for row in of], pool.groups.values())
    assert kinds["HipCodeObject"] == kinds["CodeObjectDescribe"] == len(of)
    assert kinds["HipCompileGroup"] == estimate.groups
    compiles = ("HipCompileGroup", "HipCodeObject", "CodeObjectDescribe")
    seconds = sum(action.seconds for action in actions if action.kind in compiles)
    # A group has members of other sets, too; no machine code is made of these.
    unwanted = estimate.others * figures.seconds["machine_code"]
    assert seconds == pytest.approx(estimate.seconds - unwanted)


def test_smaller_groups_take_more_processor_time_and_less_for_the_last(
    pool: RecordedPool, model: CostModel, figures: Figures
) -> None:
    of = {"gfx942": rows(pool, "core")}
    built = [graph(of, pool, model, figures, most) for most in CUTS]
    work = [sum(action.seconds for action in actions) for actions in built]
    chains = [critical_path(actions, _FREE) for actions in built]
    assert work == sorted(work)
    assert chains == sorted(chains, reverse=True)


def test_sizes_of_a_build(pool: RecordedPool) -> None:
    (first, *_) = (name for name, row in pool.rows.items() if row["kind"] == "bwd_dot_do_o")
    size = pool.rows[first]["traits"]["head_size_qk"]

    def spawn(path: str, number: int) -> Spawn:
        return Spawn("x", "//:x", "local", False, ((path, number),))

    spawns = [
        spawn(f"bazel-out/bin/bwd/x/{first}.gfx942.hsaco", 1000),
        spawn(f"bazel-out/bin/bwd/x/{first}.grouped.gfx950.hsaco", 3000),
        spawn(f"bazel-out/bin/bwd/x/group.gfx942/{first}.bc", 5000),
        spawn("bazel-out/bin/aiter/x.pic.o", 7),
    ]
    assert cluster.sizes(spawns, pool.rows).split("\n") == [
        "",
        "[sizes.bwd_dot_do_o]",
        f"{size} = [2000, 5000]",
    ]
    # A module that none was of is taken for two objects.
    assert cluster.sizes(spawns[:1], pool.rows).endswith("[1000, 2000]")


@pytest.mark.parametrize(
    ("seconds", "said"), [(59, "59 s"), (119, "119 s"), (600, "10 min"), (9000, "2.5 h")]
)
def test_durations(seconds: float, said: str) -> None:
    assert duration(seconds) == said


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    monkeypatch.setenv("BUILD_WORKING_DIRECTORY", str(tmp_path))
    names = ("archs_file", "chart_js", "pool", "readme")
    return ["cluster", *(f"--{name}={os.environ[name.upper()]}" for name in names)]


def run(arguments: list[str]) -> int:
    flags.FLAGS.unparse_flags()
    return cluster.main(flags.FLAGS(arguments))


def test_the_program_and_its_page(
    program: list[str], tmp_path: Path, browser: Browser, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--variants=smoke,core", "--archs=gfx942", "--page=cluster.html"]
    assert run([*program, *asked]) == 0
    said = capsys.readouterr().out
    for name in ("smoke", "core"):
        assert f"{name} for gfx942: " in said
    assert f"{WORKERS[-1]:,}" not in said.splitlines()[0]
    page = tmp_path / "cluster.html"
    look(browser, page, plots=7)
    heads = "[...document.querySelectorAll('h2')].map(head => head.textContent)"
    assert browser.evaluate(heads) == ["smoke for gfx942", "core for gfx942", "Real clusters"]
    lines = "[...document.querySelectorAll('table.sorted')].map(t => t.tBodies[0].rows.length)"
    assert browser.evaluate(lines) == [len(CUTS) * len(WORKERS)] * 2


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("--variants=none", "unknown variant set 'none'; known: "),
        ("--archs=gfx1", "unknown arch 'gfx1'; known: "),
        ("--sizes=nowhere.zst", "nowhere.zst"),
        ("--page=no/such/folder.html", "no/such/folder.html"),
    ],
)
def test_bad_input(
    program: list[str], asked: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*program, "--variants=smoke", "--archs=gfx942", asked]) == 1
    error = capsys.readouterr().err
    assert error.startswith("cluster: ") and said in error
