# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""QoLA's manifests: the libraries and kernels that they ask for, and those that are refused."""

from __future__ import annotations

import functools
import os
from collections import Counter
from pathlib import Path

import pytest

from kernels.ck_fmha.ckgen.emission import RecordedPool
from kernels.ck_fmha.ckgen.schema import parse_variant_set
from kernels.ck_fmha.ckgen.selection import select, select_instances
from kernels.qola.manifest import (
    Manifest,
    Module,
    archs_of,
    is_manifest,
    pin_of,
    read,
    require_rocm,
)
from kernels.variants.values import VariantSetError

FILES = {Path(path).stem: Path(path) for path in os.environ["MANIFESTS"].split()}
COMMITS = {"d32b0cb": "d32b0cb", "33f2e6a": "d32b0cb", "e95f7d4": "e95f7d4", "0403bcd": "e95f7d4"}
ARCHS = ["gfx942", "gfx950"]


@functools.cache
def pool() -> RecordedPool:
    return RecordedPool(Path(os.environ["POOL"]).read_text("utf-8"))


def of(name: str) -> Manifest:
    return read(FILES[name].read_text("utf-8"), f"{name}.toml")


def pin(manifest: Manifest) -> str:
    return pin_of(manifest.aiter_commit, COMMITS, manifest.path)


def counts(manifest: Manifest) -> Counter[str]:
    """The instances for gfx9 that the variant set of a manifest selects, by direction.

    kernels/ck_fmha/tests/receipts_test.py holds the numbers against upstream's generator.
    """
    variant_set = parse_variant_set(manifest.variant_set, manifest.path, pool().known_values)
    select_instances(variant_set, pool().candidates)  # not more than a set may
    chosen = [c for c in select(variant_set, pool().candidates) if c.target == "gfx9"]
    found = {(c.direction, name) for c in chosen for name in c.instances}
    return Counter(direction for direction, _ in found)


FWD, BWD = (Module(f"libmha_{this}", 700, True, True) for this in ("fwd", "bwd"))


def test_the_manifest_of_the_readme():
    manifest = of("readme")
    assert (manifest.namespace, pin(manifest)) == ("te", "d32b0cb")
    assert manifest.architectures == ("gfx950",)
    assert manifest.modules == (FWD, BWD)
    assert manifest.providers == ("ck", "asm")
    assert manifest.variant_set == (
        """# Of readme.toml.

[[mha_fwd_variants]]
dtype = ["bf16", "fp16"]
has_lse = true
has_skip = false
receipt = 700

[[mha_bwd_variants]]
dtype = ["bf16", "fp16"]
receipt = 700
"""
    )
    assert counts(manifest) == {"fwd": 532, "bwd": 4864}
    assert [each.split(": ")[2] for each in manifest.reported] == [
        "patches_dir",
        "drop_srcs",
        "drop_srcs",
    ]


def test_the_manifest_of_transformer_engine():
    manifest = of("te")
    assert (manifest.namespace, pin(manifest)) == ("te", "d32b0cb")
    assert archs_of(manifest, [], "", ARCHS) == ["gfx950", "gfx942"]
    assert manifest.modules == (FWD, BWD)
    assert manifest.variant_set == (
        """# Of te.toml.

[[mha_fwd_variants]]
receipt = 700

[[mha_bwd_variants]]
receipt = 700
"""
    )
    # The tables of the README's leave nothing out of the receipt.
    assert counts(manifest) == counts(of("readme"))
    require_rocm(manifest, ["7"])


def test_the_manifest_of_transformer_engine_for_gfx1250():
    manifest = of("te_gfx1250")
    assert (manifest.namespace, pin(manifest)) == ("te_v3", "e95f7d4")
    assert manifest.modules == (
        Module("libmha_fwd", 600, False, True),
        Module("libmha_bwd", 600, False, True),
    )
    assert (manifest.providers, manifest.variant_set) == (("asm",), "")
    told = [each.removeprefix("te_gfx1250.toml: [[modules]] ") for each in manifest.reported]
    left_out = "Composable Kernel's kernels are left out, as it asks"
    not_compiled = "AITER's sources are not compiled here"
    assert told == [
        f"#1: blob_gen_cmd: {not_compiled}",
        f"#1: flags_extra_cc: {not_compiled}; {left_out}",
        f"#1: srcs: {not_compiled}",
        "#1: hsa_subdirs: no object of fmha_fwd_bf16 serves an arch here",
        f"#2: flags_extra_cc: {not_compiled}; {left_out}",
    ]
    with pytest.raises(VariantSetError) as caught:
        archs_of(manifest, [], "", ARCHS)
    assert str(caught.value) == (
        "te_gfx1250.toml: [build] architectures: unknown arch 'gfx1250'. Allowed: gfx942, gfx950."
    )


QOLA = '[qola]\nnamespace = "te"\n'
BOTH = QOLA + "".join(
    f'[[modules]]\nname = "libmha_{this}"\ngroup = "{group}"\nmode = "cpp_itfs"\n'
    for this, group in (("fwd", "forward"), ("bwd", "backward"))
)
ONE = QOLA + '[[modules]]\nname = "libmha_fwd"\nmode = "cpp_itfs"\n'


