# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The kernels as machine code of NVIDIA's GPUs, which NVRTC made in actions."""

import hashlib
import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from kernels.code_object.spec import CodeObjectSpec, Recipe

FOLDER = Path("kernels/norm")
HEADERS = [Path(path) for path in os.environ["HEADERS"].split()]
RECIPE = Recipe.parse(Path(os.environ["RECIPE"]).read_bytes())
CUBINS = [Path(path) for path in os.environ["CUBINS"].split()]
KERNELS = {
    "layer_backward_bf16_4096": {"norm_backward"},
    "norm_columns_bf16_4096": {"norm_backward_reduce"},
    "rms_forward_bf16_8192": {"norm_forward"},
    "softmax_forward_bf16_4096": {"softmax_forward"},
    # Kinds that are not built in.
    "layer_backward_no_gamma_bf16_1000": {"norm_backward"},
    "layer_long_fp16_20480": {"norm_backward_long", "norm_backward_slices"},
    "rms_backward_no_sums_bf16_2048": {"norm_backward"},
    "rms_long_no_sums_bf16_4100": {"norm_backward_long", "norm_backward_slices"},
    "rms_forward_blocks_fp8_96": {"norm_forward"},
    "rms_forward_rows_fp8_1001": {"norm_forward"},
    "rms_in_place_bf16_20480": {"norm_forward"},
}
LOADER = Path(os.environ["LOADER"])


def test_there_is_one_of_each_source_and_arch():
    archs = {cubin.name.split(".")[1] for cubin in CUBINS}
    assert archs == {"sm_80", "sm_89", "sm_90", "sm_100", "sm_100a", "sm_103", "sm_120"}
    assert len(CUBINS) == len(KERNELS) * len(archs)


@pytest.mark.parametrize("cubin", CUBINS, ids=lambda cubin: cubin.name)
def test_it_is_machine_code_of_its_arch_with_the_kernels(cubin: Path):
    instance, arch, _ = cubin.name.split(".")
    with cubin.open("rb") as file:
        elf = ELFFile(file)
        assert elf["e_machine"] == "EM_CUDA"
        assert elf["e_ident"]["EI_ABIVERSION"] == 8  # which says what the next line reads
        assert elf["e_flags"] >> 8 & 0xFF == int(arch.removeprefix("sm_").removesuffix("a"))
        names = [section.name for section in elf.iter_sections()]
        code = {name.removeprefix(".text.") for name in names if name.startswith(".text.")}
    assert code == KERNELS[instance]


@pytest.mark.parametrize("cubin", CUBINS, ids=lambda cubin: cubin.name)
def test_it_is_described(cubin: Path):
    instance, arch, _ = cubin.name.split(".")
    record = json.loads(cubin.with_suffix(".json").read_text("ascii"))
    spec = CodeObjectSpec.parse(cubin.with_suffix(".spec").read_bytes())
    assert record == {
        "arch": arch,
        "instance": instance,
        "key": spec.key(),
        "sha256": hashlib.sha256(cubin.read_bytes()).hexdigest(),
        "size": cubin.stat().st_size,
    }
    # The sources in the library give the same key at run time.
    sources = [path.read_bytes() for path in FOLDER.glob("*.cpp")]
    macros = spec.flags[len(RECIPE.flags) :]
    assert spec in [RECIPE.spec(source, arch, macros) for source in sources]
    assert all(macro.startswith("-D") for macro in macros)
    assert list(macros) == sorted(macros)
    assert RECIPE.flags == ("-std=c++17",)
    # No time of a file: it is the same on every machine.
    assert re.fullmatch(r"nvrtc 13\.0 [0-9a-f]{40} builtins [0-9a-f]{40}", RECIPE.toolchain)


def test_a_second_compile_gives_the_same_bytes(tmp_path: Path):
    cubin = next(c for c in CUBINS if c.name == "softmax_forward_bf16_4096.sm_90.cubin")
    spec = CodeObjectSpec.parse(cubin.with_suffix(".spec").read_bytes())
    command = [LOADER, "--inhibit-cache", "--library-path", LOADER.parent]
    command += [os.environ["COMPILE_SOURCE"], "object", tmp_path / "again", spec.arch]
    command += ["softmax_forward_bf16_4096", f"softmax.cpp={FOLDER}/softmax.cpp"]
    for header in HEADERS:
        command += ["--header", f"{header.name}={header}"]
    subprocess.run([*command, "--", *spec.flags], check=True)
    for suffix in (".cubin", ".json", ".spec"):
        again = (tmp_path / "again").with_suffix(suffix).read_bytes()
        assert again == cubin.with_suffix(suffix).read_bytes()
