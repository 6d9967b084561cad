# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Outputs of the HIP toolchain: code for the arch asked for, without traces of a place."""

import os
import pathlib
import re
import subprocess

import pytest

HERE = pathlib.Path("toolchains/rocm/tests")
ARCHS = os.environ["ARCHS"].split()
WAVE_SIZES = dict(zip(ARCHS, os.environ["WAVE_SIZES"].split(), strict=True))
TOOLS = pathlib.Path(next(iter(pathlib.Path("..").glob("*llvm/llvm-readelf")))).parent


def tool(name: str, *arguments: str) -> str:
    command = [str((TOOLS / name).absolute()), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def device(arch: str) -> pathlib.Path:
    return HERE / f"scale_{arch}.hsaco"


@pytest.mark.parametrize("arch", ARCHS)
def test_a_code_object_is_for_its_arch(arch):
    header = tool("llvm-readelf", "-h", str(device(arch)))
    assert re.search(rf"Flags:.*\b{arch}\b", header)
    assert re.search(r"Type:\s+DYN", header)


@pytest.mark.parametrize("arch", ARCHS)
def test_its_metadata_names_the_kernel_and_its_arguments(arch):
    notes = tool("llvm-readelf", "--notes", str(device(arch)))
    assert ".name:           scale\n" in notes
    assert f"amdgcn-amd-amdhsa--{arch}" in notes
    assert re.search(rf"\.wavefront_size: {WAVE_SIZES[arch]}\b", notes)


@pytest.mark.parametrize("arch", ARCHS)
def test_it_holds_matrix_instructions(arch):
    code = tool("llvm-objdump", "-d", str(device(arch)))
    # gfx90a's spelling has no underscore before the type.
    gfx9 = r"\bv_mfma_f32_16x16x4_?f32\b"
    gfx12 = r"\bv_wmma_f32_16x16x16_f16\b"
    assert re.search(gfx12 if arch.startswith("gfx12") else gfx9, code)


def test_host_code_without_a_launch_needs_no_runtime():
    symbols = tool("llvm-nm", str(HERE / "host_blocks.o"))
    assert re.search(r" T host_blocks$", symbols, re.M)
    # Neither a launch, nor registration of device code at load.
    assert re.findall(r"\b_*hip(?!_cuid)\w*", symbols) == []


@pytest.mark.parametrize("name", [f"scale_{arch}.hsaco" for arch in ARCHS] + ["host_blocks.o"])
def test_no_output_tells_where_it_was_made(name):
    content = (HERE / name).read_bytes()
    place = rb"(^|[ =:])/|execroot|sandbox|external/[^/]*[~+]|bazel-out"
    strings = re.findall(rb"[\x20-\x7e]{6,}", content)
    assert [s for s in strings if re.search(place, s)] == []


def test_the_identity_stands_for_compiler_headers_and_libraries():
    identities = {(HERE / f"scale_{arch}.identity").read_text() for arch in ARCHS}
    assert len(identities) == 1
    assert re.fullmatch(r"[0-9a-f]{64}", identities.pop())
