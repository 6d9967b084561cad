# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Other checkouts, homes and dependency modes: the same bytes, and nothing compiled twice."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.e2e import clone

WHEEL = "//python:attn_wheel"
COMPILE = "HipCodeObject"


@pytest.fixture(scope="module")
def reference_wheel() -> Path:
    """The wheel of the checkout under test, built by the Bazel that runs this test."""
    return Path(os.environ["REFERENCE_WHEEL"]).resolve()


def test_another_clone_builds_the_same_wheel_and_compiles_no_kernel(
    other: clone.Clone, reference_wheel: Path
) -> None:
    spawns = other.build(WHEEL)
    assert spawns.executed[COMPILE] == 0, spawns.executed
    assert spawns.cached[COMPILE] >= 48, spawns.cached
    assert other.wheel().name == reference_wheel.name
    assert clone.sha256(other.wheel()) == clone.sha256(reference_wheel)


def test_a_null_build_runs_nothing(other: clone.Clone) -> None:
    spawns = other.build(WHEEL)
    assert not spawns.executed and not spawns.cached


def test_both_dependency_modes_build_the_same_wheel(other: clone.Clone) -> None:
    # Repositories lie in differently named folders, so that neither mode has the other's results:
    # the smallest set keeps that short.
    smoke = "--//kernels:variants=smoke"
    other.build(smoke, WHEEL)
    modules = clone.sha256(other.wheel("*+smoke.*"))
    spawns = other.build(smoke, "--noenable_bzlmod", "--enable_workspace", WHEEL)
    assert spawns.executed[COMPILE] + spawns.cached[COMPILE] >= 4
    assert clone.sha256(other.wheel("*+smoke.*")) == modules


def test_touching_python_recompiles_nothing(other: clone.Clone) -> None:
    other.build(WHEEL)
    module = other.root / "python/aiter_attn/_core/errors.py"
    module.write_text(module.read_text() + "# touched\n")
    spawns = other.build(WHEEL)
    ran = spawns.executed + spawns.cached
    assert "Wheel" in ran
    assert not (clone.COMPILED | {"CodeObjectDescribe"}) & set(ran), ran


def test_touching_one_instance_recompiles_its_group_alone(other: clone.Clone) -> None:
    external = other.bazel("info", "output_base").stdout.strip().splitlines()[-1]
    instance = "fmha_bwd_dot_do_o_d64_fp16_b64_batch_o2_ps"
    (source,) = Path(external).glob(f"external/_main*ck_fmha/bwd/*/{instance}.cpp")
    source.chmod(0o644)
    source.write_text(source.read_text() + "// touched\n")
    spawns = other.build(WHEEL)
    ran = spawns.executed + spawns.cached
    assert ran["HipCompileGroup"] == 1, ran
    # A comment changes no module, and so no machine code.
    assert ran[COMPILE] == 0, ran
    # But the key is another now: what was proven of it holds no longer, and that is said. Of its
    # neighbours the same is proven as before.
    assert " 1 of 48 proven kernels are compiled as unproven" in spawns.output, spawns.output


def test_touching_a_header_recompiles_what_reads_it(other: clone.Clone) -> None:
    objects = "@variant_sets//smoke:gfx942"
    other.build(objects)
    external = other.bazel("info", "output_base").stdout.strip().splitlines()[-1]
    (headers,) = Path(external).glob("external/_main*composable_kernel/include/ck_tile/ops/fmha")

    def touch(name: str) -> clone.Spawns:
        header = headers / name
        header.chmod(0o644)
        header.write_text(header.read_text() + "// touched\n")
        return other.build(objects)

    # No kernel of these reads it.
    spawns = touch("kernel/fmha_fwd_splitkv_combine_kernel.hpp")
    ran = spawns.executed + spawns.cached
    assert not (clone.COMPILED | {"CodeObjectDescribe"}) & set(ran), ran
    assert "as unproven" not in spawns.output, spawns.output
    # One kind of them does.
    spawns = touch("pipeline/block_fmha_bwd_dot_do_o.hpp")
    ran = spawns.executed + spawns.cached
    assert sum(ran[name] for name in clone.COMPILED) == 1, ran
    assert ran["CodeObjectDescribe"] == 1, ran
    # Asked beforehand, this is told, and nothing of it is compiled. No cache has seen this comment.
    header = headers / "pipeline/block_fmha_bwd_dot_do_o.hpp"
    header.write_text(f"{header.read_text()}// {time.time_ns()}\n")
    (other.root / "user.bazelrc").write_text(
        f"startup --output_user_root={other.output_root} --max_idle_secs=60\n"
    )
    ask = ("--variants=smoke", "--archs=gfx942", "--missing")
    cache = f"--bazel_flag=--disk_cache={other.disk_cache}"
    told = other.bazel("run", "//kernels:matrix", "--", *ask, cache).stdout
    assert "\nThe caches lack 1 of 4 code objects (" in told, told[-3000:]
    (other.root / "user.bazelrc").unlink()
    spawns = other.build(objects)
    assert sum(spawns.executed[name] for name in clone.COMPILED) == 1, spawns.executed
