# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The draw, from CK's real generator."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.emulation.sample.draw import COUNTS, Drawn, matrix, repository_files, sample


@pytest.fixture(scope="module")
def everything() -> dict[str, list[Drawn]]:
    return matrix(Path(os.environ["CK_GENERATOR"]).parent)


def _values(instances: Iterable[Drawn]) -> dict[str, set[object]]:
    out: dict[str, set[object]] = {}
    for drawn in instances:
        for name, value in drawn.traits.items():
            out.setdefault(name, set()).add(value)
    return out


@pytest.mark.parametrize("kind", ["fwd", "bwd_dq_dk_dv"])
@pytest.mark.parametrize("seed", [1, 20261120])
def test_every_value_of_every_trait_is_drawn(
    everything: dict[str, list[Drawn]], kind: str, seed: int
) -> None:
    drawn = sample(everything[kind], COUNTS[kind], random.Random(seed))
    assert len({d.name for d in drawn}) == COUNTS[kind]
    assert _values(drawn) == _values(everything[kind])


def test_the_seed_decides(everything: dict[str, list[Drawn]]) -> None:
    first, again, other = (
        [d.name for d in sample(everything["fwd"], 5, random.Random(seed))] for seed in (7, 7, 8)
    )
    assert first == again != other


def test_every_kind_has_instances_to_draw_from(everything: dict[str, list[Drawn]]) -> None:
    assert COUNTS.keys() == everything.keys()
    assert all(count < len(everything[kind]) for kind, count in COUNTS.items())
    assert sum(COUNTS.values()) >= 40


def test_sources(everything: dict[str, list[Drawn]]) -> None:
    """CK's text is cut before it includes what only hosts have, and names do not clash."""
    drawn = everything["fwd_splitkv"][:2] + everything["bwd_convert_dq"][:1]
    files = repository_files(drawn, 7)
    assert "SEED = 7" in files["instances.bzl"]
    for d in drawn:
        source = files[f"instances/{d.name}.cpp"]
        assert "<iostream>" not in source and f"{d.name}(Kernel::Kargs kargs)" in source
    host = files["launch/fwd_0.cpp"]
    assert host.count("#include") == 1 and host.count("namespace of_") == 2
