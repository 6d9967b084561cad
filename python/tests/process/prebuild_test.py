# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""`aiter-attn prebuild`: what it chooses, what it refuses before anything is made, and its ends."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import aiter_attn
import pytest
from aiter_attn import _C
from aiter_attn._cli import blob_names, prebuild, store
from aiter_attn._cli import kernels as built_in
from aiter_attn._cli.main import main

from kernels.ck_fmha.groups.cost import CostModel

KERNELS = aiter_attn.kernels()
SET = built_in.manifest()["variant_set"]
FIRST = KERNELS[0]
FIND = store.find
CALL = "--arch gfx942 --dtype fp16 --seqlen-q 64 --head-size 64 --causal"

Told = Callable[..., tuple[int, str, str]]


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Told:
    def run(*arguments: str) -> tuple[int, str, str]:
        status = main(["prebuild", *arguments])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "list"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The keys that are asked for; no kernel is there, and the first one cannot be made."""
    asked: list[str] = []
    there: set[str] = set()

    def find(key: str) -> store.Found:
        return store.Found("the compile kit '/kit'", f"plain {key}", (), key not in there)

    def code_object(key: str) -> bytes:
        asked.append(key)
        key = key.removeprefix("plain ")
        if key == FIRST["key"] and len(asked) == 1:
            raise aiter_attn.AttnError("does not compile")
        there.add(key)
        return b""

    monkeypatch.setattr(store, "find", find)
    monkeypatch.setattr(_C, "code_object", code_object)
    return asked


def test_a_set_is_listed_built_and_verified(told: Told) -> None:
    status, listed, _ = told("list", SET)
    assert status == 0
    count = len({kernel["key"] for kernel in KERNELS})
    lines = listed.splitlines()
    assert lines[-1] == f"{count} kernels: {count} are there, 0 cannot be had"
    assert f"{FIRST['arch']} {FIRST['name']}: the library" in lines
    status, said, _ = told("build", SET)
    assert status == 0
    assert f"all {count} kernels are there" in said
    assert "AITER_ATTN_MACHINE_CACHE" in said
    status, said, _ = told("verify", SET)
    assert (status, said) == (0, f"{count} of {count} kernels are there, and are right\n")


def test_a_set_can_be_narrowed(told: Told) -> None:
    lines = told("list", SET, "--arch", FIRST["arch"], "--kernels", FIRST["name"])[1].splitlines()
    assert lines[-1].startswith("1 kernels: ")
    assert told("list", SET, "--kernels", "nothing*")[0] == 1
    status, _, said = told("list", SET, "--arch", "gfx90a")
    assert status == 1
    assert "no kernel is asked for that fits" in said and FIRST["arch"] in said


def test_a_file_has_names_and_calls(told: Told, file: Path) -> None:
    line = f"{FIRST['arch']} {FIRST['name']}"
    file.write_text(f"# a list\n\n{line}  # once\n{line}\n{CALL}\n{CALL} --backward\n")
    keys = prebuild.read_list(str(file), KERNELS)
    assert keys[0] == FIRST["key"]
    assert len(keys) == len(set(keys)) >= 4
    assert told("verify", str(file))[0] == 0


def test_all_wrong_lines_are_told_before_anything_is_made(
    told: Told, file: Path, made: list[str]
) -> None:
    file.write_text(
        f"{FIRST['arch']} {FIRST['name']}\n"
        "gfx90a fmha\n"
        f"{FIRST['arch']} fmha_of_nobody\n"
        "one two three\n"
        f"{CALL} --dtype fp12\n"
        f"{CALL} --sequence-length 7\n"
        f"{CALL} --softcap nan\n"
        "--help\n"
        "'open\n"
    )
    status, out, said = told("build", str(file))
    assert (status, out, made) == (1, "", [])
    lines = said.removeprefix("prebuild: ").splitlines()
    assert [line.split(":")[1] for line in lines if line.startswith(str(file))] == list("23456789")
    assert f"{file}:2: gfx90a: this wheel has kernels for " in said
    assert f"{file}:3: fmha_of_nobody: this wheel's set, {SET}, has no such kernel for " in said
    assert f"{file}:4: allowed: ARCH NAME, the name of a blob of ck-jit's, or arguments" in said
    assert "fp12" in said and "--sequence-length" in said


def test_what_is_no_set_and_no_file(
    told: Told, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status, _, said = told("build", "te-and-more")
    assert status == 1
    assert f"no such file, and the variant set of this wheel is {SET}" in said
    file.write_bytes(b"\xff\xfe")
    assert "is no text" in told("build", str(file))[2]
    file.write_text("")
    assert f"{file}: no kernel is asked for" in told("list", str(file))[2]
    assert "--jobs 0: allowed: 1 or more" in told("build", SET, "--jobs", "0")[2]
    for wrong in ("0", "-1", "many", "1.5", "\u00b2"):
        monkeypatch.setenv("CK_JIT_JOBS", wrong)
        assert f"CK_JIT_JOBS {wrong}: allowed: 1 or more" in told("build", SET)[2]
    assert told("build", SET, "--jobs", "1")[0] == 0
    monkeypatch.setenv("CK_JIT_JOBS", "2")
    assert told("build", SET)[0] == 0


def test_one_failure_does_not_hold_up_the_others(told: Told, made: list[str]) -> None:
    count = len({kernel["key"] for kernel in KERNELS})
    assert told("verify", SET)[0] == 1
    status, said, errors = told("build", SET, "--jobs", "1")
    assert status == 1
    assert len(made) == count
    assert all(key.startswith("plain ") for key in made)
    assert f"{FIRST['arch']} {FIRST['name']}: does not compile" in errors
    assert f"1 of {count} failed after " in said
    assert f"{count} of {count} done after " in said
    assert f"1 of {count} kernels are missing; the same command goes on from here" in said
    # Only that one is left.
    status, said, _ = told("build", SET, "--jobs", "2")
    assert status == 0
    assert made[count:] == [f"plain {FIRST['key']}"]
    assert "1 of 1 done after " in said


def test_what_a_server_lacks_moves_to_the_compiles(
    told: Told, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = list({kernel["key"]: None for kernel in KERNELS})
    server, kit, later = "the store 'https://host'", "the compile kit '/kit'", "at its first use"
    absent = "the library: does not have it\n"
    lacked = f"{absent}{server}: does not have it\n"
    asked = f"{absent}{server}: is asked for it {later}\n{kit}: compiles it {later}\n"
    plain = "1" * 64
    of_plain = f"its plain compile, key {plain}"
    answers = {
        keys[0]: (kit, f"{absent}{kit}: compiles it {later}\n"),
        keys[1]: ("the library", "the library: has it\n"),
        keys[2]: (None, absent),
    }

    def fetch(key: str) -> bool:
        """The server lacks the object of keys[3], and its plain compile as well."""
        made.append(f"fetch {key}")
        if key == keys[3]:
            answers[key] = (server, f"{lacked}{server}: {of_plain}: is asked for it {later}\n")
        elif key == plain:
            answers[keys[3]] = (kit, f"{lacked}{kit}: {of_plain}: compiles it {later}\n")
        else:
            answers[key] = (server, f"{absent}{server}: keeps it\n")
        return key not in (keys[3], plain)

    monkeypatch.setattr(_C, "fetch_code_object", fetch)
    monkeypatch.setattr(_C, "find_code_object", lambda key: answers.get(key, (server, asked)))
    monkeypatch.setattr(store, "find", FIND)
    named = {kernel["key"]: f"{kernel['arch']} {kernel['name']}" for kernel in reversed(KERNELS)}
    others = len(keys) - 3
    listed = told("list", SET)[1]
    assert f"{named[keys[3]]}: {server}, to be fetched\n" in listed
    assert f"{named[keys[0]]}: {kit}, to be compiled\n" in listed
    assert f"{named[keys[1]]}: the library\n" in listed
    status, said, errors = told("build", SET, "--jobs", "1")
    assert status == 1
    assert said.startswith(
        f"{len(keys)} kernels: 1 are there, {others} to be fetched from {server}, "
        f"1 to be compiled by {kit}, 1 cannot be had\n"
    )
    fetches = [f"fetch {key}" for key in (*keys[3:], plain)]
    assert made == [*fetches, keys[0], plain], "fetches come first"
    assert f"1 of {others} not there after " in said and f"{others} of {others} done after " in said
    assert (
        f"1 of {others} could not be fetched; {len(keys)} kernels: {others} are there, "
        f"1 to be fetched from {server}, 1 to be compiled by {kit}, 1 cannot be had\n"
    ) in said
    assert (
        f"1 of 1 could not be fetched; {len(keys)} kernels: {others} are there, "
        f"2 to be compiled by {kit}, 1 cannot be had\n"
    ) in said
    # The estimate of compiles is of these alone.
    assert "2 of 2 done after 0.0 s, about 0.0 s left: " in said
    assert (
        f"{len(keys)} kernels: 1 were there, {others - 1} fetched from {server}, "
        f"2 compiled by {kit}, 1 missing\n"
    ) in said
    assert errors == f"{named[keys[2]]}: {absent}"


def test_a_server_that_fails_holds_nothing_up(
    told: Told, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    key = FIRST["key"]
    server, kit, later = "the store 'https://host'", "the compile kit '/kit'", "at its first use"
    answers = {key: (server, f"{server}: is asked for it {later}\n")}

    def fetch(key: str) -> bool:
        answers[key] = (kit, f"{server}: failed\n{kit}: compiles it {later}\n")
        raise aiter_attn.AttnError("status 500")

    monkeypatch.setattr(_C, "fetch_code_object", fetch)
    monkeypatch.setattr(_C, "find_code_object", answers.__getitem__)
    monkeypatch.setattr(_C, "code_object", made.append)
    monkeypatch.setattr(store, "find", FIND)
    narrowed = ("--arch", FIRST["arch"], "--kernels", FIRST["name"])
    status, said, errors = told("build", SET, *narrowed)
    assert (status, made) == (0, [key])
    assert "1 of 1 failed after " in said and f"\n1 kernels: 1 compiled by {kit}, 0 missing" in said
    assert errors == f"{FIRST['arch']} {FIRST['name']}: status 500\n"


def written_by_ck_jit(told: Told) -> list[str]:
    """The set's kernels by the names of ck-jit's blobs."""
    status, listed, _ = told("list", SET, "--format", "blob-list")
    assert status == 0
    names = [line for line in listed.splitlines() if not line.startswith("# ")]
    assert len(names) >= 4
    return names


def test_a_blob_list_is_read_as_it_is(told: Told, file: Path) -> None:
    names = written_by_ck_jit(told)
    # As people have them: paths, sources, objects of a cache, other archs, comments, empty lines.
    lines = [
        "# te_ck_jit",
        "",
        f"/opt/te/ck_jit/blobs/{names[0]}.cpp",
        f"{names[1]}.so.40ee1ee0",
        f"{names[2]}.so.40ee1ee0.extra1",
        *names[3:],
        *(name.replace("_gfx9", "_gfx11") for name in names[:2]),
    ]
    file.write_text("\n".join(lines) + "\n")
    status, listed, said = told("list", str(file))
    assert status == 0
    of_ck = {k["key"]: k for k in KERNELS if k["provider"] == "ck"}
    assert listed.splitlines()[-1].startswith(f"{len(of_ck)} kernels: ")
    assert {f"{k['arch']} {k['name']}: the library" for k in of_ck.values()} <= set(
        listed.splitlines()
    )
    assert said == f"{file}: 2 names are for gfx11, which this wheel has no kernels for\n"
    assert told("verify", str(file))[0] == 0


def test_a_blob_of_another_tile_is_served_by_its_traits(told: Told, file: Path) -> None:
    forward = next(name for name in written_by_ck_jit(told) if name.startswith("fmha_fwd_d"))
    tile = re.search(r"_b(\d+)x(\d+)x", forward)
    assert tile
    other = forward.replace(tile[0], f"_b{int(tile[1]) // 2}x{tile[2]}x")
    assert other != forward
    file.write_text(other + "\n")
    status, listed, _ = told("list", str(file))
    assert status == 0
    name = forward.replace("_nqscale", "_nsquant").partition("_nsink")[0]
    assert f"{FIRST['arch']} {name}: the library" in listed.splitlines()
    # A sink is applied to o by a kernel of its own.
    file.write_text(forward.replace("_nsink", "_sink") + "\n")
    listed = told("list", str(file))[1]
    dtype = "bf16" if "_bf16_" in forward else "fp16"
    assert name in listed and f"attn_sink_{dtype}: " in listed


def test_all_wrong_blobs_are_told_before_anything_is_made(
    told: Told, file: Path, made: list[str]
) -> None:
    names = written_by_ck_jit(told)
    forward = next(name for name in names if name.startswith("fmha_fwd_d"))
    file.write_text(
        f"{names[0]}\n"
        f"{names[0]}.so.Ab3xYz\n"
        "# a comment\n"
        "fmha_fwd_d128_bf16_batch\n"
        "libmha_fwd.so\n"
        f"{forward.replace('_nbias', '_nobias')}\n"
        f"{re.sub('_d[0-9]+_', '_d4096_', forward)}\n"
        f"{forward.replace('_nqscale', '_blockscale')}\n"
    )
    status, out, said = told("build", str(file))
    assert (status, out, made) == (1, "", [])
    lines = said.removeprefix("prebuild: ").splitlines()
    assert [line.split(":")[1] for line in lines] == list("245678")
    assert f"{file}:2: {names[0]}.so.Ab3xYz: a file that ck-jit did not finish" in said
    assert f"{file}:4: fmha_fwd_d128_bf16_batch: no name of a kernel of Composable Kernel" in said
    assert f"this wheel's set, {SET}, has no kernel fwd for " in lines[4]
    assert "head_size_qk 4096" in lines[4] and "scale blockscale" in lines[5]


def test_names_say_the_traits_that_the_generator_gave() -> None:
    # Every kernel that upstream's generator knows.
    rows = json.loads(Path(os.environ["POOL"]).read_text(encoding="utf-8"))["rows"]
    assert len(rows) > 10_000
    for text, row in rows.items():
        if row["kind"] == "fwd_v3":  # this project's names
            continue
        name = blob_names.read(text)
        assert name is not None and (name.kind, str(name)) == (row["kind"], text)
        given = row["traits"]
        assert {t: v for t, v in name.wanted.items() if t in given} == {
            t: v for t, v in given.items() if t in name.wanted
        }
        # Others are no matter of the problem, and in no name.
        assert given.keys() - name.traits.keys() <= {
            "head_size_step",
            "max_seqlen_k",
            "max_seqlen_q",
        }
        for arch, family in (("gfx942", "gfx9"), ("gfx950", "gfx950"), ("gfx1201", "gfx12")):
            blob = blob_names.blob_name(text, arch)
            assert blob is not None
            back = blob_names.read(blob)
            assert back is not None and back.wanted == name.wanted
            known = ("gfx942", "gfx950", "gfx90a", "gfx1200", "gfx1201")
            ours = blob_names.archs_of(back, known)
            assert arch in ours and (blob.endswith(family) or ours == list(known))


def test_the_estimate_of_a_compile_is_that_of_the_build() -> None:
    rows = json.loads(Path(os.environ["POOL"]).read_text(encoding="utf-8"))["rows"]
    model = CostModel(Path(os.environ["COSTS"]).read_text(encoding="utf-8"), rows)
    for name, row in rows.items():
        assert prebuild.compile_seconds(row["kind"], name) == pytest.approx(
            model.alone(row), abs=1e-3
        )
