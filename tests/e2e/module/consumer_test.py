# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The project as a Bazel module of another one: all of it is analysed, the library is linked, runs,
and computes on a device, and kernels that are sources of the module's own have the keys that they
have here. The wheel is in consumer_build_test."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from tests.consumers import on_device
from tests.e2e.consumer import VARIANTS, Consumer
from tests.emulator.hip.hip import Hip

ARCH = "gfx942"
OWN = ("dropout_mask", "no_keys", "sinks", "sum_heads")
KERNELS = [f"@aiter_attn//kernels/{name}:{ARCH}" for name in OWN]
WHOLE = (
    "//:static",
    "//:shared",
    "//:libon_device.so",
    "@aiter_attn//python:attn_wheel",
    "@aiter_attn//kernels:matrix",
)


def test_programs_wheel_and_tools_are_analysed(consumer: Consumer) -> None:
    consumer.bazel("build", "--nobuild", VARIANTS, *WHOLE)


@pytest.mark.parametrize("program", ["static", "shared"])
def test_a_program_is_linked_with_the_library_and_runs(consumer: Consumer, program: str) -> None:
    said = consumer.bazel("run", VARIANTS, f"//:{program}").stdout.splitlines()
    assert [line for line in said if re.fullmatch(r"right; [1-9]\d* kernels", line)]


def test_forward_and_backward(consumer: Consumer, hip: Hip) -> None:
    target = "//:libon_device.so"
    consumer.bazel("build", VARIANTS, target)
    (library,) = consumer.outputs(VARIANTS, target)
    on_device.check(library, hip, ARCH)


def test_a_variant_set_of_its_own(consumer: Consumer) -> None:
    mine = "--@aiter_attn//kernels:variants=mine"
    consumer.bazel("build", "--nobuild", mine, "//:static")
    query = 'kind("code_object rule", deps(@aiter_attn//kernels:code_objects))'
    said = consumer.bazel("cquery", mine, "--output=label", query).stdout.splitlines()
    upstreams = sorted({line.split()[0] for line in said if "fmha_" in line})
    assert len(upstreams) == 1
    assert ":fmha_fwd_d64_fp16_batch_" in upstreams[0]


def test_a_kernel_of_its_own(consumer: Consumer) -> None:
    said = consumer.bazel("run", VARIANTS, "//:own").stdout.splitlines()
    assert "fill gfx942" in said


def test_own_kernels_have_the_same_keys(consumer: Consumer) -> None:
    consumer.bazel(
        "build", VARIANTS, "--output_groups=metadata", "--remote_download_outputs=all", *KERNELS
    )
    folder = consumer.folder / "bazel-bin/external/aiter_attn~/kernels"
    files = [file for name in OWN for file in folder.glob(f"{name}/*.{ARCH}.json")]
    made = {file.name.removesuffix(f".{ARCH}.json"): json.loads(file.read_text()) for file in files}
    instances = json.loads(Path(os.environ["MANIFEST"]).read_text(encoding="utf-8"))["instances"]
    expected = {
        kernel["name"]: kernel["code_objects"][ARCH]["key"]
        for kernel in instances
        if kernel["provider"] == "own"
    }
    assert len(expected) > len(OWN)
    assert {name: description["key"] for name, description in made.items()} == expected
