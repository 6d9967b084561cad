# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Waves in step give the results of a schedule, wave after wave: random kernels, and hard cases."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator

import numpy as np
import pytest

from gfxemu import Checks, EmulationError
from gfxemu.errors import BarrierDivergence, MemoryFault
from gfxemu.tests.assembly import EPILOGUE, PROLOGUE, ROTATE, Launch, without

# v8..v15 and s10..s15 are what random kernels compute with. s14 differs between waves, s15
# between workgroups.
_VECTORS, _SCALARS = range(8, 16), range(10, 16)
_BINARY = ("v_add_u32", "v_sub_u32", "v_add_i32", "v_sub_i32", "v_and_b32", "v_or_b32",
           "v_xor_b32", "v_mul_lo_u32", "v_lshlrev_b32", "v_lshrrev_b32", "v_ashrrev_i32",
           "v_min_u32", "v_max_i32", "v_add_f32", "v_sub_f32", "v_mul_f32", "v_max_f32",
           "v_cvt_pkrtz_f16_f32", "v_mul_u32_u24")  # fmt: skip
_TERNARY = ("v_fma_f32", "v_add3_u32", "v_lshl_add_u32", "v_perm_b32", "v_bfe_u32", "v_bfi_b32",
            "v_max3_f32", "v_alignbit_b32")  # fmt: skip
_SCALAR = ("s_add_u32", "s_sub_i32", "s_and_b32", "s_xor_b32", "s_mul_i32", "s_lshl_b32",
           "s_lshr_b32", "s_max_u32", "s_bfe_u32", "s_mul_hi_u32", "s_cselect_b32")  # fmt: skip
# Of the workgroup's input: a raw buffer of 896 bytes, and one of 200 dwords with an index.
_DESCRIPTORS = (
    "s_mov_b32 s24, s4", "s_mov_b32 s25, s5", "s_mov_b32 s26, 0x380", "s_mov_b32 s27, 0x20000",
    "s_mov_b32 s28, s4", "s_or_b32 s29, s5, 0x40000", "s_mov_b32 s30, 200",
    "s_mov_b32 s31, 0x20000",
)  # fmt: skip
_ONE_DWORD = "v_xor_b32_e32 v8, v9, v8"


