# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The choice among options of code generation, the lock of the chosen ones, and what runs keep."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import cast

import pytest

from kernels.archs.archs import ComputeUnit
from kernels.ck_fmha.ckgen.emission import RecordedPool
from kernels.ck_fmha.runs import Trouble
from kernels.options import choose_options
from kernels.options.choose_options import Compile, Kernel
from kernels.options.options import (
    Costs,
    Entry,
    LockError,
    choose,
    lock_text,
    parse_lock,
)
from kernels.options.try_options import choices
from kernels.resources.builds import BuildError
from kernels.resources.figures import Figures
from kernels.resources.measured import Measured

OWN = Costs(spills=41, loop_scratch=29, loop_lanes=0, waves=2, cycles=4000)
CLEAN = Costs(spills=0, loop_scratch=0, loop_lanes=0, waves=2, cycles=3000)
KEY, OTHER_KEY = "a" * 64, "b" * 64
A, B, C = (f"fwd/fp16_d64:{letter}" for letter in "abc")
ENTRY = Entry(KEY, ("-disable-machine-licm",), OWN, CLEAN)


# ---- the choice --------------------------------------------------------------------------------


def test_without_spills_and_scratch_in_loops_before_fewest_cycles():
    tried = {
        (): OWN,
        ("-spills",): CLEAN._replace(spills=1, cycles=2000),
        ("-scratch",): CLEAN._replace(loop_scratch=1, cycles=2000),
        ("-clean",): CLEAN,
        ("-cleaner",): CLEAN._replace(cycles=2999),
    }
    assert choose(tried, ()) == ("-cleaner",)
    del tried["-cleaner",], tried["-clean",]
    assert choose(tried, ()) == ("-spills",)


@pytest.mark.parametrize(
    "worse", [{"spills": 1}, {"loop_scratch": 1}, {"loop_lanes": 1}, {"waves": 1}, {"cycles": 3001}]
)
def test_nothing_is_worse_than_the_compilers_own(worse: dict[str, int]):
    fewer_cycles = {"cycles": 1} | worse
    assert choose({(): CLEAN, ("-a",): CLEAN._replace(**fewer_cycles)}, ()) == ()


def test_unknown_cycles_are_no_fewer():
    unknown = CLEAN._replace(cycles=None)
    assert choose({(): CLEAN, ("-a",): unknown}, ()) == ()
    assert choose({(): unknown, ("-a",): CLEAN}, ()) == ("-a",)


def test_of_equals_todays_and_then_the_fewest():
    tried = {(): OWN, ("-a", "-b"): CLEAN, ("-c",): CLEAN, ("-d",): CLEAN}
    assert choose(tried, ()) == ("-c",)
    assert choose(tried, ("-a", "-b")) == ("-a", "-b")
    # Today's is one of them even where the compiler's own is better in something.
    tried["-a", "-b"] = CLEAN._replace(waves=1, cycles=2000)
    assert choose(tried, ("-a", "-b")) == ("-a", "-b")
    assert choose(tried, ()) == ("-c",)


def test_choices_are_options_of_letters():
    text = json.dumps({"options": {"L": "-l", "M": "-m"}, "choices": ["", "M", "ML"]})
    assert choices(text) == [(), ("-m",), ("-m", "-l")]


# ---- the lock ----------------------------------------------------------------------------------


def test_a_lock_is_read_as_it_was_written_sorted_and_a_line_each():
    unknown = Entry(OTHER_KEY, (), CLEAN._replace(cycles=None), CLEAN)
    lock = {"gfx950": {B: unknown, A: ENTRY}, "gfx942": {A: ENTRY}}
    text = lock_text(lock)
    assert parse_lock(text) == lock
    assert [
        line.split('"')[1] for line in text.splitlines() if KEY in line or OTHER_KEY in line
    ] == [
        A,
        A,
        B,
    ]
    assert lock_text({"gfx942": {}}) == lock_text({}) == "{}\n"
    assert parse_lock("{}\n") == {}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (KEY, "a" * 63, rf"gfx942: {A}: not an entry: .*{'a' * 63}.*; restore it, or delete that"),
        ('"options": ["-disable-machine-licm"]', '"options": "-x"', f"{A}: not an entry"),
        ('"options"', '"opitons"', rf"{A}: not an entry \(KeyError\('options'\)"),
        ("[41, 29, 0, 2, 4000]", "[41, 29, 0, 2]", f"{A}: not an entry"),
        ("[41, ", '["41", ', f"{A}: not an entry"),
        ("{", "[", "cannot be read: .*Restore it, or let it be {}"),
    ],
)
def test_an_edited_lock_is_refused_with_the_way_out(old: str, new: str, words: str):
    text = lock_text({"gfx942": {A: ENTRY}})
    assert old in text
    with pytest.raises(LockError, match=rf"^kernels/ck_fmha/options/lock.json.*{words}"):
        parse_lock(text.replace(old, new, 1))


