# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""`aiter-attn bench` beside torch on the CPU: the peer is measured, and computes the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from aiter_attn._cli.main import main

SHAPE = ("--device", "cpu", "--seqlen-q", "24", "--heads", "4", "--head-size", "16", "--runs", "2")


def measured(capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    assert main(["bench", *SHAPE, *more, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    "more",
    [("--dtype", "fp32"), ("--heads-k", "2", "--causal"), ("--seqlen-k", "40")],
    ids=" ".join,
)
def test_torch_is_measured(capsys: pytest.CaptureFixture[str], more: tuple[str, ...]) -> None:
    told = measured(capsys, "--backward", *more)
    assert told["not_measured"] == {}
    assert [(row["pass"], row["by"]) for row in told["rows"]] == [
        ("forward", "aiter-attn"),
        ("forward", "torch"),
        ("backward", "aiter-attn"),
        ("backward", "torch"),
    ]
    for ours, theirs in (told["rows"][:2], told["rows"][2:]):
        assert ours["ratio"] is None
        assert theirs["ratio"] == pytest.approx(theirs["median"] / ours["median"])
        assert theirs["least"] <= theirs["median"]


def test_another_mask_of_torch_is_no_peer(capsys: pytest.CaptureFixture[str]) -> None:
    told = measured(capsys, "--causal", "--seqlen-k", "40")
    assert [row["by"] for row in told["rows"]] == ["aiter-attn"]
    assert "top-left" in told["not_measured"]["torch"]


def test_the_peer_gets_the_shape(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    theirs = torch.nn.functional.scaled_dot_product_attention

    def seen(*arrays: torch.Tensor, **options: Any) -> torch.Tensor:
        calls.append(([tuple(x.shape) for x in arrays], arrays[0].dtype, options))
        return theirs(*arrays, **options)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", seen)
    measured(capsys, "--batch", "2", "--heads-k", "2", "--causal", "--dtype", "bf16")
    wide, shared = (2, 4, 24, 16), (2, 2, 24, 16)
    options = {"is_causal": True, "enable_gqa": True}
    assert calls and all(c == ([wide, shared, shared], torch.bfloat16, options) for c in calls)
