# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Members are locked as proven only where every object is that of its own compile, and nothing of
the lock is lost."""

from __future__ import annotations

import hashlib
import itertools
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from kernels.ck_fmha.groups import prove_groups
from kernels.ck_fmha.groups.groups import LOCK as LOCK_FILE
from kernels.ck_fmha.groups.groups import LockError, Proof, cut, lock_text, merged, parse_lock
from kernels.ck_fmha.groups.prove_groups import DIFFERENT, MISSING, Made
from kernels.ck_fmha.runs import Budget, Trouble, shard


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def proof(member: str, differs: str = "") -> Proof:
    return Proof(digest(f"{member} key"), digest(f"{member} object"), differs)


A, B, C, D = (f"fwd/fp16_d64:{letter}" for letter in "abcd")
LOCK = {
    "gfx942": {"fwd/d64:fwd_0": {A: proof(A), B: proof(B, DIFFERENT)}},
    "gfx950": {},
}


@pytest.mark.parametrize("lock", [{}, LOCK])
def test_a_lock_is_read_as_it_was_written(lock: dict):
    assert parse_lock(lock_text(lock)) == lock


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"gfx942": []}',
        '{"gfx942": {"group": {"member": ["key"]}}}',
        100_000 * "[",
    ],
)
def test_another_text_is_refused_with_the_way_out(text: str):
    with pytest.raises(LockError, match=r"groups/lock.json cannot be read.*Restore it"):
        parse_lock(text)


def row(kind: str, *tile: int, **traits: object) -> dict[str, object]:
    return {"kind": kind, "tile": tile, "block": {"waves": 4}, "traits": traits}


def groups_of(rows: dict[str, dict], pipelines: dict[str, str] | None = None) -> list[list[str]]:
    found = cut(rows, dict.fromkeys(rows, "qr") | (pipelines or {}))
    return sorted(sorted(member.partition(":")[2] for member in group) for group in found.values())


def test_members_differ_in_dtype_mask_and_mode_alone():
    rows = {
        f"fwd/{dtype}_d64:{dtype}_{mode}_{mask}": row("fwd", 64, dtype=dtype, mode=mode, mask=mask)
        for dtype, mode, mask in itertools.product(("bf16", "fp16"), ("batch", "group"), (0, 1))
    }
    others = {
        "fwd/fp16_d64:other_tile": row("fwd", 32, dtype="fp16", mode="batch", mask=0),
        "fwd/fp16_d32:other_trait": row("fwd", 64, dtype="fp16", mode="batch", mask=0, lse=1),
        "fwd/fp8_d64:other_width": row("fwd", 64, dtype="fp8", mode="batch", mask=0),
        "bwd/fp16_d64:other_kind": row("bwd_dq_dk_dv", 64, dtype="fp16", mode="batch", mask=0),
        "fwd/fp16_d64:other_arch": row("fwd", 64, dtype="fp16", mode="batch", mask=0)
        | {"left_out": {"gfx90a": "why"}},
        "fwd/fp16_d64:other_pipeline": row("fwd", 64, dtype="fp16", mode="batch", mask=0),
    }
    found = groups_of(rows | others, {"fwd/fp16_d64:other_pipeline": "qr_async"})
    assert found == [sorted(member.partition(":")[2] for member in rows)]


def test_with_an_elementwise_bias_they_differ_in_dropout_and_not_in_mode():
    rows = {
        f"bwd/fp16_d64:{mode}_{dropout}": row(
            "bwd_dq_dk_dv", 64, dtype="fp16", mode=mode, dropout=dropout, bias="elementwise"
        )
        for mode, dropout in itertools.product(("batch", "group"), (0, 1))
    }
    assert groups_of(rows) == [["batch_0", "batch_1"], ["group_0", "group_1"]]


def test_no_group_is_larger_than_eight_and_none_has_one():
    rows = {f"fwd/fp16_d64:{n:02}": row("fwd", 64, dtype="fp16") for n in range(17)}
    assert list(map(len, groups_of(rows))) == [8, 8]


class Compiler:
    """Builds in which `spoilt` members come out differently with others, or (missing) fail."""

    def __init__(self, spoilt: Sequence[str] = (), missing: Sequence[str] = ()) -> None:
        self.spoilt = spoilt
        self.missing = missing
        self.calls: list[tuple[tuple[str, ...], bool]] = []

    def made(self, members: Sequence[str], arch: str, grouped: bool) -> dict[str, Made]:
        self.calls.append((tuple(members), grouped))
        found = {m: Made(proof(m).key, proof(m).sha256) for m in members}
        if grouped:
            for member in members:
                if member in self.spoilt:
                    found[member] = found[member]._replace(sha256=digest("something else"))
                if member in self.missing:
                    del found[member]
        else:
            # The plainest way has a recipe of its own.
            found = {m: Made(digest("plain"), made.sha256) for m, made in found.items()}
        return found


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    path = tmp_path / "lock.json"
    path.write_text(lock_text(LOCK))
    return path


def always() -> bool:
    return True


def run(
    compiler: Compiler, lock: Path, arch: str = "gfx950", in_time: Callable[[], bool] = always
) -> list[str]:
    groups = {"fwd/d64:fwd_0": [A, B], "fwd/d64:fwd_1": [C, D]}
    return prove_groups.prove(compiler, lock, arch, groups, in_time)


def test_equal_objects_are_proven_and_others_recorded(lock: Path):
    assert run(Compiler(spoilt=[B], missing=[C]), lock) == []
    found = parse_lock(lock.read_text())
    assert found["gfx942"] == LOCK["gfx942"]
    one, two = found["gfx950"].values()
    assert one == {A: proof(A), B: proof(B, DIFFERENT)}
    assert two[D] == proof(D)
    assert (two[C].sha256, two[C].differs) == (proof(C).sha256, MISSING)


def test_a_second_run_compiles_nothing_by_itself(lock: Path):
    run(Compiler(spoilt=[B]), lock)
    text = lock.read_text()
    again = Compiler(spoilt=[B])
    run(again, lock)
    assert [grouped for _, grouped in again.calls] == [True, True]
    assert lock.read_text() == text


def test_another_compiler_is_proven_anew(lock: Path):
    # All of fwd_0 is known of gfx942, under other keys.
    stale = lock.read_text().replace(proof(A).key, digest("older"))
    lock.write_text(stale)
    compiler = Compiler()
    run(compiler, lock, "gfx942")
    assert ((A, B), False) in compiler.calls
    assert parse_lock(lock.read_text())["gfx942"]["fwd/d64:fwd_0"] == {A: proof(A), B: proof(B)}


def test_a_budget_ends_between_groups_and_nothing_is_lost(lock: Path):
    times = iter([True, False])
    assert run(Compiler(), lock, in_time=lambda: next(times)) == ["fwd/d64:fwd_1"]
    assert list(parse_lock(lock.read_text())["gfx950"]) == ["fwd/d64:fwd_0"]
    assert run(Compiler(), lock) == []
    assert list(parse_lock(lock.read_text())["gfx950"]) == ["fwd/d64:fwd_0", "fwd/d64:fwd_1"]


def test_a_build_that_fails_leaves_the_lock_as_it_was(lock: Path):
    class Broken(Compiler):
        def made(self, members: Sequence[str], arch: str, grouped: bool) -> dict[str, Made]:
            if not grouped:
                raise Trouble("./bazelw build failed")
            return super().made(members, arch, grouped)

    with pytest.raises(Trouble, match="build failed"):
        run(Broken(spoilt=[A]), lock, "gfx942")
    assert (
        parse_lock(lock.read_text())["gfx942"]["fwd/d64:fwd_0"] == LOCK["gfx942"]["fwd/d64:fwd_0"]
    )


def test_what_the_pool_has_no_longer_is_left_out():
    left = prove_groups.without_old(LOCK, {"fwd/d64:fwd_0": [A, C]})
    assert left == {"gfx942": {"fwd/d64:fwd_0": {A: proof(A)}}, "gfx950": {}}
    assert "fwd_0" not in lock_text(prove_groups.without_old(LOCK, {}))


def test_shards_are_all_of_it():
    names = [f"g{n}" for n in range(10)]
    parts = [shard(names, f"{part}/3") for part in (1, 2, 3)]
    assert sorted(name for part in parts for name in part) == names
    for text in ("0/3", "4/3", "1", "a/b", "1/0", "-1/3"):
        with pytest.raises(Trouble, match=rf"--shard={text}: not a part; allowed: I/N"):
            shard(names, text)


def test_a_budget_is_above_nothing():
    for minutes in (0, -3):
        with pytest.raises(Trouble, match=f"--budget={minutes}: no time; allowed: minutes above 0"):
            Budget(minutes)
    assert Budget(None).in_time()
    assert Budget(5).in_time()
    assert not Budget(1e-9).in_time()


# ---- the lock of a user's own set --------------------------------------------------------------


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone with a set of the project's, core, and one of the user's, mine."""
    folder = tmp_path / "kernels/variants"
    folder.mkdir(parents=True)
    (folder / "core.toml").touch()
    git = ["git", "-c", "user.name=n", "-c", "user.email=e"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "core"]):
        subprocess.run([*git, *command], cwd=tmp_path, check=True)
    (folder / "mine.toml").touch()
    return tmp_path


