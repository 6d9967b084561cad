# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The wheel that provides the module jax_aiter, unpacked beside the package in a new process."""

from __future__ import annotations

import email
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

WHEEL = Path(os.environ["WHEEL"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(WHEEL) as wheel:
        wheel.extractall(made)
    return made


def run(site: Path, program: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(site), *filter(None, sys.path)])
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": paths, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_its_metadata() -> None:
    with zipfile.ZipFile(WHEEL) as wheel:
        (name,) = (n for n in wheel.namelist() if n.endswith("METADATA"))
        told = email.message_from_bytes(wheel.read(name))
        modules = [n for n in wheel.namelist() if n.endswith(".py")]
    assert told["Name"] == "jax-aiter" and told["Requires-Dist"] == "aiter-attn[jax]"
    assert modules == ["jax_aiter/__init__.py"]
    assert WHEEL.name.endswith("-py3-none-any.whl")


def test_the_smoke_line(site: Path) -> None:
    done = run(
        site,
        "from jax_aiter.mha import flash_attn_func, flash_attn_varlen; "
        "print('jax-aiter import OK')",
    )
    assert (done.stdout, done.returncode) == ("jax-aiter import OK\n", 0), done.stderr


def test_it_computes_and_is_one_module(site: Path) -> None:
    done = run(
        site,
        """
import jax_aiter, jax_aiter.mha.mha, jax_aiter.rmsnorm
import importlib.metadata, jax.numpy as jnp
import aiter_attn.compat.jax_aiter as stand_in
assert jax_aiter is stand_in and jax_aiter.mha is stand_in.mha
stand_in.install()  # once more
q = jnp.ones((1, 3, 2, 8))
(out,) = jax_aiter.mha.flash_attn_func(q, q, q)
assert (out == 1).all()
assert importlib.metadata.version("jax-aiter")
""",
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "name", ["gemm", "jit", "jit.build_jit", "module_fmha_v3_varlen_fwd", "module_custom"]
)
def test_modules_that_are_not_there_are_refused_by_name(site: Path, name: str) -> None:
    done = run(site, f"import jax_aiter.{name}")
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"ModuleNotFoundError: jax_aiter.{name.split('.')[0]}: not in")
    assert last.endswith("it has mha, mha.mha, rmsnorm, rmsnorm.rmsnorm")
