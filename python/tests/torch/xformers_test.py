# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""aiter_attn.compat.xformers, called as xformers is, against the scores of its masks."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import aiter_attn.compat.xformers
import pytest
import torch
from aiter_attn import UnsupportedError

from python.tests.torch.reference import attention, check_gradients, draw

aiter_attn.compat.xformers.install()

import xformers.ops  # noqa: E402
from xformers.ops import memory_efficient_attention  # noqa: E402
from xformers.ops.fmha import attn_bias  # noqa: E402
from xformers.ops.fmha.attn_bias import (  # noqa: E402
    BlockDiagonalCausalWithOffsetPaddedKeysMask,
    BlockDiagonalMask,
    BlockDiagonalPaddedKeysMask,
)


def inputs(queries: int = 5, keys: int = 7, heads_k: int = 4) -> list[torch.Tensor]:
    return [
        draw(2, queries, 4, 16),
        draw(2, keys, heads_k, 16),
        draw(2, keys, heads_k, 8, seed=1),
    ]


def check(arrays: list[torch.Tensor], mask: Any) -> None:
    """Gradients, too. materialize() tells the scores."""
    shape = (arrays[0].shape[1], arrays[1].shape[1])
    added = mask.materialize(shape, dtype=torch.float64)
    check_gradients(
        lambda *x: memory_efficient_attention(*x, attn_bias=mask),
        lambda *x: attention(*x, bias=added),
        arrays,
    )


# 3 queries and 4 keys, 1 where a query sees a key.
DRAWN = {
    "LowerTriangularMask": (attn_bias.LowerTriangularMask(), ["1000", "1100", "1110"]),
    "from bottom right": (
        attn_bias.LowerTriangularFromBottomRightMask(),
        ["1100", "1110", "1111"],
    ),
    "local": (
        attn_bias.LowerTriangularFromBottomRightMask().make_local_attention(2),
        ["1100", "0110", "0011"],
    ),
    "window": (
        attn_bias.LocalAttentionFromBottomRightMask(window_left=0, window_right=1),
        ["0110", "0011", "0001"],
    ),
}


@pytest.mark.parametrize("name", DRAWN)
def test_masks_are_as_they_are_drawn(name: str) -> None:
    mask, rows = DRAWN[name]
    seen = mask.materialize((3, 4)).exp()
    assert ["".join(str(int(x)) for x in row) for row in seen] == rows


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("lengths", [(5, 7), (6, 6)], ids=str)
def test_masks(name: str, lengths: tuple[int, int]) -> None:
    check(inputs(*lengths), DRAWN[name][0])


def test_without_a_mask() -> None:
    check_gradients(memory_efficient_attention, attention, inputs())
    q, k, v = inputs()
    got = memory_efficient_attention(q, k, v, scale=0.5)
    torch.testing.assert_close(got.double(), attention(2 * q, k, v), rtol=1e-5, atol=1e-5)
    out = xformers.ops.memory_efficient_attention_forward(q, k, v)
    assert torch.equal(out, memory_efficient_attention(q, k, v))
    assert not out.requires_grad


def test_tensors_as_biases() -> None:
    arrays = inputs()
    for shape in ((2, 4, 5, 7), (1, 4, 5, 7), (2, 1, 1, 7)):
        check_gradients(
            lambda *x: memory_efficient_attention(*x[:3], attn_bias=x[3]),
            lambda *x: attention(*x[:3], bias=x[3].double()),
            [*arrays, draw(*shape, seed=5)],
        )
    three = [x[:, :, 0] for x in arrays]
    added = draw(2, 5, 7, seed=6)
    out = memory_efficient_attention(*three, attn_bias=added)
    want = attention(*(x[:, :, :1] for x in arrays), bias=added[:, None].double())
    torch.testing.assert_close(out.double(), want[:, :, 0], rtol=1e-5, atol=1e-5)


def test_a_triangle_and_a_tensor() -> None:
    arrays, added = inputs(6, 6), draw(2, 4, 6, 6, seed=5)
    check_gradients(
        lambda *x: memory_efficient_attention(
            *x[:3], attn_bias=attn_bias.LowerTriangularMask().add_bias(x[3])
        ),
        lambda *x: attention(*x[:3], bias=x[3].double(), causal=True),
        [*arrays, added],
    )


