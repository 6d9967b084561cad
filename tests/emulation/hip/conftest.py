# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The wheel, unpacked and importable, and the HIP runtime that it will load.

AITER_ATTN_HIP_LIBRARY names the runtime, as for any program; unset, it is the emulated one. What
only that one can do (the fixture `runtime`) is skipped on others.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.emulation.hip import emulated_hip
from tests.emulation.hip.hip import Hip

_SITE = tempfile.mkdtemp(prefix="site-packages-", dir=os.environ.get("TEST_TMPDIR"))
atexit.register(shutil.rmtree, _SITE, ignore_errors=True)
zipfile.ZipFile(os.environ["WHEEL"]).extractall(_SITE)
sys.path.insert(0, _SITE)

_EMULATED = str(Path(os.environ["EMULATED_HIP"]).resolve())
if not os.environ.get("AITER_ATTN_HIP_LIBRARY"):
    os.environ["AITER_ATTN_HIP_LIBRARY"] = _EMULATED
# A second device, for which the wheel has kernels only where it was built for it.
os.environ.setdefault("EMULATED_HIP_DEVICES", "gfx942,gfx950")


@pytest.fixture(scope="session")
def hip() -> Hip:
    return Hip(os.environ["AITER_ATTN_HIP_LIBRARY"])


@pytest.fixture(scope="session")
def _attached(hip: Hip) -> emulated_hip.Runtime | None:
    return emulated_hip.attach(hip.library) if emulated_hip.is_emulated(hip.library) else None


@pytest.fixture(autouse=True)
def _quiet(hip: Hip, _attached: emulated_hip.Runtime | None) -> Iterator[None]:
    """What the emulator found during a test fails it, unless the test has looked itself."""
    yield
    if _attached is not None:
        for device in range(hip.device_count()):
            hip.make_current(device)
            hip.library.hipDeviceSynchronize()
        hip.make_current(0)
        hip.library.hipGetLastError()
        _attached.recover()
        _attached.raise_failures()


@pytest.fixture
def runtime(_attached: emulated_hip.Runtime | None) -> emulated_hip.Runtime:
    if _attached is None:
        pytest.skip("needs the emulated HIP runtime: unset AITER_ATTN_HIP_LIBRARY")
    _attached.launches.clear()
    return _attached
