# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The launch configurations that the library chooses (aiter/norm/configure.cc), asked of
//aiter/norm:print_choices."""

from __future__ import annotations

import dataclasses
import os
import subprocess
from collections.abc import Iterable

from kernels.norm.configuration import Configuration

# Names the program; without it, where Bazel builds it.
PROGRAM = "AITER_ATTN_NORM_CHOICES"
_BUILT = "bazel-bin/aiter/norm/print_choices"


@dataclasses.dataclass(frozen=True)
class Device:
    """The traits of a device that a choice depends on."""

    warp: int  # threads
    bulk_copies: bool  # and clusters
    named_barriers: bool  # rows of several warps can share a CTA
    shared_bytes: int  # that one CTA, or all of a multiprocessor, can have


HOPPER = Device(warp=32, bulk_copies=True, named_barriers=True, shared_bytes=227 * 1024)
AMPERE = Device(warp=32, bulk_copies=False, named_barriers=True, shared_bytes=163 * 1024)


@dataclasses.dataclass(frozen=True)
class Rows:
    """The rows of a call, as aiter/norm/configure.h has their traits, and their device."""

    operation: str  # of kernels.norm.configuration
    hidden: int
    vector: int
    x_bytes: int
    element_bytes: int
    weight_bytes: int = 0
    sums: int = 0
    sixteen_bytes: bool = True
    shifted: bool = False  # rows start at any element of a vector
    largest_bytes: int = 2  # of an element, the largest of the matrices read
    count: int = 1 << 20  # of rows
    device: Device = HOPPER

    def line(self) -> str:
        """The rows as the program reads them."""
        numbers = dataclasses.astuple(self)[1:-1] + dataclasses.astuple(self.device)
        return " ".join([self.operation, *(str(int(number)) for number in numbers)])


def choose(asked: Iterable[Rows]) -> list[Configuration]:
    """Raises OSError where the program is not there, ValueError for rows that it does not read."""
    lines = [rows.line() for rows in asked]
    program = os.environ.get(PROGRAM, _BUILT)
    text = "\n".join(lines)
    done = subprocess.run([program], input=text, capture_output=True, text=True, check=True)
    made = [Configuration(*map(int, line.split())) for line in done.stdout.splitlines()]
    if len(made) != len(lines):
        raise ValueError(f"{lines[len(made)]}: not read by {program}; allowed: fields of Rows")
    return made
