# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Wrong flags, files and locks: errors that name the value, the allowed ones, the next step."""

from __future__ import annotations

import functools
import http.server
import json
import re
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import clone


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[clone.Clone]:
    made = clone.Clone(tmp_path_factory.mktemp("bad"), "input", clone.shared_disk_cache())
    yield made
    made.close()


@pytest.fixture
def edit(project: clone.Clone):
    """Replaces text of a file for one test."""
    saved: dict[str, str] = {}

    def replace(path: str, old: str, new: str) -> None:
        text = saved.setdefault(path, (project.root / path).read_text())
        assert old in text
        (project.root / path).write_text(text.replace(old, new, 1))

    yield replace
    for path, text in saved.items():
        (project.root / path).write_text(text)


def refused(result: subprocess.CompletedProcess, *words: str) -> None:
    assert result.returncode != 0
    for word in words:
        assert word in result.stdout, f"{word!r} is not in:\n{result.stdout[-3000:]}"
    assert not re.search(r'File ".*\.py", line', result.stdout), result.stdout[-3000:]


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ("--//kernels:archs=gfx9999", ("gfx9999", "gfx942", "gfx950")),
        ("--//kernels:archs=gfx942,gfx94", ("gfx94", "gfx942")),
        ("--//kernels:archs=", ("gfx942",)),
        ("--//kernels:variants=cor", ("cor", "core", "smoke")),
        ("--//kernels/ck_fmha:patches=more", ("more", "default", "none")),
        ("--//kernels/ck_fmha:shortcuts=some", ("some", "all", "none")),
        ("--//kernels/ck_fmha:machine_options=fast", ("fast", "tuned", "upstream")),
        ("--//toolchains/python:abi=cp27", ("cp27", "cp311", "cp313", "cp314")),
        (
            "--//toolchains/python:abi=cp312",
            ("cp312", "cp311 (of Debian bookworm)", "Debian suite", "host, the machine's python3"),
        ),
        ("--//aiter:namespace=9lives", ("9lives", "identifier")),
    ],
)
def test_unknown_flag_values(project: clone.Clone, flag: str, words: tuple[str, ...]) -> None:
    refused(project.bazel("build", "--nobuild", flag, "//python:attn_wheel", expect=None), *words)


def test_unknown_key_in_a_variant_set(project: clone.Clone, edit) -> None:
    edit("kernels/variants/smoke.toml", "dtype", "dtipe")
    smoke = "--//kernels:variants=smoke"
    refused(
        project.bazel("build", "--nobuild", smoke, "//python:attn_wheel", expect=None),
        "smoke.toml",
        "dtipe",
        "dtype",
    )
    # It breaks its own set and no other.
    project.bazel("build", "--nobuild", "//kernels:launch_table")


@pytest.mark.parametrize(
    ("path", "old", "new", "words"),
    [
        (
            "kernels/variants/smoke.toml",
            "[[variants]]",
            "limit = 3\n\n[[variants]]",
            ("smoke.toml: selects 4 kernel instances", "its limit is 3", "`limit = 4`"),
        ),
        (
            "kernels/variants/smoke.toml",
            'dtype = "fp16"',
            'dtype = ["fp16", "fp16"]',
            ("smoke.toml: [[variants]] #1: dtype lists fp16 twice",),
        ),
        (
            "kernels/variants/smoke.toml",
            "[[variants]]",
            '[[variants]]\ndirection = ["fwd", "bwd"]\n\n[[variants]]',
            ("smoke.toml: [[variants]] #2 is a duplicate: [[variants]] #1",),
        ),
        (
            "kernels/archs/gfx950.json",
            '"left_out": []',
            '"left_out": [{"because": "no halves", "dtype": "fp16"}]',
            (
                "Variant set smoke has no instance for gfx950",
                "all 6 are left out: Composable Kernel has it for gfx12 alone; no halves",
                "gfx942",
            ),
        ),
    ],
)
def test_variant_sets_that_explode_repeat_or_have_nothing(
    project: clone.Clone, edit, path: str, old: str, new: str, words: tuple[str, ...]
) -> None:
    edit(path, old, new)
    flags = ("--//kernels:variants=smoke", "--//kernels:archs=gfx942,gfx950")
    refused(
        project.bazel("build", "--nobuild", *flags, "//kernels:launch_table", expect=None), *words
    )