class _Kernel:
    """A random kernel; `careless` ones may lack waits and barriers, and read unwritten data."""

    def __init__(self, seed: int):
        self._random = random.Random(seed)
        self._careless = seed % 3 == 0
        self._sums = seed % 2 == 1  # changes its input, which others read by buffers
        self.lines = [*PROLOGUE, *_DESCRIPTORS, "s_mov_b32 s15, s2", "v_readfirstlane_b32 s14, v0"]
        self.lines += [f"s_mov_b32 s{i}, {self._constant()}" for i in range(10, 14)]
        self.lines += [f"v_mul_u32_u24 v{i}, {3 * i + 1}, v2" for i in _VECTORS]
        for _ in range(self._random.randint(6, 14)):
            self.lines += self._piece()
        self.lines += ["v_mov_b32 v4, v2", *(f"v_xor_b32 v4, v4, v{i}" for i in _VECTORS)]
        self.lines += [*(f"v_xor_b32 v4, s{i}, v4" for i in _SCALARS), *EPILOGUE]

    def _constant(self) -> str:
        return str(self._random.choice((0, 1, 7, 64, -3, "0x3f800000", "0x12345", "0xffff0000")))

    def _vector(self) -> str:
        return f"v{self._random.choice(_VECTORS)}"

    def _scalar(self) -> str:
        return f"s{self._random.choice(_SCALARS)}"

    def _arithmetic(self) -> Iterator[str]:
        for _ in range(self._random.randint(1, 5)):
            kind = self._random.randrange(8)
            first = self._random.choice((self._vector(), self._scalar()))
            if kind < 4:
                name = self._random.choice(_BINARY)
                yield f"{name} {self._vector()}, {first}, {self._vector()}"
            elif kind < 6:
                name = self._random.choice(_TERNARY)
                yield f"{name} {self._vector()}, {first}, {self._vector()}, {self._vector()}"
            elif kind == 6:
                name = self._random.choice(_SCALAR)
                yield f"{name} {self._scalar()}, {self._scalar()}, {self._scalar()}"
            else:
                yield f"v_cmp_gt_u32 vcc, {first}, {self._vector()}"
                yield f"v_cndmask_b32 {self._vector()}, {self._vector()}, {self._vector()}, vcc"

    def _masked(self) -> Iterator[str]:
        """Some lanes only, of some waves perhaps none."""
        limit = self._random.randrange(40, 230)
        if self._random.random() < 0.3:
            yield from ("s_mov_b64 s[20:21], exec", f"v_cmpx_lt_u32 vcc, {limit}, v0", "v_nop")
        else:
            yield f"v_cmp_lt_u32 vcc, {limit}, v0"
            yield "s_and_saveexec_b64 s[20:21], vcc"
        if self._random.random() < 0.5:
            yield from ("s_cbranch_execz 1", _ONE_DWORD)
        yield from self._random.choice((self._arithmetic, self._own_slot, self._lanes))()
        yield "s_mov_b64 exec, s[20:21]"

    def _branch(self) -> Iterator[str]:
        """By wave or by workgroup."""
        yield f"s_cmp_gt_u32 {self._random.choice(('s14', 's15', 's2'))}, 1"
        yield from (f"s_cbranch_scc{self._random.randrange(2)} 1", _ONE_DWORD)

    def _own_slot(self) -> Iterator[str]:
        """A lane's own writes need no barrier."""
        width = self._random.choice(("b32", "b16", "b8"))
        read = {"b32": "b32", "b16": "u16", "b8": "i8"}[width]
        at = self._random.choice(("", f" offset:{0 if width == 'b32' else 1}"))
        yield f"ds_write_{width} v1, {self._vector()}{at}"
        to = self._vector()
        yield f"ds_read_{read} {to}, v1{at}"
        yield from self._wait()
        yield from ("s_waitcnt lgkmcnt(0)", "s_barrier")

    def _wait(self) -> Iterator[str]:
        if not (self._careless and self._random.random() < 0.1):
            yield "s_waitcnt vmcnt(0) lgkmcnt(0)"

    def _barrier(self) -> Iterator[str]:
        if not (self._careless and self._random.random() < 0.1):
            yield "s_barrier"

    def _exchange(self) -> Iterator[str]:
        yield f"ds_write_b32 v1, {self._vector()}"
        yield from self._wait()
        yield from self._barrier()
        yield f"v_xor_b32 v3, {self._random.choice(('0x100', '0x200', '4'))}, v1"
        yield f"ds_read_b32 {self._vector()}, v3"
        yield from self._wait()
        yield from self._barrier()

    def _same_value(self) -> Iterator[str]:
        """All waves write one constant, which is no race."""
        yield f"v_mov_b32 v5, {self._random.choice(('7', 's13', 's13', 's14'))}"
        yield "v_and_b32 v3, 0xfc, v1"
        yield "ds_write_b32 v3, v5"
        yield from self._wait()
        yield from self._barrier()
        yield f"ds_read_b32 {self._vector()}, v3"
        yield from ("s_waitcnt lgkmcnt(0)", "s_barrier")

    def _loads(self) -> Iterator[str]:
        yield f"global_load_dword {self._vector()}, v1, s[4:5]"
        yield f"s_load_dword s12, s[0:1], {self._random.choice(('0x0', '0x8'))}"
        yield from self._wait()

    def _buffers(self) -> Iterator[str]:
        """An access in range is in bounds, also with any soffset in the raw buffer."""
        soffset = self._random.choice(("0", "s15", "s14", "s13", "0x80"))
        at = self._random.choice((0, 4, 60))
        if self._sums:
            kind = self._random.choice(("add_f32", "pk_add_f16", "pk_add_bf16"))
            yield self._random.choice((
                f"global_atomic_{kind} v1, {self._vector()}, s[4:5]",
                f"buffer_atomic_add_f32 {self._vector()}, v1, s[24:27], 0 offen",
                f"buffer_atomic_pk_add_f16 {self._vector()}, v0, s[28:31], 0 idxen",
            ))  # fmt: skip
        elif self._random.random() < 0.5:
            yield f"buffer_load_dword {self._vector()}, v1, s[24:27], {soffset} offen offset:{at}"
        else:
            yield f"buffer_load_dword {self._vector()}, v0, s[28:31], s2 idxen offset:{at}"
        yield from self._wait()

    def _lanes(self) -> Iterator[str]:
        lane = self._random.choice(("s14", "s15", "3"))
        yield f"v_readlane_b32 s11, {self._vector()}, {lane}"
        yield f"v_writelane_b32 {self._vector()}, s11, 5"
        yield f"v_readfirstlane_b32 {self._scalar()}, {self._vector()}"
        yield f"ds_bpermute_b32 {self._vector()}, v1, {self._vector()}"
        yield "s_waitcnt lgkmcnt(0)"

    def _unwritten(self) -> Iterator[str]:
        if self._careless and self._random.random() < 0.4:
            yield f"v_and_b32 {self._vector()}, {self._random.choice(('0', 's10', '-1'))}, v40"
            yield f"s_and_b32 s10, {self._random.choice(('0', '1'))}, s50"

    def _piece(self) -> Iterator[str]:
        return self._random.choice((
            self._arithmetic, self._arithmetic, self._masked, self._masked, self._branch,
            self._own_slot, self._exchange, self._same_value, self._loads, self._lanes,
            self._buffers, self._buffers, self._unwritten,
        ))()  # fmt: skip


