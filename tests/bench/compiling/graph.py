# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The actions of a source tree's build, as Bazel tells them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.bench.compiling import plan
from tests.bench.workspace import Workspace
from tests.e2e import action_graph


class Graph:
    """Of a target and all that it needs."""

    def __init__(self, tree: Path, target: str) -> None:
        self._workspace = Workspace(tree)
        self._target = target

    def actions(self, options: Sequence[str] = ()) -> list[action_graph.Action]:
        said = self._workspace.bazel(
            "aquery",
            *options,
            "--include_file_write_contents",
            "--include_param_files",
            "--output=jsonproto",
            f"deps({self._target})",
        )
        return action_graph.parse(json.loads(said))

    def plain_compiles(self) -> Mapping[str, action_graph.Action]:
        """The compile of each code object, by its name, of a build that compiles each alone.

        With the headers that a peer has.
        """
        found = {}
        for group in plan.groups(self.actions(["--//kernels/ck_fmha:shortcuts=none"])):
            if len(group.actions) != 1:
                raise ValueError(f"{group.name}: not a single compile without shortcuts")
            found[plan.stem(group.outputs[0])] = group.actions[0]
        return found

    def external(self) -> Path:
        """The folder of all other repositories; actions() has had them fetched."""
        return Path(self._workspace.bazel("info", "output_base").strip()) / "external"
