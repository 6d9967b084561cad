# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The library chooses the launch configurations that kernels/norm/configuration.py chooses."""

from __future__ import annotations

import dataclasses
import itertools
import os
import subprocess

from kernels.norm.configuration import HOPPER, OPERATIONS, Configuration, Device, choose, load

# As RowOperation counts them.
ORDER = (
    "rms_forward",
    "layer_forward",
    "softmax_forward",
    "rms_backward",
    "layer_backward",
    "softmax_backward",
)
HIDDEN = sorted(
    {1, 3, 40, 127, 1000, 2304, 2880, 20480, 50257, 151936, 262144, 2**31 - 2**20}
    | {(1 << power) + more for power in range(6, 18) for more in (-1, 0, 1)}
)
DEVICES = (
    HOPPER,
    Device(warp=32, bulk_copies=True, named_barriers=True, shared_bytes=99 * 1024),  # sm_120
    Device(warp=32, bulk_copies=False, named_barriers=True, shared_bytes=163 * 1024),  # sm_80
    Device(warp=32, bulk_copies=False, named_barriers=True, shared_bytes=64 * 1024),  # sm_75
    Device(warp=64, bulk_copies=False, named_barriers=False, shared_bytes=64 * 1024),  # gfx942
    Device(warp=64, bulk_copies=False, named_barriers=False, shared_bytes=160 * 1024),  # gfx950
)


def test_every_choice_is_the_same() -> None:
    assert sorted(ORDER) == sorted(OPERATIONS)
    table = load()
    lines, want = [], []
    problems = itertools.product(
        ORDER, HIDDEN, (1, 2, 4, 8), (2, 4), (1, 3), (0, 2, 8), (False, True), DEVICES
    )
    # Every 11th: a prime, so that no column of the product is always the same.
    for operation, hidden, vector, x_bytes, read, weight_bytes, sixteen, device in itertools.islice(
        problems, 0, None, 11
    ):
        element_bytes = x_bytes * read
        sums = {"rms_backward": 1, "layer_backward": 2}.get(operation, 0)
        c = choose(
            table[operation],
            hidden,
            vector,
            element_bytes,
            x_bytes=x_bytes,
            weight_bytes=weight_bytes,
            sums=sums,
            sixteen_byte_rows=sixteen,
            device=device,
        )
        want.append(c)
        numbers = (hidden, vector, x_bytes, element_bytes, weight_bytes, sums, sixteen)
        numbers = (ORDER.index(operation), *numbers, *dataclasses.astuple(device))
        lines.append(" ".join(str(int(number)) for number in numbers))
    printed = subprocess.run(
        [os.environ["PRINT_CHOICES"]],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    got = [Configuration(*map(int, line.split())) for line in printed]
    assert len(got) == len(want)
    for line, one, other in zip(lines, got, want, strict=True):
        assert one == other, line
