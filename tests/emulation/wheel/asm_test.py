# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A wheel with AITER's assembly: forward and backward calls through it, against float64, and the
preference among providers of kernels."""

from __future__ import annotations

import email
import json
import os
import zipfile

import aiter_attn
import numpy as np
import pytest

from tests.emulation.wheel.asm_calls import (
    FILLED,
    backward_by,
    documented_calls,
    expect_backward,
    expect_explained,
    forward,
    settled,
    symbol,
)
from tests.emulation.wheel.problems import (
    CAUSAL,
    Problem,
    Shape,
    backward,
    check_with_sink,
)
from tests.emulation.wheel.wheel_contents import PROVIDERS
from tests.emulator.hip import emulated_hip
from tests.emulator.hip.hip import Hip

__all__ = ["settled"]

_SINK = np.array([-2.0, 5.0, -np.inf, 0.5], np.float32)


@pytest.mark.parametrize(("shape", "stem"), [
    (Shape(((257, 300),) * 2, heads=(4, 2)), "fmha_fwd_hd128_bf16_rtne"),
    (Shape(((300, 40),), heads=(3, 1), window=CAUSAL), "fmha_fwd_hd128_bf16_causal_rtne"),
    (Shape(((520, 520),), heads=(8, 2), window=CAUSAL), "fmha_fwd_hd128_bf16_causal_rtne"),
    (Shape(((257, 300), (0, 7), (255, 64), (5, 0)), heads=(4, 2), window=CAUSAL, group=True),
     "fmha_fwd_hd128_bf16_causal_rtne_group"),
], ids=str)  # fmt: skip
def test_asm_serves_what_aiter_gives_it(
    hip: Hip, runtime: emulated_hip.Runtime, shape: Shape, stem: str
) -> None:
    assert forward(hip, runtime, shape, "bfloat16") == [symbol(stem)]


@pytest.mark.parametrize("lengths", [
    ((257, 300), (17, 0), (3, 31), (300, 0)),
    ((257, 300), (3, 31)),
], ids=str)  # fmt: skip
def test_sequences_without_keys(
    hip: Hip, runtime: emulated_hip.Runtime, lengths: tuple[tuple[int, int], ...]
) -> None:
    """Without a mask AITER's kernel leaves their rows undefined, which is U of
    docs/asm-findings.md, and ours fills them."""
    launched = forward(hip, runtime, Shape(lengths, heads=(4, 2), group=True), "bfloat16")
    assert launched == [symbol("fmha_fwd_hd128_bf16_rtne_group"), FILLED]


def test_a_sink_beside_asm(hip: Hip, runtime: emulated_hip.Runtime) -> None:
    """Both passes: the kernels of the sink follow AITER's."""
    problem = Problem(hip, Shape(((200, 200),), heads=(2, 1), window=CAUSAL), "bfloat16", 128, 0)
    inputs = problem.inputs
    inputs.sink = _SINK[:2]
    q, k, v, dout = map(problem.array, (inputs.q, inputs.k, inputs.v, inputs.dout))
    sink = hip.array(inputs.sink, problem.stream, problem.device)
    options = {"stream": problem.stream, "sink": sink, "causal": True}
    runtime.launches.clear()
    out, lse = aiter_attn.mha_fwd(q, k, v, **options)
    gradients, _workspace = backward(
        problem, aiter_attn.mha_bwd, dout, q, k, v, out, lse, **options
    )
    hip.synchronize(problem.stream)
    check_with_sink(problem, out, lse, gradients)
    launched = [launch.symbol for launch in runtime.launches]
    assert launched[:2] == [symbol("fmha_fwd_hd128_bf16_causal_rtne"), "attn_sink_bf16"]
    assert launched[3] == symbol("fmha_bwd_hd128_bf16_causal_a32_rtne_psskddv")
    assert launched.count("attn_sink_grad") == 1


def test_a_sink_of_sequences_without_keys(hip: Hip, runtime: emulated_hip.Runtime) -> None:
    """Their rows are filled first, so that the sink is their lse."""
    shape = Shape(((257, 300), (17, 0), (3, 31)), heads=(4, 2), group=True)
    problem = Problem(hip, shape, "bfloat16", 128, 0)
    inputs = problem.inputs
    inputs.sink = _SINK
    q, k, v = map(problem.array, (inputs.q, inputs.k, inputs.v))
    sink = hip.array(_SINK, problem.stream, problem.device)
    runtime.launches.clear()
    out, lse = aiter_attn.mha_varlen_fwd(
        q, k, v, *problem.mode()[2], stream=problem.stream, sink=sink
    )
    hip.synchronize(problem.stream)
    problem.check(o=out, lse=lse)
    without_keys = np.broadcast_to(_SINK[:, None], (4, 17))
    np.testing.assert_array_equal(lse.read()[:, 257:274], without_keys)
    launched = [launch.symbol for launch in runtime.launches]
    assert launched == [symbol("fmha_fwd_hd128_bf16_rtne_group"), FILLED, "attn_sink_bf16"]


@pytest.mark.parametrize(("shape", "dtype"), [
    (Shape(((128, 300),), heads=(4, 2)), "bfloat16"),
    (Shape(((257, 300),), heads=(4, 2)), "float16"),
    (Shape(((257, 300),), heads=(2, 2), window=(64, 0)), "bfloat16"),
], ids=str)  # fmt: skip
def test_composable_kernel_serves_the_rest(
    hip: Hip, runtime: emulated_hip.Runtime, shape: Shape, dtype: str
) -> None:
    assert {PROVIDERS[s] for s in forward(hip, runtime, shape, dtype)} == {"ck"}


