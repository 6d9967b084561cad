# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Groups are locked only where every object is that of its own compile; the lock is never lost."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import pytest

from kernels.ck_fmha.groups import prove_groups
from kernels.ck_fmha.groups.groups import (
    LockError,
    Proof,
    extended,
    lock_text,
    parse_lock,
    siblings,
)
from kernels.ck_fmha.groups.prove_groups import Trouble


def row(kind: str, *tile: int) -> dict[str, object]:
    return {"kind": kind, "tile": {"values": tile}}


def proof(text: str) -> Proof:
    return Proof(*(hashlib.sha256(f"{text} {what}".encode()).hexdigest() for what in "ab"))


LOCK = {
    "gfx942": {"fwd_fp16_d64_0": {"fwd/fp16_d64:a": proof("a"), "fwd/fp16_d64:b": proof("b")}},
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


def test_siblings_are_of_one_kind_head_size_and_tile():
    rows = {
        "fwd/fp16_d64:a": row("fwd", 64),
        "fwd/fp16_d64:b": row("fwd", 64),
        "fwd/fp16_d64:other_tile": row("fwd", 32),
        "fwd/fp16_d32:other_head_size": row("fwd", 64),
        "fwd/bf16_d64:other_dtype": row("fwd", 64),
        "bwd/fp16_d64:other_kind": row("bwd_dq_dk_dv", 64),
    }
    alike = ["fwd/bf16_d64:other_dtype", "fwd/fp16_d64:a", "fwd/fp16_d64:b"]
    assert siblings(rows) == {"fwd_d64_0": alike}


def test_small_kernels_are_compiled_together_whatever_their_shape():
    rows = {f"bwd/fp16_d{d}:o{d}": row("bwd_dot_do_o", d) for d in (32, 64, 128)}
    assert list(map(len, siblings(rows).values())) == [3]


def test_no_group_is_larger_than_eight_and_none_has_one():
    rows = {f"fwd/fp16_d64:{n:02}": row("fwd", 64) for n in range(17)}
    groups = siblings(rows)
    assert sorted(map(len, groups.values())) == [8, 8]
    assert len({m for members in groups.values() for m in members}) == 16


class Compiler:
    """Builds in which `spoilt` members come out differently with a neighbour, or fail."""

    def __init__(
        self, lock: Path, members: list[str], spoilt: Mapping[str, str], fail: bool = False
    ):
        self.lock = lock
        self.members = members
        self.spoilt = spoilt
        self.fail = fail
        self.attempts: list[list[list[str]]] = []

    def metadata(self, shortcuts: str, arch: str) -> dict[str, Proof]:
        made = {member: proof(member) for member in self.members}
        if shortcuts == "none":
            return made
        assert shortcuts == "unproven"
        groups = parse_lock(self.lock.read_text())[arch]
        self.attempts.append([list(members) for members in groups.values()])
        for members in groups.values():
            for member, neighbour in self.spoilt.items():
                if {member, neighbour} <= members.keys():
                    made[member] = proof("something else")
                    if self.fail:
                        del made[member]
        return made


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    path = tmp_path / "lock.json"
    path.write_text(lock_text(LOCK))
    return path


MEMBERS = [f"fwd/fp16_d64:{letter}" for letter in "cdef"]


def proven(compiler: Compiler, members: list[str]) -> list[set[str]]:
    plain = compiler.metadata("none", "gfx950")
    groups = prove_groups.prove(compiler, compiler.lock, "gfx950", {"g_0": members}, plain)
    for group in groups.values():
        assert all(value == proof(member) for member, value in group.items())
    return [set(group) for group in groups.values()]


def test_equal_objects_are_locked(lock: Path):
    assert proven(Compiler(lock, MEMBERS, {}), MEMBERS) == [set(MEMBERS)]


def test_a_group_that_differs_is_divided(lock: Path):
    c, d, e, f = MEMBERS
    assert proven(Compiler(lock, MEMBERS, {c: f}), MEMBERS) == [{c, d}, {e, f}]
    # In the end its members are compiled by themselves.
    assert proven(Compiler(lock, MEMBERS, {c: d}), MEMBERS) == [{e, f}]
    assert proven(Compiler(lock, MEMBERS, {c: d, f: e}), MEMBERS) == []


def test_a_group_that_does_not_link_is_divided(lock: Path):
    c, d, e, f = MEMBERS
    assert proven(Compiler(lock, MEMBERS, {c: f}, fail=True), MEMBERS) == [{c, d}, {e, f}]
    assert proven(Compiler(lock, MEMBERS, {c: d, d: c}, fail=True), MEMBERS) == [{e, f}]


def test_other_shortcuts_that_change_objects_are_no_matter_of_groups(lock: Path):
    class Spoilt(Compiler):
        def metadata(self, shortcuts: str, arch: str) -> dict[str, Proof]:
            made = super().metadata(shortcuts, arch)
            return made if shortcuts == "none" else {**made, MEMBERS[3]: proof("x")}

    with pytest.raises(
        Trouble, match=rf"shortcuts other than groups change or break.*{MEMBERS[3]}"
    ):
        proven(Spoilt(lock, MEMBERS, {}), MEMBERS[:3])


def test_known_groups_stay_together_and_new_ones_join():
    known = {"fwd_fp16_d64_0": ["a", "b"]}
    found = {"fwd_fp16_d64_0": ["a", "b", "c", "d"], "fwd_bf16_d64_0": ["x", "b"]}
    assert extended(known, found) == {
        "fwd_fp16_d64_0": ["a", "b"],
        "fwd_fp16_d64_1": ["c", "d"],
    }


def test_groups_of_other_sets_keep_their_names_and_proofs():
    known = LOCK["gfx942"]
    (other,) = known
    found = {other: ["fwd/fp16_d64:a", *MEMBERS]}
    groups, rest = prove_groups.to_prove(known, found, ["fwd/fp16_d64:a", *MEMBERS])
    assert rest == known
    assert groups == {"fwd_fp16_d64_1": MEMBERS}
    # Nor does one that is divided take a name of theirs.
    halves = prove_groups.halves({"fwd_fp16_d64_1": MEMBERS}, ["fwd_fp16_d64_1"], rest)
    assert not halves.keys() & rest.keys()
    assert sorted(map(len, halves.values())) == [2, 2]


def test_groups_of_these_sets_are_proven_again():
    known = LOCK["gfx942"]
    members = [member for group in known.values() for member in group]
    groups, rest = prove_groups.to_prove(known, {"fwd_fp16_d64_0": members}, members)
    assert {name: list(group) for name, group in known.items()} == groups
    assert not rest
