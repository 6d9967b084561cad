# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Each check finds the mistake it is for, names the instruction, and is silent otherwise."""

from __future__ import annotations

import numpy as np
import pytest

from gfxemu import Checks
from gfxemu.checks import COMPARED, LEFT_OUT, POISONS
from gfxemu.errors import BarrierDivergence, MemoryFault, Timeout
from gfxemu.tests.assembly import EPILOGUE, PROLOGUE, ROTATE, Launch, replaced, without

SCHEDULES = ("sliced:2", "barrier", "random:5")


def _rotated(launch: Launch) -> np.ndarray:
    return np.roll(launch.input.reshape(-1, 256), -64, axis=1).reshape(-1)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_good_kernel(schedule: str) -> None:
    launch = Launch(ROTATE, schedule=schedule)
    launch.report.raise_findings()
    assert (launch.output == _rotated(launch)).all()
    assert launch.report.wave_instructions == 2 * 3 * 4 * len(ROTATE)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_missing_barrier(schedule: str) -> None:
    launch = Launch(
        without(ROTATE, "s_barrier"), schedule=schedule, checks=Checks(uninitialised=False)
    )
    assert [f.signature for f in launch.report.findings] == ["race: ds_read_b32, ds_write_b32"]
    message = str(launch.report.findings[0])
    assert "ds_write_b32 v1, v2" in message and "ds_read_b32 v4, v3" in message


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_missing_wait_before_the_barrier(schedule: str) -> None:
    lines = without(ROTATE, "s_waitcnt lgkmcnt(0) // writes done")
    launch = Launch(lines, schedule=schedule, checks=Checks(uninitialised=False))
    assert "unwaited-write" in launch.kinds


def test_missing_wait_after_a_global_load() -> None:
    launch = Launch(without(ROTATE, "s_waitcnt vmcnt(0)"))
    assert launch.kinds == ["uninitialised"]
    assert "the stored value" in launch.report.findings[0].message
    assert "global_store_dword v1, v4" in launch.report.findings[0].message


def test_missing_wait_after_an_lds_read() -> None:
    launch = Launch(without(ROTATE, "s_waitcnt lgkmcnt(0) // reads done"))
    assert launch.kinds == ["uninitialised"]


def test_missing_wait_after_a_scalar_load() -> None:
    """The pointer is poison: the first address that comes of it is named or faults."""
    with pytest.raises(MemoryFault, match="global access"):
        Launch(without(ROTATE, "s_waitcnt lgkmcnt(0)"))


def test_missing_waits_are_invisible_with_immediate_landing() -> None:
    launch = Launch(without(ROTATE, "s_waitcnt vmcnt(0)"), checks=Checks(late_landing=False))
    assert not launch.kinds and (launch.output == _rotated(launch)).all()


def test_unwaited_read() -> None:
    """The barrier comes, but the read before it may still be under way when the next write is."""
    lines = (
        *PROLOGUE,
        "ds_write_b32 v1, v2",
        "s_waitcnt lgkmcnt(0)",
        "s_barrier",
        "v_xor_b32 v3, 0x100, v1",
        "ds_read_b32 v4, v3",
        "s_barrier",
        "ds_write_b32 v1, v0",
        "s_waitcnt lgkmcnt(0)",
        *EPILOGUE,
    )
    assert Launch(lines).kinds == ["unwaited-read"]
    fixed = list(lines)
    fixed.insert(fixed.index("ds_read_b32 v4, v3") + 1, "s_waitcnt lgkmcnt(0) // read done")
    assert not Launch(fixed).kinds


def test_writes_of_the_same_value_do_not_race() -> None:
    """All waves write one constant to the same place; then each its own number."""
    for value, kinds in (("v_mov_b32 v5, 7", []), ("v_mov_b32 v5, v0", ["race"])):
        lines = (
            *PROLOGUE,
            value,
            "v_and_b32 v3, 0xff, v1",
            "ds_write_b32 v3, v5",
            "s_waitcnt lgkmcnt(0)",
            "v_mov_b32 v4, v2",
            *EPILOGUE,
        )
        assert Launch(lines, checks=Checks(uninitialised=False)).kinds == kinds


# Uninitialised data.


