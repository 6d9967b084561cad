# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Code objects of `smoke` for gfx12, as the compiler describes them."""

import json
import os
from pathlib import Path

import pytest

ARCHS = ("gfx1200", "gfx1201")
MANIFEST = json.loads(Path(os.environ["MANIFEST"]).read_text("utf-8"))
INSTANCES = {instance["name"]: instance for instance in MANIFEST["instances"]}

# Kind -> vector registers spilt, scalar ones, bytes of scratch of a lane: docs/emulation.md#gfx12.
SPILLS = {
    "fwd": (0, 39, 512),
    "bwd_dot_do_o": (0, 0, 0),
    "bwd_dq_dk_dv": (114, 0, 456),
    "bwd_convert_dq": (0, 0, 0),
}


def test_one_kernel_of_each_kind_for_both_archs():
    assert MANIFEST["archs"] == list(ARCHS)
    assert sorted(instance["kind"] for instance in INSTANCES.values()) == [
        "bwd_convert_dq",
        "bwd_dot_do_o",
        "bwd_dq_dk_dv",
        "fwd",
    ]
    for instance in INSTANCES.values():
        assert tuple(instance["code_objects"]) == ARCHS
        assert "left_out" not in instance


@pytest.mark.parametrize("name", INSTANCES)
@pytest.mark.parametrize("arch", ARCHS)
def test_waves_are_of_32_and_spills_are_those_of_the_documentation(name: str, arch: str):
    kernel = INSTANCES[name]["code_objects"][arch]["kernel"]
    assert kernel["wavefront_size"] == 32
    assert kernel["agpr_count"] == 0
    spills = (kernel["vgpr_spill_count"], kernel["sgpr_spill_count"], kernel["scratch_size"])
    assert spills == SPILLS[INSTANCES[name]["kind"]]
    assert kernel["max_workgroup_size"] % 32 == 0
    assert kernel["lds_size"] <= 64 << 10