def test_a_key_that_is_there_twice_is_named():
    line = lock_text({"gfx942": {A: ENTRY}}).splitlines()[2]
    text = lock_text({"gfx942": {A: ENTRY}}).replace(line, f"{line},\n{line}")
    with pytest.raises(LockError, match=re.escape(f"{A} is there twice: delete one of both lines")):
        parse_lock(text)


def test_what_the_pool_has_no_longer_is_left_out():
    left = choose_options.without_old({"gfx942": {A: ENTRY, B: ENTRY}}, {"a": "fwd/fp16_d64"})
    assert left == {"gfx942": {A: ENTRY}}


# ---- runs --------------------------------------------------------------------------------------

UNIT = ComputeUnit(
    simds=4,
    waves_per_simd=8,
    lds=65536,
    lds_granule=512,
    vgprs=512,
    vgpr_granule=8,
    sgprs=800,
    sgpr_granule=16,
)
KERNELS = {
    "one": [Kernel(n, "fwd/fp16_d64", f"@ck_fmha//fwd/fp16_d64:{n}.grouped") for n in ("a", "b")],
    "c": [Kernel("c", "fwd/fp16_d64", "@ck_fmha//fwd/fp16_d64:c")],
}


def measured(
    instance: str, options: tuple[str, ...], spills: int, cycles: int, early: int = 0
) -> Measured:
    kernel = {
        "agpr_count": 0,
        "lds_size": 0,
        "max_workgroup_size": 256,
        "scratch_size": 0,
        "sgpr_count": 100,
        "sgpr_spill_count": 0,
        "vgpr_count": 128,
        "vgpr_spill_count": spills,
        "wavefront_size": 64,
    }
    return Measured(instance, "gfx942", options, kernel, Figures(9, 0, 0, early, 5, 0, 0, cycles))


class Compiler:
    """Builds in which -l mends all kernels."""

    def __init__(self, key: str = KEY) -> None:
        self.key = key
        self.calls: list[list[str]] = []

    def compiles(self, labels: Sequence[str]) -> dict[str, Compile]:
        return {name: Compile(self.key, ()) for name in self._names(labels)}

    def tried(self, labels: Sequence[str]) -> dict[str, list[Measured]]:
        self.calls.append(self._names(labels))
        return {
            name: [measured(name, (), 7, 100), measured(name, ("-l",), 0, 90)]
            for name in self._names(labels)
        }

    @staticmethod
    def _names(labels: Sequence[str]) -> list[str]:
        parts = [label.partition(":")[2].split(".") for label in labels]
        assert {part[-1] for part in parts} == {"gfx942"}
        return [part[0] for part in parts]


def always() -> bool:
    return True


def run(
    compiler: Compiler, lock: Path, in_time: Callable[[], bool] = always, anew: bool = False
) -> list[str]:
    return choose_options.choose_all(compiler, lock, "gfx942", UNIT, KERNELS, in_time, anew)


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    return tmp_path / "lock.json"


def test_choices_are_written_and_not_tried_again(lock: Path):
    compiler = Compiler()
    assert run(compiler, lock) == []
    assert compiler.calls == [["a", "b"], ["c"]]
    found = parse_lock(lock.read_text())["gfx942"]
    assert list(found) == [A, B, C]
    assert (found[A].key, found[A].options) == (KEY, ("-l",))
    assert (found[A].before[0], found[A].after[0]) == (7, 0)
    assert (found[A].before.cycles, found[A].after.cycles) == (100, 90)
    text = lock.read_text()
    again = Compiler()
    run(again, lock)
    assert (again.calls, lock.read_text()) == ([], text)
    run(again, lock, anew=True)
    assert (again.calls, lock.read_text()) == ([["a", "b"], ["c"]], text)


