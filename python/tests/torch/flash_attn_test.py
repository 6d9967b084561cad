# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""aiter_attn.compat.flash_attn, called as flash-attn 2 is."""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import sys
from importlib import metadata

import aiter_attn.compat.flash_attn
import pytest
import torch
from aiter_attn._cli import selftest

from python.tests.torch.reference import attention, check_gradients, draw

aiter_attn.compat.flash_attn.install()

import flash_attn  # noqa: E402
from flash_attn import bert_padding, flash_attn_func, flash_attn_varlen_func  # noqa: E402
from flash_attn.flash_attn_interface import (  # noqa: E402
    _flash_attn_backward,
    _flash_attn_forward,
    _flash_attn_varlen_backward,
    _flash_attn_varlen_forward,
)
from flash_attn.layers.rotary import apply_rotary_emb  # noqa: E402

_OPTIONS = (
    "dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0, "
    "alibi_slopes=None, deterministic=False, return_attn_probs=False"
)
# As flash_attn/flash_attn_interface.py of flash-attn 2.8.3 has them.
_SIGNATURES = {
    "flash_attn_func": f"q, k, v, {_OPTIONS}",
    "flash_attn_kvpacked_func": f"q, kv, {_OPTIONS}",
    "flash_attn_qkvpacked_func": f"qkv, {_OPTIONS}",
    "flash_attn_varlen_func": (
        f"q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, {_OPTIONS}, "
        "block_table=None"
    ),
    "flash_attn_varlen_kvpacked_func": (
        f"q, kv, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, {_OPTIONS}"
    ),
    "flash_attn_varlen_qkvpacked_func": f"qkv, cu_seqlens, max_seqlen, {_OPTIONS}",
    "flash_attn_with_kvcache": (
        "q, k_cache, v_cache, k=None, v=None, rotary_cos=None, rotary_sin=None, "
        "cache_seqlens=None, cache_batch_idx=None, cache_leftpad=None, block_table=None, "
        "softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0, "
        "rotary_interleaved=True, alibi_slopes=None, num_splits=0, return_softmax_lse=False"
    ),
}


@pytest.mark.parametrize("name", _SIGNATURES)
def test_arguments_are_the_originals(name: str) -> None:
    """By place and by name, with the same defaults; added ones are by name alone."""
    parameters = inspect.signature(getattr(flash_attn, name)).parameters.values()
    shared = [
        p.name if p.default is p.empty else f"{p.name}={p.default}"
        for p in parameters
        if p.kind is p.POSITIONAL_OR_KEYWORD
    ]
    assert ", ".join(shared) == _SIGNATURES[name]


