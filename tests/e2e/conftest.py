# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""One clone for all tests of a run: a first build in one sets up every repository."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e import clone


@pytest.fixture(scope="session")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[clone.Clone]:
    made = clone.Clone(
        tmp_path_factory.mktemp("elsewhere"), "other", disk_cache=clone.shared_disk_cache()
    )
    yield made
    made.close()
