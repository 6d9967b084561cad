# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The launch table of this build, held against its manifest and the compiler's metadata."""

import json
import os
import struct
import subprocess
from pathlib import Path

import pytest

ARCHS = json.loads(Path(os.environ["ARCHS"]).read_text())
MANIFEST = json.loads(Path(os.environ["MANIFEST"]).read_text())


def probe(**options: object) -> list[dict]:
    command = [os.environ["PROBE"], *(f"{name}={value}" for name, value in options.items())]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in lines.splitlines()]


@pytest.fixture(scope="module")
def rows() -> list[tuple[dict, dict]]:
    """(manifest's instance, probed row), in table order."""
    probed = probe(q=0x1111222233334444, softmax_scale=0.25, lse=0x5555666677778888)
    assert [row["name"] for row in probed] == [i["name"] for i in MANIFEST["instances"]]
    return list(zip(MANIFEST["instances"], probed, strict=True))


def test_kernel_arguments_have_the_size_that_the_kernel_reads(rows):
    for instance, row in rows:
        size = len(bytes.fromhex(row["kernarg"]))
        for arch, code_object in instance["code_objects"].items():
            assert code_object["kernel"]["kernarg_size"] == size, (instance["name"], arch)
        # An instance that every arch of the build lacks has no metadata.
        assert row["kernarg_size"] == (size if instance["code_objects"] else 0), instance["name"]


def test_block_sizes_are_the_kernels(rows):
    for instance, row in rows:
        sizes = {
            arch: [code_object["kernel"]["max_workgroup_size"], 1, 1]
            for arch, code_object in instance["code_objects"].items()
        }
        assert row["blocks"] == sizes


def test_occupancy_is_what_registers_and_lds_allow(rows):
    """By vector registers and LDS alone."""
    seen = set()
    for instance, _ in rows:
        for arch, code_object in instance["code_objects"].items():
            kernel, waves = code_object["kernel"], code_object["waves_per_simd"]
            unit = ARCHS[arch]["compute_unit"]
            assert 1 <= waves <= unit["waves_per_simd"], (instance["name"], arch)
            assert waves * kernel["vgpr_count"] <= unit["vgprs"]
            # A workgroup's waves are dealt out to all SIMDs.
            at_once = waves * unit["simds"] * kernel["wavefront_size"]
            workgroups = at_once // kernel["max_workgroup_size"]
            assert workgroups * kernel["lds_size"] <= unit["lds"]
            seen.add(waves)
    # Backward has one wave on each SIMD, converting dq as many as there may be.
    assert {1, 8} <= seen


def test_grids(rows):
    """By upstream's rules, for 2 batches, 4 heads, 200 queries and 300 keys."""
    upstream = [(instance, row) for instance, row in rows if instance["provider"] == "ck"]
    assert upstream
    for instance, row in upstream:
        tile = instance["tile"]
        blocks_q = -(-200 // tile["seqlen_q"]) if tile["seqlen_q"] else 0
        blocks_k = -(-300 // tile["seqlen_k"]) if tile["seqlen_k"] else 0
        expected = {
            "fwd": [4, blocks_q, 2],
            "bwd_dot_do_o": [blocks_q, 4, 2],
            "bwd_dq_dk_dv": [blocks_k, 4, 2],
            "bwd_convert_dq": [blocks_q, 4, 2],
        }[instance["kind"]]
        assert row["grid"] == expected, instance["name"]


def test_pointers_arrive(rows):
    for instance, row in rows:
        kernarg = bytes.fromhex(row["kernarg"])
        if instance["kind"] in ("fwd", "bwd_dq_dk_dv"):
            assert struct.unpack_from("<Q", kernarg)[0] == 0x1111222233334444
            assert struct.pack("<Q", 0x5555666677778888) in kernarg


def test_mask_and_window_arrive():
    masked = [
        i["name"]
        for i in MANIFEST["instances"]
        if i["traits"].get("mask") and i["provider"] == "ck"
    ]
    for mask in (1, 2):
        rows = probe(mask=mask, window_left=77, window_right=33)
        for row in rows:
            if row["name"] in masked:
                assert struct.pack("<iii", 77, 33, mask) in bytes.fromhex(row["kernarg"])
