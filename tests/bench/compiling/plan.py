# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Actions of the build for code objects, and which of them are made together."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from tests.e2e.action_graph import GENERATED, Action

CODE_OBJECT = ".hsaco"

# Mnemonics of actions that Bazel makes of a program's files without a command, and the folder of
# its files that stand for many.
_RUNFILES = ("Middleman", "RunfilesTree", "SourceSymlinkManifest", "SymlinkTree")
_STAND_INS = "/_middlemen/"


@dataclasses.dataclass(frozen=True)
class Group:
    """Code objects that are compiled together, and the actions that make them."""

    outputs: tuple[str, ...]
    actions: tuple[Action, ...]

    @property
    def unused(self) -> list[str]:
        """Outputs of the actions for code objects that are not asked for."""
        used = {path for action in self.actions for path in action.inputs} | set(self.outputs)
        made = (path for action in self.actions for path in action.outputs)
        return sorted(path for path in made if path not in used)

    @property
    def name(self) -> str:
        """The first code object's, and how many more there are."""
        first = stem(self.outputs[0])
        return f"{first} and {len(self.outputs) - 1} more" if len(self.outputs) > 1 else first


def stem(path: str) -> str:
    """A code object's name: INSTANCE.ARCH."""
    return PurePosixPath(path).name.removesuffix(CODE_OBJECT)


def makers(actions: Iterable[Action]) -> dict[str, Action]:
    return {output: action for action in actions for output in action.outputs}


def behind(output: str, made_by: Mapping[str, Action]) -> list[Action]:
    """The actions that `output` takes, each after those that it needs.

    Raises ValueError for one that cannot be run from what Bazel tells of it.
    """
    found: dict[str, Action] = {}

    def visit(path: str, wanted_by: str) -> None:
        if _STAND_INS in path:
            return
        if path not in made_by:
            raise ValueError(f"{wanted_by}: no action makes its input {path}")
        action = made_by[path]
        if action.outputs[0] in found or action.mnemonic in _RUNFILES:
            return
        if not action.arguments and action.content is None:
            raise ValueError(
                f"{path}: the action {action.mnemonic} has no command line to measure; "
                "let the rule use actions with one"
            )
        for needed in sorted(action.inputs):
            if needed.startswith(GENERATED):
                visit(needed, path)
        found[action.outputs[0]] = action

    visit(output, "the bench")
    return list(found.values())


def groups(actions: Sequence[Action]) -> list[Group]:
    """The groups of a graph's code objects: those that have a compile in common are of one.

    Raises ValueError if there is no code object, or for an action that cannot be run.
    """
    made_by = makers(actions)
    objects = sorted(path for path in made_by if path.endswith(CODE_OBJECT))
    if not objects:
        raise ValueError("the build's actions make no code object")
    gathered: list[tuple[list[str], dict[str, Action]]] = []
    for path in objects:
        members, needed = [path], {a.outputs[0]: a for a in behind(path, made_by)}
        apart = []
        for others, theirs in gathered:
            # Only an action with a command is a compile: a file that all share makes them no group.
            if any(output in theirs and needed[output].arguments for output in needed):
                members, needed = others + members, theirs | needed
            else:
                apart.append((others, theirs))
        gathered = [*apart, (sorted(members), needed)]
    return sorted(
        (Group(tuple(members), tuple(needed.values())) for members, needed in gathered),
        key=lambda group: (len(group.outputs), group.outputs),
    )


def whole(groups: Iterable[Group]) -> tuple[list[Group], list[Group]]:
    """The groups with all members asked for, and the others, whose cost has other members' in
    it."""
    found: tuple[list[Group], list[Group]] = ([], [])
    for group in groups:
        found[bool(group.unused)].append(group)
    return found


def chosen(groups: Sequence[Group], pattern: str, quick: bool) -> list[Group]:
    """The groups with a code object that `pattern` finds; if quick, one of each of two sizes.

    Raises ValueError if there is none, or for a pattern that is none.
    """
    try:
        wanted = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"--only={pattern} is no regular expression: {error}") from error
    found = [g for g in groups if any(wanted.search(stem(path)) for path in g.outputs)]
    if not found:
        names = "\n  ".join(stem(path) for group in groups for path in group.outputs)
        raise ValueError(f"--only={pattern} finds none of:\n  {names}")
    if quick:
        sizes = sorted({len(group.outputs) for group in found})[:2]
        found = [next(g for g in found if len(g.outputs) == size) for size in sizes]
    return found