@dataclasses.dataclass
class _Outcome:
    """All that a launch gives, but how long it took and which way it went."""

    error: str
    findings: list[str]
    instructions: int
    output: bytes


def _outcome(lines: list[str], in_step: bool, **kwargs) -> tuple[_Outcome, bool]:
    try:
        launch = Launch(lines, in_step=in_step, **kwargs)
    except EmulationError as error:
        return _Outcome(f"{type(error).__name__}: {error}", [], 0, b""), False
    report = launch.report
    findings = [str(f) for f in report.findings]
    output = launch.output.tobytes()
    return _Outcome("", findings, report.wave_instructions, output), report.in_step


_SETTINGS = [
    {},
    {"workgroups": 5, "schedule": "sliced:8"},
    {"block": 200, "checks": Checks(uninitialised=False)},
    {"block": 64, "workgroups": 2},
    {"checks": Checks(late_landing=False)},
]


def test_random_kernels() -> None:
    """Random instructions with partial EXEC, branches, exchanges through LDS, and mistakes."""
    ways: dict[str, int] = {"in step": 0, "findings": 0}
    for seed in range(90):
        lines, settings = _Kernel(seed).lines, _SETTINGS[seed % len(_SETTINGS)]
        careful, _ = _outcome(lines, False, **settings)
        actual, in_step = _outcome(lines, True, **settings)
        assert actual == careful, f"seed {seed}: {settings}\n" + "\n".join(lines)
        ways["in step"] += in_step
        ways["findings"] += bool(careful.findings)
        assert not (in_step and careful.findings), f"seed {seed}"
    assert ways["in step"] >= 40 and ways["findings"] >= 8, ways


def test_what_is_executed_in_step() -> None:
    """A good kernel is, in the schedules where waves advance together; a broken one is not."""
    assert Launch(ROTATE).report.in_step
    assert Launch(ROTATE, schedule="sliced:8", checks=Checks.none()).report.in_step
    assert not Launch(ROTATE, in_step=False).report.in_step
    for schedule in ("barrier", "random:5"):
        assert not Launch(ROTATE, schedule=schedule).report.in_step
    assert not Launch(without(ROTATE, "s_barrier")).report.in_step
    with pytest.raises(ValueError, match="sliced:N"):
        Launch(ROTATE, schedule="sliced:")


_SLOT = "v_and_b32 v3, 0xfc, v1"  # of 64 dwords, that of the lane
_STORED = ("s_waitcnt lgkmcnt(0)", "s_barrier", "v_mov_b32 v4, v2", *EPILOGUE)


