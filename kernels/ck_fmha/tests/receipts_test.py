# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The kernels that receipts of QoLA's tables select, held against those that upstream's generator
lists for the receipt.

Receipt 700 is newer than the generator: its rule is applied to the fields of upstream's kernels.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kernels.ck_fmha.ckgen.pool import Pool, instances_of
from kernels.ck_fmha.ckgen.schema import known_values, parse_variant_set
from kernels.ck_fmha.ckgen.selection import select
from kernels.qola.receipts import RECEIPTS

# The generator's name of an arch that has all kernels of gfx9.
_ARCH = ["gfx950"]


def _module(name: str) -> Any:
    folder = str(Path(os.environ["CK_GENERATOR"]).parent)
    sys.path.insert(0, folder)
    try:
        return importlib.import_module(f"codegen.ops.{name}")
    finally:
        sys.path.remove(folder)


def _forward(receipt: int) -> Iterator[Any]:
    """But for what no build has: fp8 without scales, and transposed loads of head size 64 for any
    number of queries, behind kernels that serve the same calls."""
    for kernel in _module("fmha_fwd").get_fwd_blobs(_ARCH, "", receipt, [-1], "simplified")[1]:
        pipeline = kernel.F_pipeline
        late = pipeline.tag == "qr_async_trload" and (kernel.F_hdim, kernel.F_tile.F_bm0) == (
            64,
            128,
        )
        if not late and (kernel.F_dtype in ("fp16", "bf16") or pipeline.F_squant == "t"):
            yield kernel


def _backward(receipt: int) -> Iterator[Any]:
    """But for what no build has: stored random numbers, one head size that is checked by elements
    beside one by eight of them, and few queries with an elementwise bias."""
    blobs = _module("fmha_bwd").get_bwd_blobs(_ARCH, "", receipt, "simplified", [-1])
    for kernel in (kernel for kernels in blobs[1:] for kernel in kernels):
        pads = {getattr(kernel, "F_dpad", 0), getattr(kernel, "F_dvpad", 0)}
        few = getattr(getattr(kernel, "F_tile", None), "max_seq_q", 0)
        if "storerandval" in kernel.name or pads == {1, 8} or (few and kernel.F_bias == "bias"):
            continue
        yield kernel


def _of_transformer_engine(kernel: Any) -> bool:
    pipeline = kernel.F_pipeline
    return (
        kernel.F_dtype in ("fp16", "bf16")
        and pipeline.F_vlayout == "row"
        and (pipeline.F_squant, pipeline.F_skip, pipeline.F_logits) == ("f", "f", "f")
        and pipeline.F_lse == "t"
    )


def _names(pool: Pool, text: str) -> set[str]:
    known = known_values([candidate.traits for candidate in pool.candidates])
    chosen = select(parse_variant_set(text, "set.toml", known), pool.candidates)
    return {instance.name for instance in instances_of(chosen)}


_FORWARD: dict[int, Callable[[Any], bool]] = {600: lambda _: True, 700: _of_transformer_engine}


def test_every_receipt_is_counted():
    assert RECEIPTS.keys() == _FORWARD.keys()


@pytest.mark.parametrize(("receipt", "count"), [(600, 2754), (700, 532)])
def test_forward(pool: Pool, receipt: int, count: int):
    found = _names(pool, f"[[mha_fwd_variants]]\nreceipt = {receipt}\n")
    assert found == {k.name for k in _forward(600) if _FORWARD[receipt](k)}
    assert len(found) == count


@pytest.mark.parametrize("receipt", RECEIPTS)
def test_backward(pool: Pool, receipt: int):
    """Both leave out other dtypes, and what stores random numbers, which no build has."""
    found = _names(pool, f"[[mha_bwd_variants]]\nreceipt = {receipt}\n")
    assert found == {kernel.name for kernel in _backward(600)}
    assert len(found) == 4864


def test_a_receipt_narrows_what_a_table_leaves_free(pool: Pool):
    table = '[[mha_fwd_variants]]\nreceipt = 700\ndtype = "bf16"\nhead_size_qk = 64\n'
    found = _names(pool, table)
    assert found == {
        kernel.name
        for kernel in _forward(600)
        if _of_transformer_engine(kernel) and (kernel.F_dtype, kernel.F_hdim) == ("bf16", 64)
    }