def test_a_direction_that_a_set_does_not_have(project: clone.Clone) -> None:
    refused(
        project.bazel("build", "--nobuild", "@variant_sets//smoke:gfx942.fwd_splitkv", expect=None),
        "Variant set smoke has no instance of fwd_splitkv for gfx942. Its directions: bwd, fwd.",
    )


SMOKE_MEMBER = "bwd/fp16_d64:fmha_bwd_dot_do_o_d64_fp16_b64_batch_o2_ps"
GROUPS_LOCK = "kernels/ck_fmha/groups/lock.json"


# A member's proof.
_SOME = f'["{"0" * 64}", "{"0" * 64}"]'


def proven(project: clone.Clone) -> tuple[str, str]:
    """Key and sha256 that the lock has of an instance of smoke."""
    lock = json.loads((project.root / GROUPS_LOCK).read_text())
    (found,) = (m[SMOKE_MEMBER] for m in lock["gfx942"].values() if SMOKE_MEMBER in m)
    return tuple(found)


def test_edited_lock_of_groups(project: clone.Clone, edit) -> None:
    _, digest = proven(project)
    edit(GROUPS_LOCK, digest, "0" * 64)
    smoke = "--//kernels:variants=smoke"
    # Also where nothing reads what is known of the code object.
    for target in ("//kernels:launch_table", "@variant_sets//smoke:gfx942.library"):
        refused(
            project.bazel("build", smoke, target, expect=None),
            SMOKE_MEMBER.partition(":")[2]
            + ", gfx942: its own compile does not give what is proven",
            digest,
            "0" * 64,
            "//kernels/ck_fmha:prove_groups",
            "restore the lock",
        )


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            '"gfx942"',
            '"gfx9999"',
            ("gfx9999 is no arch of", "gfx942, gfx950"),
        ),
        ('{\n "gfx942"', '"gfx942"', ("groups/lock.json: not a JSON object; restore the file",)),
        ('"gfx950": {', '"gfx950": {"g": {"a:b": ["0", "0"]},', ("a:b of gfx950", "64 digits")),
        (
            '"gfx950": {',
            f'"gfx950": {{"g": {{"a:b": {_SOME}}}, "h": {{"a:b": {_SOME}}},',
            ("a:b of gfx950 is there twice, in h, too",),
        ),
    ],
)
def test_damaged_lock_of_groups(
    project: clone.Clone, edit, old: str, new: str, words: tuple[str, ...]
) -> None:
    edit(GROUPS_LOCK, old, new)
    smoke = "--//kernels:variants=smoke"
    refused(project.bazel("build", smoke, "@variant_sets//smoke:gfx942", expect=None), *words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[", "not a JSON object; restore the file"),
        ('{"gfx942": 3}', "gfx942 has no groups; restore the file, or delete it"),
    ],
)
def test_damaged_lock_of_a_set_of_the_users_own(
    project: clone.Clone, text: str, words: str
) -> None:
    lock = project.root / "kernels/variants/mine.lock.json"
    lock.write_text(text)
    try:
        smoke = "--//kernels:variants=smoke"
        built = project.bazel("build", smoke, "@variant_sets//smoke:gfx942", expect=None)
        refused(built, f"kernels/variants/mine.lock.json: {words}")
    finally:
        lock.unlink()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"fwd/bf16_d128"', '"fwd/bf16_d129"', ("fwd/bf16_d129 is no package of the pool",)),
        ('"fwd_qr_async"', '"fwd_qr_asink"', ("no pipeline fwd_qr_asink", "fwd_qr_async,")),
        (
            '"gfx942"',
            '"gfx9999"',
            ("gfx9999 is no arch of", "gfx942, gfx950"),
        ),
    ],
)
def test_machine_options_that_hold_for_no_kernel(
    project: clone.Clone, edit, old: str, new: str, words: tuple[str, ...]
) -> None:
    edit("kernels/ck_fmha/private/machine_options.bzl", old, new)
    smoke = "--//kernels:variants=smoke"
    refused(project.bazel("build", smoke, "@variant_sets//smoke:gfx942", expect=None), *words)