def test_groups_of_heads() -> None:
    """As xformers' own example of them expands keys."""
    q, k, v = inputs(heads_k=2)
    grouped = [
        q.unflatten(2, (2, 2)),
        *(x.unsqueeze(3).expand(-1, -1, -1, 2, -1) for x in (k, v)),
    ]
    out = memory_efficient_attention(*grouped)
    assert out.shape == (2, 5, 2, 2, 8)
    torch.testing.assert_close(out.flatten(2, 3).double(), attention(q, k, v), rtol=1e-5, atol=1e-5)
    copies = [x.contiguous() for x in grouped]
    torch.testing.assert_close(memory_efficient_attention(*copies), out)


@pytest.mark.parametrize(
    "make",
    [
        lambda mask: mask,
        lambda mask: mask.make_causal(),
        lambda mask: mask.make_causal_from_bottomright(),
        lambda mask: mask.make_local_attention(2),
        lambda mask: mask.make_local_attention_from_bottomright(3),
    ],
    ids=["", "causal", "from bottom right", "local", "local from bottom right"],
)
@pytest.mark.parametrize("same", [True, False])
def test_blocks(make: Any, same: bool) -> None:
    queries, keys = [3, 1, 4], [3, 1, 4] if same else [4, 3, 6]
    mask = make(BlockDiagonalMask.from_seqlens(queries, keys))
    arrays = [x[:1] for x in inputs(sum(queries), sum(keys))]
    if not same and type(mask).__name__.endswith(("CausalMask", "CausalLocalAttentionMask")):
        with pytest.raises(
            UnsupportedError, match=r"other lengths of keys.*make_causal_from_bottomri"
        ):
            memory_efficient_attention(*arrays, attn_bias=mask)
    else:
        check(arrays, mask)


def test_lists_of_tensors() -> None:
    """Of batches, too: each entry is a sequence."""
    tensors = [draw(1, 3, 4, 16).detach(), draw(2, 5, 4, 16).detach()]
    mask, q = BlockDiagonalMask.from_tensor_list(tensors)
    assert q.shape == (1, 13, 4, 16)
    parts = mask.split(memory_efficient_attention(q, q, q, attn_bias=mask))
    for part, x in zip(parts, tensors, strict=True):
        torch.testing.assert_close(part.double(), attention(x, x, x), rtol=1e-5, atol=1e-5)
    mask, q, k, v = BlockDiagonalMask.from_tensor_lists_qkv(
        [x[:, :2] for x in tensors], tensors, tensors
    )
    out = memory_efficient_attention(q, k, v, attn_bias=mask)
    for part, x in zip(mask.split_queries(out), tensors, strict=True):
        torch.testing.assert_close(part.double(), attention(x[:, :2], x, x), rtol=1e-5, atol=1e-5)
    assert [x.shape for x in mask.split_kv(k)] == [x.shape for x in tensors]


PADDED = {
    "all": BlockDiagonalPaddedKeysMask.from_seqlens([2, 1, 3], 8, [5, 8, 3]),
    "causal": BlockDiagonalCausalWithOffsetPaddedKeysMask.from_seqlens([2, 1, 3], 8, [5, 8, 3]),
    "window": attn_bias.BlockDiagonalLocalAttentionPaddedKeysMask.from_seqlens_local(
        [2, 1, 3], 8, [5, 8, 3], 2, 1
    ),
    "local": attn_bias.BlockDiagonalCausalLocalAttentionPaddedKeysMask.from_seqlens_local(
        [2, 1, 3], 8, [5, 8, 3], 2
    ),
}


@pytest.mark.parametrize("name", PADDED)
def test_padded_keys(name: str) -> None:
    """Keys that are not used may be anything."""
    mask = PADDED[name]
    q, k, v = (x[:1].detach() for x in inputs(6, 24))
    seen = mask.materialize((6, 24), dtype=torch.float64)
    want = attention(q, k, v, bias=seen)
    for unused in (slice(5, 8), slice(19, 24)):
        k[:, unused] = v[:, unused] = torch.nan
    out = memory_efficient_attention(q, k, v, attn_bias=mask)
    torch.testing.assert_close(out.double(), want, rtol=1e-5, atol=1e-5)
    with pytest.raises(UnsupportedError, match=r"^query: requires_grad is set"):
        memory_efficient_attention(q.requires_grad_(), k, v, attn_bias=mask)


def test_masks_go_where_the_arrays_are() -> None:
    for mask in (*PADDED.values(), BlockDiagonalMask.from_seqlens([1, 2])):
        moved = mask.to("meta")
        assert (
            moved.q_seqinfo.seqstart.device.type == moved.k_seqinfo.seqstart.device.type == "meta"
        )
        assert mask.q_seqinfo.seqstart.device.type == "cpu"
        assert type(moved) is type(mask)
    added = attn_bias.LowerTriangularMask().add_bias(torch.ones(2, 2)).to("meta")
    assert added._bias.device.type == "meta"


