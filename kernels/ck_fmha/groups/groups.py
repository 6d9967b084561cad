# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Compile groups: how the pool is cut into them, and lock.json, which says of whose members it is
proven that their own compiles give the same."""

from __future__ import annotations

import collections
import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

LOCK = "kernels/ck_fmha/groups/lock.json"

# The lock of a variant set that is not the project's: what LOCK lacks of its groups.
OWN_LOCK = "kernels/variants/{variant_set}.lock.json"
OWN_LOCKS = "*.lock.json"  # in the folder of the variant sets

# The members of a group. More save little, and cost more where one of them is wanted alone.
_MOST = 8

# Members differ in these traits and in the dtype, as far as its width is the same: whoever wants
# one of them wants the others. An elementwise bias is not wanted in group mode, but with dropout
# and without.
_TOGETHER = ("mask", "mode")
_TOGETHER_WITH_BIAS = ("dropout", "mask")
_DTYPES = {"bf16": "16 bits", "fp16": "16 bits"}

# Kernels of these kinds call a function that is inlined where one kernel calls it, and not where
# several of a unit do: none of a group's members could be taken out of it.
_ALONE = ("fwd_splitkv_combine",)

# Group -> its members, "package:instance".
Groups = Mapping[str, Sequence[str]]


class LockError(Exception):
    """A mistake in a lock, for the user."""


@dataclasses.dataclass(frozen=True)
class Proof:
    """The knowledge about a member under a key: the sha256 of the object of its own compile.

    key     of its own compile
    differs why its group does not give the same; empty: it does
    """

    key: str
    sha256: str
    differs: str = ""


# Arch -> group -> member -> proof.
Lock = dict[str, dict[str, dict[str, Proof]]]


def parse_lock(text: str, name: str = LOCK) -> Lock:
    """The lock of a text, of the file `name`. Raises LockError for one of another form."""
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
            f"{name} cannot be read: {error}. Restore it, or let it be {{}}: nothing is proven then"
        ) from error


def merged(lock: Lock, further: Lock) -> Lock:
    """Both; of a group that both have, the further one's members."""
    found = {arch: dict(groups) for arch, groups in lock.items()}
    for arch, groups in further.items():
        found.setdefault(arch, {}).update(groups)
    return found


def lock_text(lock: Mapping[str, Mapping[str, Mapping[str, Proof]]]) -> str:
    """The file."""
    document = {
        arch: {
            group: {
                member: [each for each in dataclasses.astuple(proof) if each]
                for member, proof in sorted(members.items())
            }
            for group, members in sorted(groups.items())
            if members
        }
        for arch, groups in sorted(lock.items())
    }
    return json.dumps(document, indent=1) + "\n"


def _shape(row: Mapping[str, Any], pipeline: str) -> str:
    """Of instances that share most of their compile, and are wanted together."""
    traits = row["traits"]
    elementwise = traits.get("bias") == "elementwise"
    free = {"dtype", *(_TOGETHER_WITH_BIAS if elementwise else _TOGETHER)}
    return json.dumps(
        [
            row["kind"],
            pipeline,
            row["tile"],
            row["block"],
            sorted(row.get("left_out", ())),
            _DTYPES.get(traits["dtype"], traits["dtype"]),
            {name: value for name, value in traits.items() if name not in free},
        ],
        sort_keys=True,
    )


def cut(rows: Mapping[str, Mapping[str, Any]], pipelines: Mapping[str, str]) -> Groups:
    """The groups of the pool, the same for all variant sets: so sets share code objects.

    rows       "package:instance" -> its row of the launch table
    pipelines  "package:instance" -> its pipeline, as upstream names it
    """
    shapes: dict[str, list[str]] = collections.defaultdict(list)
    for member, row in sorted(rows.items()):
        if row["kind"] in _ALONE:
            continue
        shapes[_shape(row, pipelines[member])].append(member)
    groups: dict[str, Sequence[str]] = {}
    numbers: collections.Counter[str] = collections.Counter()
    for alike in shapes.values():
        for start in range(0, len(alike), _MOST):
            if len(part := alike[start : start + _MOST]) > 1:
                package = part[0].partition(":")[0]
                direction, _, dtype_and_size = package.partition("/")
                stem = f"{direction}/{dtype_and_size.partition('_')[2]}:{rows[part[0]]['kind']}"
                groups[f"{stem}_{numbers[stem]}"] = part
                numbers[stem] += 1
    return groups
