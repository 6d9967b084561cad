# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The slim wheel and the compile kit, both installed: kernels are compiled when they are asked
for, and are the ones that the build compiled."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import aiter_attn
import pytest
from aiter_attn import _C

from tests.emulation.wheel.kit_cache import ARCH, CACHE, RECORD, cached, manifest
from tests.emulation.wheel.problems import CAUSAL, Problem, Shape, forward_and_backward
from tests.emulator.hip.hip import Hip


def _recorded() -> set[str]:
    """The lines of the file that the process adds the names of its kernels to."""
    head, *lines = RECORD.read_text().splitlines()
    assert head.startswith("# Kernels that runs asked for")
    assert lines == sorted(set(lines))
    return set(lines)


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
        assert f"{provider}: compiles it at its first use\n" in text
        assert text.startswith("the library: does not have it\n")
    assert not cached()


def prebuild(*arguments: str) -> subprocess.Popen[str]:
    path = os.pathsep.join([str(Path(aiter_attn.__file__).parents[1]), *sys.path])
    return subprocess.Popen(
        [sys.executable, "-m", "aiter_attn", "prebuild", *arguments],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def test_a_prebuild_that_was_killed_goes_on(tmp_path: Path) -> None:
    wanted = [kernel for kernel in aiter_attn.kernels() if kernel["kind"] == "sum_heads"]
    file = tmp_path / "list"
    file.write_text("".join(f"{ARCH} {kernel['name']}\n" for kernel in wanted))
    keys = {kernel["key"] for kernel in wanted}
    first = prebuild("build", str(file), "--jobs", "1")
    while first.poll() is None and not list((CACHE / "code-objects").glob("*.new")):
        time.sleep(0.01)
    first.kill()
    first.wait()
    assert not keys <= cached().keys()
    second = prebuild("build", str(file), "--jobs", "2")
    said = second.communicate()[0]
    assert second.returncode == 0, said
    assert f"all {len(keys)} kernels are there" in said
    assert {key: manifest()[key] for key in keys} == cached()
    assert not list((CACHE / "compiling").iterdir())
    assert prebuild("verify", str(file)).wait() == 0
    shutil.rmtree(CACHE / "code-objects")


def test_ctrl_c_ends_a_compile_and_leaves_nothing(hip: Hip, alarm: None) -> None:
    asked = problem(hip)
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        forward_and_backward(asked)
    assert time.monotonic() - start < 30
    assert not cached()
    assert not list((CACHE / "compiling").iterdir())


def test_kernels_are_compiled_and_are_those_of_the_build(
    hip: Hip, capfd: pytest.CaptureFixture[str]
) -> None:
    capfd.readouterr()
    forward_and_backward(problem(hip))
    told = [line for line in capfd.readouterr().err.splitlines() if "compiling" in line]
    name = "aiter-attn: compiling fmha_{}_d64_fp16_"
    assert told[0].startswith(name.format("fwd"))
    assert told[0].endswith(f" for {ARCH}, at most 600 s")
    # Of the backward pass, delta is the first.
    assert told[1].startswith(name.format("bwd_dot_do_o"))
    assert re.search(rf" for {ARCH}, then [34] more kernels, at most 600 s each$", told[1])
    made = cached()
    assert _recorded() == {
        f"{ARCH} {kernel['name']}" for kernel in aiter_attn.kernels() if kernel["key"] in made
    }
    # Forward; delta, dq and dk and dv, their sums over heads, and dq's conversion.
    assert len(made) >= 5
    assert made.items() <= manifest().items()
    for key in made:
        provider, _text = _C.find_code_object(key)
        assert provider is not None
        assert provider.startswith(f"the cache '{CACHE}/code-objects'")
    assert not list((CACHE / "compiling").iterdir())
