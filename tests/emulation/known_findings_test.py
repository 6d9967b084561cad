# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Which findings are known of a code object, by the patches it was compiled with, and its name or
its features."""

from __future__ import annotations

import os
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from kernels.ck_fmha.ckgen.emission import RecordedPool
from tests.emulation.known_findings import (
    document,
    known,
    known_of,
    pipeline_of,
    recognise,
    signatures,
    takes_turns,
)
from tests.emulation.verify.verdict import judge

NO_WAIT = "unwaited-read: ds_read_b128, ds_write2_b32"
TRUNCATED = "overwritten-constant: v_add3_u32, v_bfe_u32"
BEYOND_HEAD = "beyond-head: NaN"
FORWARD = "fmha_fwd_d64_bf16_batch_b128_qr_async_vr_psskddv_nlogits_nbias_mask_lse_ndropout.gfx942"


def test_the_defects_of_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CK_PATCHES", "none")
    assert known(FORWARD) == {NO_WAIT: "D", TRUNCATED: "K", BEYOND_HEAD: "H"}


def test_patches_mend_what_they_are_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CK_PATCHES", "default")
    assert not signatures(FORWARD)
    monkeypatch.setitem(document(), "mended_by", {"D": "d.patch"})
    assert signatures(FORWARD) == {TRUNCATED, BEYOND_HEAD}


def test_every_patch_mends_a_known_defect() -> None:
    patches = {Path(p).name for p in os.environ["PATCHES"].split()}
    assert set(document()["mended_by"].values()) == patches
    assert document()["mended_by"].keys() <= {e["defect"] for e in document()["findings"]}


def test_names_count_from_end_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CK_PATCHES", "none")
    assert NO_WAIT not in signatures(FORWARD.replace("qr_async", "qr_async_trload"))
    assert TRUNCATED not in signatures("attn_sum_heads_bf16.gfx942")


def test_a_setting_that_there_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CK_PATCHES", "some")
    with pytest.raises(KeyError, match="some"):
        signatures(FORWARD)


def _of_aiter(name: str, arch: str) -> str:
    return f"_ZN5aiter{len(name)}{name}E.{arch}"


@pytest.mark.parametrize(("name", "arch", "expected"), [
    ("fmha_bwd_hd64_bf16_a32_rtne_pssk_group", "gfx942",
     {"unwaited-read: ds_read_b128, ds_write_b32"}),
    ("fmha_fwd_hd128_bf16_rtne_group", "gfx942",
     {"uninitialised: buffer_store_dword", "uninitialised: buffer_store_dwordx4"}),
    # A batch without keys is never launched.
    ("fmha_fwd_hd128_bf16_rtne", "gfx942", set()),
    # P makes outputs wrong.
    ("fmha_fwd_hd128_bf16_causal", "gfx950", set()),
])  # fmt: skip
def test_of_aiters_kernels_harmless_findings_are_excepted(
    monkeypatch: pytest.MonkeyPatch, name: str, arch: str, expected: set[str]
) -> None:
    monkeypatch.setenv("CK_PATCHES", "default")
    assert takes_turns(_of_aiter(name, arch))
    assert signatures(_of_aiter(name, arch)) == expected


def test_waves_of_other_kernels_meet_at_one_barrier() -> None:
    assert not takes_turns(FORWARD)
    assert not takes_turns("attn_no_keys_bf16.gfx942")


# Findings of kernels that are not listed: recognised by their features.


@pytest.fixture(scope="module")
def pool() -> dict[str, dict[str, Any]]:
    return dict(RecordedPool(Path(os.environ["POOL"]).read_text("utf-8")).rows)


@pytest.fixture
def upstream(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels without patches, drawn at random."""
    monkeypatch.setenv("CK_PATCHES", "none")
    monkeypatch.setenv("KNOWN_FINDINGS", "recognised")


def _result(row: dict[str, Any], *found: str) -> dict[str, Any]:
    return {
        "instance": row["name"], "arch": "gfx942", "kind": row["kind"], "traits": row["traits"],
        "findings": [{"signature": s, "message": "where", "runs": []} for s in found], "runs": [],
    }  # fmt: skip


def test_pipelines(pool: dict[str, dict[str, Any]]) -> None:
    """Those of upstream, as the names of forward kernels say; a longer one is not taken for what
    it begins with."""
    by_kind: dict[str, set[str]] = {}
    for name, row in pool.items():
        by_kind.setdefault(row["kind"], set()).add(pipeline_of(name))
    assert by_kind["fwd"] >= {"qr", "qr_async"}
    assert by_kind["bwd_dq_dk_dv"] == {""}
    assert by_kind["fwd_splitkv_combine"] == {""}
    assert pipeline_of("fmha_fwd_d64_x_w32x32x16_qr_async_trload_vr_npad") == "qr_async_trload"


