# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Calls that reach the GPU runtime, told by a stand-in for it that records them and runs no kernel.

"Device" arrays are host memory exported as ROCm's. fp16, head size 64, batch mode, masked: every
variant set has that.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import sys
from pathlib import Path
from typing import Any

import aiter_attn
import numpy
import pytest
from aiter_attn import _C
from aiter_attn._core.call import Call
from aiter_attn._core.options import options

from tests.support.python.dlpack_exporter import KDL_ROCM, Exporter
from tests.support.python.fake_framework import FakeFramework

STREAM = 0x5EED0
KERNELS = {kernel["name"]: kernel for kernel in aiter_attn.kernels()}


@pytest.fixture(autouse=True)
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh log for every test; the library itself is named by the test rule."""
    os.environ["AITER_ATTN_HIP_LIBRARY"] = str(Path(os.environ["RECORDING_HIP"]).resolve())
    path = tmp_path / "calls.json"
    monkeypatch.setenv("AITER_RECORDING_HIP_LOG", str(path))
    monkeypatch.setenv("AITER_RECORDING_HIP_ARCHS", "gfx942:sramecc+:xnack-,gfx942")
    return path


def calls(log: Path, kind: str) -> list[dict[str, Any]]:
    recorded = [json.loads(line) for line in log.read_text().splitlines()]
    return [call for call in recorded if call["call"] == kind]


def kinds(log: Path) -> list[str]:
    return [KERNELS[call["symbol"]]["kind"] for call in calls(log, "launch")]


def on_gpu(array: Any, device: int = 0) -> Exporter:
    return Exporter(array, device=(KDL_ROCM, device))


def pointer(exporter: Exporter) -> int:
    return int(exporter.array.ctypes.data)


def words(call: dict[str, Any]) -> list[int]:
    """The kernel arguments' 8-byte words: upstream's begin with pointers."""
    kernarg = bytes.fromhex(call["kernarg"])
    return list(struct.unpack_from(f"<{len(kernarg) // 8}Q", kernarg))


# Bytes of the arguments' structs, and those between fields or behind the last one: they are what
# lay on the stack.
_PADDING = {
    "bwd_dot_do_o": (72, [(68, 72)]),  # FmhaBwdOGradDotOBatchModeKargs
    "bwd_dq_dk_dv": (216, [(164, 168), (212, 216)]),  # FmhaBwdBatchModeKargs, with a mask
    "fwd": (160, [(92, 96), (108, 112)]),  # FmhaFwdBatchModeKargs, with lse and a mask
}


def launches_of_fields(log: Path) -> list[dict[str, Any]]:
    """The launches, zeros where their arguments have padding."""
    launches = calls(log, "launch")
    for launch in launches:
        arguments = bytearray.fromhex(launch["kernarg"])
        size, padding = _PADDING.get(KERNELS[launch["symbol"]]["kind"], (len(arguments), []))
        assert len(arguments) == size
        for begin, end in padding:
            arguments[begin:end] = bytes(end - begin)
        launch["kernarg"] = arguments.hex()
    return launches


class Problem:
    """Arrays of one call, and where its results go."""

    def __init__(self, heads_k: int = 2, device: int = 0, head_size: int = 64) -> None:
        def make(*shape: int, dtype: str = "float16") -> Exporter:
            return on_gpu(numpy.zeros(shape, dtype), device)

        self.q, self.dq = make(2, 40, 2, head_size), make(2, 40, 2, head_size)
        self.k, self.dk = make(2, 50, heads_k, head_size), make(2, 50, heads_k, head_size)
        self.v, self.dv = make(2, 50, heads_k, head_size), make(2, 50, heads_k, head_size)
        self.out, self.dout = make(2, 40, 2, head_size), make(2, 40, 2, head_size)
        self.lse = make(2, 2, 40, dtype="float32")

    def forward(self, **more: Any) -> Any:
        arguments: dict[str, Any] = {"out": self.out, "lse": self.lse, "causal": True, **more}
        return aiter_attn.mha_fwd(self.q, self.k, self.v, **arguments)

    def backward(self, **more: Any) -> Any:
        gradients = {"dq": self.dq, "dk": self.dk, "dv": self.dv}
        arguments: dict[str, Any] = {**gradients, "causal": True, **more}
        return aiter_attn.mha_bwd(
            self.dout, self.q, self.k, self.v, self.out, self.lse, **arguments
        )


def workspace(device: int = 0) -> Exporter:
    return on_gpu(numpy.zeros(2**20, numpy.uint8), device)


def test_forward_launches_one_kernel_on_the_callers_memory_and_stream(log: Path) -> None:
    problem = Problem()
    out, lse = problem.forward(stream=STREAM)
    assert out is problem.out
    assert lse is problem.lse
    (launch,) = calls(log, "launch")
    kernel = KERNELS[launch["symbol"]]
    assert kernel["kind"] == "fwd"
    assert kernel["arch"] == "gfx942"
    assert launch["stream"] == STREAM
    arrays = (problem.q, problem.k, problem.v, problem.out)
    assert words(launch)[:4] == [pointer(x) for x in arrays]
    assert pointer(problem.lse) in words(launch)
    assert launch["module_sha256"] == hashlib.sha256(_C.code_object(kernel["key"])).hexdigest()
    # Producers make their memory ready for that stream, and get it back after the call.
    everything = (*arrays, problem.lse)
    assert [x.streams for x in everything] == [[STREAM]] * 5
    assert [x.released for x in everything] == [1] * 5


def test_a_producer_without_a_known_stream_is_synchronised_with_the_default_one(log: Path) -> None:
    problem = Problem()
    problem.forward()
    (launch,) = calls(log, "launch")
    assert launch["stream"] == 0
    assert problem.q.streams == [0]


def test_the_device_is_the_arrays_one(log: Path) -> None:
    Problem(device=1).forward()
    (launch,) = calls(log, "launch")
    assert launch["device"] == 1


@pytest.mark.parametrize("heads_k", [2, 1])
@pytest.mark.parametrize("device", [0, 1])
def test_what_is_launched_is_what_was_told(log: Path, heads_k: int, device: int) -> None:
    problem = Problem(heads_k, device)
    told = aiter_attn.explain(problem.q, problem.k, problem.v, causal=True).kernels
    told += aiter_attn.explain(problem.q, problem.k, problem.v, causal=True, backward=True).kernels
    assert problem.q.streams == [-1] * 2  # nothing was waited for
    problem.forward()
    problem.backward(workspace=workspace(device))
    assert [call["symbol"] for call in calls(log, "launch")] == [kernel["name"] for kernel in told]
    assert {kernel["arch"] for kernel in told} == {"gfx942"}


def test_the_first_gpus_arch_is_taken_for_shapes() -> None:
    shape = (2, 40, 2, 64)
    told = aiter_attn.explain(shape, shape, shape, causal=True, dtype="float16")
    assert [kernel["arch"] for kernel in told.kernels] == ["gfx942"]


@pytest.mark.parametrize("heads_k", [2, 1])
def test_backward_launches_its_kernels_in_order(log: Path, heads_k: int) -> None:
    problem, scratch = Problem(heads_k), workspace()
    gradients = problem.backward(stream=STREAM, workspace=scratch)
    assert [x is y for x, y in zip(gradients, (problem.dq, problem.dk, problem.dv), strict=True)]
    order = ["bwd_dot_do_o", "bwd_dq_dk_dv", "bwd_convert_dq"]
    launched = kinds(log)
    assert [kind for kind in launched if kind != "sum_heads"] == order
    assert launched.count("sum_heads") == (0 if heads_k == 2 else 2)
    launches = calls(log, "launch")
    assert {call["stream"] for call in launches} == {STREAM}
    main = launches[launched.index("bwd_dq_dk_dv")]
    passed = words(main)
    for array in (problem.q, problem.k, problem.v, problem.dout, problem.lse):
        assert pointer(array) in passed
    start = pointer(scratch)
    scratch_words = [word for word in passed if start <= word < start + scratch.array.nbytes]
    assert scratch_words
    assert all(word % 256 == 0 for word in scratch_words)
    if heads_k == 2:
        assert pointer(problem.dk) in passed
        assert pointer(problem.dv) in passed


def prepared_passes(problem: Problem, scratch: Exporter, log: Path) -> tuple[Any, Any, int]:
    """Prepared passes of arrays that lie as the problem's, and the backward one's workspace in
    bytes. The log has nothing of it."""
    arrays = problem.q, problem.k, problem.v
    forward, backward = (Call(*arrays, None, options(causal=True), STREAM) for _ in range(2))
    out, lse = forward.forward(problem.out, problem.lse)
    gradients = problem.dq, problem.dk, problem.dv
    backward.backward(problem.dout, out, lse, gradients, None, scratch)
    log.unlink()
    return forward.prepared(), *backward.prepared_backward()


def backward_addresses(problem: Problem) -> tuple[list[int], list[int]]:
    inputs = (problem.q, problem.k, problem.v, problem.out, problem.lse, problem.dout)
    return [pointer(x) for x in inputs], [pointer(x) for x in (problem.dq, problem.dk, problem.dv)]


@pytest.mark.parametrize("heads_k", [2, 1])
def test_prepared_passes_launch_on_other_arrays_what_calls_do(log: Path, heads_k: int) -> None:
    first, other, scratch = Problem(heads_k), Problem(heads_k), workspace()
    forward, backward, size = prepared_passes(first, scratch, log)
    inputs, gradients = backward_addresses(other)
    forward.run(*inputs[:5], STREAM)
    backward.run(inputs, gradients, pointer(scratch), size, STREAM)
    by_address = launches_of_fields(log)
    log.unlink()
    other.forward(stream=STREAM)
    other.backward(stream=STREAM, workspace=scratch)
    assert by_address == launches_of_fields(log)


def test_a_prepared_backward_takes_a_workspace_from_any_address(log: Path) -> None:
    problem, scratch = Problem(), workspace()
    _, prepared, size = prepared_passes(problem, scratch, log)
    inputs, gradients = backward_addresses(problem)
    start = pointer(scratch) + 3
    prepared.run(inputs, gradients, start, size, STREAM)
    launches = calls(log, "launch")
    parts = {word for call in launches for word in words(call) if start <= word < start + size}
    assert parts
    assert all(word % 256 == 0 for word in parts)
    with pytest.raises(ValueError, match="workspace_size is"):
        prepared.run(inputs, gradients, start, 256, STREAM)
    with pytest.raises(ValueError, match="workspace_size is 0"):
        prepared.run(inputs, gradients, 0, 0, STREAM)


def test_prepared_passes_refuse_misaligned_addresses(log: Path) -> None:
    problem, scratch = Problem(), workspace()
    forward, backward, size = prepared_passes(problem, scratch, log)
    inputs, gradients = backward_addresses(problem)
    off = [inputs[0] + 1, *inputs[1:]]
    with pytest.raises(ValueError, match=r"q\.data is .* must be aligned"):
        forward.run(*off[:5], STREAM)
    with pytest.raises(ValueError, match=r"q\.data is .* must be aligned"):
        backward.run(off, gradients, pointer(scratch), size, STREAM)
    assert not log.exists(), "something was launched"


def test_the_workspace_is_asked_for_by_its_size() -> None:
    problem = Problem()
    with pytest.raises(TypeError, match=r"^workspace: .* pass workspace= of \d+ bytes"):
        problem.backward()
    with pytest.raises(ValueError, match=r"^workspace: \d+ bytes .*; allowed here: \d+"):
        problem.backward(workspace=on_gpu(numpy.zeros(1024, numpy.uint8)))


def test_what_has_no_instance_is_told_with_what_there_is() -> None:
    with pytest.raises(aiter_attn.UnsupportedError) as caught:
        Problem(head_size=256).forward()
    message = str(caught.value)
    assert "256" in message
    assert "64" in message  # a head size of the build
    assert "--//kernels:variants" in message  # the setting that adds more


def test_nothing_is_appended_where_no_kernel_attends(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    framework = FakeFramework("cupy", KDL_ROCM)
    monkeypatch.setitem(sys.modules, "cupy", framework)
    q, k_cache, v_cache, new = (
        framework.make(numpy.zeros((2, seqlen, 2, 64), numpy.float16)) for seqlen in (1, 40, 40, 1)
    )
    lengths = framework.make(numpy.zeros(2, numpy.int32))
    with pytest.raises(aiter_attn.UnsupportedError, match=r"^no fwd_(appendkv|splitkv)"):
        aiter_attn.flash_attn_with_kvcache(q, k_cache, v_cache, new, new, cache_seqlens=7)
    with pytest.raises(aiter_attn.UnsupportedError, match=r"^no fwd_splitkv, fwd_splitkv_combine"):
        aiter_attn.flash_attn_with_kvcache(q, k_cache, v_cache, cache_seqlens=lengths)
    with pytest.raises(aiter_attn.UnsupportedError, match=r"\b2 splits, seqlen 1 x 40\b"):
        aiter_attn.flash_attn_with_kvcache(q, k_cache, v_cache, num_splits=2)
    assert not log.exists(), "the runtime was asked for something"
    for cache in (k_cache, v_cache):
        assert cache.streams == [-1] * 3  # three times: nothing was waited for


def test_float32_is_for_the_cpu() -> None:
    array = on_gpu(numpy.zeros((1, 8, 1, 64), numpy.float32))
    lse = on_gpu(numpy.zeros((1, 1, 8), numpy.float32))
    out = on_gpu(numpy.zeros((1, 8, 1, 64), numpy.float32))
    with pytest.raises(aiter_attn.UnsupportedError, match="fp32"):
        aiter_attn.mha_fwd(array, array, array, out=out, lse=lse)


def test_a_deterministic_backward_needs_an_instance_for_it() -> None:
    with pytest.raises(aiter_attn.UnsupportedError, match="dq summed in a fixed order"):
        workspace = on_gpu(numpy.zeros(1 << 20, numpy.uint8))
        Problem().backward(deterministic=True, workspace=workspace)


def test_a_failing_runtime_is_a_driver_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AITER_RECORDING_HIP_FAIL", "hipModuleLaunchKernel=719")
    with pytest.raises(aiter_attn.DriverError, match="hipModuleLaunchKernel"):
        Problem().forward()


@pytest.mark.parametrize("name", ["torch", "cupy"])
@pytest.mark.parametrize("stream", [None, STREAM])
def test_frameworks_streams_and_results(
    log: Path, name: str, stream: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    framework = FakeFramework(name, KDL_ROCM)
    monkeypatch.setitem(sys.modules, name, framework)
    q = framework.make(numpy.zeros((1, 40, 2, 64), numpy.float16))
    k = framework.make(numpy.zeros((1, 50, 2, 64), numpy.float16))
    v = framework.make(numpy.zeros((1, 50, 2, 64), numpy.float16))
    out, lse = aiter_attn.mha_fwd(q, k, v, causal=True, stream=stream)
    gradients = aiter_attn.mha_bwd(out, q, k, v, out, lse, causal=True, stream=stream)
    launches = calls(log, "launch")
    assert {call["stream"] for call in launches} == {stream or framework.current}
    # On the framework's own current stream there is nothing to wait for.
    assert q.streams == [stream or -1] * 2
    for made in (out, lse, *gradients):
        assert isinstance(made, framework.Tensor)
        assert made.made_on == stream
    assert [x.array.shape for x in gradients] == [x.array.shape for x in (q, k, v)]
    assert words(launches[0])[3] == pointer(out)
