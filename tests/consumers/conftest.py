# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The consumer, and the HIP runtime that its library will load."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.consumers import hostile
from tests.consumers.attention import Consumer
from tests.consumers.device import attached, hip, known, quiet, runtime, takes_turns
from tests.emulator.hip.fixtures import end

__all__ = ["attached", "hip", "known", "quiet", "runtime", "takes_turns"]

_BUILT_FOR = "BUILT_FOR_"

# In the process before any other library of the test, and for all of them to see.
if _hostile := os.environ.get("HOSTILE"):
    hostile.load_for_all(_hostile)


@pytest.fixture(scope="session")
def consumer() -> Consumer:
    return Consumer(Path(os.environ["CONSUMER"]).absolute())


@pytest.fixture(
    params=sorted(n.removeprefix(_BUILT_FOR) for n in os.environ if n.startswith(_BUILT_FOR))
    or [""]
)
def arch(request: pytest.FixtureRequest) -> str:
    """Each that kernels are built for."""
    if not request.param:
        end("no kernel is built for an arch that the emulator knows: see --//kernels:archs")
    return str(request.param)
