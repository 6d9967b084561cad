# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Proves compile groups: writes groups/lock.json.

    ./bazelw run //kernels/ck_fmha:prove_groups -- [--variants=core] [--archs=gfx942,gfx950]

The kernels of the variant sets are compiled twice: each by itself without any shortcut, and in
groups of siblings with all of them. A group whose code objects are all the same, byte for byte, is
locked. One that is not is divided, and in the end its members are compiled by themselves. Groups
that were locked before stay together, and are proven again where they are of these sets.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path

from absl import app, flags

from kernels.ck_fmha.groups.groups import (
    LOCK,
    Groups,
    LockError,
    Proof,
    extended,
    free_name,
    lock_text,
    parse_lock,
    siblings,
)

_VARIANTS = flags.DEFINE_list("variants", ["core"], "variant sets")
_TARGETS = flags.DEFINE_multi_string(
    "set", [], "further sets, as the package of their targets, like @sample//"
)
_ARCHS = flags.DEFINE_list("archs", None, "archs; default: all that groups/lock.json has")
_POOL = flags.DEFINE_string("pool", None, "pool.json of @ck_fmha", required=True)
_BAZEL_FLAGS = flags.DEFINE_multi_string("bazel_flag", ["--config=cache"], "of all builds")


class Trouble(Exception):
    """An obstacle to the proof of the groups, for the user."""


def halves(
    groups: Mapping[str, Sequence[str]], failed: Iterable[str], taken: Iterable[str]
) -> Groups:
    """The groups, with each that failed in two: less and less is compiled together.

    taken  names of other groups
    """
    result = {name: list(members) for name, members in groups.items()}
    for name in failed:
        members = result.pop(name)
        middle = len(members) // 2
        for part in (members[:middle], members[middle:]):
            if len(part) > 1:
                result[free_name(name, [*result, *groups, *taken])] = part
    return result


class Builds:
    """Builds of this checkout's code objects.

    sets     the packages of their targets
    folders  instance -> its package in the pool
    """

    def __init__(
        self, root: Path, options: Sequence[str], sets: Sequence[str], folders: Mapping[str, str]
    ):
        self._root = root
        self._options = options
        self._sets = sets
        self._folders = folders

    def _bazel(self, *arguments: str, capture: bool = False, may_fail: bool = False) -> str:
        got = subprocess.run(
            ["./bazelw", *arguments],
            cwd=self._root,
            text=True,
            stdout=subprocess.PIPE if capture else None,
        )
        if got.returncode and not may_fail:
            raise Trouble(f"./bazelw {' '.join(arguments)} failed: exit status {got.returncode}")
        return got.stdout or ""

    def metadata(self, shortcuts: str, arch: str) -> dict[str, Proof]:
        """ "package:instance" -> key and sha256 of its code object.

        Members of groups that are not compiled or linked are left out: a function that is not
        inlined where several kernels call it is missing in each.
        """
        targets = [f"{package}:{arch}" for package in self._sets]
        flag = f"--//kernels/ck_fmha:shortcuts={shortcuts}"
        options = [*self._options, flag, "--output_groups=metadata"]
        union = " + ".join(targets)
        listed = self._bazel("cquery", *options, "--output=files", union, capture=True)
        files = [self._root / line for line in listed.splitlines()]
        # Bazel leaves the outputs of an earlier build, where this one does not come to them.
        for file in files:
            file.unlink(missing_ok=True)
        grouped = shortcuts != "none"
        self._bazel("build", "--keep_going", *options, *targets, may_fail=grouped)
        known = {}
        for file in filter(Path.exists, files):
            record = json.loads(file.read_text("ascii"))
            member = f"{self._folders[record['instance']]}:{record['instance']}"
            known[member] = Proof(record["key"], record["sha256"])
        return known


def prove(
    builds: Builds,
    lock_file: Path,
    arch: str,
    groups: Groups,
    plain: Mapping[str, Proof],
    taken: Iterable[str] = (),
) -> dict[str, dict[str, Proof]]:
    """The groups, as far as they are proven, of one arch.

    plain  "package:instance" -> its code object of a compile by itself
    taken  names of other groups
    """
    others = parse_lock(lock_file.read_text())
    while True:
        unknown = Proof("0" * 64, "0" * 64)
        attempt = {name: dict.fromkeys(members, unknown) for name, members in groups.items()}
        lock_file.write_text(lock_text({**others, arch: attempt}))
        made = builds.metadata("unproven", arch)
        different = {m for m, p in plain.items() if m not in made or made[m].sha256 != p.sha256}
        failed = [name for name, members in groups.items() if different & set(members)]
        if alone := different - {m for name in failed for m in groups[name]}:
            raise Trouble(
                f"shortcuts other than groups change or break code objects of {arch}: "
                + ", ".join(sorted(alone))
            )
        if not failed:
            return {
                name: {member: made[member] for member in members}
                for name, members in groups.items()
            }
        for name in failed:
            bad = sum(member in different for member in groups[name])
            print(f"{arch}: {name}: {bad} of {len(groups[name])} differ or fail; dividing it")
        groups = halves(groups, failed, taken)


def to_prove(
    known: Mapping[str, Mapping[str, Proof]], found: Groups, members: Container[str]
) -> tuple[Groups, dict[str, Mapping[str, Proof]]]:
    """The groups, known or found, of these members; and the known ones that others are in."""
    groups = {
        name: group
        for name, group in extended({n: list(m) for n, m in known.items()}, found).items()
        if all(member in members for member in group)
    }
    return groups, {name: group for name, group in known.items() if name not in groups}


def main(arguments: Sequence[str]) -> int:
    if arguments[1:]:
        raise app.UsageError(f"what is {arguments[1]!r}? See --help")
    root = os.environ.get("BUILD_WORKSPACE_DIRECTORY")
    if not root:
        raise app.UsageError("run it through Bazel: ./bazelw run //kernels/ck_fmha:prove_groups")
    lock_file = Path(root) / LOCK
    before = lock_file.read_text()
    packages = [f"@variant_sets//{name}" for name in _VARIANTS.value] + _TARGETS.value
    pool = json.loads(Path(_POOL.value).read_text("utf-8"))
    builds = Builds(Path(root), _BAZEL_FLAGS.value, packages, pool["packages"])
    lock = before
    try:
        known = parse_lock(before)
        archs = _ARCHS.value or sorted(known)
        if not archs:
            raise Trouble(f"{LOCK} has no arch: name some with --archs")
        for arch in archs:
            plain = builds.metadata("none", arch)
            found = siblings({m: pool["rows"][m.partition(":")[2]] for m in plain})
            groups, rest = to_prove(known.get(arch, {}), found, plain)
            proven = prove(builds, lock_file, arch, groups, plain, rest)
            known[arch] = {**rest, **proven}
            lock = lock_text(known)
            members = sum(map(len, proven.values()))
            print(
                f"{arch}: {len(plain)} code objects compared; {len(proven)} groups of "
                f"{members} kernels, {len(plain) - members} kernels by themselves"
            )
    except (LockError, Trouble) as trouble:
        print(f"prove_groups: {trouble}", file=sys.stderr)
        return 1
    finally:
        lock_file.write_text(lock)
    return 0


if __name__ == "__main__":
    app.run(main)