def test_a_set_that_git_does_not_track_has_a_lock_beside_its_file(clone: Path):
    assert prove_groups.lock_of(clone, ["core"]) == LOCK_FILE
    assert prove_groups.lock_of(clone, ["core", "te"]) == LOCK_FILE
    assert prove_groups.lock_of(clone, ["mine"]) == "kernels/variants/mine.lock.json"
    subprocess.run(["git", "add", "."], cwd=clone, check=True)
    assert prove_groups.lock_of(clone, ["mine"]) == LOCK_FILE
    (clone / "kernels/variants/mine.lock.json").write_text("{}")
    assert prove_groups.lock_of(clone, ["mine"]) == "kernels/variants/mine.lock.json"


def test_a_set_with_a_lock_of_its_own_is_proven_by_itself(clone: Path):
    with pytest.raises(Trouble) as raised:
        prove_groups.lock_of(clone, ["core", "mine"])
    assert str(raised.value) == (
        "--variants=core,mine: mine has a lock of its own, kernels/variants/mine.lock.json; "
        "allowed: --variants=mine alone"
    )


def test_outside_of_a_clone_all_sets_are_the_projects(tmp_path: Path):
    assert prove_groups.lock_of(tmp_path, ["mine"]) == LOCK_FILE


def test_an_own_lock_gets_what_the_other_lacks(lock: Path, tmp_path: Path):
    own = tmp_path / "mine.lock.json"
    groups = {"fwd/d64:fwd_0": [A, B], "fwd/d64:fwd_1": [C, D]}
    before = lock.read_text()
    elsewhere = parse_lock(before)["gfx942"]
    compiler = Compiler(spoilt=[B])
    assert prove_groups.prove(compiler, own, "gfx942", groups, always, elsewhere) == []
    assert lock.read_text() == before
    assert parse_lock(own.read_text()) == {"gfx942": {"fwd/d64:fwd_1": {C: proof(C), D: proof(D)}}}
    # Nothing that the other lock has is compiled by itself.
    assert ((A, B), False) not in compiler.calls

    # Of another compiler, all of it is.
    stale = {"fwd/d64:fwd_0": {A: Proof(digest("older"), proof(A).sha256), B: proof(B)}}
    prove_groups.prove(Compiler(), own, "gfx942", groups, always, stale)
    both = merged(parse_lock(before), parse_lock(own.read_text()))["gfx942"]
    assert both["fwd/d64:fwd_0"] == {A: proof(A), B: proof(B)}


def test_an_own_lock_that_cannot_be_read_is_named():
    with pytest.raises(LockError, match=r"^kernels/variants/mine.lock.json cannot be read"):
        parse_lock("[]", "kernels/variants/mine.lock.json")
