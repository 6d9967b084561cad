# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""fp8 of torch tensors: as of numpy's arrays, and in compiled code."""

from __future__ import annotations

from typing import Any

import aiter_attn
import ml_dtypes
import numpy
import pytest
import torch

from python.tests.torch.reference import draw

SCALES = {"q_descale": 0.5, "k_descale": 2.0, "v_descale": 0.25, "out_scale": 16.0}
DTYPES = ("float8_e4m3fn", "float8_e4m3fnuz")


def made(kind: str, *shapes: tuple[int, ...]) -> list[torch.Tensor]:
    return [
        draw(*shape, seed=i).detach().to(getattr(torch, kind)) for i, shape in enumerate(shapes)
    ]


def arrays(tensors: list[torch.Tensor]) -> list[Any]:
    kind = str(tensors[0].dtype).removeprefix("torch.")
    return [x.view(torch.uint8).numpy().view(getattr(ml_dtypes, kind)) for x in tensors]


def check_equal(got: Any, want: Any) -> None:
    """of (out, lse, probs)"""
    assert str(got[0].dtype).removeprefix("torch.") == want[0].dtype.name
    out = got[0].view(torch.uint8).numpy()
    numpy.testing.assert_array_equal(out, want[0].view(numpy.uint8))
    for tensor, array in zip(got[1:], want[1:], strict=True):
        assert tuple(tensor.shape) == array.shape
        if tensor.numel():
            numpy.testing.assert_array_equal(tensor.numpy(), array)


@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize("dropout", [{}, {"dropout_p": 0.5, "rng_state": (3, 4)}])
@pytest.mark.parametrize("by_columns", [False, True])
def test_as_numpys(kind: str, dropout: dict[str, Any], by_columns: bool) -> None:
    q, k, v = made(kind, (2, 5, 4, 16), (2, 7, 2, 16), (2, 7, 2, 16))
    options = {**SCALES, **dropout, "causal": True, "softcap": 3.0, "return_attn_probs": True}
    want = aiter_attn.flash_attn_func(*arrays([q, k, v]), **options)
    if by_columns:
        v = v.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    check_equal(aiter_attn.flash_attn_func(q, k, v, **options), want)
    options |= {name: torch.full((2, 2), scale) for name, scale in SCALES.items()}
    check_equal(aiter_attn.flash_attn_func(q, k, v, **options), want)


@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize("name", ["bfloat16", "float32"])
def test_wider_results(kind: str, name: str) -> None:
    given = made(kind, (2, 5, 4, 16), (2, 7, 2, 16), (2, 7, 2, 16))
    options = {**SCALES, "out_scale": None, "causal": True, "return_attn_probs": True}
    want, lse, _ = aiter_attn.flash_attn_func(*arrays(given), out_dtype=name, **options)
    for out_dtype in (name, getattr(torch, name)):
        got = aiter_attn.flash_attn_func(*given, out_dtype=out_dtype, **options)
        assert got[0].dtype == getattr(torch, name)
        numpy.testing.assert_array_equal(got[0].float().numpy(), want.astype(numpy.float32))
        numpy.testing.assert_array_equal(got[1].numpy(), lse)
    starts = torch.tensor([0, 5], dtype=torch.int32), torch.tensor([0, 7], dtype=torch.int32)
    packed = aiter_attn.flash_attn_varlen_func(
        *(x[0] for x in given), *starts, 5, 7, out_dtype=out_dtype, **options
    )
    assert torch.equal(packed[0], got[0][0])


def test_sequences_of_different_lengths() -> None:
    given = made(DTYPES[0], (6, 4, 16), (9, 2, 16), (9, 2, 16))
    starts = [torch.tensor(x, dtype=torch.int32) for x in ([0, 1, 6], [0, 4, 9])]
    options = {**SCALES, "window_size": (2, 1), "return_attn_probs": True}
    want = aiter_attn.flash_attn_varlen_func(
        *arrays(given), *(x.numpy() for x in starts), 5, 5, **options
    )
    check_equal(aiter_attn.flash_attn_varlen_func(*given, *starts, 5, 5, **options), want)


