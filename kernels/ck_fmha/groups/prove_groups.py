# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Proves compile groups: writes groups/lock.json, or the lock of a set of the user's own.

    ./bazelw run //kernels/ck_fmha:prove_groups -- [--variants=core] [--archs=gfx942,gfx950] \\
        [--shard=2/7] [--budget=45]

The kernels of the variant sets are compiled twice: with their groups, and each by itself without
any shortcut. A member whose code objects are the same, byte for byte, is locked as proven, with the
key and the digest; one whose are not is recorded as different, and keeps the key that names its
group. It goes on where an earlier run ended: what the lock has for the compiler, the headers and
the flags of today is not compiled again by itself. The lock is written after each group, sorted, so
that locks of several shards merge line by line. Groups that the pool has no longer are left out.

A variant set whose file git does not track, or that has one already, has a lock of its own beside
that file: NAME.lock.json. It gets the proofs that groups/lock.json lacks, and no file that git
tracks is changed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from absl import app, flags

from kernels.ck_fmha.groups.groups import (
    LOCK,
    OWN_LOCK,
    Groups,
    Lock,
    LockError,
    Proof,
    lock_text,
    merged,
    parse_lock,
)
from kernels.ck_fmha.runs import Budget, Trouble, checkout, shard
from kernels.code_object.spec import CodeObjectSpec

_VARIANTS = flags.DEFINE_list("variants", ["core"], "variant sets")
_TARGETS = flags.DEFINE_multi_string(
    "set", [], "further sets, as the package of their targets, like @sample//"
)
_ARCHS = flags.DEFINE_list("archs", ["gfx942", "gfx950"], "archs")
_SHARD = flags.DEFINE_string("shard", "1/1", "which part of the groups: I/N, from 1/N to N/N")
_BUDGET = flags.DEFINE_float("budget", None, "minutes after which no further group is begun")
_POOL = flags.DEFINE_string("pool", None, "pool.json of @ck_fmha", required=True)
_BAZEL_FLAGS = flags.DEFINE_multi_string("bazel_flag", ["--config=cache"], "of all builds")

DIFFERENT = "another code object"
MISSING = "no code object"


class Made(NamedTuple):
    """A code object of a build: the key of its source's own compile by this build's recipe."""

    alone_key: str
    sha256: str


class Builds:
    """Builds of this checkout's code objects."""

    def __init__(self, root: Path, options: Sequence[str]):
        self._root = root
        self._options = options

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

    def instances(self, sets: Iterable[str], arch: str) -> set[str]:
        """The instances that sets have for an arch."""
        of = " + ".join(f"deps({package}:{arch}, 3)" for package in sets)
        listed = self._bazel("query", f'kind("code_object rule", {of})', capture=True)
        names = (label.rpartition(":")[2] for label in listed.splitlines())
        return {name.removesuffix(f".{arch}").removesuffix(".grouped") for name in names}

    def made(self, members: Sequence[str], arch: str, grouped: bool) -> dict[str, Made]:
        """Member, "package:instance" -> its code object, compiled with its group or by itself.

        Those that are not compiled or linked are left out: a function that is not inlined where
        several kernels call it is missing in each.
        """
        suffix = f"{'.grouped' * grouped}.{arch}"
        targets = {member: f"@ck_fmha//{member}{suffix}" for member in members}
        shortcuts = f"--//kernels/ck_fmha:shortcuts={'all' if grouped else 'none'}"
        options = [*self._options, shortcuts, "--output_groups=metadata,spec"]
        union = " + ".join(targets.values())
        listed = self._bazel("cquery", *options, "--output=files", union, capture=True)
        files = [self._root / line for line in listed.splitlines()]
        # Bazel leaves the outputs of an earlier build, where this one does not come to them.
        for file in files:
            file.unlink(missing_ok=True)
        self._bazel("build", "--keep_going", *options, *targets.values(), may_fail=grouped)
        records = {}
        for file in files:
            if file.suffix == ".json" and file.exists():
                record = json.loads(file.read_text("ascii"))
                spec = CodeObjectSpec.parse(file.with_suffix(".spec").read_bytes())
                records[record["instance"]] = Made(spec.alone().key(), record["sha256"])
        return {m: records[m.partition(":")[2]] for m in members if m.partition(":")[2] in records}


def _holds(proof: Proof, made: Made) -> bool:
    """Whether what is known of a member is of the object that its group gives."""
    return proof.key == made.alone_key and (bool(proof.differs) or proof.sha256 == made.sha256)


def of_group(
    builds: Builds, members: Sequence[str], arch: str, known: Mapping[str, Proof]
) -> dict[str, Proof]:
    """The proofs of a group's members, once it has been compiled.

    known  of these members, maybe by another compiler, headers or flags
    """
    grouped = builds.made(members, arch, grouped=True)
    if all(m in grouped and m in known and _holds(known[m], grouped[m]) for m in members):
        return dict(known)
    plain = builds.made(members, arch, grouped=False)
    if missing := [member for member in members if member not in plain]:
        raise Trouble(f"{', '.join(missing)}: no code object of {arch} even alone")
    proofs = {}
    for member in members:
        made, sha256 = grouped.get(member), plain[member].sha256
        differs = "" if made and made.sha256 == sha256 else DIFFERENT if made else MISSING
        # A member that has no code object has no key by this recipe either: it is tried again.
        proofs[member] = Proof(made.alone_key if made else "0" * 64, sha256, differs)
    return proofs


