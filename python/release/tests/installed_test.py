# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""This build's own wheels, published to a server: installed from its index by name and extras, with
hashes, and used by a new process, where nothing of the checkout is."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from python.release import artefacts, documents, publish
from python.release.artefacts import Artefacts, File
from python.release.tests import builds, dav
from python.release.webdav import WebDav

SMOKE_LINE = (
    "from jax_aiter.mha import flash_attn_func, flash_attn_varlen; print('jax-aiter import OK')"
)
# jax lies here, in place of the environment that another index has brought it to.
FOLDERS = [os.path.abspath(path) for path in sys.path if path]


@dataclasses.dataclass
class Index:
    """An index of this build: its files, by kind."""

    url: str
    files: dict[str, File]

    def line(self, kind: str, extra: str = "") -> str:
        """A line of requirements that only this file satisfies."""
        file = self.files[kind]
        name, version = file.name.split("-")[:2]
        return f"{name}{extra}=={version} --hash=sha256:{file.sha256}"


@pytest.fixture(scope="module")
def indexes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Index]]:
    """Of whole wheels and of slim ones."""
    listed = []
    for kind in ("wheel", "slim_wheel", "pure_wheel"):
        path = Path(os.environ[kind.upper()])
        listed.append(artefacts.file(kind, path.name, path, requires_python=">=3.10"))
    with zipfile.ZipFile(listed[0].contents) as wheel:
        manifest = json.loads(wheel.read("aiter_attn/manifest.json"))
    settings = {name: manifest[name] for name in ("archs", "variant_set")}
    settings |= {"namespace": "aiter", "on_demand": "none", "patches": "default"}
    built = Artefacts(os.environ["VERSION"], settings, manifest, tuple(listed))
    with dav.serve(tmp_path_factory.mktemp("served")) as server:
        release = documents.release(built, builds.COMMIT, built.files)
        publish.publish(release, WebDav(server.write_url), lambda text: None)
        name = ".".join([settings["variant_set"], *settings["archs"]])
        url = f"{server.read_url}/{name}/simple/"
        files = {file.kind: file for file in listed}
        yield {
            "whole": Index(url, files),
            "slim": Index(url.replace(f"/{name}", f"/slim.{name}"), files),
        }


def environment(home: Path, *folders: str) -> dict[str, str]:
    """Neither program asks the machine for its configuration or its own mirrors."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "UV_", "PYTHON"))}
    path = os.pathsep.join(folders)
    return kept | {"HOME": str(home), "NO_PROXY": "127.0.0.1", "PYTHONPATH": path}


def install(index: Index, to: Path, *lines: str) -> subprocess.CompletedProcess[str]:
    """By pip, with all that the distributions need."""
    listed = to.parent / "requirements.txt"
    listed.write_text("\n".join(lines))
    return subprocess.run(
        [
            *(sys.executable, "-m", "pip", "--isolated", "--disable-pip-version-check", "install"),
            *("--no-cache-dir", "--only-binary=:all:", "--no-warn-script-location"),
            *(f"--prefix={to}", f"--index-url={index.url}", f"--requirement={listed}"),
        ],
        env=environment(to.parent, *FOLDERS),
        capture_output=True,
        text=True,
        check=False,
    )


def site(prefix: Path) -> str:
    (found,) = {str(path.parent) for path in prefix.rglob("aiter_attn") if path.is_dir()}
    return found


def run(prefix: Path, program: str) -> str:
    """The output of a new process, which has jax and all that is installed."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", program],
        cwd=prefix,
        env=environment(prefix, site(prefix), *FOLDERS) | {"JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("content", ["whole", "slim"])
def test_jax_aiter_brings_what_it_needs(
    indexes: dict[str, Index], content: str, tmp_path: Path
) -> None:
    """By name: aiter-attn is its dependency, with the extra of jax."""
    done = install(indexes[content], tmp_path / "env", "jax-aiter")
    assert done.returncode == 0, done.stderr
    assert run(tmp_path / "env", SMOKE_LINE) == "jax-aiter import OK\n"
    program = (
        "import aiter_attn, jax_aiter.mha, jax.numpy as jnp; q = jnp.ones((1, 3, 2, 8)); "
        "print(aiter_attn.__file__, (jax_aiter.mha.flash_attn_func(q, q, q)[0] == 1).all())"
    )
    file, right = run(tmp_path / "env", program).split()
    assert file.startswith(str(tmp_path)) and right == "True"
    (library,) = (tmp_path / "env").rglob("_C.*.so")
    # The wheels have one name and version; their libraries differ.
    extensions = {}
    for kind in ("wheel", "slim_wheel"):
        with zipfile.ZipFile(indexes[content].files[kind].contents) as wheel:
            extensions[kind] = wheel.read(f"aiter_attn/{library.name}")
    assert extensions["wheel"] != extensions["slim_wheel"]
    assert library.read_bytes() == extensions["wheel" if content == "whole" else "slim_wheel"]


def test_by_hash(indexes: dict[str, Index], tmp_path: Path) -> None:
    index = indexes["whole"]
    lines = index.line("pure_wheel"), index.line("wheel", "[jax]")
    done = install(index, tmp_path / "env", *lines)
    assert done.returncode == 0, done.stderr
    assert run(tmp_path / "env", SMOKE_LINE) == "jax-aiter import OK\n"
    # The slim wheel has the same name and version.
    other = index.line("slim_wheel", "[jax]")
    done = install(index, tmp_path / "other", index.line("pure_wheel"), other)
    assert done.returncode != 0 and "HASHES" in done.stderr
    assert not (tmp_path / "other").exists()


def test_by_uv(indexes: dict[str, Index], tmp_path: Path) -> None:
    """It sees no distribution that lies elsewhere, so both are named."""
    index, to = indexes["whole"], tmp_path / "env"
    listed = tmp_path / "requirements.txt"
    listed.write_text("\n".join([index.line("pure_wheel"), index.line("wheel", "[jax]")]))
    done = subprocess.run(
        [
            *(os.environ["UV"], "--no-config", "pip", "install", "--no-cache", "--no-deps"),
            *("--only-binary=:all:", f"--python={sys.executable}", f"--target={to}"),
            *("--require-hashes", f"--default-index={index.url}", f"--requirements={listed}"),
        ],
        env=environment(tmp_path, *FOLDERS),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert run(to, SMOKE_LINE) == "jax-aiter import OK\n"


@pytest.mark.parametrize(
    ("extra", "distribution"), [("cuda", "nvidia-cuda-nvrtc"), ("rocm", "rocm-sdk-core")]
)
def test_an_extra_that_the_index_cannot_serve(
    indexes: dict[str, Index], tmp_path: Path, extra: str, distribution: str
) -> None:
    done = install(indexes["whole"], tmp_path / "env", f"aiter-attn[{extra}]")
    assert done.returncode != 0
    assert distribution in done.stderr
    assert not (tmp_path / "env").exists()