@pytest.mark.usefixtures("upstream")
def test_what_is_listed_is_recognised_as_the_same_defect(pool: dict[str, dict[str, Any]]) -> None:
    """So the two lists cannot part: for every kernel of upstream that a listed pattern is of."""
    for entry in document()["findings"]:
        chosen = [
            row
            for name, row in pool.items()
            if any(
                fnmatchcase(f"{name}.{arch}", pattern)
                for arch in ("gfx942", "gfx950")
                for pattern in entry["code_objects"]
            )
        ]
        assert chosen, entry["code_objects"]
        for row in chosen:
            for signature in entry["signatures"]:
                of = recognise(row["name"], row["kind"], row["traits"], signature)
                assert of == entry["defect"], (row["name"], signature)


def _first(pool: dict[str, dict[str, Any]], kind: str, pipeline: str, **traits: Any) -> dict:
    return next(
        row
        for name, row in sorted(pool.items())
        if (row["kind"], pipeline_of(name)) == (kind, pipeline)
        and all(row["traits"][n] == value for n, value in traits.items())
    )


@pytest.mark.usefixtures("upstream")
def test_a_known_defect_in_another_kernel_is_no_failure(pool: dict[str, dict[str, Any]]) -> None:
    """With another width of the read, which no list has of a kernel."""
    row = _first(pool, "fwd", "qr_async", dtype="fp16", head_size_qk=128)
    verdict = judge(_result(row, "unwaited-read: ds_read_b64, ds_write_b128"))
    assert not verdict.failures and verdict.defects == ["D"]


@pytest.mark.usefixtures("upstream")
@pytest.mark.parametrize(
    ("kind", "pipeline", "traits", "signature"),
    [
        # Defects that such kernels do not have: another pipeline, kind, feature or head size, ...
        ("bwd_dq_dk_dv", "", {"mode": "batch"}, "not finite: dk, dv, keys without a query"),
        ("bwd_convert_dq", "", {"deterministic": False}, "not finite: dq, empty sequences"),
        ("fwd", "qr_async", {"head_size_v": 64}, "race: ds_read_b128, ds_write2_b32"),
        ("fwd", "qr_async", {"mask": True}, "not finite: lse, o, diagonal only"),
        ("fwd", "qr", {}, "unwaited-read: ds_read_b128, ds_write2_b32"),
        ("fwd", "qr_async", {"mask": True}, "not finite: lse, o, scores of -inf, all of a tile"),
        ("fwd", "qr", {"dtype": "fp16"}, "overwritten-constant: v_add3_u32, v_bfe_u32"),
        # ... or one that upstream has mended.
        ("bwd_dq_dk_dv", "", {"bias": "none"}, "race: ds_read_b128, ds_write_b16"),
        ("fwd", "qr", {"head_size_v": 192}, "MemoryFault: ds_write_b128"),
        ("fwd", "qr", {"dropout": True}, "race: ds_read_b128, ds_write_b8"),
        # Other accesses, kinds of findings or cases where there is a defect.
        ("fwd", "qr_async", {"head_size_qk": 96}, "race: ds_read_b128, ds_write_b16"),
        ("fwd", "qr_async", {"head_size_qk": 96}, "race: ds_write2_b32"),
        ("fwd", "qr_async", {}, "unwaited-write: ds_read_b128, ds_write2_b32"),
        ("bwd_dq_dk_dv", "", {"mask": False, "mode": "group"}, "not finite: dk, dv, one by one"),
        ("fwd", "qr_async", {"head_size_v": 64}, "uninitialised: global_store_dwordx4"),
        ("fwd", "qr_async", {"mask": False, "bias": "none", "logits_soft_cap": False},
         "not finite: lse, o, scores of -inf, a tile but one"),
    ],
)  # fmt: skip
def test_a_new_defect_is_a_failure(
    pool: dict[str, dict[str, Any]], kind: str, pipeline: str, traits: dict, signature: str
) -> None:
    row = _first(pool, kind, pipeline, **traits)
    (failure,) = judge(_result(row, signature)).failures
    assert failure.startswith(f"new finding: {signature}")


@pytest.mark.usefixtures("upstream")
def test_what_a_patch_mends_is_not_recognised(
    pool: dict[str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    row = _first(pool, "fwd", "qr_async", dtype="bf16")
    result = _result(row, "overwritten-constant: v_add3_u32, v_bfe_u32")
    assert known_of(result)
    monkeypatch.setenv("CK_PATCHES", "default")
    assert not known_of(result) and judge(result).failures


@pytest.mark.usefixtures("upstream")
def test_the_rules_have_traits_and_values_that_there_are(pool: dict[str, dict[str, Any]]) -> None:
    """A misspelt one would recognise nothing, or less."""
    for entry in document()["recognised"]:
        for name, values in entry["kernels"].items():
            there = {
                row["traits"].get(name, {"kind": row["kind"]}.get(name, pipeline_of(row["name"])))
                for row in pool.values()
            }
            assert set(values) <= there, (entry["defect"], name)


def test_a_list_that_there_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOWN_FINDINGS", "some")
    with pytest.raises(ValueError, match=r"'some'.*findings, recognised"):
        known_of({})
