# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Sinks of attention: o and lse with one, of those without, and its gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tests.emulation.harness.cases import Case
from tests.emulation.harness.kinds.kind import Array, Kind
from tests.emulation.harness.launches import Instance
from tests.emulation.harness.reference import UNIT, Expected, Inputs, draw, from_storage

if TYPE_CHECKING:
    from tests.emulation.harness.arguments import Arguments

# Rows around those of a workgroup, in either mode.
_CASES = [
    Case("two batches of 77 rows", ((77, 1),) * 2, heads_q=3, heads_k=1, p_drop=0.25),
    Case("one row", ((1, 1),), heads_q=1),
    Case("more rows than work-items", ((300, 1),), heads_q=2),
    Case("sequences", ((33, 1), (0, 1), (1, 1), (64, 1)), heads_q=4, heads_k=2),
    Case("sequences, short ones left out", ((33, 1), (5, 1), (6, 1)), skipped_seqlen_q=5),
]
_EPS = UNIT["fp32"]


def _draw(case: Case, dtype: str, head_sizes: tuple[int, int], seed: int) -> Inputs:
    """dout is o; lse_acc[0] is lse [heads][rows], and lse_acc[1] delta."""
    inputs = draw(case, dtype, head_sizes, seed, backward=False)
    rng = np.random.default_rng(seed + 1)
    inputs.lse_acc = (3 * rng.standard_normal((2, case.heads_q, case.total_q))).astype(np.float32)
    inputs.sink = (3 * rng.standard_normal(case.heads_q)).astype(np.float32)
    # Rows without a key, of which one has no sink either; and weights that are all or none.
    inputs.lse_acc[0, :, 3::7] = -np.inf
    inputs.dout[3::7] = 0
    inputs.lse_acc[1, :, 3::7] = 0
    inputs.lse_acc[0, :, 1::11], inputs.lse_acc[0, :, 2::11] = 200.0, -200.0
    if case.heads_q > 1:
        inputs.sink[-1] = -np.inf
    return inputs


def _taken(case: Case) -> Array:
    """Which rows are not left out."""
    lengths = np.array([q for q, _ in case.lengths])
    return np.repeat(lengths > case.skipped_seqlen_q, lengths)


def _place_lse(to: Arguments, name: str, rows: Array, *, output: bool) -> int:
    if not to.group_mode:
        rows = rows.reshape(len(rows), len(to.case.lengths), -1).transpose(1, 0, 2)
    return to.place(name, rows, output=output)


class _OfSinks(Kind):
    def group_mode(self, instance: Instance, case: Case) -> bool:
        return len(set(case.lengths)) > 1


class Sink(_OfSinks):
    """In place."""

    def cases(self, instance: Instance) -> list[Case]:
        return _CASES

    def draw(
        self, instance: Instance, case: Case, head_sizes: tuple[int, int], seed: int
    ) -> Inputs:
        return _draw(case, instance.dtype, head_sizes, seed)

    def expected(
        self, instance: Instance, case: Case, inputs: Inputs, seed: int
    ) -> dict[str, Expected]:
        assert inputs.lse_acc is not None
        assert inputs.sink is not None
        lse, sink = (x.astype(np.float64) for x in (inputs.lse_acc[0], inputs.sink[:, None]))
        taken = _taken(case)
        with_sink = np.where(taken, np.logaddexp(lse, sink), lse)
        with np.errstate(invalid="ignore"):
            factor = np.where(np.isneginf(with_sink), 0.0, np.exp(lse - with_sink))
            spread = np.where(factor > 0, 1 + np.abs(lse) + np.abs(sink), 1.0)
        factor, spread = (np.where(np.isfinite(x), x, 1.0).T[..., None] for x in (factor, spread))
        stored = from_storage(inputs.dout, instance.dtype)
        o = np.where(taken[:, None, None], stored * factor, stored)
        unit = UNIT[instance.dtype] * np.abs(o) + 4 * _EPS * spread * np.abs(o)
        tiny = 2.0**-25 if instance.dtype == "fp16" else 2.0**-126
        of_lse = 2 * _EPS * (1 + np.abs(np.where(np.isfinite(with_sink), with_sink, 0.0)))
        return {"o": Expected(o, unit + tiny), "lse": Expected(with_sink, of_lse)}

    def outputs(self, instance: Instance) -> tuple[str, ...]:
        return ("o", "lse")

    def place(self, to: Arguments, inputs: Inputs) -> None:
        assert inputs.lse_acc is not None
        assert inputs.sink is not None
        to.launch.o = to.tensor("o", inputs.dout, to.length_q, output=True)
        to.launch.lse = _place_lse(to, "lse", inputs.lse_acc[0], output=True)
        to.launch.sink = to.place("sink", inputs.sink)
        to.launch.features.min_seqlen_q = to.case.skipped_seqlen_q


class SinkGrad(_OfSinks):
    """dsink, of lse with the sink and delta."""

    def cases(self, instance: Instance) -> list[Case]:
        return [case for case in _CASES if not case.skipped_seqlen_q]

    def draw(
        self, instance: Instance, case: Case, head_sizes: tuple[int, int], seed: int
    ) -> Inputs:
        inputs = _draw(case, "fp16", head_sizes, seed)
        assert inputs.lse_acc is not None
        assert inputs.sink is not None
        of_lse = np.logaddexp(inputs.lse_acc[0], inputs.sink[:, None])
        inputs.lse_acc[0] = of_lse
        return inputs

    def expected(
        self, instance: Instance, case: Case, inputs: Inputs, seed: int
    ) -> dict[str, Expected]:
        """Upstream's delta lacks the factor of dropout."""
        assert inputs.lse_acc is not None
        assert inputs.sink is not None
        lse, delta = inputs.lse_acc.astype(np.float64)
        sink = inputs.sink.astype(np.float64)[:, None]
        with np.errstate(invalid="ignore"):
            weight = np.where(np.isneginf(lse), 0.0, np.exp(sink - lse))
        parts = weight * delta / (1 - case.p_drop)
        spread = np.where(weight > 0, 2 + np.abs(lse) + np.abs(np.maximum(sink, -1e3)), 0.0)
        total = -parts.sum(axis=1)
        unit = _EPS * (np.sqrt(((parts * spread) ** 2).sum(axis=1)) + np.abs(total)) + 1e-37
        return {"dsink": Expected(total, unit)}

    def outputs(self, instance: Instance) -> tuple[str, ...]:
        return ("dsink",)

    def place(self, to: Arguments, inputs: Inputs) -> None:
        assert inputs.lse_acc is not None
        assert inputs.sink is not None
        to.launch.lse = _place_lse(to, "lse", inputs.lse_acc[0], output=False)
        to.launch.delta = _place_lse(to, "delta", inputs.lse_acc[1], output=False)
        to.launch.sink = to.place("sink", inputs.sink)
        to.launch.features.p_drop = to.case.p_drop
        to.unwritten_names.append("dsink")
        to.launch.dsink = to.place("dsink", np.zeros_like(inputs.sink), output=True)

    def read(self, of: Arguments) -> dict[str, Array]:
        return {"dsink": of.arrays["dsink"].astype(np.float64)}