def test_preferences(hip: Hip, runtime: emulated_hip.Runtime) -> None:
    shape = Shape(((257, 300),), heads=(2, 2))
    aiter_attn.configure(kernels="ck")
    assert {PROVIDERS[s] for s in forward(hip, runtime, shape, "bfloat16")} == {"ck"}
    aiter_attn.configure(kernels="asm")
    # AITER leaves so few queries to others.
    few = Shape(((128, 300),), heads=(4, 2))
    assert forward(hip, runtime, few, "bfloat16") == [symbol("fmha_fwd_hd128_bf16_rtne")]
    with pytest.raises(aiter_attn.UnsupportedError, match=r"kernels \(asm\) asks for.*for bf16"):
        forward(hip, runtime, shape, "float16")
    sizes = [(600, 2, 128), (600, 2, 128), (600, 2, 128)]
    with pytest.raises(aiter_attn.UnsupportedError, match=r"kernels \(asm\).*have no soft cap"):
        aiter_attn.explain(
            *sizes, sequences=(2, 300, 300), softcap=30.0, dtype="bfloat16", arch="gfx942"
        )
    with pytest.raises(ValueError, match="kernels is 'isa', but must be fastest, ck or asm"):
        aiter_attn.configure(kernels="isa")
    with pytest.raises(TypeError, match="kernels: 3; allowed: fastest, ck, asm, or None"):
        aiter_attn.configure(kernels=3)  # type: ignore[arg-type]


@pytest.mark.parametrize(("shape", "head_size", "stem"), [
    (Shape(((100, 252),) * 2, heads=(4, 2)), 128, "fmha_bwd_hd128_bf16_a32_rtne_psskddv"),
    (Shape(((200, 200),), heads=(2, 1), window=CAUSAL), 128,
     "fmha_bwd_hd128_bf16_causal_a32_rtne_psskddv"),
    (Shape(((230, 40),), heads=(3, 3), window=CAUSAL), 128,
     "fmha_bwd_hd128_bf16_causal_br_a32_rtne_psskddv"),
    (Shape(((70, 400),), heads=(4, 1), window=CAUSAL), 64,
     "fmha_bwd_hd64_bf16_causal_br_a32_rtne_pssk"),
    # Whole tiles; the emulator reports defect V there, which changes no result.
    (Shape(((128, 128),) * 2, heads=(4, 2), window=CAUSAL), 128,
     "fmha_bwd_hd128_bf16_causal_a32_rtne"),
    (Shape(((256, 256),), heads=(2, 2)), 128, "fmha_bwd_hd128_bf16_a32_rtne"),
    (Shape(((65, 200), (0, 7), (33, 64), (5, 0)), heads=(4, 2), window=CAUSAL, group=True), 128,
     "fmha_bwd_hd128_bf16_causal_br_a32_rtne_pssk_group"),
    # One tile of queries: with two the emulator reports defect V, which changes no result.
    (Shape(((32, 200), (0, 7), (31, 64), (5, 0)), heads=(2, 2), group=True), 64,
     "fmha_bwd_hd64_bf16_a32_rtne_pssk_group"),
], ids=str)  # fmt: skip
def test_asm_serves_backward(
    hip: Hip, runtime: emulated_hip.Runtime, shape: Shape, head_size: int, stem: str
) -> None:
    expect_backward(hip, runtime, shape, head_size, stem)


def test_backward_of_either_takes_the_lse_of_the_other(
    hip: Hip, runtime: emulated_hip.Runtime
) -> None:
    shape = Shape(((200, 200),), heads=(2, 1), window=CAUSAL)  # forward by asm
    assert {PROVIDERS[s] for s in backward_by(hip, runtime, shape, 128, "ck")} == {"ck", "own"}
    few = Shape(((100, 100),), heads=(2, 1), window=CAUSAL)  # forward by Composable Kernel
    assert backward_by(hip, runtime, few, 128, "asm")[1] == symbol(
        "fmha_bwd_hd128_bf16_causal_a32_rtne_psskddv"
    )


def test_the_licence_of_the_objects_is_in_the_wheel() -> None:
    wheel = zipfile.ZipFile(os.environ["WHEEL"])
    (folder,) = {n.partition("/")[0] for n in wheel.namelist() if ".dist-info/" in n}
    licence = wheel.read(f"{folder}/licenses/amd-aiter/LICENSE").decode()
    assert "Advanced Micro Devices" in licence and "MIT License" in licence
    fields = email.message_from_bytes(wheel.read(f"{folder}/METADATA"))
    assert "amd-aiter/LICENSE" in fields.get_all("License-File", [])
    bom = json.loads(wheel.read(f"{folder}/sboms/aiter-attn.cdx.json"))
    (component,) = (c for c in bom["components"] if c["name"] == "amd-aiter")
    assert component["scope"] == "required"


def test_explanations_name_the_provider() -> None:
    told = aiter_attn.explain(
        (1, 300, 2, 128), (1, 300, 2, 128), (1, 300, 2, 128), dtype="bfloat16", arch="gfx942"
    )
    assert [kernel["provider"] for kernel in told.kernels] == ["asm"]
    (kernel,) = told.kernels
    named = f"fwd_asm: {kernel['name']}\n  code object {kernel['key']}\n  provider asm\n"
    assert kernel["name"] == "fmha_fwd_hd128_bf16_rtne_mi300" and named in told.text
    assert "kernels fastest (the call: default; attn_set_kernels: default;" in told.text


@pytest.mark.parametrize(("arguments", "served", "why"), documented_calls("gfx942"))
def test_documented_calls(
    capsys: pytest.CaptureFixture[str], arguments: str, served: str, why: str
) -> None:
    expect_explained(capsys, arguments, served, why)