OPTIONS_LOCK = "kernels/ck_fmha/options/lock.json"


def _options_lock(arch: str = "gfx942", member: str = SMOKE_MEMBER, **changed: object) -> str:
    """A lock with one kernel, of which something is wrong."""
    entry = {"key": "0" * 64, "options": ["-disable-machine-licm"]} | changed
    return json.dumps({arch: {member: entry}})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", ("options/lock.json: not a JSON object; restore the file",)),
        (
            '{\n"gfx942": {\n"a": {},\n"a": {}\n}\n}\n',
            ("options/lock.json: a is there twice: delete one of both lines",),
        ),
        (
            '{\n"gfx942": {\n},\n"gfx942": {\n}\n}\n',
            ("options/lock.json: gfx942 is there twice: delete one of both lines",),
        ),
        ('{"gfx942": []}', ("options/lock.json: gfx942 has no kernels; restore the file",)),
        (_options_lock(arch="gfx9999"), ("gfx9999 is no arch of kernels/archs; known:", "gfx942")),
        (_options_lock(member="bwd/d:a"), ("gfx942: bwd/d:a: bwd/d is no package of the pool",)),
        (
            _options_lock(member=SMOKE_MEMBER + "_x"),
            ("bwd/fp16_d64 has no instance", SMOKE_MEMBER.partition(":")[2] + "_x"),
        ),
        (_options_lock(key="0a"), ('its key is "0a", not 64 hexadecimal digits', "restore")),
        (_options_lock(options="-x"), ("has no list of options", "//kernels:choose_options")),
        (
            _options_lock(options=["-disable-everything"]),
            ('"-disable-everything" is no choice of options/choices.json', "choose_options"),
        ),
    ],
)
def test_damaged_lock_of_options(project: clone.Clone, text: str, words: tuple[str, ...]) -> None:
    lock = project.root / OPTIONS_LOCK
    saved = lock.read_text()
    lock.write_text(text)
    try:
        smoke = "--//kernels:variants=smoke"
        built = project.bazel("build", smoke, "@variant_sets//smoke:gfx942", expect=None)
        refused(built, *words)
    finally:
        lock.write_text(saved)


def test_options_that_were_chosen_for_another_compile(project: clone.Clone) -> None:
    lock = project.root / OPTIONS_LOCK
    saved = lock.read_text()
    lock.write_text(_options_lock())
    try:
        smoke = "--//kernels:variants=smoke"
        said = project.bazel(
            "build",
            "--norun_validations",
            "--output_groups=proofs",
            smoke,
            "@variant_sets//smoke:gfx942",
        ).stdout
        assert "gfx942: 1 of 1 kernels with options of their own have those of another" in said
        assert "//kernels:choose_options chooses anew" in said
    finally:
        lock.write_text(saved)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--shard=3/2",), ("--shard=3/2: not a part; allowed: I/N with I from 1 to N",)),
        (("--budget=0",), ("--budget=0: no time; allowed: minutes above 0",)),
        (("--archs=gfx9",), ("--archs: unknown arch 'gfx9'; known:", "gfx942")),
        (("--variants=tea",), ("--variants: unknown variant set 'tea'; known:", "te")),
        (("--variants=core",), ("--without=core leaves nothing of core for gfx942",)),
        (("--instances=fmha_x",), ("--instances: fmha_x is no instance of the pool and no file",)),
        (
            (f"--instances={SMOKE_MEMBER.partition(':')[2]}",),
            ("is of --without=core, whose kernels are left as they are",),
        ),
    ],
)
def test_a_choice_of_options_of_what_there_is_not(
    project: clone.Clone, flags: tuple[str, ...], words: tuple[str, ...]
) -> None:
    ran = project.bazel(
        "run", "//kernels:choose_options", "--", "--archs=gfx942", *flags, expect=None
    )
    refused(ran, "choose_options: ", *words)


