# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""From packages.toml and an index to the packages of a group."""

from __future__ import annotations

import pytest

from toolchains.debian import resolve
from toolchains.locks.errors import LocksError

WHERE = "group 'g'"


def stanza(name: str, **fields: str) -> str:
    lines = [f"Package: {name}", "Version: 1", f"Filename: pool/main/{name}_1_amd64.deb"]
    lines += [f"SHA256: {'a' * 64}", "Size: 3", "Description: text", " Depends: not a field"]
    lines += [f"{key.replace('_', '-')}: {value}" for key, value in fields.items()]
    return "\n".join(lines) + "\n"


INDEX = "\n".join(
    [
        stanza("app", Depends="libone (>= 1.0), libtwo:any | libthree, helper", Pre_Depends="base"),
        stanza("base"),
        stanza("helper", Depends="mail-agent"),
        stanza("libone", Depends="base, libone-data"),
        stanza("libone-data"),
        stanza("libthree"),
        stanza("postfix", Provides="mail-agent (= 1), other"),
        "Package: incomplete\nVersion: 1\n",
    ]
)


def choose(
    packages: tuple[str, ...] = ("app",),
    closure: tuple[str, ...] = (),
    exclude: tuple[str, ...] = (),
) -> list[str]:
    spec = resolve.GroupSpec("sid", packages, closure, exclude)
    index, providers = resolve.parse_index(INDEX, "20260131T235959Z")
    return [p.name for p in resolve.choose(spec, index, providers, WHERE)]


def test_no_closure_takes_what_is_named() -> None:
    assert choose() == ["app"]


def test_full_closure_follows_alternatives_and_virtual_packages() -> None:
    assert choose(closure=("*",)) == [
        "app", "base", "helper", "libone", "libone-data", "libthree", "postfix",
    ]  # fmt: skip


def test_closure_by_pattern_is_recursive() -> None:
    assert choose(closure=("lib*",)) == ["app", "libone", "libone-data", "libthree"]


def test_exclude_cuts_what_hangs_on_it() -> None:
    assert choose(closure=("*",), exclude=("helper", "libone-*")) == [
        "app", "base", "libone", "libthree",
    ]  # fmt: skip


def test_excluded_package_can_still_be_named() -> None:
    assert choose(packages=("app", "helper"), exclude=("helper",)) == ["app", "helper"]


def test_unknown_package_names_the_suite() -> None:
    with pytest.raises(LocksError, match="sid has no package 'nosuch'"):
        choose(packages=("nosuch",))


def test_groups() -> None:
    specs = resolve.parse_groups(
        '[group.a]\nsuite = "sid"\npackages = ["x"]\nclosure = true\n'
        '[group.b]\nsuite = "sid"\npackages = ["y"]\nclosure = ["l*"]\nexclude = ["*-dev"]\n',
        "packages.toml",
        {},
        {},
    )
    assert specs["a"] == resolve.GroupSpec("sid", ("x",), ("*",))
    assert specs["b"] == resolve.GroupSpec("sid", ("y",), ("l*",), ("*-dev",))


def test_versions_and_abis_fill_in_placeholders() -> None:
    specs = resolve.parse_groups(
        '[group.a]\nsuite = "sid"\npackages = ["clang-{llvm}"]\n'
        '[group."python{python}"]\nsuite = "{suite}"\n'
        'packages = ["libpython{version}-dev"]\nexclude = ["python{version}"]\n',
        "packages.toml",
        {"LLVM": "22"},
        {"cp311": "bookworm", "cp314": "forky"},
    )
    assert specs == {
        "a": resolve.GroupSpec("sid", ("clang-22",)),
        "python311": resolve.GroupSpec("bookworm", ("libpython3.11-dev",), exclude=("python3.11",)),
        "python314": resolve.GroupSpec("forky", ("libpython3.14-dev",), exclude=("python3.14",)),
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[group.a", "packages.toml"),
        ('[group.a]\nsuite = "sid"\npackages = ["x{gcc}"]\n', "no placeholder 'gcc'.*'llvm'"),
        ("[groups.a]\n", "groups"),
        ('[group.a]\nsuite = "sid"\npackages = ["x"]\nclosures = true\n', "closures"),
        ('[group.a]\npackages = ["x"]\n', "suite"),
        ('[group.a]\nsuite = "sid"\npackages = []\n', "packages"),
        ('[group.a]\nsuite = 7\npackages = ["x"]\n', "suite is 7; want a text"),
        ('[group.a]\nsuite = "sid"\npackages = 7\n', "packages is 7; want a list of texts"),
        (
            '[group.a]\nsuite = "sid"\npackages = ["x"]\nclosure = [7]\n',
            r"closure is \[7\]; want a list of texts",
        ),
        ('[group.a]\nsuite = "sid"\npackages = ["x{llvm.y}"]\n', "no placeholder"),
    ],
)
def test_errors_name_the_culprit(text: str, message: str) -> None:
    with pytest.raises(LocksError, match=message):
        resolve.parse_groups(text, "packages.toml", {"LLVM": "22"}, {})