@pytest.mark.parametrize(
    ("lines", "in_step"),
    [
        # One value from all waves: no race, until one of them reads it before the barrier.
        (("v_mov_b32 v5, 7", _SLOT, "ds_write_b32 v3, v5", *_STORED), True),
        (("v_mov_b32 v5, 7", _SLOT, "ds_write_b32 v3, v5", "ds_read_b32 v6, v3", *_STORED), False),
        # The last of a wave's values is that of the others, one before it is not.
        (("v_mov_b32 v5, v0", _SLOT, "ds_write_b32 v3, v5", "v_mov_b32 v5, 7",
          "ds_write_b32 v3, v5", *_STORED), False),
        # Neighbouring bytes of a dword: waves 2 and 3 write where waves 0 and 1 do, or beside it.
        (("v_and_b32 v3, 0x1fc, v1", "v_lshrrev_b32 v5, 8, v1", "v_and_b32 v5, 2, v5",
          "v_add_u32 v3, v3, v5", "ds_write_b16 v3, v2", *_STORED), True),
        (("v_and_b32 v3, 0x1fc, v1", "v_lshrrev_b32 v5, 9, v1", "v_add_u32 v3, v3, v5",
          "ds_write_b16 v3, v2", *_STORED), False),
        # Dwords that are not aligned: a wave's last one ends where the next wave begins, which
        # leaves these bytes alone, or does not.
        (("v_cmp_gt_u32 vcc, 0x3fc, v1", "s_and_b64 exec, exec, vcc",
          "ds_write_b32 v1, v2 offset:2", "s_mov_b64 exec, -1", *_STORED), True),
        (("v_cmp_gt_u32 vcc, 0x3fc, v1", "s_and_b64 exec, exec, vcc",
          "ds_write_b32 v1, v2 offset:2", "ds_write_b16 v1, v2", "s_mov_b64 exec, -1", *_STORED),
         False),
        # Different branches, and a barrier after them.
        (("v_readfirstlane_b32 s10, v0", "s_cmp_eq_u32 s10, 64", "s_cbranch_scc1 1",
          "v_mov_b32_e32 v7, v2", "ds_write_b32 v1, v2", *_STORED), True),
    ],
)  # fmt: skip
def test_sharing_of_lds(lines: tuple[str, ...], in_step: bool) -> None:
    full = [*PROLOGUE, *lines]
    careful, _ = _outcome(full, False)
    actual, was_in_step = _outcome(full, True)
    assert actual == careful and was_in_step == in_step


@pytest.mark.parametrize(
    ("lines", "what"),
    [
        # Nothing but the end comes after it.
        (("global_store_dword v1, v2, s[6:7]", "s_bitcmp1_b32 s40, 0", "s_cbranch_scc1 1",
          "s_nop 0", "s_endpgm"), "the branch"),
        # As many lanes with either poison, but other ones.
        (("v_mov_b32 v4, v2", "v_and_b32 v5, 1, v40", "v_and_b32 v6, 1, v0",
          "v_cmp_eq_u32 vcc, v5, v6", "s_and_b64 exec, exec, vcc", *EPILOGUE), "the address"),
        (("s_and_b32 s40, s40, 16", "s_add_u32 s20, s4, s40", "s_addc_u32 s21, s5, 0",
          "s_load_dword s22, s[20:21], 0x0", "v_mov_b32 v4, v2", *EPILOGUE), "the address"),
    ],
)  # fmt: skip
def test_unwritten_data_that_leaves_unseen(lines: tuple[str, ...], what: str) -> None:
    full = [*PROLOGUE, *lines]
    careful, _ = _outcome(full, False)
    assert what in careful.findings[0]
    assert _outcome(full, True) == (careful, False)


def test_an_access_that_lands_after_the_barrier() -> None:
    """Wave 1 reads in its second interval what wave 0 wrote in its first and did not wait for."""
    lines = without(ROTATE, "s_waitcnt lgkmcnt(0) // writes done")
    launch = Launch(lines, checks=Checks(uninitialised=False))
    assert not launch.report.in_step and "unwaited-write" in launch.kinds


@pytest.mark.parametrize("offset", ["-0x10", "0x10"])
def test_a_scalar_load_from_a_poisoned_pointer(offset: str) -> None:
    """A negative offset neither wraps nor overflows where each row has its own poison."""
    lines = [*PROLOGUE, f"s_load_dword s20, s[60:61], {offset}", "v_mov_b32 v4, v2", *EPILOGUE]
    careful, _ = _outcome(lines, False)
    assert careful.error.startswith("MemoryFault: global access of [0x7ff17ff1")
    assert _outcome(lines, True)[0] == careful


