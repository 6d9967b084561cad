# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The choice among options of code generation, and lock.json, which has the chosen ones."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from kernels.archs.archs import ComputeUnit
from kernels.resources.measured import Measured

LOCK = "kernels/ck_fmha/options/lock.json"
_MEND = "restore it, or delete that line: the kernel is then chosen for anew"
_KEY = re.compile(r"[0-9a-f]{64}")


class LockError(Exception):
    """A mistake in the lock, for the user."""


class Costs(NamedTuple):
    """The costs of machine code.

    spills        registers that did not fit, vector and scalar
    loop_scratch  accesses to scratch in any loop
    loop_lanes    reads and writes of single lanes in any loop
    waves         that fit on a SIMD
    cycles        estimated, of a turn of the main loop or of the kernel without one; None: unknown
    """

    spills: int
    loop_scratch: int
    loop_lanes: int
    waves: int
    cycles: int | None

    @property
    def known_cycles(self) -> float:
        return math.inf if self.cycles is None else self.cycles


class Entry(NamedTuple):
    """An instance's options.

    key      of its own compile without options, which they were chosen for
    options  in order
    before   without options: the compiler's own
    after    with them
    """

    key: str
    options: tuple[str, ...]
    before: Costs
    after: Costs


# Arch -> "package:instance" -> entry.
Lock = dict[str, dict[str, Entry]]


def costs(measured: Measured, unit: ComputeUnit) -> Costs:
    """Of a kernel's figures."""
    columns = measured.columns({measured.arch: unit})
    return Costs(
        (columns["vgpr_spills"] or 0) + (columns["sgpr_spills"] or 0),
        columns["loop_scratch"] or 0,
        columns["loop_lanes"] or 0,
        columns["waves"] or 0,
        columns["cycles"],
    )


def _no_worse(one: Costs, own: Costs) -> bool:
    return (
        one.waves >= own.waves
        and one.known_cycles <= own.known_cycles
        and all(a <= b for a, b in zip(one[:3], own[:3], strict=True))
    )


def _rank(one: Costs) -> tuple[float, ...]:
    """The best first: no spill and no scratch in a loop; then less of the latter; fewer cycles."""
    unclean = bool(one.spills or one.loop_scratch)
    return (unclean, one.loop_scratch, one.known_cycles, one.loop_lanes, one.spills)


def choose(tried: Mapping[tuple[str, ...], Costs], today: tuple[str, ...]) -> tuple[str, ...]:
    """The best of the options that were tried: of those that are in nothing worse than none, and
    of today's. Of equals the fewest; today's before others.

    tried  options -> the costs with them; () is there
    """
    own = tried[()]
    able = [options for options in tried if _no_worse(tried[options], own) or options == today]
    return min(able, key=lambda each: (_rank(tried[each]), each != today, len(each), each))


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise LockError(f"{LOCK}: {name} is there twice: delete one of both lines")
        found[name] = value
    return found


def _entry(place: str, document: Any) -> Entry:
    try:
        entry = Entry(
            document["key"],
            tuple(document["options"]),
            Costs(*document["before"]),
            Costs(*document["after"]),
        )
        good = (
            document.keys() == {*Entry._fields}
            and _KEY.fullmatch(entry.key)
            and isinstance(document["options"], list)
            and all(isinstance(option, str) for option in entry.options)
            and all(isinstance(n, int) for n in (*entry.before[:4], *entry.after[:4]))
        )
    except (AttributeError, KeyError, TypeError) as error:
        raise LockError(f"{LOCK}: {place}: not an entry ({error!r}); {_MEND}") from error
    if not good:
        raise LockError(f"{LOCK}: {place}: not an entry: {json.dumps(document)}; {_MEND}")
    return entry


def parse_lock(text: str) -> Lock:
    """The lock of a text. Raises LockError for one of another form, or with a key twice."""
    try:
        document = json.loads(text, object_pairs_hook=_unique)
        return {
            arch: {member: _entry(f"{arch}: {member}", each) for member, each in members.items()}
            for arch, members in document.items()
        }
    except (AttributeError, RecursionError, ValueError) as error:
        raise LockError(
            f"{LOCK} cannot be read: {error}. Restore it, or let it be {{}}: all kernels have the "
            "options of their pipelines then"
        ) from error


def lock_text(lock: Lock) -> str:
    """The file: a line for each entry, sorted."""
    archs = []
    for arch, members in sorted(lock.items()):
        lines = [
            f"{json.dumps(member)}: {json.dumps(entry._asdict(), sort_keys=True)}"
            for member, entry in sorted(members.items())
        ]
        if lines:
            archs.append(f"{json.dumps(arch)}: {{\n" + ",\n".join(lines) + "\n}")
    return "{\n" + ",\n".join(archs) + "\n}\n" if archs else "{}\n"
