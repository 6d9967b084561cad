# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""fp8 through a wheel on device arrays, against float64: its C ABI and its Python functions."""

from __future__ import annotations

import ctypes
from typing import Any

import aiter_attn
import numpy as np
import pytest

from tests.emulation.wheel import wheel_contents
from tests.emulation.wheel.fp8_calls import (
    DESCALES,
    ELEMENTWISE,
    NO_BIAS,
    SCALE,
    SCALE_O,
    WIDER,
    WINDOW,
    Call,
    check,
)
from tests.emulation.wheel.problems import CAUSAL, NO_WINDOW
from tests.emulator.hip.hip import Hip
from tests.hostile import abi

each_arch = pytest.mark.parametrize("arch", wheel_contents.ARCHS)


@each_arch
@pytest.mark.parametrize("lengths", [(128, 64), (256, 192)], ids=str)
@pytest.mark.parametrize(
    ("window", "bias"),
    [(NO_WINDOW, NO_BIAS), (CAUSAL, NO_BIAS), (WINDOW, NO_BIAS), (CAUSAL, ELEMENTWISE)],
    ids=str,
)
def test_forward(
    hip: Hip, arch: str, window: tuple[int, int], bias: int, lengths: tuple[int, int]
) -> None:
    check(Call(hip, arch, lengths, window, bias))


@each_arch
@pytest.mark.parametrize("head_size", [64, 128, 256])
@pytest.mark.parametrize("o", ["fp8", "bf16"])
def test_head_sizes(hip: Hip, arch: str, o: str, head_size: int) -> None:
    """Lengths fill tiles, which kernels with an o of fp8 ask for."""
    check(Call(hip, arch, (256, 384), CAUSAL, NO_BIAS, o=o, head_size=head_size))


@each_arch
@pytest.mark.parametrize("head_size", [128, 256])
def test_head_sizes_of_sequences(hip: Hip, arch: str, head_size: int) -> None:
    sequences = ((130, 200), (7, 77), (5, 0), (0, 9))
    call = Call(
        hip, arch, (130, 200), CAUSAL, NO_BIAS, o="bf16", sequences=sequences, head_size=head_size
    )
    check(call)


@each_arch
@pytest.mark.parametrize("o", WIDER)
@pytest.mark.parametrize("lengths", [(256, 128), (130, 200), (7, 77)], ids=str)
def test_wider_results_of_any_length(hip: Hip, arch: str, o: str, lengths: tuple[int, int]) -> None:
    """The first lengths fill tiles; with fewer keys than queries rows see none."""
    for window in (CAUSAL, WINDOW, NO_WINDOW) if o == "bf16" else (CAUSAL, WINDOW):
        check(Call(hip, arch, lengths, window, NO_BIAS, o=o))


@each_arch
@pytest.mark.parametrize("o", WIDER)
def test_wider_results_of_sequences(hip: Hip, arch: str, o: str) -> None:
    """One fills tiles, one has no key, one no query, and one more queries than keys."""
    sequences = ((128, 128), (5, 0), (0, 9), (150, 33))
    for window in (CAUSAL, NO_WINDOW) if o == "bf16" else (CAUSAL,):
        call = Call(hip, arch, (150, 128), window, NO_BIAS, o=o, sequences=sequences)
        check(call)


@each_arch
def test_aiter_2911_many_more_queries_than_keys(hip: Hip, arch: str) -> None:
    """Cross-attention of 90000 queries over 512 keys ended in a segmentation fault. Lengths that
    fill no tiles, as that one, are refused here by name; others are computed."""
    check(Call(hip, arch, (1152, 512), NO_WINDOW, NO_BIAS))
    call = Call(hip, arch, (9000, 512), NO_WINDOW, NO_BIAS)
    assert abi.function("fwd")(ctypes.byref(call.args)) == abi.UNSUPPORTED, abi.last_error()
    assert "lengths in multiples of 128 (q) and 64 (k)" in abi.last_error()


@each_arch
def test_the_python_function_gives_the_same(hip: Hip, arch: str) -> None:
    call = Call(hip, arch, (256, 192), CAUSAL, NO_BIAS)
    expected = call.run()
    q, k, columns = (hip.array(x, call.stream, call.device) for x in (call.q, call.k, call.v))
    v = columns.transpose(0, 3, 2, 1)
    scales = dict(zip(("q_descale", "k_descale", "v_descale"), DESCALES, strict=True))
    scales["out_scale"] = SCALE_O
    out = aiter_attn.flash_attn_func(q, k, v, softmax_scale=SCALE, causal=True, **scales)
    hip.synchronize(call.stream)
    np.testing.assert_array_equal(out.read().astype(np.float64), expected)
    served = aiter_attn.explain(q, k, v, causal=True)
    assert [kernel["kind"] for kernel in served.kernels] == ["fwd"]
    with pytest.raises(aiter_attn.UnsupportedError, match="lse wanted"):
        aiter_attn.flash_attn_func(q, k, v, causal=True, return_attn_probs=True, **scales)


@each_arch
@pytest.mark.parametrize("o", WIDER)
def test_the_python_functions_give_the_same_wider_results(hip: Hip, arch: str, o: str) -> None:
    sequences = ((100, 120), (9, 30))
    scales: dict[str, Any] = dict(
        zip(("q_descale", "k_descale", "v_descale"), DESCALES, strict=True)
    )
    scales["out_dtype"] = {"bf16": "bfloat16", "fp32": "float32"}[o]
    for given in ((), sequences):
        call = Call(hip, arch, (100, 120), CAUSAL, NO_BIAS, o=o, sequences=given)
        expected = call.run()
        q, k, v = (hip.array(x, call.stream, call.device) for x in (call.q, call.k, call.v))
        options = {"softmax_scale": SCALE, "causal": True, **scales}
        if given:
            q, k, v = (hip.array(x[0], call.stream, call.device) for x in (call.q, call.k, call.v))
            starts = [np.int32([0, *np.cumsum(lengths)]) for lengths in zip(*given, strict=True)]
            starts = [hip.array(x, call.stream, call.device) for x in starts]
            out = aiter_attn.flash_attn_varlen_func(q, k, v, *starts, 100, 120, **options)
            expected = expected[0]
        else:
            out = aiter_attn.flash_attn_func(q, k, v, **options)
        hip.synchronize(call.stream)
        np.testing.assert_array_equal(out.read().astype(np.float64), expected)


@each_arch
def test_what_is_beyond_the_largest_number_becomes_it(hip: Hip, arch: str) -> None:
    call = Call(hip, arch, (128, 64), NO_WINDOW, NO_BIAS)
    call.args.scale_o = scale = 1e7
    actual = call.run()
    value, unit = call.expected()
    beyond = (np.abs(value) - 4 * unit) * scale / SCALE_O > call.largest
    assert beyond.mean() > 0.5
    np.testing.assert_array_equal(actual[beyond], np.sign(value[beyond]) * call.largest)


@each_arch
def test_lengths_that_do_not_fill_tiles_are_refused(hip: Hip, arch: str) -> None:
    call = Call(hip, arch, (128, 72), NO_WINDOW, NO_BIAS)
    assert abi.function("fwd")(ctypes.byref(call.args)) == abi.UNSUPPORTED
    assert "lengths in multiples of 128 (q) and 64 (k)" in abi.last_error()
