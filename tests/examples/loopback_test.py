# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The CI recipe on this machine: main writes the cache and publishes, a pull request only reads.

Both servers are nginx, with passwords. The cache begins with this user's disk cache: kernels are
compiled once for all tests.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from python.release.tests import builds, dav
from tests.e2e import clone
from toolchains.locks.environment import cache_folder
from toolchains.remote import fill, servers
from toolchains.remote.proxy import HttpProxy


@dataclasses.dataclass
class Ci:
    """A checkout that CI has made, and the servers that it knows."""

    project: clone.Clone
    nginx: servers.Nginx
    cache: HttpProxy
    releases: dav.Server

    def cache_url(self, event: str) -> str:
        """Main's has the credentials of who may write."""
        if event != "main":
            return self.cache.url
        return self.nginx.writers_url.replace(self.nginx.address, self.cache.url.split("//")[1])

    def written(self) -> list[str]:
        """Results that the cache was asked to keep."""
        return [path for method, path in self.cache.requests if method == "PUT"]

    def environment(self) -> dict[str, str]:
        """Of a runner: its home is new; Bazel itself and locked files are kept between runs."""
        return clone.stranger_environment() | {
            "BAZELW_CACHE": cache_folder(os.environ),
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "HOME": str(self.project.home),
        }

    def bazel(self, command: str) -> None:
        """Runs a command of Bazel's that is no step of CI."""
        subprocess.run(["./bazelw", command], cwd=self.project.root, env=self.environment())

    def run(self, event: str, *steps: str, **environ: str) -> tuple[str, clone.Spawns]:
        """Runs steps of ci.sh; returns their output, and what Bazel did in the last of them."""
        log = self.project.root.parent / f"{event}.json"
        done = subprocess.run(
            ["docs/examples/ci/ci.sh", *steps],
            cwd=self.project.root,
            env=self.environment()
            | {
                "CI_EVENT": event,
                "CI_CACHE": self.cache_url(event),
                "CI_FLAGS": f"--//kernels:variants=smoke --execution_log_json_file={log}",
            }
            | environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-8000:]
        for server in (self.nginx, self.releases.nginx):
            assert server.WRITER[1] not in done.stdout
        return done.stdout, clone.Spawns(log)


@pytest.fixture(scope="module")
def ci(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ci]:
    base = tmp_path_factory.mktemp("ci")
    project = clone.Clone(base, "runner")
    builds.commit(project.root, "feat: all of it")
    nginx = servers.Nginx(base / "cache")
    fill.link_disk_cache(nginx, clone.shared_disk_cache())
    with nginx, HttpProxy(nginx.url) as cache, dav.serve(base / "releases") as releases:
        made = Ci(project, nginx, cache, releases)
        yield made
        made.bazel("shutdown")
    # Bazel makes its trees read-only, which would keep the temporary folder from being removed.
    subprocess.run(["chmod", "-R", "u+w", str(project.home)], check=False)


@pytest.fixture(scope="module")
def main_run(ci: Ci) -> clone.Spawns:
    """Main has a commit with a change of C++ and one of Python, which no cache has yet."""
    for name, mark in (
        ("aiter/attention/problem/validate.cc", "//"),
        ("python/aiter_attn/_core/call.py", "#"),
    ):
        source = ci.project.root / name
        source.write_text(source.read_text() + f"{mark} {os.urandom(8).hex()}\n")
    builds.commit(ci.project.root, "fix: two files")
    _, spawns = ci.run("main", "build")
    return spawns


def test_main_compiles_what_is_new_and_writes_it(ci: Ci, main_run: clone.Spawns) -> None:
    assert main_run.executed["CppCompile"] >= 1
    # With kernels and without, that of kernels, and jax_aiter's.
    assert main_run.executed["Wheel"] + main_run.cached["Wheel"] == 2 * len(builds.ABIS) + 2
    assert main_run.executed["Wheel"] >= 2 * len(builds.ABIS)
    assert ci.written()