@pytest.mark.parametrize(
    ("lines", "what", "where"),
    [
        ((*PROLOGUE, "v_add_u32 v4, v20, v2", *EPILOGUE), "the stored value", "global_store_dword"),
        ((*PROLOGUE, "v_mov_b32 v4, s40", *EPILOGUE), "the stored value", "global_store_dword"),
        (
            (*PROLOGUE, "ds_read_b32 v4, v1", "s_waitcnt lgkmcnt(0)", *EPILOGUE),
            "the stored value",
            "global_store_dword",
        ),
        (
            (
                *PROLOGUE,
                "scratch_load_dword v4, off, off offset:8",
                "s_waitcnt vmcnt(0)",
                *EPILOGUE,
            ),
            "the stored value",
            "global_store_dword",
        ),
        (
            (
                *PROLOGUE,
                "v_and_b32 v20, 0xfc, v20",
                "global_load_dword v4, v20, s[4:5]",
                "s_waitcnt vmcnt(0)",
                "v_mov_b32 v4, v2",
                *EPILOGUE,
            ),
            "the address",
            "global_load_dword",
        ),
        (
            (
                *PROLOGUE,
                "v_and_b32 v20, 0xfc, v20",
                "ds_read_b32 v4, v20",
                "s_waitcnt lgkmcnt(0)",
                "v_mov_b32 v4, v2",
                *EPILOGUE,
            ),
            "the LDS address",
            "ds_read_b32",
        ),
        (
            (
                *PROLOGUE,
                "v_mov_b32 v4, v2",
                "s_bitcmp1_b32 s40, 0",
                "s_cbranch_scc1 1",
                "s_nop 0",
                *EPILOGUE,
            ),
            "the branch",
            "s_cbranch_scc1",
        ),
    ],
)
def test_uninitialised(lines: tuple[str, ...], what: str, where: str) -> None:
    launch = Launch(lines)
    assert "uninitialised" in launch.kinds
    finding = launch.report.findings[0]
    assert what in finding.message and where in finding.message


def test_uninitialised_memory() -> None:
    assert not Launch(ROTATE).kinds
    assert Launch(ROTATE, uninitialised_input=True).kinds == ["uninitialised"]


@pytest.mark.parametrize(
    "lines",
    [
        # Masked away, selected away, or in lanes that do not store.
        (*PROLOGUE, "v_and_b32 v20, 0, v20", "v_or_b32 v4, v20, v2", *EPILOGUE),
        (*PROLOGUE, "s_mov_b64 vcc, 0", "v_cndmask_b32 v4, v2, v20, vcc", *EPILOGUE),
        (*PROLOGUE, "v_mov_b32 v4, v20", "s_mov_b64 exec, 0xff", "v_mov_b32 v4, v2", *EPILOGUE),
        # Written before it is read.
        (
            *PROLOGUE,
            "scratch_store_dword off, v2, off offset:8",
            "s_waitcnt vmcnt(0)",
            "scratch_load_dword v4, off, off offset:8",
            "s_waitcnt vmcnt(0)",
            *EPILOGUE,
        ),
    ],
)
def test_uninitialised_data_that_does_not_matter(lines: tuple[str, ...]) -> None:
    assert not Launch(lines).kinds


# Bounds.


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "global_load_dword v2, v1, s[4:5]",
            "global_load_dword v2, v1, s[4:5] offset:4",
            "nearest: in",
        ),
        (
            "global_store_dword v1, v4, s[6:7]",
            "global_store_dword v1, v4, s[6:7] offset:-4",
            "nearest:",
        ),
        ("ds_write_b32 v1, v2", "ds_write_b32 v1, v2 offset:4", "the workgroup has 0x400 bytes"),
        ("ds_read_b32 v4, v3", "ds_read_b64 v[4:5], v3 offset:4", "LDS access"),
        ("s_barrier", "scratch_store_dword off, v2, off offset:64", "the kernel has 0x40 bytes"),
    ],
)
def test_out_of_bounds(old: str, new: str, message: str) -> None:
    with pytest.raises(MemoryFault, match=message) as error:
        Launch(replaced(ROTATE, old, new))
    assert new in str(error.value) and "wave" in str(error.value)


def test_lds_stores_out_of_bounds_can_be_dropped() -> None:
    """As hardware does; reads stay faults."""
    beyond = "ds_write_b32 v1, v2 offset:4"  # the last work-item's is out of bounds
    dropping = Checks(lds_stores=False)
    launch = Launch(replaced(ROTATE, "ds_write_b32 v1, v2", beyond), checks=dropping)
    # A work-item reads the value that the one before the next wave's has stored.
    expected = np.roll(launch.input.reshape(-1, 256), -63, axis=1)
    assert np.array_equal(launch.output.reshape(-1, 256)[:, :192], expected[:, :192])
    with pytest.raises(MemoryFault, match="LDS access"):
        Launch(
            replaced(ROTATE, "ds_read_b32 v4, v3", "ds_read_b64 v[4:5], v3 offset:4"),
            checks=dropping,
        )


