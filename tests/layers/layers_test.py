# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The includes of shipped files keep to the layers, and a wrong one is found."""

import json
import os
from pathlib import Path

import pytest

from tests.layers.layers import shipped, violations

FILES = shipped(json.loads(Path(os.environ["SOURCES"]).read_text(encoding="utf-8")))


def test_the_layers_hold():
    assert violations(FILES) == []


def test_all_folders_are_looked_at():
    folders = {path.rpartition("/")[0] for path in FILES}
    assert folders >= {
        "aiter",
        "aiter/attention",
        "aiter/attention/passes/append",
        "aiter/attention/passes/backward",
        "aiter/attention/passes/dropout_mask",
        "aiter/attention/passes/forward",
        "aiter/attention/passes/kvcache",
        "aiter/attention/problem",
        "aiter/attention/reference",
        "aiter/norm",
        "aiter/runtime",
        "aiter/runtime/driver",
        "aiter/runtime/kit",
        "aiter/runtime/remote",
        "aiter/runtime/rtc",
        "aiter/runtime/store",
        "kernels/archs",
        "kernels/ck_fmha/launch",
        "kernels/code_object",
        "kernels/dropout_mask",
        "kernels/launch_table",
        "kernels/no_keys",
        "kernels/norm",
        "kernels/private",
        "kernels/published_sets",
        "kernels/sinks",
        "kernels/sum_heads",
        "python/extension",
        "python/xla_ffi",
    }
    assert not any("test" in path for path in FILES)


@pytest.mark.parametrize(
    ("path", "include"),
    [
        ("aiter/attn.h", "aiter/runtime/error.h"),
        ("aiter/runtime/loader.h", "aiter/attention/problem/problem.h"),
        ("aiter/runtime/loader.cc", "aiter/attn.h"),
        ("aiter/runtime/loader.cc", "aiter/runtime/driver/drivers.h"),
        ("aiter/runtime/store/pack.cc", "kernels/code_object/embedded_pack.h"),
        ("aiter/runtime/store/store.h", "aiter/runtime/driver/driver.h"),
        ("aiter/attention/dispatch.cc", "aiter/attention/explain.h"),
        ("aiter/attention/dispatch.h", "aiter/runtime/driver/driver.h"),
        ("aiter/attention/launch.cc", "aiter/runtime/driver/hip_api.h"),
        ("aiter/attention/launch.cc", "hip/hip_runtime_api.h"),
        ("aiter/attention/launch.cc", "kernels/sum_heads/sum_heads.h"),
        ("aiter/attention/reference/forward.cc", "aiter/runtime/loader.h"),
        ("aiter/attention/problem/memory.cc", "aiter/attention/dispatch.h"),
        ("aiter/attention/problem/pass.h", "aiter/attention/passes/forward/forward.h"),
        ("aiter/attention/reference/heads.cc", "aiter/attention/passes/passes.h"),
        ("aiter/attention/dispatch.cc", "aiter/attention/passes/backward/backward.h"),
        ("aiter/attention/launch.cc", "aiter/attention/passes/passes.h"),
        # Passes know each other neither directly nor by the list.
        ("aiter/attention/passes/kvcache/kvcache.cc", "aiter/attention/passes/forward/forward.h"),
        ("aiter/attention/passes/backward/compute.h", "aiter/attention/passes/append/append.h"),
        ("aiter/attention/passes/append/append.cc", "aiter/attention/passes/passes.h"),
        ("aiter/attention/passes/forward/forward.cc", "aiter/attention/explain.h"),
        ("aiter/norm/validate.cc", "aiter/attention/problem/problem.h"),
        ("aiter/norm/configure.cc", "aiter/runtime/driver/driver.h"),
        ("aiter/norm/launch.cc", "aiter/runtime/driver/cuda_api.h"),
        ("aiter/norm/launch.cc", "kernels/launch_table/launch_table.h"),
        ("aiter/norm.h", "aiter/runtime/error.h"),
        # Through another file, too.
        ("aiter/attention/problem/problem.h", "aiter/runtime/driver/driver.h"),
        ("kernels/launch_table/launch_table.h", "aiter/runtime/error.h"),
        ("python/extension/module.cc", "aiter/attention/problem/problem.h"),
        ("python/extension/module.cc", "python/xla_ffi/frame.h"),
        ("python/xla_ffi/attention.cc", "aiter/attention/problem/problem.h"),
        ("python/xla_ffi/norms.cc", "aiter/runtime/error.h"),
        ("kernels/norm/norm_forward.cpp", "kernels/launch_table/launch_table.h"),
        ("kernels/norm/device.h", "aiter/attn.h"),
        ("kernels/sum_heads/sum_heads_kernel.h", "kernels/launch_table/launch_table.h"),
        ("kernels/sum_heads/launch.cc", "kernels/dropout_mask/dropout_mask.h"),
        ("kernels/dropout_mask/launch.cc", "aiter/runtime/error.h"),
        ("kernels/archs/archs.h", "kernels/launch_table/launch_table.h"),
    ],
)
def test_a_wrong_include_is_found(path: str, include: str):
    wrong = {**FILES, path: f'#include "{include}"\n' + FILES[path]}
    assert any(include in line for line in violations(wrong))


def test_a_file_in_no_layer_is_found():
    assert violations({**FILES, "aiter/other.cc": ""}) == [
        "aiter/other.cc is in no layer: add it to LAYERS in tests/layers/layers.py"
    ]