def test_member_of_a_group_that_does_not_compile(project: clone.Clone) -> None:
    # Smoke has too few members of its group to compile it; other sets have more.
    grouped = ("--//kernels:variants=smoke", f"@ck_fmha//{SMOKE_MEMBER}.grouped.gfx942")
    project.bazel("build", *grouped)
    external = project.bazel("info", "output_base").stdout.strip().splitlines()[-1]
    instance = SMOKE_MEMBER.partition(":")[2]
    (source,) = Path(external).glob(f"external/_main*ck_fmha/bwd/*/{instance}.cpp")
    text = source.read_text()
    source.chmod(0o644)
    try:
        source.write_text(text + 'static_assert(sizeof(Kernel) == 0, "not like this");\n')
        refused(
            project.bazel("build", *grouped, expect=None),
            f"{instance}.cpp:",
            "error: static assertion failed",
            "not like this",
            f"{instance} does not compile; the other ",
        )
    finally:
        source.write_text(text)


def test_wrong_sha256_of_a_python_distribution(project: clone.Clone, edit) -> None:
    lock = json.loads((project.root / "toolchains/pypi/lock.json").read_text())
    digest = lock["distributions"]["pybind11"]["files"]["any"]["sha256"]
    edit("toolchains/pypi/lock.json", digest, "0" * 64)
    refused(
        project.bazel("build", "--nobuild", "//python:attn_wheel", expect=None),
        "pybind11",
        "0" * 64,
        "--relock pypi",
    )


def test_damaged_digest_in_the_debian_lock(project: clone.Clone, edit) -> None:
    lock = json.loads((project.root / "toolchains/debian/lock.json").read_text())
    entry = lock["groups"]["dlpack"]["packages"][0]
    edit("toolchains/debian/lock.json", entry["sha256"], "not-a-digest")
    refused(
        project.bazel("build", "--nobuild", "//python:attn_wheel", expect=None),
        entry["name"],
        "not-a-digest",
        "--relock debian",
    )


@pytest.mark.parametrize("strict", ["0", "1"])
def test_aiters_wheel_is_gone_from_the_index(
    project: clone.Clone, edit, tmp_path: Path, strict: str
) -> None:
    """Neither the mirror nor the index has it. Strict or not, nothing takes its place."""
    lock = json.loads((project.root / "toolchains/pypi/lock.json").read_text())
    digest = lock["distributions"]["amd-aiter"]["files"]["any"]["sha256"]
    edit("toolchains/pypi/lock.json", digest, "2" * 64)
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        result = project.bazel(
            "fetch",
            "--repo=@aiter_asm",
            f"--repo_env=AITER_ATTN_MIRROR={tmp_path}",
            f"--repo_env=AITER_ATTN_PYPI_INDEX=http://127.0.0.1:{server.server_port}/simple",
            f"--repo_env=AITER_ATTN_STRICT={strict}",
            expect=None,
        )
        server.shutdown()
    refused(result, "amd-aiter", "404", "--relock pypi")


def test_unreachable_mirror(project: clone.Clone, edit) -> None:
    # Another digest, so that no repository cache answers for the mirror.
    lock = json.loads((project.root / "toolchains/debian/lock.json").read_text())
    entry = lock["groups"]["dlpack"]["packages"][0]
    edit("toolchains/debian/lock.json", entry["sha256"], "1" * 64)
    # One repository alone: a build asks for many at once, and any of them may be the first to fail.
    result = project.bazel(
        "fetch",
        "--repo=@dlpack",
        "--repo_env=AITER_ATTN_DEBIAN_MIRROR=http://127.0.0.1:9",
        "--repo_env=AITER_ATTN_STRICT=1",
        expect=None,
    )
    refused(result, entry["name"], "127.0.0.1:9")
