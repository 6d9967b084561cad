# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Upstream's real generator, for the tests of this folder."""

import os
from pathlib import Path

import pytest

from kernels.ck_fmha.ckgen.directions import TARGETS
from kernels.ck_fmha.ckgen.pool import Pool
from kernels.ck_fmha.ckgen.schema import known_values
from kernels.launch_table.traits import TraitValue


@pytest.fixture(scope="session")
def fmha_dir() -> Path:
    return Path(os.environ["CK_GENERATOR"]).parent


@pytest.fixture(scope="session")
def pool(fmha_dir: Path) -> Pool:
    """Of gfx9: numbers in tests are of one target."""
    return Pool(fmha_dir, TARGETS[:1])


@pytest.fixture(scope="session")
def whole_pool(fmha_dir: Path) -> Pool:
    return Pool(fmha_dir)


@pytest.fixture(scope="session")
def known(pool: Pool) -> dict[str, list[TraitValue]]:
    return known_values([candidate.traits for candidate in pool.candidates])
