# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The files of the generated repository."""

import json
import re
import subprocess
import sys
from pathlib import Path

import generate
import pytest
from ckgen.emission import instance_source, launch_code
from ckgen.pool import Pool
from ckgen.schema import ManifestError, parse_manifest
from ckgen.selection import instances_of, select

ARCHS = '[gfx942]\nproducts = "a"\n[gfx950]\nproducts = "b"\n'
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


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    (tmp_path / "archs.toml").write_text(ARCHS)
    (tmp_path / "variants").mkdir()
    (tmp_path / "variants" / "small.toml").write_text(SMALL)
    return tmp_path


def generated(fmha_dir: Path, inputs: Path) -> dict[str, str]:
    return generate.generate(fmha_dir, inputs / "archs.toml", inputs / "variants")


def small_instances(pool: Pool):
    selectors = parse_manifest(SMALL, "small.toml", pool.known_values())
    return instances_of(select(selectors, pool.candidates))


def test_instance_source(pool: Pool):
    instance = small_instances(pool)[0]
    text = instance_source(instance)
    assert f"{instance.name}(Kernel::Kargs kargs)" in text
    assert "__launch_bounds__(Kernel::kBlockSize, Kernel::kBlockPerCu)" in text
    assert f"static_assert(Kernel::kBlockSize == {instance.block_size});" in text
    # Nothing of the host's, and nothing that depends on where the files lie.
    for word in ("iostream", "stream_config", "make_kernel", "__FILE__", "#include </", "external"):
        assert word not in text


def test_layouts_are_shared_by_what_no_launch_depends_on(pool: Pool):
    instances = small_instances(pool)
    code = launch_code(instances)
    assert set(code.functions) == {i.name for i in instances}
    by_function: dict[str, list] = {}
    for instance in instances:
        by_function.setdefault(code.functions[instance.name], []).append(instance)
    # fp16 and bf16, with and without checked bounds, share; masks do not.
    assert len(by_function) == 2
    for sharing in by_function.values():
        assert len({i.traits["mask"] for i in sharing}) == 1
        assert {i.traits["dtype"] for i in sharing} == {"fp16", "bf16"}
    (text,) = code.files.values()
    for function in by_function:
        assert text.count(f"void {function}(") == 1


def test_many_layouts_are_spread_over_files(pool: Pool):
    instances = instances_of([c for c in pool.candidates if c.direction == "fwd"][:2000])
    code = launch_code(instances)
    assert len(code.files) > 2
    for text in code.files.values():
        assert text.count("namespace aiter_attn::ck_fmha {") <= 16
        indices = re.findall(r"using fmha_kernel_(\d+) =", text)
        assert len(indices) == len(set(indices))


def test_repository(fmha_dir: Path, inputs: Path):
    files = generated(fmha_dir, inputs)
    document = json.loads(files["instances.json"])
    names = [instance["name"] for instance in document["instances"]]
    assert names == sorted(set(names))
    assert {f"instances/{name}.cpp" for name in names} == {
        path for path in files if path.startswith("instances/")
    }
    assert {entry["instance"] for entry in document["variant_sets"]["small"]} == set(names)
    assert list(document["archs"]) == ["gfx942", "gfx950"]
    assert '"small"' in files["known.bzl"]
    assert "float fmha_fwd(" in files["dispatch/small/fmha_fwd_api.cpp"]
    for text in files.values():
        assert str(fmha_dir) not in text
        assert str(inputs) not in text


def test_a_new_manifest_is_all_that_a_new_set_needs(fmha_dir: Path, inputs: Path):
    before = generated(fmha_dir, inputs)
    (inputs / "variants" / "more.toml").write_text(SMALL.replace("lse = true", "lse = false"))
    after = generated(fmha_dir, inputs)
    assert set(json.loads(after["instances.json"])["variant_sets"]) == {"small", "more"}
    # What was there stays as it was: nothing of it is compiled again.
    for path, text in before.items():
        if path.startswith(("instances/", "launch/small/", "dispatch/small/")):
            assert after[path] == text


def test_manifests_are_named_by_their_path_in_the_workspace(fmha_dir: Path, inputs: Path):
    (inputs / "variants" / "bad.toml").write_text("[[variants]]\nmsak = true\n")
    with pytest.raises(ManifestError, match=r"^kernels/variants/bad\.toml: .*'mask'"):
        generated(fmha_dir, inputs)


def test_no_manifest(fmha_dir: Path, inputs: Path):
    (inputs / "variants" / "small.toml").unlink()
    with pytest.raises(ManifestError, match="no variant set"):
        generated(fmha_dir, inputs)


def test_command_line(fmha_dir: Path, inputs: Path):
    command = [
        *(sys.executable, "-B", generate.__file__),
        *("--fmha-dir", str(fmha_dir)),
        *("--archs", str(inputs / "archs.toml")),
        *("--variants", str(inputs / "variants")),
    ]
    subprocess.run([*command, "--out", str(inputs / "out")], check=True)
    assert (inputs / "out" / "instances.json").is_file()
    (inputs / "archs.toml").write_text("")
    failed = subprocess.run(
        [*command, "--out", str(inputs / "none")], capture_output=True, text=True
    )
    assert failed.returncode == 1
    assert failed.stderr == "kernels/archs.toml: no architecture.\n"
    assert not (inputs / "none").exists()
