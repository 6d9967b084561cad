# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Compile groups: which kernels are siblings, and groups/lock.json, which of them are proven."""

from __future__ import annotations

import collections
import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence

LOCK = "kernels/ck_fmha/groups/lock.json"

# The members of a group. More save little, and cost more where one of them is wanted alone.
_MOST = 8

# Small kernels: a compile of one is little but reading headers, for any shape.
_SMALL = ("bwd_convert_dq", "bwd_dot_do_o", "fwd_splitkv_combine")

# Group -> its members, "package:instance".
Groups = dict[str, list[str]]


class LockError(Exception):
    """A mistake in groups/lock.json, for the user."""


@dataclasses.dataclass(frozen=True)
class Proof:
    key: str
    sha256: str


def parse_lock(text: str) -> dict[str, dict[str, dict[str, Proof]]]:
    """Arch -> group -> member -> proof. Raises LockError for a text of another form."""
    try:
        return {
            arch: {
                group: {member: Proof(*proof) for member, proof in members.items()}
                for group, members in groups.items()
            }
            for arch, groups in json.loads(text).items()
        }
    except (AttributeError, RecursionError, TypeError, ValueError) as error:
        raise LockError(
            f"{LOCK} cannot be read: {error}. Restore it, or let it be {{}}: all groups are found "
            "again then"
        ) from error


def lock_text(lock: Mapping[str, Mapping[str, Mapping[str, Proof]]]) -> str:
    """The file."""
    document = {
        arch: {
            group: {member: [proof.key, proof.sha256] for member, proof in members.items()}
            for group, members in sorted(groups.items())
        }
        for arch, groups in sorted(lock.items())
    }
    return json.dumps(document, indent=1) + "\n"


def siblings(rows: Mapping[str, Mapping[str, object]]) -> Groups:
    """Groups of instances that share most of their compile: of a kind, a head size and a tile.

    Types of elements may differ: of tiles' distributions, most of the compile, few know of them.

    rows  "package:instance" -> its row of the launch table
    """
    shapes: dict[tuple[str, ...], list[str]] = collections.defaultdict(list)
    for member, row in sorted(rows.items()):
        kind, package = str(row["kind"]), member.partition(":")[0]
        tile = json.dumps(row["tile"], sort_keys=True)
        shape = (kind,) if kind in _SMALL else (kind, package.rpartition("_")[2], tile)
        shapes[shape].append(member)
    groups: Groups = {}
    for shape, alike in shapes.items():
        for start in range(0, len(alike), _MOST):
            if len(part := alike[start : start + _MOST]) > 1:
                groups[free_name("_".join(shape[:2]), groups)] = part
    return groups


def free_name(stem: str, taken: Iterable[str]) -> str:
    """STEM_NUMBER, with the first number that is free."""
    names = set(taken)
    return next(name for n in range(len(names) + 1) if (name := f"{stem}_{n}") not in names)


def extended(known: Mapping[str, Sequence[str]], found: Groups) -> Groups:
    """The known groups, and new ones of the members that are in none."""
    groups = {name: list(members) for name, members in known.items()}
    taken = {member for members in groups.values() for member in members}
    for name, members in found.items():
        if len(new := [member for member in members if member not in taken]) > 1:
            groups[free_name(name.rpartition("_")[0], groups)] = new
    return groups
