# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The face of a kind of kernels to the harness."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING

import numpy as np

from tests.emulation.harness.cases import Case
from tests.emulation.harness.launches import Instance
from tests.emulation.harness.reference import Expected, Inputs

if TYPE_CHECKING:
    from tests.emulation.harness.arguments import Arguments

Array = np.ndarray


class Kind(abc.ABC):
    """The kernels of one kind: their cases, inputs, memory and results.

    writes_lse   whether kernels of the kind may write lse, which the trait says
    takes_turns  whether the halves of a workgroup meet at barriers of their own
    """

    writes_lse = False
    takes_turns = False

    @abc.abstractmethod
    def cases(self, instance: Instance) -> list[Case]:
        """All cases of an instance, that of several tiles first."""

    @abc.abstractmethod
    def draw(
        self, instance: Instance, case: Case, head_sizes: tuple[int, int], seed: int
    ) -> Inputs:
        """The inputs; head_sizes are those of q and k, and of v and o."""

    @abc.abstractmethod
    def expected(
        self, instance: Instance, case: Case, inputs: Inputs, seed: int
    ) -> dict[str, Expected]:
        """The outputs in float64, and the values needed beside them. May complete the inputs."""

    @abc.abstractmethod
    def outputs(self, instance: Instance) -> tuple[str, ...]:
        """The names of the outputs that are compared with `expected`."""

    @abc.abstractmethod
    def place(self, to: Arguments, inputs: Inputs) -> None:
        """Puts the inputs and room for the outputs into memory, and fills in the LaunchArgs."""

    def read(self, of: Arguments) -> dict[str, Array]:
        """The outputs as float64 in the reference's shapes."""
        return {name: of.output_of(name) for name in of.outputs}

    def page_size(self, instance: Instance) -> int:
        """The keys per page that an instance takes; 0: none are in pages."""
        return 0

    def group_mode(self, instance: Instance, case: Case) -> bool:
        """Whether the sequences of a case follow one another in memory."""
        return bool(instance.group_mode)
