# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The HIP runtime alone: no wheel uses it."""

from __future__ import annotations

import pytest

from tests.emulator.hip.fixtures import (
    attached,
    end,
    known,
    library,
    quiet,
    runtime,
    takes_turns,
)
from tests.emulator.hip.hip import Hip, HipError

__all__ = ["attached", "known", "quiet", "runtime", "takes_turns"]


@pytest.fixture(scope="session")
def hip() -> Hip:
    """The runtime. Without a GPU all tests end here."""
    hip = Hip(library())
    try:
        hip.device_count()
    except HipError as error:
        end(str(error))
    return hip
