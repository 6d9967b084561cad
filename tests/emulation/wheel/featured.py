# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Problems of fp16 with a bias, ALiBi, dropout or a soft cap."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.emulation.harness import reference
from tests.emulation.harness.cases import MASK_BOTTOM_RIGHT, MASK_NONE, Case
from tests.emulation.wheel.problems import NO_WINDOW, Problem, Shape, backward, mask
from tests.emulator.hip.hip import Hip

WINDOW = (40, 9)
HEAD_SIZE = 64
STATE = (reference.DROP_SEED, reference.DROP_OFFSET)


class Featured(Problem):
    """A problem with features of a Case, and the options by which a call asks for them."""

    def __init__(
        self,
        hip: Hip,
        shape: Shape,
        arch: str,
        sizes: tuple[int, int] = (HEAD_SIZE, HEAD_SIZE),
        **features: Any,
    ) -> None:
        super().__init__(hip, shape, "float16", HEAD_SIZE, hip.device_of(arch))
        kind = MASK_NONE if shape.window == NO_WINDOW else MASK_BOTTOM_RIGHT
        self.case = Case(
            "", shape.lengths, *shape.heads, mask=kind, window=shape.window, **features
        )
        self.inputs = reference.draw(self.case, "fp16", sizes, seed=7, backward=True)
        self.options: dict[str, Any] = {"stream": self.stream, **mask(shape.window)}
        if self.case.p_drop:
            # Windowed problems have the numbers on the device, where kernels read them.
            state: Any = STATE
            if shape.window == WINDOW:
                words = np.array(STATE, np.uint64).view(np.int64)
                state = hip.array(words, self.stream, self.device)
            self.options |= {"dropout_p": self.case.p_drop, "rng_state": state}
        if self.case.soft_cap:
            self.options["softcap"] = self.case.soft_cap
        if self.inputs.slopes is not None:
            slopes = hip.array(self.inputs.slopes, self.stream, self.device)
            self.options["alibi_slopes"] = slopes
        if self.inputs.bias is not None:
            self.options["bias"] = self.scores(self.inputs.bias)

    def scores(self, stored: Any) -> Any:
        """Bits [heads][queries][keys] on the device, of batch mode."""
        values = stored.view(np.float16)
        split = values.reshape(len(values), len(self.shape.lengths), -1, values.shape[2])
        return self.hip.array(np.ascontiguousarray(split.swapaxes(0, 1)), self.stream, self.device)

    def arrays(self) -> list[Any]:
        inputs = self.inputs
        return [self.array(x) for x in (inputs.q, inputs.k, inputs.v, inputs.dout)]


def run(problem: Featured, **options: Any) -> dict[str, Any]:
    """Both passes; the results by name."""
    q, k, v, dout = problem.arrays()
    fwd, bwd, more = problem.mode()
    out, lse = fwd(q, k, v, *more, **problem.options)
    given = (dout, q, k, v, out, lse, *more)
    gradients, _workspace = backward(problem, bwd, *given, **problem.options | options)
    problem.hip.synchronize(problem.stream)
    names = ("o", "lse", "dq", "dk", "dv", "dbias")
    return dict(zip(names, (out, lse, *gradients), strict=False))
