# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""jax on emulated GPUs; a finding of the emulator during a test fails it."""

from __future__ import annotations

import atexit
import os
import shutil
import site
import tempfile
import zipfile
from collections.abc import Iterator

import pytest

from tests.emulation.jax import emulated_rocm
from tests.emulator.hip import emulated_hip

_LIBRARIES = os.environ["ROCM_LIBRARIES"].split()
_RUNTIME = emulated_rocm.bring_up(_LIBRARIES)

_SITE = tempfile.mkdtemp(prefix="site-packages-", dir=os.environ.get("TEST_TMPDIR"))
atexit.register(shutil.rmtree, _SITE, ignore_errors=True)
zipfile.ZipFile(os.environ["WHEEL"]).extractall(_SITE)
site.addsitedir(_SITE)
# The runtime that jax's plugin has, not another one beside it.
(_HIP,) = (path for path in _LIBRARIES if path.endswith(emulated_rocm.HIP))
os.environ["AITER_ATTN_HIP_LIBRARY"] = os.path.realpath(_HIP)


@pytest.fixture(autouse=True)
def runtime() -> Iterator[emulated_hip.Runtime]:
    _RUNTIME.launches.clear()
    yield _RUNTIME
    _RUNTIME.recover()
    _RUNTIME.raise_failures()