def test_groups():
    other = BOTH + '[[modules]]\nname = "libgemm"\ngroup = "gemm"\n'
    assert [m.direction for m in read(BOTH, "m").modules] == ["fwd", "bwd"]
    (module,) = read(other, "m", groups=["backward"]).modules
    assert module.name == "libmha_bwd"
    assert read(other, "m", groups=["backward"]).variant_set.count("[[") == 1
    assert len(read(other, "m", groups=["backward", "forward"]).modules) == 2


def test_tables_of_a_library_that_is_not_chosen():
    text = BOTH + "[[mha_fwd_variants]]\nhas_mask = true\n"
    assert "has_mask" not in read(text, "m", groups=["backward"]).variant_set
    assert "has_mask = true\nreceipt = 600\n" in read(text, "m", groups=["forward"]).variant_set


def test_the_kernels_of_receipt_600():
    assert counts(read(BOTH, "m")) == {"fwd": 2754, "bwd": 4864}


def test_without_aiters_objects():
    text = ONE + "hsa_subdirs = []\n"
    assert read(text, "m").providers == ("ck",)


def test_what_is_not_built_anyhow_is_told():
    told = read(ONE, "m").reported
    assert len(told) == 2
    assert "kernels of fwd_splitkv are left out" in told[0]
    assert "kernels of batch_prefill are left out" in told[1]


MODULE = QOLA + '[[modules]]\nname = "libmha_fwd"\n'


@pytest.mark.parametrize(
    ("own", "given", "build", "is_built"),
    [
        ("cpp_itfs", "pybind", "pybind", True),
        ("pybind", "cpp_itfs", "cpp_itfs", False),
        ("", "cpp_itfs", "pybind", True),
        ("", "pybind", "cpp_itfs", False),
        ("", "", "cpp_itfs", True),
        ("", "", "pybind", False),
        ("", "", "", False),
    ],
)
def test_precedence_of_modes(own: str, given: str, build: str, is_built: bool):
    text = MODULE + (f'mode = "{own}"\n' if own else "")
    text += f'[build]\nmode = "{build}"\n' if build else ""
    if is_built:
        assert read(text, "m", mode=given).modules
    else:
        with pytest.raises(VariantSetError, match="mode is pybind, of Python modules"):
            read(text, "m", mode=given)


@pytest.mark.parametrize(
    ("given", "build", "environment", "found"),
    [
        (["gfx942"], ["gfx950"], "gfx950", ["gfx942"]),
        (["gfx942;gfx950", "gfx942"], [], "", ["gfx942", "gfx950"]),
        ([], ["gfx950"], "gfx942", ["gfx950"]),
        ([], [], "gfx950; gfx942", ["gfx950", "gfx942"]),
        (["native"], [], "", "--arch: unknown arch 'native'. Allowed: gfx942, gfx950."),
        (
            [],
            ["gfx9"],
            "",
            "m: [build] architectures: unknown arch 'gfx9'. Allowed: gfx942, gfx950.",
        ),
        ([], [], "native", "GPU_ARCHS: unknown arch 'native'. Allowed: gfx942, gfx950."),
        ([";"], [], "", "m: names no arch"),
    ],
)
def test_precedence_of_archs(
    given: list[str], build: list[str], environment: str, found: list[str] | str
):
    manifest = read(f"{ONE}[build]\narchitectures = {build}\n", "m")
    if isinstance(found, list):
        assert archs_of(manifest, given, environment, ARCHS) == found
        return
    with pytest.raises(VariantSetError) as caught:
        archs_of(manifest, given, environment, ARCHS)
    assert str(caught.value).startswith(found)


@pytest.mark.parametrize(
    ("commit", "expected"),
    [
        ("d32b0cb62", "d32b0cb"),
        ("33f2e6a...", "d32b0cb"),
        ("0403BCDFD0B507E0459012B82E00785A818F774A", "e95f7d4"),
        ("ab55045555071eb951b1bf50e29cdd3d194e1e51", "ab55045555071eb951b1bf50e29cdd3d194e1e51 is"),
        ("d32b0c", "'d32b0c', which is no commit"),
        ("main", "'main', which is no commit"),
        ("", "has no aiter_commit. Allowed: d32b0cb, 33f2e6a"),
    ],
)
def test_pins(commit: str, expected: str):
    if expected in COMMITS:
        assert pin_of(commit, COMMITS, "m") == expected
        return
    with pytest.raises(VariantSetError) as caught:
        pin_of(commit, COMMITS, "m")
    assert expected in str(caught.value)
    assert "Allowed: d32b0cb, 33f2e6a, e95f7d4, 0403bcd." in str(caught.value)


