# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The table of launch configurations, and choices from it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from kernels.norm import configuration
from kernels.norm.configuration import (
    HOPPER,
    WEIGHTS_IN_SHARED_MEMORY,
    Configuration,
    Device,
    Entry,
    TableError,
    choose,
    load,
)

BF16_BYTES = {"forward": 2, "backward": 4}  # of the matrices read, per column
WEIGHT_BYTES = {"rms_forward": 2, "layer_forward": 4}  # of gamma and beta, per column
TABLE = load()
DEVICES = [
    HOPPER,
    Device(warp=32, bulk_copies=False, named_barriers=True, shared_bytes=64 * 1024),  # sm_75
    Device(warp=64, bulk_copies=False, named_barriers=False, shared_bytes=64 * 1024),  # gfx942
]
TUNED = [1 << power for power in range(10, 19)]


def _of(operation: str) -> int:
    return BF16_BYTES[operation.rsplit("_", 1)[1]]


@pytest.mark.parametrize("operation", configuration.OPERATIONS)
def test_a_tuned_row_is_used_as_it_was_tuned(operation: str) -> None:
    entry = TABLE[operation]
    tuned = dict(entry.tuned)
    for hidden in TUNED:
        weight_bytes = WEIGHT_BYTES.get(operation, 0)
        c = choose(entry, hidden, 8, _of(operation), x_bytes=2, weight_bytes=weight_bytes)
        assert c == tuned[hidden]


@pytest.mark.parametrize("operation", configuration.OPERATIONS)
@pytest.mark.parametrize("hidden", [1, 3, 64, 1000, 1025, 50257, 131072, 131073, 1 << 20])
@pytest.mark.parametrize("vector", [1, 2, 4, 8])
@pytest.mark.parametrize("device", DEVICES)
def test_what_is_chosen_can_run(operation: str, hidden: int, vector: int, device: Device) -> None:
    element_bytes = 4 * _of(operation)  # float32 and a third matrix: the most that is read
    weight_bytes = 2 * WEIGHT_BYTES.get(operation, 0)
    sums = {"rms_backward": 1, "layer_backward": 2}.get(operation, 0)
    c = choose(
        TABLE[operation],
        hidden,
        vector,
        element_bytes,
        x_bytes=4,
        weight_bytes=weight_bytes,
        sixteen_byte_rows=vector == 8,
        sums=sums,
        device=device,
    )
    c.check()
    assert c.packs(hidden, vector) * c.lanes * c.cluster * vector >= hidden
    shared = c.ring_bytes(hidden, vector, element_bytes)
    shared += c.weights_bytes(hidden, vector, weight_bytes)
    if shared:
        assert c.ctas_per_sm * shared <= device.shared_bytes
    assert c.combine_bytes(hidden, vector, sums) <= device.shared_bytes
    assert c.threads % device.warp == 0
    if not device.bulk_copies:
        assert (c.cluster, c.stages, c.on_demand) == (1, 0, 0)
    if c.lanes > device.warp and not device.named_barriers:
        assert c.threads == c.lanes
    if vector < 8:
        assert c.stages == 0
    if c.lag:
        assert c.resident(hidden, vector)
        assert c.lanes * c.cluster > device.warp


def test_lanes_follow_the_width() -> None:
    """A row serves smaller sizes down to the row above, with as many vectors to a thread."""
    c = Configuration(768, 384, 1, 0, 1, 0, 0, 1, 0, 0)
    entry = Entry(((1024, Configuration(128, 16, 1, 0, 1, 0, 0, 1, 0, 0)), (6144, c)), c)
    for hidden, lanes in ((6144, 384), (6143, 384), (5120, 320), (1544, 128), (1032, 96)):
        narrow = choose(entry, hidden, 8, 2, x_bytes=2)
        assert narrow == dataclasses.replace(c, lanes=lanes, threads=2 * lanes)
        assert narrow.packs(hidden, 8) <= 2
        assert choose(entry, hidden // 2, 4, 4, x_bytes=4).lanes in (lanes, lanes - 32)
    assert choose(entry, 1000, 8, 2, x_bytes=2).lanes == 16
    assert choose(entry, 6145, 8, 2, x_bytes=2) == entry.general


def test_lanes_are_whole_waves() -> None:
    c = Configuration(192, 96, 1, 0, 1, 0, 0, 1, 0, 0)
    narrow = choose(Entry(((1536, c),), c), 1536, 8, 2, x_bytes=2, device=DEVICES[2])
    assert (narrow.lanes, narrow.threads) == (128, 128)


def test_a_ring_that_does_not_fit_loses_slots_first() -> None:
    fits = Configuration(512, 512, 16, 4, 1, 1, 2, 1, 1, 0)
    entry = Entry((), fits)
    assert choose(entry, 131072, 8, 4, x_bytes=2) == fits
    wide = choose(entry, 131072, 8, 12, x_bytes=2)
    assert wide.stages < fits.stages
    assert dataclasses.replace(wide, stages=fits.stages) == fits


def test_weights_that_do_not_fit_are_read_for_every_row() -> None:
    kept = Configuration(128, 128, 8, 2, 3, 1, WEIGHTS_IN_SHARED_MEMORY, 1, 0, 1)
    entry = Entry((), kept)
    wide = choose(entry, 65536, 8, 2, x_bytes=2, weight_bytes=1 << 10)
    assert wide.keep_weights == 0
    assert choose(entry, 65536, 8, 2, x_bytes=2, weight_bytes=4) == kept


def test_no_columns() -> None:
    with pytest.raises(ValueError, match="hidden is 0"):
        choose(TABLE["rms_forward"], 0, 8, 2, x_bytes=2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("[64, 128, 8,", "[64, 128, 12,"), "lanes is a power of two"),
        (("[64, 128, 8, 1,", "[64, 128, 8, 2,"), "a cluster has one row"),
        (("[64, 128, 8, 1, 0,", "[64, 128, 8, 1, 2,"), "a ring feeds whole warps"),
        (("[64, 128,", "[64, 2048,"), "threads <= 1024"),
        (("[64, 128, 8,", "[9999, 128, 8,"), "hidden sizes must rise"),
        (("[64, 128, 8,", "[64, 8,"), "a row has 11 numbers"),
        (
            ("[64, 128, 8, 1, 0, 8, 0, 0, 1, 0, 0]", "[64, 128, 8, 1, 0, 8, 0, 4, 1, 0, 0]"),
            "0, 1, 2",
        ),
        (("8, 0, 1, 1, 0, 0]", "8, 0, 1, 1, 0, 1]"), "a cluster that asks for rows stays"),
        (
            (
                "[16384, 512, 512, 2, 2, 1, 1, 1, 1, 0, 0]",
                "[16384, 512, 512, 2, 2, 1, 1, 1, 1, 0, 1]",
            ),
            "change dgamma from run to run; use 0",
        ),
        (
            (
                "[16384, 512, 512, 2, 2, 1, 1, 1, 1, 0, 0]",
                "[16384, 512, 512, 2, 2, 1, 1, 3, 1, 0, 0]",
            ),
            "keep_weights is 0, 1 or 2 backward",
        ),
        (("[rms_forward]", "[group_forward]"), "operations must be"),
        (('"lag"', '"delay"'), "columns must be"),
    ],
)
def test_a_wrong_table(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    text = configuration.TABLE.read_text()
    assert change[0] in text
    table = tmp_path / "configurations.toml"
    table.write_text(text.replace(*change, 1))
    with pytest.raises(TableError, match=message):
        load(table)
