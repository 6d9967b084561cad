# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Norms and softmax of arrays on a GPU, told by stand-ins for the CUDA driver and NVRTC."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiter_attn
import numpy
import pytest

from tests.support.python.dlpack_exporter import KDL_CUDA, KDL_ROCM, Exporter
from tests.support.python.fake_framework import FakeFramework

HIDDEN = 131072  # rows that a barrier shares out,
ROWS = 65  # where these are more than few


@pytest.fixture(autouse=True)
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh log for every test."""
    os.environ["AITER_ATTN_CUDA_LIBRARY"] = str(Path(os.environ["RECORDING_CUDA"]).resolve())
    os.environ["AITER_ATTN_NVRTC_LIBRARY"] = str(Path(os.environ["FAKE_NVRTC"]).resolve())
    os.environ["AITER_ATTN_CACHE_DIR"] = str(tmp_path)
    path = tmp_path / "calls.json"
    monkeypatch.setenv("AITER_RECORDING_CUDA_LOG", str(path))
    return path


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> FakeFramework:
    return imported("torch", monkeypatch)


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> FakeFramework:
    framework = imported("cupy", monkeypatch)
    framework.current = 0xCAFE
    return framework


def imported(name: str, monkeypatch: pytest.MonkeyPatch) -> FakeFramework:
    framework = FakeFramework(name, KDL_CUDA)
    monkeypatch.setitem(sys.modules, name, framework)
    return framework


def launches(log: Path) -> list[dict[str, Any]]:
    recorded = [json.loads(line) for line in log.read_text().splitlines()]
    return [call for call in recorded if call["call"] == "launch"]


def has_word(call: dict[str, Any], array: Any) -> bool:
    """Whether the array's address is among the kernel's arguments."""
    return int(array.array.ctypes.data).to_bytes(8, "little").hex() in call["kernarg"]


def test_forward_is_queued_on_the_frameworks_stream(log: Path, torch: Any) -> None:
    x = torch.make(numpy.zeros((3, 64), numpy.float16))
    gamma = torch.make(numpy.zeros(64, numpy.float16))
    y, rstd, total = aiter_attn.rms_norm_fwd(x, gamma)
    assert total is None
    assert isinstance(y, torch.Tensor)
    assert (y.array.shape, rstd.array.shape) == ((3, 64), (3,))
    (call,) = launches(log)
    assert (call["symbol"], call["stream"]) == ("norm_forward", torch.current)
    for array in (x, gamma, y, rstd):
        assert has_word(call, array)
    # On the framework's own current stream there is nothing to wait for.
    assert set(x.streams) == {-1}


def test_an_unknown_frameworks_arrays_wait_for_the_default_stream(torch: Any) -> None:
    x = torch.make(numpy.zeros((3, 64), numpy.float16))
    gamma = Exporter(numpy.zeros(64, numpy.float16), device=(KDL_CUDA, 0))
    torch.current = 0
    aiter_attn.rms_norm_fwd(x, gamma)
    assert set(gamma.streams) == {1}  # DLPack's name for it


@pytest.mark.parametrize(
    ("count", "symbols"),
    [
        (3, ["norm_backward"]),
        (600, ["norm_backward", "norm_backward_reduce"]),  # with a workspace between the two
    ],
)
def test_backward_is_one_launch_of_few_rows_and_two_of_many(
    log: Path, torch: Any, count: int, symbols: list[str]
) -> None:
    x, dy = (torch.make(numpy.zeros((count, 64), numpy.float16)) for _ in range(2))
    gamma = torch.make(numpy.zeros(64, numpy.float32))
    mean, rstd = (torch.make(numpy.zeros(count, numpy.float32)) for _ in range(2))
    dx, dgamma, dbeta = aiter_attn.layer_norm_bwd(dy, x, gamma, mean, rstd)
    calls = launches(log)
    assert [call["symbol"] for call in calls] == symbols
    assert has_word(calls[0], dx)
    assert has_word(calls[-1], dgamma)
    assert has_word(calls[-1], dbeta)
    assert dgamma.array.dtype == numpy.float32


def test_results_of_another_framework_are_made_on_the_stream_of_the_work(
    log: Path, torch: Any, cupy: Any
) -> None:
    x, dy = (cupy.make(numpy.zeros((3, 64), numpy.float16)) for _ in range(2))
    mean, rstd = (cupy.make(numpy.zeros(3, numpy.float32)) for _ in range(2))
    gamma = torch.make(numpy.zeros(64, numpy.float16))
    dx, dgamma, dbeta = aiter_attn.layer_norm_bwd(dy, x, gamma, mean, rstd)
    assert {call["stream"] for call in launches(log)} == {cupy.current}
    assert (type(dx), dx.made_on) == (cupy.ndarray, None)  # cupy's own current stream
    for made in (dgamma, dbeta):
        assert (type(made), made.made_on) == (torch.Tensor, cupy.current)


@pytest.fixture
def barrier(log: Path, torch: Any) -> Callable[[], str]:
    """The barrier of a call, in hex: the kernel's last argument."""
    x = torch.make(numpy.zeros((ROWS, HIDDEN), numpy.float16))
    gamma = torch.make(numpy.zeros(HIDDEN, numpy.float16))

    def of_call() -> str:
        aiter_attn.rms_norm_fwd(x, gamma)
        kernarg: str = launches(log)[-1]["kernarg"]
        return kernarg[-16:]

    return of_call


NO_BARRIER = "0" * 16


