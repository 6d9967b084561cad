# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Which findings are known of a code object, by its name and the barriers it was compiled with."""

from __future__ import annotations

import pytest

from tests.emulation.known_findings import signatures

RACE = "race: ds_read_b128, ds_write_b16"
TRUNCATED = "overwritten-constant: v_add3_u32, v_bfe_u32"
BACKWARD = "fmha_bwd_d64_bf16_batch_b32_iglp_pssk_nbias_ndbias_mask_ndeterministic.gfx942"


@pytest.mark.parametrize(("barriers", "known"), [("upstream", {RACE, TRUNCATED}),
                                                 ("added", {TRUNCATED})])  # fmt: skip
def test_added_barriers_mend_races_alone(
    monkeypatch: pytest.MonkeyPatch, barriers: str, known: set[str]
) -> None:
    monkeypatch.setenv("CK_BARRIERS", barriers)
    assert signatures(BACKWARD) == known


def test_names_count_from_end_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CK_BARRIERS", "upstream")
    assert RACE not in signatures(BACKWARD.replace("iglp", "trload"))
    assert TRUNCATED not in signatures("attn_sum_heads_bf16.gfx942")


def test_a_setting_that_there_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CK_BARRIERS", "some")
    with pytest.raises(KeyError, match="some"):
        signatures(BACKWARD)
