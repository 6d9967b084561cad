# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""AITER's forward kernels in the emulator: as their table says they are, and right, with every
check on."""

from __future__ import annotations

import dataclasses
import functools
import os
from pathlib import Path

import numpy as np
import pytest
from gfxemu import Checks, Device, LlvmMc
from gfxemu.checks import COMPARED, COUNTED, LEFT_OUT
from gfxemu.errors import MemoryFault

from kernels.aiter_asm import table
from kernels.aiter_asm.table import AsmObject
from tests.emulation.harness.cases import MASK_BOTTOM_RIGHT, Case
from tests.emulation.harness.reference import Error, draw, from_storage, reference
from tests.emulation.verify.verdict import GATES, Gate

# Truncated probabilities are off by up to twice as much as rounded ones, and all the same way.
_TRUNCATED = Gate(1.2, 4.0)
_NAN, _UNTOUCHED = 0x7FC0, 0x5A5A
_GAP = 24  # elements between the heads of two tokens

_OBJECTS = [
    chosen
    for chosen in table.read(Path("kernels/aiter_asm/forward.toml").read_text("utf-8"))
    if chosen.arch == "gfx942"
]
_CASES = {
    "batch": [
        Case("one by one", ((1, 1),)),
        Case("257 by 300, heads 4:2, two batches", ((257, 300),) * 2, heads_q=4, heads_k=2),
        Case("more queries than keys", ((300, 40),), heads_q=3, heads_k=1),
        Case("eight heads", ((520, 97),), heads_q=8, heads_k=2),
    ],
    "group": [
        Case("one by one", ((1, 1),)),
        Case("lengths around tiles, heads 4:2", ((257, 300), (3, 31), (255, 64)), heads_q=4,
             heads_k=2),
        Case("a sequence without queries", ((0, 5), (17, 300)), heads_q=2, heads_k=1),
    ],
}  # fmt: skip


@functools.cache
def _code(file: str) -> bytes:
    paths = os.environ["AITER_ASM_OBJECTS"].split()
    (path,) = (p for p in paths if p.endswith("/" + file))
    return Path(path).read_bytes()


@functools.cache
def _device() -> Device:
    return Device("gfx942", LlvmMc.from_environment())


def _spread(x: np.ndarray) -> tuple[np.ndarray, int]:
    """Tokens with a gap of NaN after each but the last, and the bytes from one to the next."""
    tokens, heads, size = x.shape
    rows = np.full((tokens, heads * size + _GAP), _NAN, np.uint16)
    rows[:, : heads * size] = x.reshape(tokens, heads * size)
    return rows.reshape(-1)[: rows.size - _GAP].copy(), 2 * rows.shape[1]


class _Launch:
    """One launch of an object on a case; errors of o and lse in units of rounding."""

    def __init__(self, chosen: AsmObject, case: Case, soffset: str = COUNTED):
        if chosen.mask == "causal":
            case = dataclasses.replace(case, mask=MASK_BOTTOM_RIGHT, window=(-1, 0))
        sizes = chosen.head_size_qk, chosen.head_size_v
        inputs = draw(case, chosen.dtype, sizes, 1, backward=False)
        expected = reference(case, chosen.dtype, inputs)
        group = chosen.mode == "group"
        lengths = (case.total_q, case.total_k) if group else case.lengths[0]
        q, k, v = (_spread(x) for x in (inputs.q, inputs.k, inputs.v))
        width = case.heads_q * chosen.head_size_v
        o = np.full((case.total_q, width + _GAP), _UNTOUCHED, np.uint16)
        lse_shape = (1 if group else len(case.lengths), case.heads_q, lengths[0])
        lse = np.zeros(lse_shape, np.float32)
        starts = np.array(case.starts(), np.int32).T.copy()
        written = np.ones(o.shape, bool)
        written[:, :width] = False

        device = _device()
        memory, code = device.memory, _code(chosen.file)
        addresses = {
            name: memory.register(array, name)
            for name, array in {
                "q": q[0], "k": k[0], "v": v[0], "lse": lse, "seqstart_q": starts[0],
                "seqstart_k": starts[1],
            }.items()
        }  # fmt: skip
        addresses["o"] = memory.register(o, "o", written=np.repeat(written.reshape(-1), 2))
        values = {
            **addresses,
            "padded_seqstart_q": addresses["seqstart_q"],
            "padded_seqstart_k": addresses["seqstart_k"],
            "scale": float(inputs.scale),
            "seqlen_q": lengths[0],
            "seqlen_k": lengths[1],
            "tile_stride_q": chosen.tile_q * q[1],
            "heads_q": case.heads_q,
            "heads_q_per_head_k": case.heads_q // case.heads_k,
            "option": chosen.option(max(a for a, _ in case.lengths), case.heads_q),
            "store_lse": 1,
            "head_size_qk": chosen.head_size_qk,
            "head_size_v": chosen.head_size_v,
            "head_stride_lse": 4 * lengths[0],
        }
        strides = {"q": q[1], "k": k[1], "v": v[1], "o": 2 * o.shape[1]}
        for name, stride in strides.items():
            length = lengths[name in "kv"]
            values[f"stride_{name}"] = stride
            values[f"head_stride_{name}"] = 2 * sizes[name in "vo"]
            values[f"batch_stride_{name}"] = 0 if group else length * stride
        kernel, program = device.program(code, chosen.symbol)
        longest = max(a for a, _ in case.lengths)
        try:
            self.report = device.launch(
                kernel, program,
                grid=chosen.workgroups(longest, case.heads_q, len(case.lengths)),
                block=(chosen.block, 1, 1), kernarg=chosen.layout.pack(values),
                checks=Checks(same_barrier=False, soffset=soffset),
                uninitialised=[addresses["lse"]],
            )  # fmt: skip
        finally:
            for address in addresses.values():
                memory.unregister(address)
        rows = o[:, :width].reshape(case.total_q, case.heads_q, chosen.head_size_v)
        self.gaps_untouched = bool((o[:, width:] == _UNTOUCHED).all())
        heads_first = lse.transpose(1, 0, 2).reshape(case.heads_q, case.total_q)
        self.errors: dict[str, Error] = {
            "o": expected["o"].error(from_storage(rows.copy(), chosen.dtype)),
            "lse": expected["lse"].error(heads_first.astype(np.float64)),
        }


@pytest.mark.parametrize("chosen", _OBJECTS, ids=lambda chosen: f"{chosen.schedule}-{chosen.name}")
def test_object(chosen: AsmObject) -> None:
    table.check(chosen, _code(chosen.file))
    for case in _CASES[chosen.mode]:
        launch = _Launch(chosen, case)
        launch.report.raise_findings()
        assert launch.report.in_step and launch.gaps_untouched, case.name
        for name, error in launch.errors.items():
            gate = _TRUNCATED if name == "o" and chosen.rounding == "rtz" else GATES[name]
            assert gate.allows(error.rms, error.largest), f"{case.name}: {name}: {error}"


@pytest.mark.parametrize("mode", ["batch", "group"])
def test_the_kernels_rely_on_soffset_in_range_checks(mode: str) -> None:
    """By the other rule they read behind K, even for a single key."""
    chosen = next(o for o in _OBJECTS if o.mode == mode)
    one_key = _CASES[mode][0]
    kinds = {finding.kind for finding in _Launch(chosen, one_key, COMPARED).report.findings}
    assert kinds == {"soffset"}
    with pytest.raises(MemoryFault, match=r"nearest: k .* and v "):
        _Launch(chosen, one_key, LEFT_OUT)


@pytest.mark.parametrize("mask", ["none", "causal"])
def test_a_sequence_without_keys(mask: str) -> None:
    """A defect that is known: without a mask the kernels store what was never written there."""
    chosen = next(o for o in _OBJECTS if (o.mode, o.mask, o.rounding) == ("group", mask, "rtne"))
    launch = _Launch(chosen, Case("no keys", ((5, 0), (17, 300))))
    found = {finding.kind for finding in launch.report.findings}
    right = all(GATES[name].allows(e.rms, e.largest) for name, e in launch.errors.items())
    assert (found, right) == ((set(), True) if mask == "causal" else ({"uninitialised"}, False))
