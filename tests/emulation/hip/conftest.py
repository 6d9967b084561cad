# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The wheel, unpacked and importable, and the HIP runtime that it will load.

AITER_ATTN_HIP_LIBRARY names the runtime, as for any program; unset, it is the emulated one that
EMULATED_HIP names, else the machine's own. What only the emulated one can do (the fixture
`runtime`) is skipped on others.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import site
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from tests.emulation.hip import emulated_hip
from tests.emulation.hip.hip import Hip

_SITE = tempfile.mkdtemp(prefix="site-packages-", dir=os.environ.get("TEST_TMPDIR"))
atexit.register(shutil.rmtree, _SITE, ignore_errors=True)
zipfile.ZipFile(os.environ["WHEEL"]).extractall(_SITE)
site.addsitedir(_SITE)

import aiter_attn  # noqa: E402  (it is found now)
from aiter_attn import _C  # noqa: E402

from tests.emulation.hip import wheel_contents  # noqa: E402

_SONAMES = ("libamdhip64.so.7", "libamdhip64.so.6")  # as aiter/runtime/driver/hip.cc has them


def _installed() -> str:
    """The HIP runtime that the machine's loader finds, or "". The loader of the tests' own Python
    knows neither LD_LIBRARY_PATH nor the machine's cache."""
    listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True)
    for soname in _SONAMES:
        for folder in filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":")):
            if (Path(folder) / soname).exists():
                return str(Path(folder) / soname)
        if found := re.search(rf"^\s*{soname} \(.*x86-64.*\) => (.*)$", listed.stdout, re.M):
            return found[1]
    return ""


if not os.environ.get("AITER_ATTN_HIP_LIBRARY"):
    emulated = os.environ.get("EMULATED_HIP")
    library = str(Path(emulated).resolve()) if emulated else _installed()
    os.environ["AITER_ATTN_HIP_LIBRARY"] = library
# A second device, for which the wheel has kernels only where it was built for it.
os.environ.setdefault("EMULATED_HIP_DEVICES", "gfx942,gfx950")


@pytest.fixture(scope="session")
def hip() -> Hip:
    """The runtime. Without one, or without a GPU that the wheel is for, all tests end here: skips
    would look like success."""
    path = os.environ["AITER_ATTN_HIP_LIBRARY"]
    if not path:
        _end(
            f"neither {' nor '.join(_SONAMES)} is in LD_LIBRARY_PATH or in the loader's cache "
            "(ldconfig -p): install ROCm's HIP runtime, or name its file with "
            "--test_env=AITER_ATTN_HIP_LIBRARY=/opt/rocm/lib/libamdhip64.so.6"
        )
    try:
        devices = _C.driver_info(_C.DEVICE_ROCM)
    except aiter_attn.DriverError as error:
        _end(str(error))
    archs = wheel_contents.ARCHS
    if not any(re.search(rf"\d {arch}\b", devices) for arch in archs):
        _end(
            f"the wheel has kernels for {', '.join(archs)}, but here is {devices}: build it for "
            "these GPUs with --//kernels:archs=..."
        )
    return Hip(path)


def _end(why: str) -> NoReturn:
    pytest.exit(f"nothing to test on: {why}", returncode=1)


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
