# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A folder of ROCm that has the emulated runtime, as hip-python finds it; the wheel, importable.

Nothing tells the wheel which runtime to use: it is the one that hip-python has loaded.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import shutil
import site
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hip import hip

from tests.emulation import known_findings
from tests.emulation.hip_python.hip_python import HipPython
from tests.emulator.hip import emulated_hip

_ROOT = Path(tempfile.mkdtemp(prefix="rocm-", dir=os.environ.get("TEST_TMPDIR")))
atexit.register(shutil.rmtree, _ROOT, ignore_errors=True)
_LIBRARY = _ROOT / "lib/libamdhip64.so"
_LIBRARY.parent.mkdir()
_LIBRARY.symlink_to(Path(os.environ["EMULATED_HIP"]).resolve())
os.environ["ROCM_PATH"] = str(_ROOT)
hip.hipGetDeviceCount()
_RUNTIME = emulated_hip.attach(
    ctypes.CDLL(str(_LIBRARY), os.RTLD_NOLOAD | os.RTLD_NOW),
    known_findings.signatures,
    known_findings.takes_turns,
)

_SITE = _ROOT / "site-packages"
zipfile.ZipFile(os.environ["WHEEL"]).extractall(_SITE)
site.addsitedir(str(_SITE))


@pytest.fixture(autouse=True)
def runtime() -> Iterator[emulated_hip.Runtime]:
    """A finding of the emulator during a test fails it, unless the test has looked itself."""
    _RUNTIME.launches.clear()
    yield _RUNTIME
    for device in range(HipPython().device_count()):
        hip.hipSetDevice(device)
        hip.hipDeviceSynchronize()
    hip.hipSetDevice(0)
    hip.hipGetLastError()
    _RUNTIME.recover()
    _RUNTIME.raise_failures()
