# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The facts that the program holds manifests against."""

import os
from pathlib import Path

import pytest

from aiter.compat.qola.qola import Facts, read_facts


@pytest.fixture(scope="session")
def facts() -> Facts:
    return read_facts(*(Path(os.environ[name]) for name in ("POOL", "ARCHS", "HIP_VERSIONS")))
