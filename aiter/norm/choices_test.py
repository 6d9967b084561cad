# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The library's choices from the table of launch configurations."""

from __future__ import annotations

import itertools

import pytest

from kernels.norm.configuration import OPERATIONS, load
from tests.support.norms.choices import HOPPER, Device, Rows, choose

BF16_BYTES = {"forward": 2, "backward": 4}  # of the matrices read, per column
WEIGHT_BYTES = {"rms_forward": 2, "layer_forward": 4}  # of gamma and beta, per column
SUMS = {"rms_backward": 1, "layer_backward": 2}
TUNED = [1 << power for power in range(10, 19)]
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


def bytes_of(operation: str) -> int:
    return BF16_BYTES[operation.rsplit("_", 1)[1]]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_tuned_row_is_used_as_it_was_tuned(operation: str) -> None:
    tuned = dict(load()[operation].tuned)
    weights = WEIGHT_BYTES.get(operation, 0)
    asked = [Rows(operation, hidden, 8, 2, bytes_of(operation), weights) for hidden in TUNED]
    assert choose(asked) == [tuned[hidden] for hidden in TUNED]


@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_is_chosen_can_run(operation: str) -> None:
    asked = [
        Rows(
            operation,
            hidden,
            vector,
            x_bytes,
            x_bytes * read,
            2 * weights * WEIGHT_BYTES.get(operation, 0),
            SUMS.get(operation, 0),
            sixteen_bytes=vector * x_bytes % 16 == 0,
            shifted=hidden % vector > 0,
            largest_bytes=x_bytes,
            count=count,
            device=device,
        )
        for hidden, vector, x_bytes, read, weights, device, count in itertools.product(
            HIDDEN, (1, 2, 4, 8), (2, 4), (1, 3), (0, 1), DEVICES, (1, 1 << 20)
        )
    ]
    for rows, c in zip(asked, choose(asked), strict=True):
        device, hidden, vector = rows.device, rows.hidden, rows.vector
        c.check()
        assert c.packs(hidden, vector) * c.lanes * c.cluster * vector >= hidden
        beyond = vector if rows.shifted and operation in SUMS else 0
        shared = c.ring_bytes(hidden, vector, rows.element_bytes, beyond)
        shared += c.weights_bytes(hidden, vector, rows.weight_bytes)
        assert not shared or c.ctas_per_sm * shared <= device.shared_bytes
        assert c.combine_bytes(hidden, vector, rows.sums) <= device.shared_bytes
        assert c.threads % device.warp == 0
        assert device.bulk_copies or (c.cluster, c.stages, c.on_demand) == (1, 0, 0)
        assert c.lanes <= device.warp or device.named_barriers or c.threads == c.lanes
        assert rows.sixteen_bytes or c.stages == 0
        assert not c.few_rows or operation in SUMS
        if rows.shifted and rows.weight_bytes:
            assert c.keep_weights in (0, 3)
        if c.lag:
            assert c.resident(hidden, vector)
            assert c.lanes * c.cluster > device.warp


def test_an_operation_that_there_is_not() -> None:
    with pytest.raises(Exception, match="print_choices"):
        choose([Rows("group_forward", 64, 8, 2, 2)])
