# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Reads Bazel's action graph, as `aquery --output=jsonproto --include_param_files` prints it.

With --include_file_write_contents, too, for those who ask for an action's `content`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

GENERATED = "bazel-out/"
# The builder, the place and the time. Bazel writes them; its own action TranslateBuildInfo alone
# reads them, for programs that ask for a build stamp.
STATUS = ("bazel-out/stable-status.txt", "bazel-out/volatile-status.txt")
_STATUS_READER = "TranslateBuildInfo"


@dataclasses.dataclass(frozen=True)
class Action:
    """One action. Paths are relative to the folder that actions run in."""

    mnemonic: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    inputs: frozenset[str]
    outputs: tuple[str, ...]
    parameter_files: Mapping[str, str]
    content: str | None = None  # of a FileWrite


def parse(graph: Mapping[str, Any]) -> list[Action]:
    """Returns the actions of a graph."""
    fragments = {f["id"]: f for f in graph["pathFragments"]}

    def path(fragment: int) -> str:
        f = fragments[fragment]
        return f"{path(f['parentId'])}/{f['label']}" if "parentId" in f else f["label"]

    artifacts = {a["id"]: path(a["pathFragmentId"]) for a in graph["artifacts"]}
    sets = {s["id"]: s for s in graph.get("depSetOfFiles", ())}

    def members(roots: Iterable[int]) -> frozenset[str]:
        seen: set[int] = set()
        todo, found = list(roots), set()
        while todo:
            if (number := todo.pop()) not in seen:
                seen.add(number)
                found.update(artifacts[a] for a in sets[number].get("directArtifactIds", ()))
                todo += sets[number].get("transitiveDepSetIds", ())
        return frozenset(found)

    return [
        Action(
            a["mnemonic"],
            tuple(a.get("arguments", ())),
            {v["key"]: v.get("value", "") for v in a.get("environmentVariables", ())},
            members(a.get("inputDepSetIds", ())),
            tuple(artifacts[o] for o in a.get("outputIds", ())),
            {f["execPath"]: "\n".join(f.get("arguments", ())) for f in a.get("paramFiles", ())},
            # An empty text is left out.
            a.get("fileContents", "" if a["mnemonic"] == "FileWrite" else None),
        )
        for a in graph["actions"]
    ]


def leaves(actions: Iterable[Action]) -> set[str]:
    """Returns the inputs that no action makes. Raises ValueError for one that nothing explains."""
    inputs = {
        path
        for action in actions
        for path in action.inputs
        if path not in STATUS or action.mnemonic != _STATUS_READER
    }
    outputs = {path for action in actions for path in action.outputs}
    orphans = sorted(p for p in inputs - outputs if p.startswith(GENERATED))
    if orphans:
        raise ValueError(f"inputs that no action of the graph makes: {orphans[:5]}")
    return inputs - outputs
