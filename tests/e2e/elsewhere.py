# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Fixtures of tests whose actions are executed elsewhere: modules import them by name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.clone import Clone


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clone]:
    """It has no disk cache: what no server has is executed."""
    clone = Clone(tmp_path_factory.mktemp("clone"), "elsewhere")
    yield clone
    clone.close()