def test_a_scalar_load_before_the_pointer_of_each_workgroup() -> None:
    """Pointers that differ between rows, with a negative offset, in bounds."""
    lines = [*PROLOGUE, "s_add_u32 s20, s4, 64", "s_addc_u32 s21, s5, 0",
             "s_load_dword s22, s[20:21], -0x40", "s_waitcnt lgkmcnt(0)", "v_mov_b32 v4, s22",
             *EPILOGUE]  # fmt: skip
    launch = Launch(lines)
    assert launch.report.in_step and not launch.kinds
    assert (launch.output.reshape(3, 256) == launch.input.reshape(3, 256)[:, :1]).all()


def test_memory_of_an_attempt_is_dropped() -> None:
    """In place, so that a second execution on what the first one left would show."""
    in_place = ("v_add_u32 v2, 1, v2", "global_store_dword v1, v2, s[4:5]")
    lines = [*PROLOGUE, *in_place, "ds_write_b32 v1, v2", "v_xor_b32 v3, 0x100, v1",
             "ds_read_b32 v4, v3", "s_waitcnt lgkmcnt(0)", *EPILOGUE]  # fmt: skip
    launch = Launch(lines, checks=Checks(uninitialised=False))
    assert not launch.report.in_step and launch.kinds == ["race"]
    assert (launch.input == np.arange(1001, 1001 + launch.input.size)).all()


# Waves 0 and 1 meet the others at another barrier than theirs: a ping-pong between halves of a
# workgroup, where each half reads what the other wrote.
PING_PONG = (
    *PROLOGUE,
    "v_readfirstlane_b32 s10, v0",
    "ds_write_b32 v1, v2",
    "s_waitcnt lgkmcnt(0)",
    "v_xor_b32 v3, 0x200, v1",
    "s_cmp_lt_u32 s10, 128",
    "s_cbranch_scc1 5",
    "s_barrier",
    "ds_read_b32 v4, v3",
    "s_waitcnt lgkmcnt(0)",
    "s_branch 4",
    "s_barrier",
    "ds_read_b32 v4, v3",
    "s_waitcnt lgkmcnt(0)",
    *EPILOGUE,
)


@pytest.mark.parametrize("schedule", ["sliced:2", "barrier", "random:5"])
def test_waves_at_different_barriers(schedule: str) -> None:
    any_barrier = Checks(same_barrier=False)
    careful, _ = _outcome([*PING_PONG], False, checks=any_barrier, schedule=schedule)
    assert not careful.error and not careful.findings
    launch = Launch(PING_PONG, checks=any_barrier, schedule=schedule)
    assert launch.report.in_step == (schedule == "sliced:2")
    assert launch.output.tobytes() == careful.output
    assert launch.report.wave_instructions == careful.instructions
    swapped = launch.input.reshape(-1, 2, 128)[:, ::-1].reshape(-1)
    assert np.array_equal(launch.output, swapped)
    for in_step in (False, True):
        refused, _ = _outcome([*PING_PONG], in_step, schedule=schedule)
        assert refused.error.startswith("BarrierDivergence") and "do not meet" in refused.error


def test_races_between_different_barriers_are_found() -> None:
    """The meeting orders accesses, wherever each wave waits: without one they race."""
    for barrier in (i for i, line in enumerate(PING_PONG) if line == "s_barrier"):
        lines = list(PING_PONG)
        lines[barrier] = "s_nop 0"
        for in_step in (False, True):
            checks = Checks(same_barrier=False, uninitialised=False)
            outcome, _ = _outcome(lines, in_step, checks=checks)
            assert any(f.startswith("race") for f in outcome.findings), outcome


