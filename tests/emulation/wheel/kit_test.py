# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The slim wheel and the compile kit, both installed: kernels are compiled when they are asked
for, and are the ones that the build compiled."""

from __future__ import annotations

import os
import signal
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import aiter_attn
import pytest
from aiter_attn import _C

from tests.emulation.wheel.kit_cache import ARCH, CACHE, cached, manifest
from tests.emulation.wheel.problems import CAUSAL, Problem, Shape, forward_and_backward
from tests.emulator.hip.hip import Hip


def problem(hip: Hip) -> Problem:
    shape = Shape(((77, 130),), heads=(2, 1), window=CAUSAL)
    return Problem(hip, shape, "float16", 64, hip.device_of(ARCH))


@pytest.fixture
def alarm() -> Iterator[None]:
    """Ctrl-C in two seconds, of which a compile takes more."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 2)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_the_wheel_is_of_a_size_and_has_the_licences_of_its_parts() -> None:
    (wheel,) = (Path(path) for path in os.environ["KERNELS_WHEELS"].split())
    assert wheel.name.endswith("-py3-none-manylinux_2_17_x86_64.whl")
    assert wheel.stat().st_size < 100 << 20
    names = zipfile.ZipFile(wheel).namelist()
    folders = {name.split("/")[0] for name in names}
    assert folders == {"aiter_attn_compile_kit", "-".join(wheel.name.split("-")[:2]) + ".dist-info"}
    packages = {name.split("/")[2] for name in names if name.endswith("/LICENSE")}
    assert {"clang-22", "libllvm22", "lld-22", "libc6", "libc6-dev", "libz3-4", "libxml2",
            "libtcmalloc-minimal4t64", "rocm-device-libs-21", "libamdhip64-dev",
            "composable-kernel"} <= packages  # fmt: skip


def test_the_kit_is_found_and_says_what_it_would_do() -> None:
    kit = Path(aiter_attn.__file__).parents[1] / "aiter_attn_compile_kit"
    for key in manifest():
        provider, text = _C.find_code_object(key)
        assert provider == f"the compile kit '{kit}'"
        assert text.endswith("compiles it at its first use\n")
        assert text.startswith("the library: does not have it\n")
    assert not cached()


def test_ctrl_c_ends_a_compile_and_leaves_nothing(hip: Hip, alarm: None) -> None:
    asked = problem(hip)
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        forward_and_backward(asked)
    assert time.monotonic() - start < 30
    assert not cached()
    assert not list((CACHE / "compiling").iterdir())


def test_kernels_are_compiled_and_are_those_of_the_build(hip: Hip) -> None:
    forward_and_backward(problem(hip))
    made = cached()
    # Forward; delta, dq and dk and dv, their sums over heads, and dq's conversion.
    assert len(made) >= 5
    assert made.items() <= manifest().items()
    for key in made:
        provider, _text = _C.find_code_object(key)
        assert provider is not None
        assert provider.startswith(f"the cache '{CACHE}/code-objects'")
    assert not list((CACHE / "compiling").iterdir())
