# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The lock's schema, and the committed lock against packages.toml."""

from __future__ import annotations

import json
import pathlib

import pytest

from toolchains.debian import lock, relock
from toolchains.locks.errors import LocksError

FOLDER = pathlib.Path(lock.__file__).parent
ENTRY = {
    "name": "zlib1g",
    "version": "1:1.3-1",
    "path": "pool/main/z/zlib/zlib1g_1.3-1_amd64.deb",
    "sha256": "0" * 64,
    "size": 7,
    "time": "20260131T235959Z",
}
PACKAGE = lock.Package(**ENTRY)


def text(*entries: object, suite: object = "forky") -> str:
    return json.dumps({"groups": {"bazel": {"suite": suite, "packages": list(entries)}}})


def test_parse_gives_the_groups() -> None:
    groups = lock.parse(text(ENTRY), "lock.json")
    assert groups == {"bazel": lock.Group("forky", (PACKAGE,))}


def test_dump_is_sorted_and_read_back() -> None:
    other = ENTRY | {"name": "aa"}
    groups = lock.parse(text(ENTRY, other), "lock.json")
    dumped = lock.dump(groups)
    again = lock.parse(dumped, "lock.json")
    assert [p.name for p in again["bazel"].packages] == ["aa", "zlib1g"]
    assert lock.dump(again) == dumped
    assert json.loads(dumped)["regenerate"] == "./bazelw --relock debian"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("sha256", "0" * 63),
        ("sha256", "G" * 64),
        ("size", 0),
        ("size", "7"),
        ("size", True),
        ("path", "/etc/passwd.deb"),
        ("path", "dists/x.deb"),
        ("name", "Zlib"),
        ("version", ""),
        ("version", None),
        ("time", "2026-01-31"),
    ],
)
def test_bad_value_is_named_with_the_next_step(key: str, value: object) -> None:
    with pytest.raises(LocksError) as e:
        lock.parse(text(ENTRY | {key: value}), "some/lock.json")
    for part in ("some/lock.json", "'bazel'", key, repr(value), "./bazelw --relock debian"):
        assert part in str(e.value)


def test_path_may_not_leave_the_pool() -> None:
    with pytest.raises(LocksError, match="leaves pool/"):
        lock.parse(text(ENTRY | {"path": "pool/../../x.deb"}), "lock.json")


@pytest.mark.parametrize(
    "damaged",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"groups": []}',
        '{"groups": {"a": 1}}',
        text(1),
        text({}),
        text(suite=3),
    ],
)
def test_damaged_lock_is_one_error(damaged: str) -> None:
    with pytest.raises(LocksError, match=r"lock\.json"):
        lock.parse(damaged, "lock.json")


def test_a_lock_of_other_bytes_than_text_is_the_same_error(tmp_path: pathlib.Path) -> None:
    (tmp_path / "lock.json").write_bytes(b"\xff\x00")
    with pytest.raises(LocksError, match=r"lock\.json: not a Debian lock"):
        lock.read(tmp_path / "lock.json")


def test_unknown_and_missing_keys() -> None:
    with pytest.raises(LocksError, match="exactly the keys"):
        lock.parse(text(ENTRY | {"url": "x"}), "lock.json")
    with pytest.raises(LocksError, match="exactly the keys"):
        lock.parse(text({k: v for k, v in ENTRY.items() if k != "size"}), "lock.json")


def test_package_locked_twice() -> None:
    with pytest.raises(LocksError, match="more than once: zlib1g"):
        lock.parse(text(ENTRY, ENTRY | {"size": 8}), "lock.json")


def test_unknown_group_lists_the_others() -> None:
    with pytest.raises(LocksError, match="no group 'llvm'; there are bazel"):
        lock.get_group(lock.parse(text(ENTRY), "lock.json"), "llvm", "lock.json")


def test_the_committed_lock_holds_what_packages_toml_asks_for() -> None:
    groups = lock.parse((FOLDER / "lock.json").read_text(), "lock.json")
    specs = relock.group_specs()
    assert set(groups) == set(specs)
    for name, spec in specs.items():
        assert groups[name].suite == spec.suite
        assert set(spec.packages) <= {p.name for p in groups[name].packages}
