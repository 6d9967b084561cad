# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""jax on emulated GPUs; what the emulator finds during a test fails it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.emulation.hip import emulated_hip
from tests.emulation.jax import emulated_rocm

_RUNTIME = emulated_rocm.bring_up(os.environ["ROCM_LIBRARIES"].split())


@pytest.fixture(autouse=True)
def runtime() -> Iterator[emulated_hip.Runtime]:
    _RUNTIME.launches.clear()
    yield _RUNTIME
    _RUNTIME.recover()
    _RUNTIME.raise_failures()
