# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Which findings are known of a code object, by its name and the patches it was compiled with."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.emulation.known_findings import document, known, signatures

RACE = "race: ds_read_b128, ds_write_b16"
TRUNCATED = "overwritten-constant: v_add3_u32, v_bfe_u32"
BACKWARD = "fmha_bwd_d64_bf16_batch_b32_iglp_pssk_nbias_ndbias_mask_ndeterministic.gfx942"


def test_the_defects_of_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CK_PATCHES", "none")
    assert known(BACKWARD) == {RACE: "A", TRUNCATED: "K"}


def test_patches_mend_what_they_are_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CK_PATCHES", "default")
    assert not signatures(BACKWARD)
    monkeypatch.setitem(document(), "mended_by", {"A": "a.patch"})
    assert signatures(BACKWARD) == {TRUNCATED}


def test_every_patch_mends_a_known_defect() -> None:
    patches = {Path(p).name for p in os.environ["PATCHES"].split()}
    assert set(document()["mended_by"].values()) == patches
    assert document()["mended_by"].keys() <= {e["defect"] for e in document()["findings"]}


def test_names_count_from_end_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CK_PATCHES", "none")
    assert RACE not in signatures(BACKWARD.replace("iglp", "trload"))
    assert TRUNCATED not in signatures("attn_sum_heads_bf16.gfx942")


def test_a_setting_that_there_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CK_PATCHES", "some")
    with pytest.raises(KeyError, match="some"):
        signatures(BACKWARD)
