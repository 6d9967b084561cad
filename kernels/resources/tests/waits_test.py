# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Uses of registers before their loads have landed."""

from __future__ import annotations

import pytest

from kernels.resources.disassembly import Instruction
from kernels.resources.waits import early_uses


def early(code: str) -> list[str]:
    lines = [line.strip() for line in code.strip().split(";")]
    return [one.text for one in early_uses(Instruction(4 * i, x) for i, x in enumerate(lines))]


LOAD = "buffer_load_dwordx4 v[8:11], v5, s[40:43], 0 offen; "


@pytest.mark.parametrize(
    ("code", "found"),
    [
        # A spill; a copy; an overwriting.
        ("scratch_store_dwordx4 off, v[8:11], off offset:288", 0),
        ("v_mov_b64_e32 v[20:21], v[10:11]", 0),
        ("v_mov_b32_e32 v9, 0", 0),
        ("s_waitcnt lgkmcnt(0); v_add_u32_e32 v1, v2, v11", 1),
        # A later access leaves it under way; a counter at most as large as theirs does not.
        ("global_load_dword v1, v2, s[0:1]; s_waitcnt vmcnt(1); v_mov_b32_e32 v3, v1", 2),
        ("buffer_load_dwordx4 v6, s[4:7], 0 lds; s_waitcnt vmcnt(2); v_mov_b32_e32 v3, v8", 2),
        ("s_cbranch_scc1 4; v_mov_b32_e32 v3, v8", 1),
    ],
)
def test_a_use_before_the_wait(code: str, found: int) -> None:
    assert early(LOAD + code) == [code.split("; ")[found]]


@pytest.mark.parametrize(
    "code",
    [
        "s_waitcnt vmcnt(0); v_mov_b32_e32 v9, v8",
        "buffer_load_dword v1, v2, s[4:7], 0 offen; s_waitcnt vmcnt(1); v_mov_b32_e32 v3, v8",
        "v_mov_b32_e32 v5, a8",  # another file; the address may be written
        "v_mov_b32_e32 v12, v7",
        "s_mov_b32 s8, s9",
        "buffer_load_dword v9, v2, s[4:7], 0 offen",  # lands behind it
        "buffer_load_dwordx4 v6, s[4:7], 0 offen lds",
        "s_branch 4; v_mov_b32_e32 v3, v8",  # nothing falls through
    ],
)
def test_none(code: str) -> None:
    assert not early(LOAD + code)


def test_stores_count_and_write_nothing() -> None:
    assert not early("buffer_store_dword v8, v5, s[4:7], 0 offen; v_mov_b32_e32 v8, 0")
    after = "buffer_store_dword v1, v5, s[4:7], 0 offen; s_waitcnt vmcnt(1); v_mov_b32_e32 v9, v8"
    assert not early(LOAD + after)


def test_an_atomic_writes_where_it_returns_what_was_there() -> None:
    atomic = "global_atomic_add_f32 v1, v[2:3], v4, off{}; v_mov_b32_e32 v6, v1"
    assert not early(atomic.format(""))
    assert early(atomic.format(" sc0")) == ["v_mov_b32_e32 v6, v1"]


def test_an_address_that_is_not_there_yet() -> None:
    load = "buffer_load_dword v1, v9, s[4:7], 0 offen"
    assert early(LOAD + load) == [load]


@pytest.mark.parametrize(("accesses", "comes"), [(62, False), (63, True)])
def test_an_access_waits_for_the_oldest_where_the_counter_is_full(
    accesses: int, comes: bool
) -> None:
    others = "global_load_dword v1, v2, s[0:1]; " * accesses
    use = "v_mov_b32_e32 v3, v8"
    assert early(LOAD + others + use) == ([] if comes else [use])
