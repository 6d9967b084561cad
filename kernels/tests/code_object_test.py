# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Code objects: their machine code, their bytes, their keys."""

import os
import re
import subprocess
from pathlib import Path


def data(variable: str) -> bytes:
    return Path(os.environ[variable]).read_bytes()


def disassembly(path: str) -> str:
    command = [os.environ["OBJDUMP"], "-d", path]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_matrix_instructions_of_gfx942():
    fwd = [p for p in os.environ["SMOKE"].split() if "/fmha_fwd_" in p]
    dq_dk_dv = [p for p in os.environ["SMOKE"].split() if re.search(r"/fmha_bwd_d\d", p)]
    assert len(fwd) == len(dq_dk_dv) == 1
    assert "v_mfma_f32_32x32x8_f16" in disassembly(fwd[0])
    assert re.search(r"v_mfma_f32_16x16x16_f16", disassembly(dq_dk_dv[0]))
    assert "buffer_atomic_add_f32" in disassembly(dq_dk_dv[0])


def test_the_format_is_the_compilers_but_where_an_older_one_is_asked_for():
    abi_version = 8  # in e_ident; the format's version less 2
    assert data("ORIGINAL")[abi_version] == 4
    assert data("VERSION_5")[abi_version] == 3


def test_no_path_is_in_a_code_object():
    for path in os.environ["SMOKE"].split():
        text = Path(path).read_bytes()
        for word in (b"external/", b"bazel-out", b".cpp", b".hpp", b"/tmp"):
            assert word not in text, (word, path)


def test_bytes_do_not_depend_on_the_place():
    assert data("COPIED") == data("ORIGINAL")


def test_bytes_do_not_depend_on_what_was_compiled_together():
    assert data("GROUPED_FP16") == data("ORIGINAL")
    assert data("GROUPED_BF16") == data("ORIGINAL_BF16")


def test_specs():
    assert data("SPEC_COPIED") == data("SPEC_ORIGINAL")
    assert data("SPEC_OTHER_ARCH") != data("SPEC_ORIGINAL")
    assert data("SPEC_OTHER_SOURCE") != data("SPEC_ORIGINAL")
