# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Attention, backward: the three kernels of a pass, or two, where the main one writes dq."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tests.emulation.harness.cases import Case
from tests.emulation.harness.kinds.attention import Attention
from tests.emulation.harness.launches import Instance
from tests.emulation.harness.reference import (
    Expected,
    Inputs,
    add_partial_dq,
    gradients,
    to_storage,
)

if TYPE_CHECKING:
    from tests.emulation.harness.arguments import Arguments


class _Backward(Attention):
    backward = True

    def place_results(self, to: Arguments, inputs: Inputs) -> None:
        case, launch, expected = to.case, to.launch, to.expected
        launch.lse = to.statistic("lse", expected["lse"].value)
        launch.delta = to.statistic("delta", expected["delta"].value)
        stored_o = to_storage(expected["o"].value, to.instance.dtype)
        launch.o = to.tensor("o", stored_o, to.length_q)
        launch.dout = to.tensor("dout", inputs.dout, to.length_q)
        dq_acc = inputs.dq_acc
        if dq_acc is None:
            tiles = 1
            if to.instance.deterministic:
                longest = max(length for _, length in case.lengths)
                tiles = max(1, math.ceil(longest / to.instance.tile_seqlen_k))
            # An accumulator: zeroed memory, not unwritten.
            dq_acc = np.zeros((tiles, *inputs.q.shape), np.float32)
        launch.dq_acc = to.place("dq_acc", dq_acc, output="dq_acc" in to.outputs)
        launch.features.dq_acc_stride_split = dq_acc[0].size
        launch.dq = to.output("dq", *inputs.q.shape, to.length_q)
        for name, like in (("dk", inputs.k), ("dv", inputs.v)):  # per query head
            size = like.shape[2]
            tensor = to.output(name, case.total_k, case.heads_q, size, to.length_k)
            setattr(launch, name, tensor)


class Gradients(_Backward):
    """dq as a sum in float32 (of few queries dq itself), dk and dv: dq_dk_dv."""

    any_length = True

    def outputs(self, instance: Instance) -> tuple[str, ...]:
        dq = "dq" if instance.max_seqlen_q else "dq_acc"
        return (dq, "dk", "dv", *(("dbias",) if instance.bias_grad else ()))

    def expected(
        self, instance: Instance, case: Case, inputs: Inputs, seed: int
    ) -> dict[str, Expected]:
        expected = super().expected(instance, case, inputs, seed)
        if instance.max_seqlen_q:
            # Of the float32 sum, which no other kernel rounds.
            expected["dq"] = gradients(case, instance.dtype, expected)["dq"]
        return expected


class _Beside(_Backward):
    """Before or behind dq_dk_dv: keys are not theirs to check."""

    checks_keys = False
    scores = False


class DotDoO(_Beside):
    """delta, of o and its gradient."""

    def outputs(self, instance: Instance) -> tuple[str, ...]:
        return ("delta",)


class ConvertDq(_Beside):
    """dq, of the sums that dq_dk_dv leaves."""

    def outputs(self, instance: Instance) -> tuple[str, ...]:
        return ("dq",)

    def expected(
        self, instance: Instance, case: Case, inputs: Inputs, seed: int
    ) -> dict[str, Expected]:
        expected = super().expected(instance, case, inputs, seed)
        expected["dq"] = add_partial_dq(
            case, instance.dtype, inputs, instance.tile_seqlen_k, instance.deterministic, seed
        )
        return expected