def test_those_of_another_compiler_are_chosen_anew(lock: Path):
    lock.write_text(lock_text({"gfx942": {A: ENTRY}, "gfx950": {A: ENTRY}}))
    compiler = Compiler(OTHER_KEY)
    run(compiler, lock)
    assert compiler.calls == [["a", "b"], ["c"]]
    found = parse_lock(lock.read_text())
    assert found["gfx942"][A].key == OTHER_KEY
    assert found["gfx950"] == {A: ENTRY}


def test_only_the_members_that_lack_are_tried(lock: Path):
    lock.write_text(lock_text({"gfx942": {A: ENTRY}}))
    compiler = Compiler()
    run(compiler, lock)
    assert compiler.calls == [["b"], ["c"]]
    assert parse_lock(lock.read_text())["gfx942"][A] == ENTRY


def test_a_budget_ends_between_groups_and_nothing_is_lost(lock: Path):
    times = iter([True, False])
    assert run(Compiler(), lock, lambda: next(times)) == ["c"]
    assert list(parse_lock(lock.read_text())["gfx942"]) == [A, B]
    assert run(Compiler(), lock) == []
    assert list(parse_lock(lock.read_text())["gfx942"]) == [A, B, C]


def test_a_build_that_fails_keeps_what_was_chosen(lock: Path):
    class Broken(Compiler):
        def tried(self, labels: Sequence[str]) -> dict[str, list[Measured]]:
            if self._names(labels) == ["c"]:
                raise BuildError("./bazelw build failed")
            return super().tried(labels)

    with pytest.raises(BuildError):
        run(Broken(), lock)
    assert list(parse_lock(lock.read_text())["gfx942"]) == [A, B]


def test_instances_are_names_and_files_of_names(tmp_path: Path):
    (tmp_path / "list").write_text("a\n\n b\n")
    assert choose_options.named(["c", "list", "a"], "abcd", tmp_path) == ["c", "a", "b"]
    for texts, bad in ((["e"], "e"), (["list", "nothing"], "nothing")):
        with pytest.raises(Trouble, match=f"--instances: {bad} is no instance of the pool and no"):
            choose_options.named(texts, "abcd", tmp_path)


def test_kernels_beside_a_set_are_compiled_as_the_set_is_but_are_alone_chosen_for():
    class Pool:
        """A group costs less where both of its members are wanted."""

        def __init__(self) -> None:
            self.packages = dict.fromkeys("abc", "fwd/fp16_d64")
            self.groups = {"group": [A, B]}

        def labels(self, names: Iterable[str]) -> dict[str, str]:
            both = {"a", "b"} <= {*names}
            return {n: f"//:{n}{'.grouped' * (both and n != 'c')}" for n in sorted({*names})}

    pool = cast(RecordedPool, Pool())
    alone = choose_options.kernels_by_group(pool, ["a", "c"])
    assert {name: [k.label for k in of] for name, of in alone.items()} == {
        "a": ["//:a"],
        "c": ["//:c"],
    }
    beside = choose_options.kernels_by_group(pool, ["a", "c"], ["b", "c"])
    assert {name: [k.label for k in of] for name, of in beside.items()} == {
        "group": ["//:a.grouped"],
        "c": ["//:c"],
    }


def test_options_with_which_registers_are_used_early_are_not_chosen():
    tried = [
        measured("a", (), 7, 100),
        measured("a", ("-l",), 0, 90, early=2),
        measured("a", ("-m",), 3, 95),
    ]
    for today in (), ("-l",):
        assert choose_options.entry(Compile(KEY, today), tried, UNIT).options == ("-m",)


def test_the_line_about_a_choice_has_what_changes():
    told = choose_options.summary("a", ENTRY)
    assert told == (
        "a: -disable-machine-licm: spills 41 -> 0, loop_scratch 29 -> 0, cycles 4000 -> 3000"
    )
    kept = Entry(KEY, (), OWN, OWN)
    assert choose_options.summary("a", kept) == "a: the compiler's own"


def test_the_lock_of_the_project_is_as_it_is_written():
    path = Path("kernels/ck_fmha/options/lock.json")
    lock = parse_lock(path.read_text())
    assert lock_text(lock) == path.read_text()
    known = choices(Path("kernels/ck_fmha/options/choices.json").read_text())
    entries = list(itertools.chain.from_iterable(of.values() for of in lock.values()))
    assert entries
    for entry in entries:
        assert entry.options in known
        # Not worse, whichever options a pipeline had.
        assert choose({(): entry.before, ("-chosen",): entry.after}, ("-chosen",)) == ("-chosen",)
