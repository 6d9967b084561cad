# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Code objects of others: which are embedded, and the reasons why others are refused."""

import os
import re
from pathlib import Path

import pytest

from kernels.code_object.write_foreign import ForeignError, arch_of, place_of, places, texts

GFX942 = Path(os.environ["GFX942"]).read_bytes()
GFX950 = Path(os.environ["GFX950"]).read_bytes()


def refused(text: str):
    return pytest.raises(ForeignError, match=re.escape(text))


def test_the_arch_is_that_of_the_elf_file():
    assert arch_of(GFX942) == "gfx942"
    assert arch_of(GFX950) == "gfx950"


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("hsa/gfx942/fmha_v3_fwd/a.co", "hsa/gfx942/fmha_v3_fwd/a.co"),
        ("bazel-out/x/bin/some where/hsa/gfx942/b.hsaco", "hsa/gfx942/b.hsaco"),
        ("hsa/gfx942/hsa/gfx942/c.co", "hsa/gfx942/c.co"),
    ],
)
def test_the_name_begins_with_hsa(path: str, place: str):
    assert place_of(path, GFX942) == place


@pytest.mark.parametrize(
    "path", ["a.co", "hsa/a.co", "hsa/mi300/a.co", "hsa/gfx942/a.elf", 'hsa/gfx942/a".co']
)
def test_other_places_are_refused(path: str):
    with refused(f"{path}: must be named hsa/ARCH/SUBDIR/NAME.co or .hsaco"):
        place_of(path, GFX942)


def test_a_file_for_another_arch_is_refused():
    with refused(
        "x/hsa/gfx942/a.co: is for gfx950, but lies in the folder of gfx942: move the file to "
        "hsa/gfx950, or take the one for gfx942"
    ):
        place_of("x/hsa/gfx942/a.co", GFX950)


@pytest.mark.parametrize(
    ("code_object", "reason"),
    [
        (b"", "not a code object"),
        (b"no ELF file", "not a code object"),
        (GFX942[:100], ""),
        (Path("/proc/self/exe").read_bytes(), "an ELF file for EM_X86_64, not EM_AMDGPU"),
        (
            GFX942.replace(b"amdgcn-amd-amdhsa--gfx942", b"amdgcn-amd-amdpal--gfx942"),
            'its metadata has the target "amdgcn-amd-amdpal--gfx942", and not amdgcn-amd-amdhsa',
        ),
    ],
    ids=["empty", "text", "cut", "program", "target"],
)
def test_what_is_no_code_object_is_refused(code_object: bytes, reason: str):
    with refused(f"hsa/gfx942/a.co: {reason}"):
        place_of("hsa/gfx942/a.co", code_object)


def test_two_files_of_a_name_are_refused():
    with refused("y/hsa/gfx942/a.co: x/hsa/gfx942/a.co has the name hsa/gfx942/a.co, too"):
        places({"x/hsa/gfx942/a.co": GFX942, "y/hsa/gfx942/a.co": GFX942})


def test_names_are_in_the_order_of_strcmp():
    files = {f"hsa/gfx942/{name}.co": GFX942 for name in ("b", "a", "B", "a_b", "a.b")}
    assert list(places(files)) == [
        f"hsa/gfx942/{name}.co" for name in ("B", "a.b", "a", "a_b", "b")
    ]


def test_a_name_that_is_no_identifier_is_refused():
    with refused('the name is "my-files", which is no C identifier'):
        texts("my-files", "my-files.h", {})