def lock_of(root: Path, variant_sets: Sequence[str]) -> str:
    """The lock that the proofs of sets are written to, from the checkout's root. Raises Trouble."""
    own = [name for name in variant_sets if _is_own(root, name)]
    if not own:
        return LOCK
    if len(variant_sets) > 1:
        raise Trouble(
            f"--variants={','.join(variant_sets)}: {own[0]} has a lock of its own, "
            f"{OWN_LOCK.format(variant_set=own[0])}; allowed: --variants={own[0]} alone"
        )
    return OWN_LOCK.format(variant_set=own[0])


def _is_own(root: Path, variant_set: str) -> bool:
    """Whether a variant set is the user's: git does not track its file, or it has a lock."""
    if (root / OWN_LOCK.format(variant_set=variant_set)).exists():
        return True
    file = f"kernels/variants/{variant_set}.toml"
    # Outside of a clone nothing is tracked, and all sets are taken for the project's.
    listed = subprocess.run(
        ["git", "ls-files", "--others", "--", file], cwd=root, text=True, capture_output=True
    )
    return listed.returncode == 0 and file in listed.stdout.splitlines()


def _read(lock_file: Path) -> Lock:
    return parse_lock(lock_file.read_text(), str(lock_file)) if lock_file.exists() else {}


def without_old(lock: Lock, groups: Groups) -> Lock:
    """The lock without groups and members that the pool has no longer."""
    return {
        arch: {
            name: {m: proof for m, proof in members.items() if m in groups.get(name, ())}
            for name, members in of_arch.items()
        }
        for arch, of_arch in lock.items()
    }


def prove(
    builds: Builds,
    lock_file: Path,
    arch: str,
    groups: Groups,
    in_time: Callable[[], bool],
    elsewhere: Mapping[str, Mapping[str, Proof]] | None = None,
) -> list[str]:
    """Writes the proofs of groups of an arch into the lock. Returns the groups that are left.

    elsewhere  group -> proofs, of another lock: what holds of these is not written
    """
    elsewhere = elsewhere or {}
    names = list(groups)
    while names and in_time():
        name = names.pop(0)
        lock = _read(lock_file)
        known = lock.setdefault(arch, {}).pop(name, dict(elsewhere.get(name, {})))
        # Without it, so that the builds hold no code object against it.
        lock_file.write_text(lock_text(lock))
        try:
            known = of_group(builds, groups[name], arch, known)
        finally:
            if known != elsewhere.get(name, {}):
                lock[arch][name] = known
            lock_file.write_text(lock_text(lock))
        bad = [member for member, proof in known.items() if proof.differs]
        print(f"{arch}: {name}: {len(known) - len(bad)} of {len(known)} the same", flush=True)
    return names


def main(arguments: Sequence[str]) -> int:
    if arguments[1:]:
        raise app.UsageError(f"what is {arguments[1]!r}? See --help")
    packages = [f"@variant_sets//{name}" for name in _VARIANTS.value] + _TARGETS.value
    pool: Groups = json.loads(Path(_POOL.value).read_text("utf-8"))["groups"]
    try:
        root = checkout("//kernels/ck_fmha:prove_groups")
        builds = Builds(root, _BAZEL_FLAGS.value)
        budget = Budget(_BUDGET.value)
        shard([], _SHARD.value)
        name = lock_of(root, _VARIANTS.value)
        lock_file = root / name
        elsewhere: Lock = {} if name == LOCK else _read(root / LOCK)
        lock_file.write_text(lock_text(without_old(_read(lock_file), pool)))
        for arch in _ARCHS.value:
            wanted = builds.instances(packages, arch)
            found = {
                name: members
                for name, members in pool.items()
                if any(member.partition(":")[2] in wanted for member in members)
            }
            mine = {name: found[name] for name in shard(sorted(found), _SHARD.value)}
            left = prove(
                builds,
                lock_file,
                arch,
                mine,
                budget.in_time,
                elsewhere.get(arch, {}),
            )
            of_mine = merged(elsewhere, _read(lock_file)).get(arch, {})
            proofs = [p for name in mine for p in of_mine.get(name, {}).values()]
            different = sum(bool(proof.differs) for proof in proofs)
            print(
                f"{arch}: {len(mine) - len(left)} of {len(mine)} groups; {len(proofs)} kernels, "
                f"{different} of them different in their groups"
                + (f"; {len(left)} groups are left: run it again" if left else "")
            )
    except (LockError, Trouble) as trouble:
        print(f"prove_groups: {trouble}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    app.run(main)