def published(ci: Ci) -> dict[str, dict]:
    """name -> entry of the files of the one release, each read from the server's folder."""
    root = ci.releases.root / "attn"
    (entry,) = json.loads((root / "index.json").read_text())["releases"]
    document = json.loads((root / "releases" / entry["key"] / "release.json").read_text())
    for file in document["files"]:
        data = (root / file["path"]).read_bytes()
        assert hashlib.sha256(data).hexdigest() == file["sha256"]
    return {file["name"]: file for file in document["files"]}


def test_main_publishes_all_of_it(ci: Ci, main_run: clone.Spawns) -> None:
    settings = {"CI_PUBLISH": ci.releases.write_url, "CI_BUILDER": "urn:x:loopback"}
    ci.run("main", "publish", **settings)
    files = published(ci)
    wheels = [file for file in files.values() if file["kind"] == "wheel"]
    assert sorted(wheel["abi"] for wheel in wheels) == list(builds.ABIS)
    for name in ("libaiter_attn.a", "libaiter_attn.so.1", "kernels.pack", "manifest.json"):
        assert name in files
    for header in ("attn.h", "attn.hpp", "norm.h"):
        assert header in files
    # The wheels of all ABIs share the kernels: each was made once.
    compiled = (main_run.executed + main_run.cached)["HipCodeObject"]
    assert compiled == len(files["kernels.pack"]["code_objects"])
    root = ci.releases.root / "attn"
    statement = json.loads((root / files["provenance.intoto.json"]["path"]).read_text())
    assert statement["predicate"]["runDetails"]["builder"]["id"] == "urn:x:loopback"
    # Once more: nothing is sent.
    ci.releases.requests.clear()
    ci.run("main", "publish", **settings)
    assert [p for p in ci.releases.paths("PUT") if "index.lock" not in p] == []


def test_pip_takes_published_wheels(ci: Ci, main_run: clone.Spawns, tmp_path: Path) -> None:
    options = ["--python-version=3.13", "--implementation=cp", "--abi=cp313"]
    subprocess.run(
        [
            *("python3", "-m", "pip", "download", "--quiet", "--isolated", "--no-deps"),
            *("--only-binary=:all:", "--platform=manylinux_2_17_x86_64", *options),
            f"--index-url={ci.releases.read_url}/smoke.gfx942/simple/",
            *("--dest", str(tmp_path)),
            *("aiter-attn", "aiter-attn-kernels-gfx942-smoke", "jax-aiter"),
        ],
        env=clone.stranger_environment() | {"LANG": "C.UTF-8"},
        check=True,
    )
    wheels = sorted(tmp_path.iterdir())
    assert len(wheels) == 3
    for wheel in wheels:
        assert clone.sha256(wheel) == published(ci)[wheel.name]["sha256"]


def test_a_pull_request_compiles_nothing_and_writes_nothing(
    ci: Ci, main_run: clone.Spawns, tmp_path: Path
) -> None:
    module = ci.project.root / "python/aiter_attn/_core/errors.py"
    module.write_text(module.read_text() + "# a change of Python alone\n")
    builds.commit(ci.project.root, "fix: a message")
    # As on a fresh machine, but for the unpacked repositories: nothing that was built is left.
    ci.bazel("clean")
    ci.cache.forget()
    index = (ci.releases.root / "attn/index.json").read_bytes()
    _, spawns = ci.run("pull-request", "build")
    out = str(tmp_path / "out")
    to = ci.releases.write_url
    output, _ = ci.run("pull-request", "collect", "publish", CI_OUT=out, CI_PUBLISH=to)
    assert not clone.COMPILED & set(spawns.executed), spawns.executed
    assert spawns.cached["HipCodeObject"] >= 4
    assert spawns.executed["Wheel"] == 2 * len(builds.ABIS)
    assert not ci.written()
    assert "a pull request publishes nothing" in output
    assert (ci.releases.root / "attn/index.json").read_bytes() == index
    assert len(list((tmp_path / "out/files").glob("*/*.whl"))) == 2 * len(builds.ABIS) + 2
    shutil.rmtree(tmp_path / "out")
