# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The project consumer/ beside a clone, and the HIP runtime that its library will load."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.consumers.device import attached, hip, known, quiet, takes_turns
from tests.e2e.consumer import Consumer

__all__ = ["attached", "hip", "known", "quiet", "takes_turns"]


@pytest.fixture(scope="session")
def consumer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Consumer]:
    made = Consumer(tmp_path_factory.mktemp("modules"))
    yield made
    made.close()