# Range checks.


@pytest.mark.parametrize(("soffset", "lanes"), [("0", 0), ("0x20", 8)])
def test_where_soffset_decides(soffset: str, lanes: int) -> None:
    """Work-items whose dword is among the last of the buffer, in each of two workgroups."""
    lines = (
        *PROLOGUE,
        *("s_mov_b32 s24, s4", "s_mov_b32 s25, s5", "s_mov_b32 s26, 0x200"),
        "s_mov_b32 s27, 0x20000",
        f"buffer_load_dword v4, v1, s[24:27], {soffset} offen",
        "s_waitcnt vmcnt(0)",
        *EPILOGUE,
    )
    compared = Launch(lines, workgroups=2, checks=Checks(soffset=COMPARED))
    counted = Launch(lines, workgroups=2)
    left_out = Launch(lines, workgroups=2, checks=Checks(soffset=LEFT_OUT))
    assert compared.kinds == (["soffset"] if lanes else [])
    assert compared.report.in_step == (not lanes)
    for finding in compared.report.findings:
        assert f"decides the range check of {2 * lanes} lanes" in finding.message
        assert finding.signature == "soffset: buffer_load_dword"
    assert not counted.kinds and not left_out.kinds
    assert np.array_equal(counted.output, compared.output)
    assert np.count_nonzero(counted.output != left_out.output) == 2 * lanes


# Barriers and loops.


def test_barrier_that_one_wave_skips() -> None:
    """Wave 0 jumps over the barrier and ends while the others wait."""
    lines = (
        *PROLOGUE,
        "v_readfirstlane_b32 s10, v0",
        "s_cmp_eq_u32 s10, 0",
        "s_cbranch_scc1 1",
        "s_barrier",
        "v_mov_b32 v4, v2",
        *EPILOGUE,
    )
    with pytest.raises(BarrierDivergence, match=r"wave 0 ended; wave 1 waits at .*s_barrier"):
        Launch(lines)


def test_waves_at_different_barriers() -> None:
    lines = (
        *PROLOGUE,
        "v_readfirstlane_b32 s10, v0",
        "s_cmp_eq_u32 s10, 0",
        "s_cbranch_scc1 2",
        "s_barrier",
        "s_branch 1",
        "s_barrier",
        "v_mov_b32 v4, v2",
        *EPILOGUE,
    )
    with pytest.raises(BarrierDivergence, match="do not meet"):
        Launch(lines)


def test_endless_loop() -> None:
    with pytest.raises(Timeout, match="more than 10000"):
        Launch((*PROLOGUE, "s_branch -1", *EPILOGUE))


# Batches.


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_workgroups_that_take_different_branches(schedule: str) -> None:
    """Workgroup g adds 1 to its input g times, with an LDS round trip and a barrier each time."""
    lines = (
        *PROLOGUE,
        "s_mov_b32 s10, s2",
        "s_cmp_eq_u32 s10, 0",
        "s_cbranch_scc1 11",
        "v_add_u32 v2, 1, v2",
        "ds_write_b32 v1, v2",
        "s_waitcnt lgkmcnt(0)",
        "s_barrier",
        "ds_read_b32 v2, v1",
        "s_waitcnt lgkmcnt(0)",
        "s_barrier",
        "s_sub_u32 s10, s10, 1",
        "s_branch -13",
        "v_mov_b32 v4, v2",
        *EPILOGUE,
    )
    launch = Launch(lines, workgroups=20, schedule=schedule)
    launch.report.raise_findings()
    wanted = launch.input + np.repeat(np.arange(20, dtype=np.uint32), 256)
    assert (launch.output == wanted).all()


@pytest.mark.parametrize("block", [1, 63, 65, 192])
def test_blocks_that_do_not_fill_waves(block: int) -> None:
    launch = Launch((*PROLOGUE, "v_mov_b32 v4, v2", *EPILOGUE), block=block, checks=Checks.none())
    grid = launch.output.reshape(-1, 256)
    assert (grid[:, :block] == launch.input.reshape(-1, 256)[:, :block]).all()
    assert (grid[:, block:] == POISONS[0]).all()
