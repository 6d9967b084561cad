# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The HIP runtime that is under test, and the emulator behind it; conftest.py imports these.

AITER_ATTN_HIP_LIBRARY names the runtime, as for any program; unset, it is the emulated one that
EMULATED_HIP names, else the machine's own. Tests of the emulated one alone (the fixture `runtime`)
are skipped on others. The fixture `hip` is the importer's.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from tests.emulator.hip import emulated_hip
from tests.emulator.hip.hip import Hip

_LIBRARY = "libamdhip64.so"


def _installed() -> str:
    """The newest HIP runtime that the machine's loader finds, or "". The loader of the tests' own
    Python knows neither LD_LIBRARY_PATH nor the machine's cache."""
    listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True)
    line = rf"^\s*{re.escape(_LIBRARY)}\.\d+ \(.*x86-64.*\) => (.*)$"
    found = [Path(path) for path in re.findall(line, listed.stdout, re.M)]
    for folder in filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":")):
        found = [*Path(folder).glob(f"{_LIBRARY}.[0-9]"), *found]
    return str(max(found, key=lambda path: path.name)) if found else ""


if not os.environ.get("AITER_ATTN_HIP_LIBRARY"):
    emulated = os.environ.get("EMULATED_HIP")
    library = str(Path(emulated).resolve()) if emulated else _installed()
    os.environ["AITER_ATTN_HIP_LIBRARY"] = library
# The second is one for which a wheel has kernels only where it was built for it.
os.environ.setdefault("EMULATED_HIP_DEVICES", "gfx942,gfx950")


def library() -> str:
    """The path of the runtime. Without one all tests end here: skips would look like success."""
    path = os.environ["AITER_ATTN_HIP_LIBRARY"]
    if not path:
        end(
            f"no {_LIBRARY} of a version is in LD_LIBRARY_PATH or in the loader's cache "
            "(ldconfig -p): install ROCm's HIP runtime, or name its file with "
            "--test_env=AITER_ATTN_HIP_LIBRARY=/opt/rocm/lib/libamdhip64.so.6"
        )
    return path


def end(why: str) -> NoReturn:
    pytest.exit(f"nothing to test on: {why}", returncode=1)


@pytest.fixture(scope="session")
def known() -> Callable[[str], Collection[str]]:
    """The signatures of findings that are no faults of a kernel, SYMBOL.ARCH."""
    return lambda kernel: ()


@pytest.fixture(scope="session")
def takes_turns() -> Callable[[str], bool]:
    """Whether the waves of a kernel, SYMBOL.ARCH, may meet at different barriers."""
    return lambda kernel: False


@pytest.fixture(scope="session")
def attached(
    hip: Hip, known: Callable[[str], Collection[str]], takes_turns: Callable[[str], bool]
) -> emulated_hip.Runtime | None:
    if not emulated_hip.is_emulated(hip.library):
        return None
    return emulated_hip.attach(hip.library, known, takes_turns)


@pytest.fixture(autouse=True)
def quiet(hip: Hip, attached: emulated_hip.Runtime | None) -> Iterator[None]:
    """A finding of the emulator during a test fails it, unless the test has looked itself."""
    yield
    if attached is not None:
        for device in range(hip.device_count()):
            hip.make_current(device)
            hip.library.hipDeviceSynchronize()
        hip.make_current(0)
        hip.library.hipGetLastError()
        attached.recover()
        attached.raise_failures()


@pytest.fixture
def runtime(attached: emulated_hip.Runtime | None) -> emulated_hip.Runtime:
    if attached is None:
        pytest.skip("needs the emulated HIP runtime: unset AITER_ATTN_HIP_LIBRARY")
    attached.launches.clear()
    return attached
