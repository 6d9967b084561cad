# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The text of headers, siblings and the table; the rest is measured, not tested."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.on_demand import precompiled

_SOURCE = """// Generated.
#include "variants.hpp"
#include "fmha_fwd.hpp"

using Kernel = fmha_kernel_0;

extern "C" __global__ __launch_bounds__(Kernel::kBlockSize, Kernel::kBlockPerCu) void
fmha_fwd_d64_mask(Kernel::Kargs kargs)
{
    Kernel{}(kargs);
}
"""


def test_a_header_is_of_the_included_ones_alone() -> None:
    assert precompiled.includes(_SOURCE) == '#include "variants.hpp"\n#include "fmha_fwd.hpp"\n'
    with pytest.raises(ValueError, match="without headers"):
        precompiled.includes("void f();")


def test_a_shape_declares_no_name_of_its_source() -> None:
    made = precompiled.shape(_SOURCE)
    before, _, body = made.partition("namespace precompiled {\n")
    assert before == '// Generated.\n#include "variants.hpp"\n#include "fmha_fwd.hpp"\n'
    assert "inline __device__ void body(Kernel::Kargs kargs)" in body
    assert "__global__" not in body and body.endswith("}\n}\n")


_KERNEL = _SOURCE[_SOURCE.index("extern") :]


@pytest.mark.parametrize("source", [_SOURCE.replace("__global__", ""), _SOURCE + _KERNEL, _KERNEL])
def test_a_shape_needs_headers_and_one_kernel_behind_them(source: str) -> None:
    # A kernel that is left would be in each object that the header is used for.
    with pytest.raises(ValueError, match="kernels behind its headers, instead of 1"):
        precompiled.shape(source)


def test_a_sibling_differs_in_one_trait(tmp_path: Path) -> None:
    names = ["a_batch_mask_b.cpp", "a_batch_nmask_b.cpp", "a_group_mask_b.cpp", "c_batch.cpp"]
    for name in [*names, "d_batch_e.cpp", "d_group_e.cpp"]:
        (tmp_path / name).touch()
    found = {name: precompiled.sibling(tmp_path / name) for name in [*names, "d_batch_e.cpp"]}
    assert {name: path and path.name for name, path in found.items()} == {
        "a_batch_mask_b.cpp": "a_batch_nmask_b.cpp",
        "a_batch_nmask_b.cpp": "a_batch_mask_b.cpp",
        "a_group_mask_b.cpp": None,
        "c_batch.cpp": None,
        "d_batch_e.cpp": "d_group_e.cpp",
    }


def test_the_table_has_each_kernel() -> None:
    measured = [precompiled.Measured("fwd", 15.5, 3.6, 30_764_056, 13.3, 11.4, 74_130_864, 7.5)]
    rows = [" ".join(line.split()) for line in precompiled.table(measured).splitlines()]
    assert rows[2] == "fwd | 15.5 | 3.6 30.8 13.3 | 11.4 74.1 7.5"
    assert len({line.count("|") for line in precompiled.table(measured).splitlines()}) == 1
