# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The files of the generated repositories."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kernels.archs.archs import block_size, read_archs
from kernels.ck_fmha import generate
from kernels.ck_fmha.ckgen.directions import KINDS, Instance
from kernels.ck_fmha.ckgen.emission import (
    RecordedPool,
    instance_source,
    launch_functions,
    pool_files,
)
from kernels.ck_fmha.ckgen.pool import Pool, instances_of
from kernels.variants.values import VariantSetError

SMALL = """
[[variants]]
direction = "fwd"
head_size_qk = 64
mode = "batch"
bias = "none"
lse = true
dropout = false
logits_soft_cap = false
skip_min_seqlen_q = false
"""


@pytest.fixture(scope="module")
def files(pool: Pool) -> dict[str, str]:
    """@ck_fmha"""
    return pool_files(pool.candidates, read_archs(os.environ["ARCHS"]))


@pytest.fixture(scope="module")
def pool_file(files: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ck_fmha")
    wanted = {p: t for p, t in files.items() if p == "pool.json" or p.startswith("launch/")}
    generate.write_files(wanted, folder)
    return folder / "pool.json"


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


def of_kind(pool: Pool, kind: str) -> list[Instance]:
    return [i for i in instances_of(pool.candidates) if i.kind == kind]


@pytest.mark.parametrize("kind", KINDS)
def test_instance_source(pool: Pool, kind: str):
    instance = of_kind(pool, kind)[0]
    text = instance_source(instance, 64)
    assert f"{instance.name}(Kernel::Kargs kargs)" in text
    assert "__launch_bounds__(Kernel::kBlockSize, Kernel::kBlockPerCu)" in text
    assert f"static_assert(Kernel::kBlockSize == {block_size(instance.block, 64)});" in text
    # Nothing of the host's, and nothing that depends on where the files lie.
    for word in ("iostream>", "__FILE__", "#include </", "external"):
        assert word not in text


def test_transposed_loads_alone_are_compiled_without_assertions(pool: Pool):
    """In front of all headers; a definition anywhere else would change keys of kernels that had
    none."""
    for instance in instances_of(pool.candidates):
        before, defined, _ = instance_source(instance, 64).partition("#define NDEBUG\n")
        assert bool(defined) == instance.traits.get("transposed_loads", False), instance.name
        assert not defined or "#include" not in before


def test_launch_functions_are_shared_by_what_no_launch_depends_on(pool: Pool):
    instances = [
        i
        for i in of_kind(pool, "fwd")
        if i.traits["head_size_qk"] == 128 and i.traits["mode"] == "batch"
    ]
    names, texts = launch_functions(instances)
    assert set(names) == {i.name for i in instances}
    by_function: dict[str, list] = {}
    for instance in instances:
        by_function.setdefault(names[instance.name], []).append(instance)
    assert by_function.keys() == texts.keys()
    for function, sharing in by_function.items():
        # fp16 and bf16, with and without checked bounds, share; masks do not, nor does fp8, whose
        # kernels take scales: there dtypes of results share, but for the soft cap.
        scaled = {"fp8", "fp8bf16", "fp8fp32"}
        dtypes = {i.traits["dtype"] for i in sharing}
        assert dtypes in ({"fp16", "bf16"}, scaled, {"fp8"})
        assert (dtypes == {"fp8"}) == (sharing[0].scaled and sharing[0].traits["logits_soft_cap"])
        assert len({(i.traits["mask"], i.traits["lse"], i.traits["bias"]) for i in sharing}) == 1
        assert texts[function].count(f"void {function}(") == 1


def test_the_pool(files: dict[str, str], pool: Pool):
    document = json.loads(files["pool.json"])
    instances = instances_of(pool.candidates)
    assert list(document["rows"]) == [i.name for i in instances]
    sources = {path for path in files if path.endswith(".cpp")}
    assert sources == {f"{document['packages'][i.name]}/{i.name}.cpp" for i in instances}
    packages = set(document["packages"].values())
    builds = {p.removesuffix("/BUILD.bazel") for p in files if p.endswith("BUILD.bazel")}
    groups = {f"groups/{group.partition(':')[0]}" for group in document["groups"]}
    assert builds == packages | groups
    assert "fwd/bf16_d192x128" in packages
    functions = {row["launch"].removeprefix("ck_fmha::") for row in document["rows"].values()}
    assert functions == {Path(path).stem for path in files if path.endswith(".inc")}


def test_groups_are_of_whom_sets_want_together(files: dict[str, str]):
    document = json.loads(files["pool.json"])
    rows, groups = document["rows"], document["groups"]
    members = [member for group in groups.values() for member in group]
    assert len(members) == len(set(members))
    assert {len(group) for group in groups.values()} <= set(range(2, 9))
    for group in groups.values():
        of = [rows[member.partition(":")[2]] for member in group]
        for same in ("kind", "tile", "block"):
            assert all(row[same] == of[0][same] for row in of)
        assert all(row.get("left_out") == of[0].get("left_out") for row in of)
        different = {
            name for name in of[0]["traits"] if len({str(row["traits"][name]) for row in of}) > 1
        }
        assert different <= {"dtype", "mask", "mode"} or different <= {"dtype", "dropout", "mask"}
    # All the rest are alone in their shape.
    assert len(members) > 0.9 * len(rows)


def test_the_members_that_pay_are_compiled_with_their_group(pool_file: Path):
    pool = RecordedPool(pool_file.read_text("utf-8"))
    group = next(g for name, g in pool.groups.items() if "bwd_dq_dk_dv" in name and len(g) == 8)
    names = [member.partition(":")[2] for member in group]
    for count, grouped in ((1, False), (2, False), (4, True), (8, True)):
        labels = pool.labels(names[:count])
        assert labels.keys() == set(names[:count])
        assert all(label.endswith(".grouped") == grouped for label in labels.values()), count


def test_pipelines_tell_apart_what_takes_registers(files: dict[str, str], pool: Pool):
    named: dict[str, set[str]] = {}
    for instance in instances_of(pool.candidates):
        named.setdefault(instance.pipeline, set()).add(instance.name)
    for name in named["fwd_qr_async"]:
        assert "_qr_async_" in name and "_nlogits_nbias_" in name and "_ndropout_" in name
    for name in named["bwd_dq_dk_dv_kr_ktr_vr_iglp+bias+bias_grad+deterministic+dropout"]:
        assert re.search(r"_dbias_.*_dropout_.*_deterministic", name), name
    assert all("_combine_" in name for name in named["fwd_splitkv_combine"])
    for name in named["fwd_pagedkv_qr_pagedkv+alibi"]:
        assert "_alibi_" in name
    # Options are given for the pipelines that packages have.
    known = ast.literal_eval(files["pipelines.bzl"].partition("PIPELINES = ")[2])
    assert {p for pipelines in known.values() for p in pipelines} == named.keys()
    assert all(
        f'"{p}": {{' in files[f"{package}/BUILD.bazel"] for package in known for p in known[package]
    )


def test_a_variant_set(pool_file: Path, small: Path):
    files = generate.variant_set_files(pool_file, small)
    rows = json.loads(files["rows.json"])
    assert {row["kind"] for row in rows} == {"fwd"}
    assert {row["traits"]["mask"] for row in rows} == {True, False}
    for row in rows:
        label = f"@ck_fmha//fwd/{row['traits']['dtype']}_d64:{row['name']}"
        assert re.search(rf'"{re.escape(label)}(\.grouped)?"', files["instances.bzl"])
        function = row["launch"].removeprefix("ck_fmha::")
        assert files["launch/fwd_0.cpp"].count(f"void {function}(") == 1
    for text in files.values():
        assert str(pool_file.parent) not in text


def test_many_launch_functions_are_spread_over_files(pool_file: Path, small: Path):
    small.write_text('[[variants]]\ndirection = "fwd"\n')
    files = generate.variant_set_files(pool_file, small)
    texts = [text for path, text in files.items() if path.startswith("launch/")]
    assert len(texts) > 2
    functions = [
        name for t in texts for name in re.findall(r"^\[\[gnu::weak\]\] void (\w+)", t, re.M)
    ]
    assert len(functions) == len(set(functions))
    assert all(text.count("[[gnu::weak]]") <= 16 for text in texts)


def test_a_sets_launch_functions_do_not_depend_on_what_else_it_has(pool_file: Path, small: Path):
    before = json.loads(generate.variant_set_files(pool_file, small)["rows.json"])
    small.write_text(SMALL + '[[variants]]\ndirection = "fwd"\nhead_size_qk = 32\n')
    after = {
        r["name"]: r for r in json.loads(generate.variant_set_files(pool_file, small)["rows.json"])
    }
    assert len(after) > len(before)
    assert all(after[row["name"]] == row for row in before)


def test_files_are_named_by_their_path_in_the_workspace(pool_file: Path, tmp_path: Path):
    path = tmp_path / "bad.toml"
    path.write_text("[[variants]]\nmsak = true\n")
    with pytest.raises(VariantSetError, match=r"^kernels/variants/bad\.toml: .*'mask'"):
        generate.variant_set_files(pool_file, path)


def test_command_line(pool_file: Path, small: Path, tmp_path: Path):
    command = [sys.executable, "-B", generate.__file__, "variant-set", "--pool", str(pool_file)]
    command += ["--file", str(small), "--out", str(tmp_path / "out")]
    subprocess.run(command, check=True)
    assert (tmp_path / "out" / "rows.json").is_file()
    small.write_text("[[variant]]\n")
    command[-1] = str(tmp_path / "none")
    failed = subprocess.run(command, capture_output=True, text=True)
    assert failed.returncode == 1
    assert failed.stderr.startswith("kernels/variants/small.toml: unknown table 'variant'")
    assert not (tmp_path / "none").exists()


def test_a_variant_set_that_is_not_utf8(pool_file: Path, tmp_path: Path):
    path = tmp_path / "latin1.toml"
    path.write_bytes("# gr\u00f6\u00dfer\n".encode("latin-1") + SMALL.encode())
    with pytest.raises(VariantSetError, match=r"kernels/variants/latin1\.toml: not UTF-8: .*0xf6"):
        generate.variant_set_files(pool_file, path)