def test_a_transposing_read() -> None:
    """Each wave transposes another's halves."""
    lines = [*PROLOGUE, "v_mul_u32_u24 v3, 0x10001, v2", "ds_write_b32 v1, v3",
             "s_waitcnt lgkmcnt(0)", "s_barrier", "v_lshlrev_b32 v3, 3, v0",
             "v_and_b32 v3, 0x3f8, v3", "ds_read_b64_tr_b16 v[8:9], v3",
             "s_waitcnt lgkmcnt(0)", "v_xor_b32 v4, v8, v9", *EPILOGUE]  # fmt: skip
    careful, _ = _outcome(lines, False, arch="gfx950")
    assert _outcome(lines, True, arch="gfx950") == (careful, True)
    assert not careful.error and not careful.findings
    unwaited = without(lines, "s_barrier")
    careful, _ = _outcome(list(unwaited), False, arch="gfx950")
    assert any("ds_read_b64_tr_b16" in f for f in careful.findings)
    assert _outcome(list(unwaited), True, arch="gfx950") == (careful, False)


def test_waves_that_have_ended_do_not_count() -> None:
    """Wave 0 stores and ends, the others go on from a barrier that it never came to."""
    lines = [*PROLOGUE, "v_mov_b32 v4, v2", "v_readfirstlane_b32 s10, v0",
             "s_cmp_eq_u32 s10, 0", "s_cbranch_scc1 1", "s_barrier", *EPILOGUE]  # fmt: skip
    checks = Checks(same_barrier=False)
    careful, _ = _outcome(lines, False, checks=checks)
    actual, in_step = _outcome(lines, True, checks=checks)
    assert actual == careful and in_step
    assert careful.output == np.arange(1000, 1768, dtype=np.uint32).tobytes()


def test_errors_are_those_of_the_schedule() -> None:
    skipping = ("v_readfirstlane_b32 s10, v0", "s_cmp_eq_u32 s10, 0", "s_cbranch_scc1 1")
    beyond = "ds_write_b32 v1, v2 offset:4"
    for lines, kind in (
        ((*PROLOGUE, *skipping, "s_barrier", "v_mov_b32 v4, v2", *EPILOGUE), BarrierDivergence),
        ((*PROLOGUE, beyond, *_STORED), MemoryFault),
    ):
        careful, _ = _outcome([*lines], False)
        assert careful.error.startswith(kind.__name__) and "wave" in careful.error
        assert _outcome([*lines], True)[0] == careful


# Of 256 dwords v2 each work-item has one; v4 is what it stores.
_ALONE = {
    "operands of other lanes": ("v_mul_u32_u24_dpp v4, v2, v1 row_newbcast:5 row_mask:0xf "
                                "bank_mask:0xf",),
    "a pair of E4M3": ("v_cvt_pk_f32_fp8_sdwa v[4:5], v2 src0_sel:WORD_0", "v_add_f32 v4, v4, v5"),
    "a matrix of integers": (
        "v_mov_b32 v8, v1", "v_mov_b32 v9, v2", "s_nop 1",
        "v_mfma_i32_16x16x32_i8 v[12:15], v[8:9], v[8:9], 3", "s_nop 7", "v_xor_b32 v4, v12, v15",
    ),
    "a matrix of E4M3": (
        *(f"v_and_b32 v{i}, 0x3f3f3f3f, v{1 + i % 2}" for i in range(8, 16)), "s_nop 1",
        "v_mfma_f32_16x16x128_f8f6f4 v[16:19], v[8:15], v[8:15], 0", "s_nop 7", "v_mov_b32 v4, v17",
    ),
    "a transposing read": (
        "v_lshlrev_b32 v3, 3, v0", "v_and_b32 v3, 0x1f8, v3",
        "ds_write_b32 v1, v2", "s_waitcnt lgkmcnt(0)", "s_barrier", "ds_read_b64_tr_b8 v[4:5], v3",
        "s_waitcnt lgkmcnt(0)", "v_xor_b32 v4, v4, v5",
    ),
}  # fmt: skip


@pytest.mark.parametrize("pieces", _ALONE.values(), ids=_ALONE)
def test_opcodes_alone(pieces: tuple[str, ...]) -> None:
    lines = (*PROLOGUE, *pieces, *EPILOGUE)
    one, other = (
        Launch(lines, in_step=x, schedule="sliced:8", arch="gfx950") for x in (True, False)
    )
    assert one.report.in_step and not other.report.in_step
    assert not one.report.findings and not other.report.findings
    assert len(set(one.output.tolist())) > 4
    assert one.output.tobytes() == other.output.tobytes()
