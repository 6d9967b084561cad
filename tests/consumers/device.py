# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The HIP runtime that a consumer's library will load, for conftest.py."""

from __future__ import annotations

from collections.abc import Callable, Collection

import pytest

from tests.emulation import known_findings
from tests.emulator.hip.fixtures import attached, library, quiet, runtime
from tests.emulator.hip.hip import Hip

__all__ = ["attached", "quiet", "runtime"]


@pytest.fixture(scope="session")
def hip() -> Hip:
    return Hip(library())


@pytest.fixture(scope="session")
def known() -> Callable[[str], Collection[str]]:
    return known_findings.signatures


@pytest.fixture(scope="session")
def takes_turns() -> Callable[[str], bool]:
    return known_findings.takes_turns
