# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The key changes with each of its ingredients, and with nothing else."""

import dataclasses
import hashlib
import itertools
import subprocess
import sys
from pathlib import Path

import pytest

from kernels.code_object import spec
from kernels.code_object.spec import CodeObjectSpec, Recipe

RECIPE = Recipe(flags=("-O3", "-DX=1"), headers="0" * 64, toolchain="1" * 64)
PROGRAMS = Path(spec.__file__).parent
SPEC = RECIPE.spec(b"source", "gfx942")


def test_pinned():
    """A key is forever: a change of the canonical form must come with a new FORMAT."""
    assert spec.FORMAT == 1
    assert SPEC.canonical() == (
        b'{"arch":"gfx942","flags":["-O3","-DX=1"],"format":1,"headers":"%s",'
        b'"source":"%s","toolchain":"%s"}'
        % (b"0" * 64, hashlib.sha256(b"source").hexdigest().encode(), b"1" * 64)
    )
    assert SPEC.key() == "c7658226ea5b48e620d89184fdae16d67e5836befee55d1d9c7eb8fe6a2cb259"


def test_a_group_is_named_and_an_object_alone_has_none():
    grouped = dataclasses.replace(SPEC, group="2" * 64)
    assert grouped.key() == "ecdd7249052129bb15f69e86e627c8e74b789052c29cea6829a756a4de6f4ace"
    assert CodeObjectSpec.parse(grouped.canonical()) == grouped
    assert grouped.alone() == SPEC
    empty = grouped.canonical().replace(b"2" * 64, b"")
    with pytest.raises(ValueError, match="not in its canonical form"):
        CodeObjectSpec.parse(empty)


def test_members_and_their_order_are_the_group():
    groups = [[b"source", b"a"], [b"a", b"source"], [b"source", b"b"], [b"source"], []]
    specs = [RECIPE.spec(b"source", "gfx942", group=group) for group in groups]
    assert len({each.key() for each in specs}) == len(groups)
    assert specs[-1] == SPEC


def test_the_key_is_the_sha256_of_the_serialised_spec():
    assert hashlib.sha256(SPEC.canonical()).hexdigest() == SPEC.key()


def test_a_serialised_spec_is_read_back():
    assert CodeObjectSpec.parse(SPEC.canonical()) == SPEC
    assert Recipe.parse(RECIPE.serialised()) == RECIPE


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b'"format":1', b'"format":2', "not a code object's spec of format 1"),
        (b'"format":1,', b"", "not a code object's spec of format 1"),
        (b'"format":1', b'"format": 1', "not in its canonical form"),
        (b'"arch":"gfx942",', b"", "not a code object's spec"),
        (b'"arch":"gfx942"', b'"arch":1', "not a code object's spec"),
        (b'"-O3"', b"1", "not a code object's spec"),
        (SPEC.canonical(), b"[]", "not a code object's spec"),
    ],
)
def test_specs_that_are_not_canonical(old: bytes, new: bytes, message: str):
    with pytest.raises(ValueError, match=message):
        CodeObjectSpec.parse(SPEC.canonical().replace(old, new))


@pytest.mark.parametrize("flag", ["-DX=\u00e4", "-DX=\n", "-DX=\x7f"])
def test_text_is_printable_ascii_as_it_is_for_the_library(flag: str):
    """aiter/runtime/store/spec.cc refuses the same."""
    with pytest.raises(ValueError, match="not printable ASCII"):
        dataclasses.replace(SPEC, flags=(flag,)).key()
    assert CodeObjectSpec.parse(dataclasses.replace(SPEC, flags=(' "\\~',)).canonical())


def test_every_ingredient_matters(monkeypatch: pytest.MonkeyPatch):
    changed = {
        "source": hashlib.sha256(b"source\n").hexdigest(),
        "headers": "2" * 64,
        "toolchain": "3" * 64,
        "arch": "gfx950",
        "group": "4" * 64,
    }
    assert changed.keys() | {"flags"} == {field.name for field in dataclasses.fields(SPEC)}
    keys = [SPEC.key()]
    keys += [dataclasses.replace(SPEC, **{name: value}).key() for name, value in changed.items()]
    for flags in (("-O3", "-DX=2"), ("-DX=1", "-O3"), ("-O3 -DX=1",)):
        keys.append(dataclasses.replace(SPEC, flags=flags).key())
    monkeypatch.setattr(spec, "FORMAT", 2)
    keys.append(SPEC.key())
    for one, other in itertools.combinations(keys, 2):
        assert one != other


def test_header_digest_is_of_names_and_contents():
    digest = spec.header_tree_digest
    tree = {"a.h": b"1", "b/c.h": b"2"}
    # spec_test.cc has the same.
    assert digest(tree) == "52f15772f2fa3f4f37e67895efb7761b01b2b6822177ad1e7f4b131baf2cd5e8"
    assert digest(tree) == digest(dict(reversed(tree.items())))
    different = [
        digest(tree),
        digest({"a.h": b"1"}),
        digest({"a.h": b"1", "b/c.h": b"3"}),
        digest({"a.h": b"1", "b/d.h": b"2"}),
        digest({"a.h": b"2", "b/c.h": b"1"}),
        digest({}),
    ]
    assert len(set(different)) == len(different)


def test_command_lines_do_not_see_where_the_files_lie(tmp_path: Path):
    recipes = []
    for place in ("here", "there"):
        folder = tmp_path / place
        folder.mkdir()
        (folder / "x.h").write_text("header")
        files = folder / "files"
        files.write_text(f"--file=include/x.h={folder}/x.h\n")
        run = [sys.executable, PROGRAMS / "header_digest.py", "--out", str(folder / "digest")]
        run += ["--listing", str(folder / "listing")]
        subprocess.run([*run, f"--flagfile={files}"], check=True)
        run = [sys.executable, PROGRAMS / "write_recipe.py", "--headers", str(folder / "digest")]
        run += ["--toolchain", "t", "--out", str(folder / "recipe"), "--", "-O3", "--x"]
        subprocess.run(run, check=True)
        recipes.append((folder / "recipe").read_bytes())
    digest = spec.header_tree_digest({"include/x.h": b"header"})
    listing = spec.header_tree_listing({"include/x.h": b"header"})
    assert (tmp_path / "here/listing").read_bytes() == listing
    assert hashlib.sha256(listing).hexdigest() == digest
    assert recipes == [Recipe(("-O3", "--x"), digest, "t").serialised()] * 2