def test_rocm():
    manifest = read(ONE.replace("[[modules]]", 'rocm_versions = ["7.2", "5"]\n[[modules]]'), "m")
    require_rocm(manifest, ["7", "5"])
    with pytest.raises(VariantSetError, match=r"rocm_versions has '5'; .* of ROCm 7, 6\. Remove"):
        require_rocm(manifest, ["7", "6"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("qola", "m: not TOML"),
        ("", "m: [qola]: namespace is '', which is not a C identifier"),
        (ONE.replace('"te"', '"te-v3"'), "namespace is 'te-v3', which is not a C identifier"),
        (ONE.replace('"te"', '"9te"'), "Use letters, digits and underscores, e.g. te."),
        (ONE.replace('"te"', "7"), "m: [qola]: namespace = 7: it is a string."),
        (QOLA, "m: asks for no library: add [[modules]]"),
        ("[quola]\n", "unknown table 'quola'; did you mean 'qola'?"),
        ("[[qola]]\n", "must be written as a table [qola]"),
        (QOLA + "[modules]\n", "modules must be written as [[modules]] tables"),
        ("[qola]\ncommit = 1\n", "m: [qola]: unknown key 'commit'; did you mean 'aiter_commit'?"),
        (ONE + "[build]\narchs = []\n", "m: [build]: unknown key 'archs'"),
        (ONE + '[build]\narchitectures = "gfx942"\n', "architectures = 'gfx942': it is a list"),
        (
            ONE + "recipt = 600\n",
            "m: [[modules]] #1: unknown key 'recipt'; did you mean 'receipt'?",
        ),
        (
            ONE + "receipt = 100\n",
            "m: [[modules]] #1: receipt 100 is not known. Allowed: 600 (AITER",
        ),
        (ONE + "receipt = true\n", "receipt True is not known"),
        (ONE + ONE.removeprefix(QOLA), "m: [[modules]] #2: libmha_fwd is there twice; keep one."),
        (
            QOLA + "[[modules]]\n",
            "m: [[modules]] #1: has no name. Allowed: libmha_fwd, libmha_bwd.",
        ),
        (
            ONE.replace("mha_fwd", "gemm"),
            "libgemm is not built here. Allowed: libmha_fwd, libmha_bwd.",
        ),
        (BOTH.replace("mha_fwd", "gemm"), "Choose others by --group."),
        (ONE.replace("cpp_itfs", "cpp"), "unknown mode 'cpp'; did you mean 'cpp_itfs'?"),
        (
            ONE + 'drop_srcs = ["mha_fwd.cu"]\n',
            "mha_fwd.cu, without which libmha_fwd has no function",
        ),
        (ONE + 'drop_directions = ["splitkv"]\n', "did you mean 'fwd_splitkv'?"),
        (ONE + 'hsa_subdirs = ["fmha_v3_bwd"]\n', "unknown value of hsa_subdirs 'fmha_v3_bwd'"),
        (
            ONE + 'hsa_subdirs = []\ndrop_directions = ["fwd"]\n',
            "no kernel is left for libmha_fwd",
        ),
        (BOTH + "hsa_subdirs = []\n", "gives AITER's objects to one library and none to the other"),
        (
            ONE + 'drop_directions = ["fwd"]\n[[mha_fwd_variants]]\n',
            "m: [[mha_fwd_variants]] chooses kernels of Composable Kernel, which libmha_fwd",
        ),
        (
            ONE + "[[mha_fwd_variants]]\nreceipt = 700\n",
            "m: [[mha_fwd_variants]] #1: receipt is 700, and that of libmha_fwd is 600; keep one.",
        ),
        (
            ONE + "[[mha_bwd_variants]]\n",
            "m: [[mha_bwd_variants]] without the library: these tables are Python modules to QoLA",
        ),
        (ONE + "[[mha_fwd_variants]]\nhas_mask = 0.5\n", "#1: has_mask: 0.5: values are strings"),
    ],
)
def test_refusals(text: str, expected: str):
    with pytest.raises(VariantSetError) as caught:
        read(text, "m")
    assert expected in str(caught.value)
    assert str(caught.value).count("\n") == 0


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        (["frwd"], "m: no module is of the group 'frwd'; its groups are forward, backward."),
        ([""], "no module is of the group ''"),
    ],
)
def test_groups_that_are_refused(groups: list[str], expected: str):
    with pytest.raises(VariantSetError) as caught:
        read(BOTH, "m", groups=groups)
    assert expected in str(caught.value)
    with pytest.raises(VariantSetError, match="it has none"):
        read(ONE, "m", groups=groups)


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (
            "has_mask = true\nmask = true\n",
            "m: [[mha_fwd_variants]] #1: has_mask and mask both set",
        ),
        ("has_lse = false\n", "no instance has these traits"),
        ("has_sink = true\n", "has_sink = true selects nothing"),
        ("has_msk = true\n", "did you mean 'has_mask'?"),
    ],
)
def test_conflicting_keys_of_a_table(table: str, expected: str):
    manifest = read(f"{ONE}receipt = 700\n[[mha_fwd_variants]]\n{table}", "m")
    with pytest.raises(VariantSetError) as caught:
        counts(manifest)
    assert expected in str(caught.value)


def test_manifests_are_told_from_variant_sets():
    assert is_manifest(ONE)
    assert is_manifest("[build]\n")
    assert not is_manifest("[[mha_fwd_variants]]\n")
    assert not is_manifest("[[")