def test_dropout() -> None:
    q, k, v = torch.zeros(2, 64, 4, 8), torch.zeros(2, 32, 4, 8), torch.ones(2, 32, 4, 1)
    torch.manual_seed(0)
    out = memory_efficient_attention(q, k, v, p=0.25)
    assert out.unique().numel() > 4
    torch.testing.assert_close(out.mean(), torch.tensor(1.0), rtol=0.05, atol=0)


def test_compiled() -> None:
    mask = attn_bias.LowerTriangularFromBottomRightMask()
    check_gradients(
        torch.compile(
            lambda *x: memory_efficient_attention(*x, attn_bias=mask),
            backend="aot_eager",
            fullgraph=True,
        ),
        lambda *x: attention(*x, causal=True),
        inputs(),
    )


class OfAnotherKind(attn_bias.AttentionBias):
    pass


REFUSALS: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "a bias": ({"attn_bias": OfAnotherKind()}, UnsupportedError, "attn_bias: OfAnotherKind; al"),
    "a tensor": ({"attn_bias": torch.ones(5, 8)}, ValueError, "attn_bias: shape (5, 8); allowed h"),
    "a dtype": (
        {"output_dtype": torch.float16},
        UnsupportedError,
        "output_dtype: torch.float16",
    ),
    "dimensions": ({"key": torch.ones(2, 7, 16)}, ValueError, "key: shape (2, 7, 16); allowed: ["),
    "doubles": (
        dict.fromkeys(("query", "key", "value"), torch.ones(1, 3, 2, 8).double()),
        TypeError,
        "query: dtype float64",
    ),
    "scale": ({"scale": -1.0}, ValueError, "scale: -1.0"),
    "blocks of batches": (
        {"attn_bias": BlockDiagonalMask.from_seqlens([2, 3])},
        ValueError,
        "query: shape (2, 5, 4, 16); allowed with BlockDiagonalMask: [1, 5, heads, head size]",
    ),
    "a triangle and a tensor": (
        {"attn_bias": attn_bias.LowerTriangularMask().add_bias(torch.ones(5, 7))},
        UnsupportedError,
        "attn_bias: a triangle and a tensor, with 5 queries and 7 keys; allowed: as many",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refused(name: str) -> None:
    changes, kind, message = REFUSALS[name]
    usual = dict(zip(("query", "key", "value"), (x.detach() for x in inputs()), strict=True))
    with pytest.raises(kind, match="^" + re.escape(message)):
        memory_efficient_attention(**usual | changes)


def test_windows_and_lengths_that_masks_do_not_take() -> None:
    with pytest.raises(ValueError, match=r"^window_left: -1; allowed: 0 or more"):
        attn_bias.LocalAttentionFromBottomRightMask(-1, 0)
    with pytest.raises(ValueError, match=r"^window_size: 0; allowed: 1 or more"):
        BlockDiagonalMask.from_seqlens([3]).make_local_attention(0)
    with pytest.raises(ValueError, match=r"^kv_seqlen: \[9\]; allowed: up to kv_padding, 8"):
        BlockDiagonalPaddedKeysMask.from_seqlens([1], 8, [9])
    with pytest.raises(ValueError, match=r"^kv_seqlen: 1 sequences, but q_seqlen has 2"):
        BlockDiagonalMask.from_seqlens([1, 2], [3])
    with pytest.raises(
        ValueError, match=r"^tensor: shape \(1, 4\); allowed here: \[1, 3, \.\.\.\]"
    ):
        BlockDiagonalMask.from_seqlens([1, 2]).split(torch.ones(1, 4))


def test_names_that_are_not_there() -> None:
    with pytest.raises(AttributeError, match=r"^xformers.ops.SwiGLU: not in aiter_attn's stand-in"):
        xformers.ops.SwiGLU  # noqa: B018
    with pytest.raises(ModuleNotFoundError, match=r"xformers.sparse: not in aiter_attn's stand-in"):
        __import__("xformers.sparse")


def test_an_xformers_that_is_imported_already_stays() -> None:
    code = (
        "import sys, types; sys.modules['xformers'] = types.ModuleType('xformers'); "
        "import aiter_attn.compat.xformers as ours; ours.install()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ImportError: xformers: imported already" in done.stderr