def test_one_barrier_for_a_stream(torch: Any, barrier: Callable[[], str]) -> None:
    one, again = barrier(), barrier()
    torch.current += 1
    other = barrier()
    assert one == again
    assert len({one, other, NO_BARRIER}) == 3


def test_a_barrier_for_every_captured_call(
    torch: Any, barrier: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Graphs may run beside each other, and beside the stream's other work."""
    monkeypatch.setattr("aiter_attn._core.adapters.torch._OF_GRAPHS", 3)
    torch.capturing = {0}
    assert barrier() == NO_BARRIER  # there is no memory for it yet
    torch.capturing = set()
    of_stream = barrier()
    torch.capturing = {0}
    of_graphs = [barrier() for _ in range(3)]
    assert len({NO_BARRIER, of_stream, *of_graphs}) == 5
    assert barrier() == NO_BARRIER  # all are taken
    torch.capturing = set()
    assert barrier() == of_stream


@pytest.mark.parametrize(("captured", "lent"), [(0, True), (1, False)])
def test_capture_is_asked_of_the_arrays_device(
    log: Path, torch: Any, captured: int, lent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The current device is 0; only a capture on the arrays' own device goes without a barrier."""
    monkeypatch.setenv("AITER_RECORDING_CUDA_CAPABILITIES", "90,90")
    x = torch.make(numpy.zeros((ROWS, HIDDEN), numpy.float16), ordinal=1)
    gamma = torch.make(numpy.zeros(HIDDEN, numpy.float16), ordinal=1)
    torch.capturing = {captured}
    aiter_attn.rms_norm_fwd(x, gamma)
    (call,) = launches(log)
    assert call["device"] == 1
    assert (call["kernarg"][-16:] != "0" * 16) == lent


@pytest.mark.parametrize("raw", [True, False])
def test_the_stream_is_that_of_the_arrays_device(
    log: Path, torch: Any, raw: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of a torch that has no stream without its object."""
    monkeypatch.setenv("AITER_RECORDING_CUDA_CAPABILITIES", "90,90")
    if not raw:
        del torch._C._cuda_getCurrentRawStream
    for ordinal in (0, 1):
        x = torch.make(numpy.zeros((3, 64), numpy.float16), ordinal=ordinal)
        gamma = torch.make(numpy.zeros(64, numpy.float16), ordinal=ordinal)
        aiter_attn.rms_norm_fwd(x, gamma)
    calls = launches(log)
    assert [call["device"] for call in calls] == [0, 1]
    assert [call["stream"] for call in calls] == [torch.current, torch.current + 1]


def test_nvrtc_without_its_builtins(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.make(numpy.zeros((3, 72), numpy.float16))
    gamma = torch.make(numpy.zeros(72, numpy.float16))
    monkeypatch.setenv("AITER_FAKE_RTC_FAIL", "nvrtcCompileProgram=7")
    message = r"libnvrtc-builtins\.so\.13\.0, .*pip install .*in AITER_ATTN_NVRTC_LIBRARY"
    with pytest.raises(aiter_attn.DriverError, match=message):
        aiter_attn.rms_norm_fwd(x, gamma)
    monkeypatch.delenv("AITER_FAKE_RTC_FAIL")
    aiter_attn.rms_norm_fwd(x, gamma)


_ONE_CALL = """
import numpy, sys
from tests.support.python.dlpack_exporter import KDL_CUDA
from tests.support.python.fake_framework import FakeFramework
sys.modules["torch"] = torch = FakeFramework("torch", KDL_CUDA)
import aiter_attn
x = torch.make(numpy.zeros((3, 64), numpy.float16))
aiter_attn.rms_norm_fwd(x, torch.make(numpy.zeros(64, numpy.float16)))
"""


@pytest.mark.parametrize(
    ("parent", "reason"),
    [
        # Refused to every user, root included.
        ("/proc/nowhere", "No such file or directory; make its parent a folder that takes files"),
        ("", "Not a directory; remove the file that stands in a folder's place"),
    ],
    ids=["a file system that makes none", "a file"],
)
def test_a_cache_whose_parent_cannot_be_written(tmp_path: Path, parent: str, reason: str) -> None:
    (tmp_path / "file").write_text("")
    folder = parent or str(tmp_path / "file")
    made = folder if parent else f"{folder}/code-objects"
    environment = {
        **os.environ,
        "AITER_ATTN_CACHE_DIR": folder,
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    done = subprocess.run(
        [sys.executable, "-c", _ONE_CALL], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    expected = f"cannot make the folder '{made}': {reason}, or name another folder in "
    assert done.stderr.count(expected + "AITER_ATTN_CACHE_DIR") == 1, done.stderr


def test_refusals(torch: Any) -> None:
    x = torch.make(numpy.zeros((3, 64), numpy.float16))
    host = numpy.zeros(64, numpy.float16)
    with pytest.raises(ValueError, match="gamma: on CPU, but x is on CUDA:0; all arrays"):
        aiter_attn.rms_norm_fwd(x, host)
    metal = Exporter(host, device=(8, 0))
    with pytest.raises(aiter_attn.UnsupportedError, match="x: on Metal:0; allowed: CPU"):
        aiter_attn.rms_norm_fwd(metal, metal)
    rocm = Exporter(host, device=(KDL_ROCM, 0))
    with pytest.raises(TypeError, match="pass x as a torch or cupy array"):
        aiter_attn.rms_norm_fwd(rocm, rocm)
