# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Reading and checking the metadata of code objects, on real ones."""

import dataclasses
import hashlib
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from kernels.code_object.describe import proven_spec
from kernels.code_object.metadata import (
    MetadataError,
    kernel_record,
    kernel_records,
    read_metadata,
)
from kernels.code_object.spec import CodeObjectSpec, Recipe

FILES = [Path(path) for path in os.environ["CODE_OBJECTS"].split()]
CODE_OBJECTS = {path.name.removesuffix(".gfx942.hsaco"): path for path in FILES}
READELF = os.environ["READELF"]


@pytest.fixture(params=sorted(CODE_OBJECTS))
def name(request) -> str:
    return request.param


def test_agrees_with_llvm_readelf(name: str):
    path = CODE_OBJECTS[name]
    shown = subprocess.run(
        [READELF, "--notes", path], check=True, capture_output=True, text=True
    ).stdout
    (kernel,) = read_metadata(path.read_bytes())["amdhsa.kernels"]
    for field, value in kernel.items():
        if isinstance(value, int) and not isinstance(value, bool):
            (seen,) = re.findall(rf"^ +(?:- )?{re.escape(field)}: +(\d+)$", shown, re.MULTILINE)
            assert int(seen) == value, field
    assert re.search(rf"^amdhsa.target: +{re.escape('amdgcn-amd-amdhsa--gfx942')}$", shown, re.M)


def block_size(name: str) -> int:
    return 64 if "dot_do_o" in name else 256


def test_record(name: str):
    record = kernel_record(CODE_OBJECTS[name].read_bytes(), name, "gfx942", block_size(name))
    assert record["wavefront_size"] == 64
    assert 0 < record["vgpr_count"] <= 512
    assert record["kernarg_size"] <= record["kernarg_segment_size"]
    assert record["max_workgroup_size"] == block_size(name)


ALONE = Recipe(("-O3",), "0" * 64, "1" * 64).spec(b"source", "gfx942")
GROUPED = Recipe(("-O3",), "0" * 64, "1" * 64).spec(
    b"source", "gfx942", group=[b"source", b"other"]
)
PROVEN = [ALONE.key(), "b" * 64]


@pytest.mark.parametrize("spec", [ALONE, GROUPED])
def test_a_proven_object_has_the_key_of_its_own_compile(spec: CodeObjectSpec):
    assert proven_spec(spec, "b" * 64, PROVEN) == ALONE


@pytest.mark.parametrize("spec", [ALONE, GROUPED])
def test_a_proof_of_other_headers_is_none(spec: CodeObjectSpec):
    stale = dataclasses.replace(spec, headers="2" * 64)
    for sha256 in ("b" * 64, "c" * 64):
        assert proven_spec(stale, sha256, PROVEN) == stale


@pytest.mark.parametrize(("spec", "maker"), [(ALONE, "its own compile"), (GROUPED, "its group")])
def test_another_object_than_is_proven_is_refused(spec: CodeObjectSpec, maker: str):
    with pytest.raises(MetadataError, match=rf"{maker} does not give what is proven.*prove_groups"):
        proven_spec(spec, "c" * 64, PROVEN)


def test_a_broken_promise_is_refused():
    name, path = next(iter(CODE_OBJECTS.items()))
    data = path.read_bytes()
    with pytest.raises(MetadataError, match="compiled for amdgcn-amd-amdhsa--gfx942, not for"):
        kernel_record(data, name, "gfx950", 64)
    with pytest.raises(MetadataError, match="the kernels are"):
        kernel_record(data, "another", "gfx942", 64)
    with pytest.raises(MetadataError, match="its description says 1024"):
        kernel_record(data, name, "gfx942", 1024)


def test_metadata_without_a_field_is_refused():
    name, path = next(iter(CODE_OBJECTS.items()))
    data = path.read_bytes()
    damaged = data.replace(b".vgpr_count", b".vgpr_c0unt")
    assert damaged != data
    with pytest.raises(MetadataError, match="not as LLVM's AMDGPU guide says: KeyError"):
        kernel_record(damaged, name, "gfx942", block_size(name))


def test_accumulators_are_told_of_archs_that_have_them():
    name, path = next(iter(CODE_OBJECTS.items()))
    data = path.read_bytes()
    # LLVM writes no count of them for gfx12.
    without = data.replace(b".agpr_count", b".agpr_c0unt")
    assert without != data
    with pytest.raises(MetadataError, match="KeyError"):
        kernel_record(without, name, "gfx942", block_size(name))
    other = without.replace(b"amdgcn-amd-amdhsa--gfx942", b"amdgcn-amd-amdhsa--gfx12x")
    assert kernel_record(other, name, "gfx12x", block_size(name))["agpr_count"] == 0


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "not a code object: "),
        (b"\x7fELF\x02\x01" + bytes(58), "an ELF file for EM_NONE"),
        (b"\x7fELF\x02\x01" + bytes(12) + b"\xe0\x00" + bytes(44), "no AMDGPU metadata note"),
    ],
)
def test_what_is_no_code_object(data: bytes, expected: str):
    with pytest.raises(MetadataError, match=expected):
        read_metadata(data)


def test_manifest_records_the_files():
    """The manifest of the smoke set is true of the code objects."""
    records = [json.loads(Path(p).read_text()) for p in os.environ["METADATA"].split()]
    assert {record["instance"] for record in records} == set(CODE_OBJECTS)
    for record in records:
        data = CODE_OBJECTS[record["instance"]].read_bytes()
        assert record["size"] == len(data)
        assert record["sha256"] == hashlib.sha256(data).hexdigest()
        name = record["instance"]
        assert record["kernel"] == kernel_record(data, name, "gfx942", block_size(name))


def test_an_object_with_several_kernels():
    path = Path(os.environ["SEVERAL_KERNELS"])
    record = json.loads(Path(os.environ["SEVERAL_METADATA"]).read_text())
    assert record["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    sizes = {"norm_backward_long": 256, "norm_backward_slices": 256}
    assert record["kernels"] == kernel_records(path.read_bytes(), "gfx942", sizes)
    assert [kernel["max_workgroup_size"] for kernel in record["kernels"].values()] == [256, 256]
    with pytest.raises(
        MetadataError, match=r"\['norm_backward_long', 'norm_backward_slices'\], not \['no"
    ):
        kernel_record(path.read_bytes(), "norm_backward_slices", "gfx942", 256)
    with pytest.raises(MetadataError, match="norm_backward_long: compiled for workgroups of 256"):
        kernel_records(path.read_bytes(), "gfx942", {**sizes, "norm_backward_long": 64})


def test_the_spec_has_the_key():
    for path in map(Path, os.environ["METADATA"].split()):
        record = json.loads(path.read_text())
        spec = path.with_suffix(".spec").read_bytes()
        assert hashlib.sha256(spec).hexdigest() == record["key"]
        parsed = CodeObjectSpec.parse(spec)
        assert parsed.arch == record["arch"]
        assert not [flag for flag in parsed.flags if "~" in flag or "offload-arch" in flag]
