# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The kernels that caches lack: the events of a build whose compiles are refused, and the time."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from kernels.ck_fmha.ckgen.emission import RecordedPool
from kernels.ck_fmha.groups.cost import FIGURES, CostModel
from kernels.matrix import missing
from kernels.matrix.choice import present
from kernels.matrix.counts import rows_of_set
from kernels.matrix.missing import GROUP, OBJECT, Compile, MissingError

REFUSED = {"sandbox": {"code": "MOUNT_SOURCE_DOES_NOT_EXIST"}, "message": "Mount source ..."}


def event(mnemonic: str, target: str, **more: Any) -> str:
    action = {
        "label": f"@@_main~ck_fmha~ck_fmha//{target}",
        "type": mnemonic,
        "failureDetail": REFUSED,
        **more,
    }
    return json.dumps({"id": {"actionCompleted": {}}, "action": action})


def test_refused_compiles_are_read_from_events_each_once() -> None:
    events = [
        json.dumps({"id": {"started": {}}, "started": {}}),
        event(GROUP, "groups/fwd/d32:fwd_4.gfx942"),
        event(GROUP, "groups/fwd/d32:fwd_4.gfx942"),
        event(OBJECT, "fwd/bf16_d32:a.gfx942", commandLine=["clang++", "-c", "a.cpp"]),
        event(
            OBJECT,
            "fwd/bf16_d32:b.grouped.gfx942",
            commandLine=["clang++", "-Xclang", "-disable-llvm-passes", "-x", "ir", "b.bc"],
        ),
        event("CodeObjectRecipe", ":recipe", success=True, failureDetail={}),
    ]
    assert missing.refused(events, "gfx942") == [
        Compile(GROUP, "groups/fwd/d32:fwd_4"),
        Compile(OBJECT, "fwd/bf16_d32:a"),
        Compile(OBJECT, "fwd/bf16_d32:b.grouped", module=True),
    ]


@pytest.mark.parametrize(
    "bad",
    [
        event("CodeObjectRecipe", ":recipe"),
        event(OBJECT, "a:b.gfx942", failureDetail={"spawn": {"code": "TIMEOUT"}, "message": "m"}),
    ],
)
def test_another_failure_is_told_and_not_counted(bad: str) -> None:
    with pytest.raises(MissingError, match=r"^\w+ of @@_main~ck_fmha~ck_fmha//\S+ failed: "):
        missing.refused([bad], "gfx942")


def test_wall_seconds() -> None:
    assert missing.wall_seconds([], 2) == 0
    assert missing.wall_seconds([1, 2, 3, 6], 1) == 12
    assert missing.wall_seconds([1, 2, 3, 6], 2) == 6
    assert missing.wall_seconds([1, 2, 3, 6], 8) == 6


@pytest.mark.parametrize(("seconds", "shown"), [(89, "89 s"), (600, "10 min"), (9000, "2.5 h")])
def test_duration(seconds: float, shown: str) -> None:
    assert missing.duration(seconds) == shown


# ---- the report ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pool() -> RecordedPool:
    return RecordedPool(Path(os.environ["POOL"]).read_text("utf-8"))


def core(pool: RecordedPool) -> tuple[list[str], CostModel]:
    file = Path(os.environ["README"]).parent / "core.toml"
    model = CostModel(FIGURES.read_text("utf-8"), pool.rows)
    rows = present("core", "gfx942", rows_of_set(pool, file))
    return [row["name"] for row in rows], model


def groups_of(pool: RecordedPool, names: list[str]) -> dict[str, set[str]]:
    """The compile groups that have any of the instances, and their members."""
    of = {group: {m.partition(":")[2] for m in ms} for group, ms in pool.groups.items()}
    return {group: members for group, members in of.items() if members & set(names)}


def test_all_of_a_set_lacking_is_the_estimate_of_the_set(pool: RecordedPool) -> None:
    names, model = core(pool)
    groups = groups_of(pool, names)
    compiles = [Compile(GROUP, f"groups/{group}") for group in groups]
    one = missing.report(compiles, names, model, pool, jobs=1)
    whole = model.estimate(names, pool.groups.values())
    assert one["cpu_seconds"] == one["seconds"] == round(whole.seconds)
    assert (one["code_objects"], one["groups"], one["alone"]) == (48, whole.groups, 0)
    two = missing.report(compiles, names, model, pool, jobs=2)
    assert whole.seconds / 2 - 1 < two["seconds"] < 0.6 * whole.seconds