def test_a_padded_batch_as_packed_sequences() -> None:
    """The way of models: unpad, attend, pad; gradients come back through all three."""
    lengths, seqlen = [5, 0, 7], 7
    mask = (torch.arange(seqlen) < torch.tensor(lengths)[:, None]).int()

    def packed(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        tokens, indices, starts, most, used = bert_padding.unpad_input(
            torch.stack([q, k, v], 2), mask
        )
        assert used.tolist() == lengths and starts.tolist() == [0, 5, 5, 12] and most == 7
        out = flash_attn.flash_attn_varlen_qkvpacked_func(tokens, starts, most, causal=True)
        return bert_padding.pad_input(out, indices, *mask.shape)

    def definition(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        rows = []
        for b, length in enumerate(lengths):
            out = attention(*(x[b : b + 1, :length] for x in (q, k, v)), causal=True)
            rows.append(torch.nn.functional.pad(out, (0, 0, 0, 0, 0, seqlen - length)))
        return torch.cat(rows)

    check_gradients(packed, definition, [draw(3, seqlen, 2, 16, seed=i) for i in range(3)])


def test_what_is_kept_but_does_not_count() -> None:
    tokens = torch.arange(8).reshape(2, 4, 1)
    counts, kept = torch.tensor([[1, 1, 0, 0], [1, 0, 0, 0]]), torch.tensor([[0, 0, 1, 0]] * 2)
    packed, indices, starts, most, used = bert_padding.unpad_input(tokens, counts, kept)
    assert packed.flatten().tolist() == indices.tolist() == [0, 1, 2, 4, 6]
    assert (starts.tolist(), most, used.tolist()) == ([0, 3, 5], 3, [2, 1])
    assert starts.dtype == used.dtype == torch.int32


def test_rows_that_hold_several_sequences() -> None:
    tokens = torch.arange(12).reshape(2, 6, 1)
    lengths = torch.tensor([[2, 3, 0, 0, 0, 0], [6, 0, 0, 0, 0, 0]])
    packed, indices, starts, most = bert_padding.unpad_input_for_concatenated_sequences(
        tokens, lengths
    )
    assert packed.flatten().tolist() == indices.tolist() == [0, 1, 2, 3, 4, *range(6, 12)]
    assert (starts.tolist(), most) == ([0, 2, 5, 11], 6)


@pytest.mark.parametrize("shape", [(2, 1, 6, 6), (2, 5), (12,)])
def test_masks_of_other_shapes_are_refused(shape: tuple[int, ...]) -> None:
    """A mask of scores has four dimensions: its entries are no tokens."""
    tokens, mask = draw(2, 6, 1), torch.ones(2, 6).int()
    wrong = torch.ones(shape).int()
    said = rf": shape {re.escape(str(shape))}; allowed here: \(2, 6\) \[batch, seqlen\]"
    with pytest.raises(ValueError, match="^attention_mask" + said):
        bert_padding.unpad_input(tokens, wrong)
    with pytest.raises(ValueError, match="^unused_mask" + said):
        bert_padding.unpad_input(tokens, mask, wrong)
    with pytest.raises(ValueError, match="^attention_mask_in_length" + said):
        bert_padding.unpad_input_for_concatenated_sequences(tokens, wrong)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_rows_by_index(dtype: torch.dtype) -> None:
    """transformers' generation gives int32."""
    values, indices = draw(3, 2), torch.tensor([4, 0, 2], dtype=dtype)
    put = bert_padding.index_put_first_axis(values, indices, 5)
    torch.testing.assert_close(bert_padding.index_first_axis(put, indices), values)
    assert not put[[1, 3]].any()
    rows, residual = bert_padding.index_first_axis_residual(values, torch.tensor([1]))
    assert rows.requires_grad and not residual.requires_grad
    torch.testing.assert_close(residual, values)


@pytest.mark.parametrize("dropout_p", [0.0, 0.3])
@pytest.mark.parametrize("varlen", [False, True])
def test_passes_by_private_names(varlen: bool, dropout_p: float) -> None:
    """As libraries call them in an autograd.Function, of tensors that require a gradient."""
    q, k, v, dout = (draw(2, 9, 2, 16, seed=i) for i in range(4))
    arrays, lengths = [q, k, v, dout], []
    forward, backward = _flash_attn_forward, _flash_attn_backward
    public = flash_attn_func
    if varlen:
        starts = torch.tensor([0, 9, 18], dtype=torch.int32)
        arrays, lengths = [x.flatten(0, 1) for x in arrays], [starts, starts, 9, 9]
        forward, backward = _flash_attn_varlen_forward, _flash_attn_varlen_backward
        public = flash_attn_varlen_func
    options = (0.3, True, 4, 0, 0.0, None)
    torch.manual_seed(1)
    out, lse, signs, state = forward(*arrays[:3], *lengths, dropout_p, *options, True)
    torch.manual_seed(1)
    again = forward(*arrays[:3], *lengths, dropout_p, *options, False)
    assert not out.requires_grad and again[2].numel() == 0
    torch.testing.assert_close([again[0], again[1], again[3]], [out, lse, state])
    leaves = [x.detach().requires_grad_() for x in arrays[:3]]
    chosen = {"softmax_scale": 0.3, "causal": True, "window_size": (4, 0), "rng_state": state}
    if not dropout_p:
        del chosen["rng_state"]
    want = public(*leaves, *lengths, dropout_p, return_attn_probs=True, **chosen)
    torch.testing.assert_close((out, lse, signs), tuple(x.detach() for x in want))
    want[0].backward(arrays[3].detach())
    into = [torch.empty_like(x) for x in leaves]
    sums = backward(
        arrays[3], *arrays[:3], out, lse, *into, *lengths, dropout_p, *options, False, state
    )
    torch.testing.assert_close(into, [x.grad for x in leaves])
    assert sums.shape == lse.shape and sums.dtype == torch.float32
    torch.testing.assert_close(
        sums, (out * arrays[3].detach()).sum(-1).transpose(-1, -2), check_dtype=False
    )


def test_caches_of_the_private_pass_are_refused() -> None:
    x, starts = draw(4, 2, 16), torch.tensor([0, 4], dtype=torch.int32)
    with pytest.raises(aiter_attn.UnsupportedError, match=r"^leftpad_k: given; allowed: None"):
        _flash_attn_varlen_forward(x, x, x, starts, starts, 4, 4, 0.0, 0.3, False, leftpad_k=starts)


@pytest.mark.parametrize("varlen", [False, True])
def test_signs_say_which_weights_stay(varlen: bool) -> None:
    """`probs >= 0`, as flash-attn's own tests ask."""
    q, k, v = (draw(2, 40, 3, 16, seed=i).detach() for i in range(3))
    state = {"dropout_p": 0.4, "return_attn_probs": True, "rng_state": (5, 0)}
    if varlen:
        starts = torch.tensor([0, 40, 80], dtype=torch.int32)
        packed = [x.flatten(0, 1) for x in (q, k, v)], (starts, starts, 40, 40)
        ours, theirs = (
            f(*packed[0], *packed[1], **state)[2]
            for f in (aiter_attn.flash_attn_varlen_func, flash_attn_varlen_func)
        )
    else:
        ours, theirs = (
            f(q, k, v, **state)[2] for f in (aiter_attn.flash_attn_func, flash_attn_func)
        )
    assert theirs.dtype == q.dtype and set(theirs.unique().tolist()) == {-1.0, 1.0}
    torch.testing.assert_close((theirs >= 0).to(ours.dtype), ours)
    assert flash_attn_func(q, k, v, return_attn_probs=True)[2].shape == (0,)


@pytest.mark.parametrize("interleaved", [False, True])
def test_rotary_is_that_of_the_cache(interleaved: bool) -> None:
    """apply_rotary_emb against flash_attn_with_kvcache, which rotates in the library."""
    angles = draw(32, 8).detach()
    cos, sin = angles.cos(), angles.sin()
    q, new = draw(2, 3, 2, 24, seed=2).detach(), draw(2, 3, 2, 24, seed=3).detach()
    lengths = torch.tensor([4, 9], dtype=torch.int32)
    keys, values = (draw(2, 16, 2, 24, seed=i).detach() for i in (4, 5))
    flash_attn.flash_attn_with_kvcache(
        q, keys, values, new, new, rotary_cos=cos, rotary_sin=sin, cache_seqlens=lengths,
        causal=True, rotary_interleaved=interleaved,
    )  # fmt: skip
    got = apply_rotary_emb(new, cos, sin, interleaved, seqlen_offsets=lengths)
    for row, start in enumerate(lengths.tolist()):
        torch.testing.assert_close(got[row], keys[row, start : start + 3])
    packed = apply_rotary_emb(
        new.flatten(0, 1), cos, sin, interleaved, seqlen_offsets=lengths,
        cu_seqlens=torch.tensor([0, 3, 6], dtype=torch.int32), max_seqlen=3,
    )  # fmt: skip
    torch.testing.assert_close(packed, got.flatten(0, 1))
    at_7 = apply_rotary_emb(new, cos, sin, interleaved, seqlen_offsets=7)
    torch.testing.assert_close(at_7, apply_rotary_emb(new, cos[7:], sin[7:], interleaved))
    changed = new.clone()
    assert apply_rotary_emb(changed, cos, sin, interleaved, True) is changed
    torch.testing.assert_close(changed, apply_rotary_emb(new, cos, sin, interleaved))
    with pytest.raises(ValueError, match=r"^cos: shape \(3, 13\); allowed: \[\.\.\., up to 12\]"):
        apply_rotary_emb(new, torch.ones(32, 13), torch.ones(32, 13))


def test_names_that_are_not_there_are_refused_by_name() -> None:
    with pytest.raises(ImportError, match="flash_attn_gpu"):
        from flash_attn import flash_attn_gpu  # noqa: F401
    with pytest.raises(AttributeError, match=r"^flash_attn\.bert_padding\.IndexFirstAxis: not in"):
        _ = bert_padding.IndexFirstAxis
    for name in ("flash_attn.ops", "flash_attn.losses", "flash_attn.layers.patch_embed"):
        with pytest.raises(ModuleNotFoundError, match=f"^{name}: not in aiter_attn's stand-in"):
            importlib.import_module(name)
    assert flash_attn.__version__ == "2.8.3"
    assert flash_attn_func is aiter_attn.compat.flash_attn.flash_attn_func
    assert flash_attn_varlen_func.__name__ == "flash_attn_varlen_func"


@pytest.mark.parametrize("name", ["flash-attn", "flash_attn"])
def test_metadata_of_the_distribution(name: str) -> None:
    assert metadata.version(name) == "2.8.3"
    assert "flash_attn" in metadata.packages_distributions()
    with pytest.raises(metadata.PackageNotFoundError):
        metadata.version(name + "-4")


def test_nothing_is_installed_unasked() -> None:
    program = "import aiter_attn.compat.flash_attn, sys; sys.exit('flash_attn' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_selftest_covers_torch() -> None:
    rows = list(selftest.run(framework="torch"))
    assert len(rows) > 20
    assert [row.case for row in rows if not row.passed or len(row.errors) != 5] == []
