# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""CK's real generator, for the tests of this folder."""

import os
from pathlib import Path

import pytest
from ckgen.pool import Pool


@pytest.fixture(scope="session")
def fmha_dir() -> Path:
    return Path(os.environ["CK_GENERATOR"]).parent


@pytest.fixture(scope="session")
def pool(fmha_dir: Path) -> Pool:
    return Pool(fmha_dir)