def test_only_the_wanted_members_of_a_group_lack_and_the_group_counts_once(
    pool: RecordedPool,
) -> None:
    names, model = core(pool)
    group, members = next(iter(groups_of(pool, names).items()))
    wanted = sorted(members)[:-1]
    got = missing.report([Compile(GROUP, f"groups/{group}")], wanted, model, pool, jobs=1)
    whole = model.compile_of_group(pool.rows[name] for name in members)
    assert got["code_objects"] == len(wanted)
    assert got["cpu_seconds"] == round(whole + len(wanted) * model.seconds_of_object)


def test_compiles_of_code_objects(pool: RecordedPool) -> None:
    names, model = core(pool)
    alone = Compile(OBJECT, f"{pool.packages[names[0]]}:{names[0]}")
    got = missing.report([alone], names, model, pool, jobs=4)
    assert (got["code_objects"], got["groups"], got["alone"]) == (1, 0, 1)
    assert got["seconds"] == round(model.alone(pool.rows[names[0]]))
    module = Compile(OBJECT, f"{pool.packages[names[0]]}:{names[0]}.grouped", module=True)
    got = missing.report([module], names, model, pool, jobs=4)
    assert (got["code_objects"], got["alone"], got["seconds"]) == (1, 0, 0)
    assert missing.text(got, 48).startswith("The caches lack 1 of 48 code objects (0 compile group")
    assert missing.text(missing.report([], names, model, pool, 2), 48) == (
        "The caches lack none of the 48 code objects.\n"
    )


# ---- Bazel's answer --------------------------------------------------------------------------


def bazel(folder: Path, status: int, *lines: str, stderr: str = "") -> Path:
    """A checkout whose bazelw writes these events, and its arguments into a file."""
    (folder / "events").write_text("".join(f"{line}\n" for line in lines))
    (folder / "stderr").write_text(stderr)
    script = folder / "bazelw"
    script.write_text(
        "#!/bin/sh\n"
        'printf "%s\\n" "$@" > arguments\n'
        "for argument; do case $argument in --build_event_json_file=*)\n"
        '  cp events "${argument#*=}";; esac; done\n'
        f"cat stderr >&2\nexit {status}\n"
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return folder


def test_no_compile_can_run_in_the_build_that_asks(tmp_path: Path) -> None:
    root = bazel(tmp_path, 1, event(GROUP, "groups/fwd/d32:fwd_4.gfx950"))
    assert missing.ask(root, "te", "gfx950", ["--config=cache"]) == [
        Compile(GROUP, "groups/fwd/d32:fwd_4")
    ]
    arguments = (root / "arguments").read_text().splitlines()
    assert arguments[0] == "build" and arguments[-1] == "@variant_sets//te:gfx950"
    assert "--config=cache" in arguments
    for mnemonic in (GROUP, OBJECT):
        assert f"--strategy={mnemonic}=linux-sandbox" in arguments
    (mount,) = [a for a in arguments if a.startswith("--sandbox_add_mount_pair=")]
    assert not Path(mount.partition("=")[2].partition(":")[0]).exists()


def test_a_build_that_succeeds_lacks_nothing(tmp_path: Path) -> None:
    assert missing.ask(bazel(tmp_path, 0), "core", "gfx942", []) == []


@pytest.mark.parametrize(
    ("status", "stderr", "words"),
    [
        (2, "Loading:\nERROR: --oops: unrecognized", "exit status 2: ERROR: --oops: unrecognized"),
        (1, "ERROR: no such package", "exit status 1: ERROR: no such package"),
        (2, "ERROR: 'linux-sandbox' was requested", "ask on a machine that has them"),
    ],
)
def test_a_build_that_cannot_answer(tmp_path: Path, status: int, stderr: str, words: str) -> None:
    with pytest.raises(MissingError) as raised:
        missing.ask(bazel(tmp_path, status, stderr=stderr), "core", "gfx942", [])
    assert words in str(raised.value)
