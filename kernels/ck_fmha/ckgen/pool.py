# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Upstream's fused-attention generator as data: every candidate that it knows."""

from __future__ import annotations

import dataclasses
import importlib
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from kernels.ck_fmha.ckgen.directions import (
    DIRECTIONS,
    TARGETS,
    Candidate,
    Instance,
    PoolError,
)
from kernels.launch_table.traits import TABLE


class Pool:
    """Every candidate, by direction, in the order in which upstream's dispatcher tries them.

    fmha_dir is the folder of upstream's example that holds the `codegen` package; targets are all
    of TARGETS or some.
    """

    def __init__(self, fmha_dir: Path, targets: Sequence[str] = TARGETS):
        if not (fmha_dir / "codegen" / "ops" / "fmha_fwd.py").is_file():
            raise PoolError(
                f"{fmha_dir}: no codegen/ops/fmha_fwd.py: not upstream's 01_fmha example folder"
            )
        # The one environment variable that changes upstream's tiles; the pool is the same
        # everywhere.
        os.environ.pop("CK_TILE_FMHA_FWD_CUSTOM_FACTORY", None)
        sys.path.insert(0, str(fmha_dir))
        try:
            self._modules = {
                name: importlib.import_module(f"codegen.ops.{direction.module}")
                for name, direction in DIRECTIONS.items()
            }
        finally:
            sys.path.remove(str(fmha_dir))
        for module in self._modules.values():
            # It holds each entry against all before it, and upstream's are right.
            module.check_duplicates_and_paddings = lambda entries, entry: None
        self.candidates: list[Candidate] = [
            dataclasses.replace(candidate, target=target)
            for name, direction in DIRECTIONS.items()
            for target in targets
            for candidate in direction.candidates(self._modules[name], target)
        ]

    def dispatcher(self, direction: str, candidates: Sequence[Candidate]) -> str:
        """Upstream's dispatcher of a direction, in C++, over those of the candidates it has."""
        own = [candidate for candidate in candidates if candidate.direction == direction]
        return DIRECTIONS[direction].dispatcher(self._modules[direction], own)


def instances_of(candidates: Iterable[Candidate]) -> list[Instance]:
    """The instances of candidates, each once: by kind, and within a kind in upstream's order."""
    found: dict[str, dict[str, Instance]] = {kind: {} for kind in TABLE.kinds}
    for candidate in candidates:
        for instance in candidate.instances:
            found[instance.kind].setdefault(instance.name, instance)
    return [instance for by_name in found.values() for instance in by_name.values()]


def targets_of(candidates: Iterable[Candidate]) -> dict[str, list[str]]:
    """Instance -> the targets that it is of, in their order."""
    found: dict[str, dict[str, None]] = {}
    for candidate in candidates:
        for instance in candidate.instances:
            found.setdefault(instance.name, {})[candidate.target] = None
    return {name: [t for t in TARGETS if t in targets] for name, targets in found.items()}
