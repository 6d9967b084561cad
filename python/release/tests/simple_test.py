# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Package indexes on a server, by pip and uv: wheels by name and content, with hashes."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from python.release import publish, simple
from python.release.artefacts import File
from python.release.checkout import Commit
from python.release.documents import Release
from python.release.tests import builds, dav
from python.release.webdav import WebDav

KERNELS = "aiter-attn-kernels-gfx942-smoke"
NEWER = Commit("decade" + "0" * 34, builds.COMMIT.time + 1)
# Of the locked pip, for another Python than the one that runs it.
PIP = (sys.executable, "-m", "pip", "--isolated", "--disable-pip-version-check", "install")
FOR = ("--python-version=3.13", "--only-binary=:all:", "--no-deps")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[dav.Server]:
    with dav.serve(tmp_path / "served") as server:
        yield server


@pytest.fixture
def release(server: dav.Server, tmp_path: Path) -> Release:
    release = builds.release(tmp_path / "build")
    publish.publish(release, WebDav(server.write_url), lambda text: None)
    return release


@pytest.mark.parametrize(
    ("others", "name"),
    [
        ({}, "te.gfx942"),  # as of releases of before the setting
        ({"on_demand": "none"}, "te.gfx942"),
        ({"on_demand": "full"}, "te.gfx942.on_demand-full"),
        ({"namespace": "mine", "patches": "none"}, "te.gfx942.namespace-mine.patches-none"),
    ],
)
def test_an_index_is_named_after_what_is_unusual(others: dict[str, str], name: str) -> None:
    usual = {"namespace": "aiter", "patches": "default"}
    assert simple.folder({"variant_set": "te", "archs": ["gfx942"], **usual, **others}) == name


def wheel(release: Release, kind: str, abi: str | None = None) -> File:
    (found,) = (f for f in release.files if f.kind == kind and f.about.get("abi") == abi)
    return found


def pip(
    server: dav.Server, index: str, to: Path, *requirements: str
) -> subprocess.CompletedProcess:
    listed = to.with_suffix(".txt")
    listed.write_text("\n".join(requirements))
    url = f"--index-url={server.read_url}/{index}/simple/"
    platform = "--platform=manylinux_2_17_x86_64"
    return _install(to, *PIP, *FOR, platform, "--no-cache-dir", url, f"--requirement={listed}")


def uv(server: dav.Server, index: str, to: Path, *requirements: str) -> subprocess.CompletedProcess:
    listed = to.with_suffix(".txt")
    listed.write_text("\n".join(requirements))
    url = f"--default-index={server.read_url}/{index}/simple/"
    program = (os.environ["UV"], "--no-config", "pip", "install", f"--python={sys.executable}")
    platform = "--python-platform=x86_64-manylinux_2_17"
    return _install(to, *program, *FOR, platform, "--no-cache", url, f"--requirements={listed}")


def _install(to: Path, *command: str) -> subprocess.CompletedProcess:
    # Neither asks the machine for its configuration or its own mirrors.
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "UV_"))}
    paths = ":".join(os.path.abspath(path) for path in sys.path if path)
    environ = kept | {"HOME": str(to.parent), "PYTHONPATH": paths, "NO_PROXY": "127.0.0.1"}
    return subprocess.run(
        [*command, f"--target={to}"],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("install", [pip, uv])
@pytest.mark.parametrize(("index", "kind"), [("", "wheel"), ("slim.", "slim_wheel")])
def test_wheels_by_content_and_hash(
    server: dav.Server, release: Release, tmp_path: Path, install, index: str, kind: str
) -> None:
    file = wheel(release, kind, "cp313")
    kernels, pure = wheel(release, "kernels_wheel"), wheel(release, "pure_wheel")
    done = install(
        server,
        f"{index}smoke.gfx942",
        tmp_path / "out",
        f"aiter-attn==0.1.0 --hash=sha256:{file.sha256}",
        f"{KERNELS}==0.1.0 --hash=sha256:{kernels.sha256}",
        f"jax-aiter==0.1.0 --hash=sha256:{pure.sha256}",
    )
    assert done.returncode == 0, done.stderr
    name = (tmp_path / "out/aiter_attn/name").read_text()
    assert name.endswith(file.name)
    assert name.startswith("slim/") == (kind == "slim_wheel")
    pack = tmp_path / f"out/aiter_attn_kernels/{KERNELS}.attnpack"
    assert pack.read_bytes() == builds.pack()
    assert (tmp_path / "out/jax_aiter/__init__.py").exists()


@pytest.mark.parametrize("install", [pip, uv])
def test_another_file_than_the_one_of_the_hash(
    server: dav.Server, release: Release, tmp_path: Path, install
) -> None:
    slim = wheel(release, "slim_wheel", "cp313")
    requirement = f"aiter-attn==0.1.0 --hash=sha256:{slim.sha256}"
    done = install(server, "smoke.gfx942", tmp_path / "out", requirement)
    assert done.returncode != 0
    assert "hash" in done.stderr.lower()
    assert not (tmp_path / "out/aiter_attn").exists()


def test_both_forms_of_the_pages_say_the_same(server: dav.Server, release: Release) -> None:
    url = f"{server.read_url}/smoke.gfx942/simple/aiter-attn/"
    accept = "application/vnd.pypi.simple.v1+json, text/html; q=0.01"
    answer = requests.get(url, headers={"Accept": accept}, timeout=60)
    assert answer.headers["Content-Type"] == "application/vnd.pypi.simple.v1+json"
    files = answer.json()["files"]
    assert {(f["filename"], f["hashes"]["sha256"], f["size"]) for f in files} == {
        (f.name, f.sha256, f.size) for f in release.files if f.kind == "wheel"
    }
    assert {f["requires-python"] for f in files} == {">=3.10"}
    page = requests.get(url, timeout=60)
    assert page.headers["Content-Type"] == "text/html"
    for file in files:
        assert f'"{file["url"]}#sha256={file["hashes"]["sha256"]}"' in page.text
    assert page.text.count("data-requires-python") == len(files)
    root = requests.get(f"{server.read_url}/smoke.gfx942/simple/", timeout=60)
    for name in ("aiter-attn", KERNELS, "jax-aiter"):
        assert f'<a href="{name}/">{name}</a>' in root.text


def test_a_name_is_the_file_of_the_newest_commit(
    server: dav.Server, release: Release, tmp_path: Path
) -> None:
    """Also when the older one is published last."""
    root = server.root / "attn"
    newer = builds.release(tmp_path / "newer", NEWER, spaces=1)
    assert wheel(newer, "wheel", "cp313").name == wheel(release, "wheel", "cp313").name
    for one in (newer, builds.release(tmp_path / "again"), newer):
        publish.publish(one, WebDav(server.write_url), lambda text: None)
        page = (root / "smoke.gfx942/simple/aiter-attn/index.v1+json").read_text()
        hashes = {f["filename"]: f["hashes"]["sha256"] for f in json.loads(page)["files"]}
        assert hashes == {f.name: f.sha256 for f in newer.files if f.kind == "wheel"}
    # All that a page names is there.
    for file in json.loads(page)["files"]:
        data = (root / "smoke.gfx942/simple/aiter-attn" / file["url"]).read_bytes()
        assert hashlib.sha256(data).hexdigest() == file["hashes"]["sha256"]