def test_wider_results_compiled() -> None:
    torch.compiler.reset()
    scales = {**SCALES, "out_scale": None, "out_dtype": torch.bfloat16}
    function = torch.compile(
        lambda q, k, v: aiter_attn.flash_attn_func(q, k, v, **scales) * 2,
        fullgraph=True,
        backend="aot_eager",
    )
    given = made(DTYPES[0], (2, 5, 4, 16), (2, 7, 2, 16), (2, 7, 2, 16))
    want = aiter_attn.flash_attn_func(*given, **scales) * 2
    assert want.dtype == torch.bfloat16
    assert torch.equal(function(*given), want)


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled(dynamic: bool) -> None:
    torch.compiler.reset()
    function = torch.compile(
        lambda q, k, v, scale: aiter_attn.flash_attn_func(
            q, k, v, causal=True, **{**SCALES, "k_descale": scale}
        ),
        fullgraph=True,
        backend="aot_eager",
        dynamic=dynamic,
    )
    for seqlen in (5, 6):
        given = made(DTYPES[0], (2, seqlen, 4, 16), (2, 7, 2, 16), (2, 7, 2, 16))
        want = aiter_attn.flash_attn_func(*arrays(given), causal=True, **SCALES)
        for scale in (2.0, torch.full((2, 2), 2.0)):
            check_equal([function(*given, scale)], [want])


def test_operator() -> None:
    operator = torch.ops.aiter_attn.mha_fp8_fwd.default
    given = made(DTYPES[0], (2, 5, 4, 16), (2, 7, 2, 16), (2, 7, 2, 16))
    # Operations that torch has no fp8 for are left out: comparing results.
    checks = ("test_autograd_registration", "test_faketensor")
    none, state = [None] * 4, torch.tensor([3, 4])
    numbers, array = list(SCALES.values()), torch.tensor([2.0])
    options = [0.5, None, True, -1, -1, 0.0]
    for return_probs in (False, True):
        arguments = [
            *given,
            *none,
            None,
            state,
            torch.zeros(4),
            *options,
            *numbers,
            *none,
            "bfloat16" if return_probs else None,
            return_probs,
        ]
        if return_probs:
            arguments[-7] = None  # out_scale
        torch.library.opcheck(operator, tuple(arguments), test_utils=checks)
    numbers[1] = None
    options[0] = 0.0
    given_arrays = [None, array, None, None]
    torch.library.opcheck(
        operator,
        (*given, *none, None, None, None, *options, *numbers, *given_arrays, None, True),
        test_utils=checks,
    )


def test_refusals() -> None:
    given = made(DTYPES[0], (2, 5, 4, 16), (2, 7, 2, 16), (2, 7, 2, 16))
    function = aiter_attn.flash_attn_func
    with pytest.raises(ValueError, match=r"^v_descale: None, but q is float8_e4m3fn"):
        function(*given, **{**SCALES, "v_descale": None})
    with pytest.raises(ValueError, match=r"^out_scale: -1.0"):
        function(*given, **{**SCALES, "out_scale": -1.0})
    with pytest.raises(TypeError, match=r"^out_scale: 'x'"):
        function(*given, **{**SCALES, "out_scale": "x"})
    with pytest.raises(ValueError, match=r"^q_descale: .* but q is float32"):
        function(*(x.float() for x in given), **SCALES)
    with pytest.raises(aiter_attn.UnsupportedError, match=r"^q_descale: entries that differ"):
        function(*given, **{**SCALES, "q_descale": torch.tensor([[1.0, 2.0]] * 2)})
    with pytest.raises(ValueError, match=r"^out_scale: 16.0, but out_dtype is float32"):
        function(*given, **SCALES, out_dtype=torch.float32)
    with pytest.raises(TypeError, match=r"^out_dtype: 2; allowed here"):
        function(*given, **{**SCALES, "out_scale": None}, out_dtype=2)
    with pytest.raises(ValueError, match=r"^out_dtype: 'float64'; allowed here"):
        function(*given, **{**SCALES, "out_scale": None}, out_dtype=torch.float64)
    with pytest.raises(TypeError, match=r"^k: dtype float32"):
        function(given[0], given[1].float(), given[2], **SCALES)
    with pytest.raises(TypeError, match="float8_e5m2"):
        function(*(x.float().to(torch.float8_e5m2) for x in given), **SCALES)
    with pytest.raises(ValueError, match=r"^k: on meta, but q is on cpu"):
        function(given[0], given[1].to("meta"), given[2], **SCALES)
    with pytest.raises(aiter_attn.UnsupportedError, match=r"^v: requires_grad is set, but fp8"):
        function(*given[:2], given[2].requires_grad_(), **SCALES)
