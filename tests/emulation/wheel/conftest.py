# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The wheel, unpacked and importable, and the HIP runtime that it will load."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import site
import tempfile
import zipfile
from collections.abc import Callable, Collection

import pytest

from tests.consumers import hostile
from tests.emulation import known_findings
from tests.emulator.hip.fixtures import attached, end, library, quiet, runtime
from tests.emulator.hip.hip import Hip

__all__ = ["attached", "quiet", "runtime"]

# In the process before the wheel.
if _hostile := os.environ.get("HOSTILE"):
    hostile.load_for_all(_hostile)

_SITE = tempfile.mkdtemp(prefix="site-packages-", dir=os.environ.get("TEST_TMPDIR"))
atexit.register(shutil.rmtree, _SITE, ignore_errors=True)
for _wheel in (os.environ["WHEEL"], *os.environ.get("KERNELS_WHEELS", "").split()):
    with zipfile.ZipFile(_wheel) as _files:
        _files.extractall(_SITE)
        # Programs can be executed, as pip installs them.
        for _file in _files.infolist():
            if _file.external_attr >> 16 & 0o111:
                os.chmod(os.path.join(_SITE, _file.filename), 0o700)
site.addsitedir(_SITE)

import aiter_attn  # noqa: E402  (it is found now)
from aiter_attn import _C  # noqa: E402

from tests.emulation.wheel import wheel_contents  # noqa: E402


@pytest.fixture(scope="session")
def hip() -> Hip:
    """The runtime. Without one, or without a GPU that the wheel is for, all tests end here."""
    path = library()
    try:
        devices = _C.driver_info(_C.DEVICE_ROCM)
    except aiter_attn.DriverError as error:
        end(str(error))
    archs = wheel_contents.ARCHS
    if not any(re.search(rf"\d {arch}\b", devices) for arch in archs):
        end(
            f"the wheel has kernels for {', '.join(archs)}, but here is {devices}: build it for "
            "these GPUs with --//kernels:archs=..."
        )
    return Hip(path)


@pytest.fixture(scope="session")
def known() -> Callable[[str], Collection[str]]:
    return known_findings.signatures


@pytest.fixture(scope="session")
def takes_turns() -> Callable[[str], bool]:
    return known_findings.takes_turns
