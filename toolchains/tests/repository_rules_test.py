# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""debian_packages, pypi_archive and torch_wheel, run by a Bazel of their own in their own
workspace.

Packages, wheels and sdists are made here and served from local folders.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import pathlib
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator

import pytest

from toolchains.bazel.tests.checkout import ON_DEBIAN, TOP, Checkout, locked, make_archive
from toolchains.debian import lock

pytestmark = ON_DEBIAN

ALL = """'filegroup(name = "files", srcs = glob(["**"]), visibility = ["//visibility:public"])'"""
RULES = f"""
debian_packages(name = "tree", group = "toy", build_file_content = {ALL})
debian_packages(
    name = "part",
    group = "toy",
    packages = ["libtoy"],
    keep = ["include/*", "lib/*"],
    exclude = ["*.la"],
    strip_prefix = "usr",
    build_file_content = {ALL},
)
debian_packages(name = "no_group", group = "toys", build_file_content = {ALL})
debian_packages(name = "no_package", group = "toy", packages = ["x"], build_file_content = {ALL})
pypi_archive(name = "wheel", distribution = "toy-wheel", kind = "any", build_file_content = {ALL})
pypi_archive(
    name = "sdist",
    distribution = "toy",
    kind = "sdist",
    include = ["include", "deep/er"],
    strip_prefix = "src",
    build_file_content = {ALL},
)
pypi_archive(name = "no_kind", distribution = "toy", kind = "any", build_file_content = {ALL})
pypi_archive(name = "no_dist", distribution = "toys", kind = "any", build_file_content = {ALL})
torch_wheel(
    name = "added",
    distribution = "toy-wheel",
    interpreter = "//:python.sh",
    kind = "any",
    start = "//toolchains/torch:wheel_sitecustomize.py",
    target = "files",
)
"""
MODULE = f"""
module(name = "aiter_attn")
bazel_dep(name = "platforms", version = "0.0.10")
bazel_dep(name = "rules_python", version = "0.22.1")
debian_packages = use_repo_rule("//toolchains/debian:debian.bzl", "debian_packages")
pypi_archive = use_repo_rule("//toolchains/pypi:pypi.bzl", "pypi_archive")
torch_wheel = use_repo_rule("//toolchains/torch:wheel.bzl", "torch_wheel")
{RULES}
"""
WORKSPACE = f"""
workspace(name = "aiter_attn")
load("//toolchains/debian:debian.bzl", "debian_packages")
load("//toolchains/debian:repositories.bzl", "rule_set_repositories")
load("//toolchains/pypi:pypi.bzl", "pypi_archive")
load("//toolchains/torch:wheel.bzl", "torch_wheel")
rule_set_repositories()
{RULES}
"""


@dataclasses.dataclass
class Result:
    returncode: int
    log: str


class Workspace(Checkout):
    """A checkout that is a workspace with the repositories of RULES."""

    def __init__(self, root: pathlib.Path, archive: pathlib.Path) -> None:
        super().__init__(root, archive)
        self.output = root / "output"
        self.index = root / "index" / "simple"
        shutil.copy(TOP / "toolchains/BUILD.bazel", self.root / "toolchains")
        for folder in ("debian", "debian/private", "locks", "npm", "pypi", "torch", "versions"):
            (self.root / "toolchains" / folder).mkdir(exist_ok=True)
            for pattern in ("*.bzl", "*.sh", "BUILD.bazel", "wheel_sitecustomize.py"):
                for file in (TOP / "toolchains" / folder).glob(pattern):
                    shutil.copy(file, self.root / "toolchains" / folder)
        (self.root / "MODULE.bazel").write_text(MODULE)
        (self.root / "WORKSPACE").write_text(WORKSPACE)
        (self.root / "BUILD.bazel").touch()
        (self.root / "python.sh").write_text("#!/bin/sh\n")
        (self.root / "python.sh").chmod(0o755)
        (self.root / "toolchains/npm/lock.json").write_text('{"packages": {}}')
        self.pypi_lock = self.root / "toolchains/pypi/lock.json"

    def bazel(self, *arguments: str, **extra: str) -> Result:
        got = subprocess.run(
            [
                sys.executable,
                self.root / "bazelw",
                # There lies the repository cache: a sandbox cannot write the user's own.
                f"--output_user_root={self.output}.user",
                f"--output_base={self.output}",
                *arguments,
            ],
            cwd=self.root,
            env=self.environ(**{"AITER_ATTN_PYPI_INDEX": f"file://{self.index}"} | extra),
            capture_output=True,
            text=True,
            timeout=240,
        )
        return Result(got.returncode, got.stdout + got.stderr)

    def fetch(self, name: str, *options: str, **extra: str) -> Result:
        """Fetches anew: nothing comes from the store that an earlier fetch filled."""
        shutil.rmtree(self.cache / "files", ignore_errors=True)
        return self.bazel("build", f"@{name}//:files", *options, **extra)

    def change_locks(self) -> None:
        """Makes the locks differ from the last ones in white space."""
        for file in (self.lock, self.pypi_lock):
            file.write_text(file.read_text() + "\n")

    def refetch(self, name: str, *options: str, **extra: str) -> Result:
        self.change_locks()
        return self.fetch(name, *options, **extra)

    def tree(self, name: str) -> pathlib.Path:
        (root,) = (
            p
            for p in (self.output / "external").iterdir()
            if p.is_dir() and (p.name == name or p.name.endswith(f"~{name}"))
        )
        return root

    def files(self, name: str) -> set[str]:
        root = self.tree(name)
        found = {str(p.relative_to(root)) for p in root.rglob("*") if not p.is_dir()}
        return found - {
            "BUILD.bazel",
            "REPO.bazel",
            "WORKSPACE",
            "lock_digest.bzl",
            "debian_lock.json",
        }


def make_deb(name: str, files: dict[str, str], archive: pathlib.Path) -> lock.Package:
    """Makes a package; contents that start with -> are links."""
    root = archive.parent / f"make-{name}"
    (root / "DEBIAN").mkdir(parents=True)
    (root / "DEBIAN/control").write_text(
        f"Package: {name}\nVersion: 1\nArchitecture: amd64\nMaintainer: a <a@example.org>\n"
        "Description: toy\n"
    )
    for path, contents in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if contents.startswith("->"):
            place.symlink_to(contents[2:])
        else:
            place.write_text(contents)
    path = f"pool/main/t/toy/{name}_1_amd64.deb"
    deb = archive / path
    deb.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        ["dpkg-deb", "--root-owner-group", "-Zxz", "-b", root, deb], check=True, capture_output=True
    )
    data = deb.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    return lock.Package(name, "1", path, digest, len(data), "20260131T235959Z")


def make_index(index: pathlib.Path) -> dict[str, object]:
    """Makes a local package index. Returns the lock's distributions."""
    files = index.parent / "files"
    files.mkdir(parents=True)
    wheel = files / "toy_wheel-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as z:
        z.writestr("toy/__init__.py", "A = 1\n")
    sdist = files / "toy-2.0.tar.gz"
    with tarfile.open(sdist, "w:gz") as t:
        for name in ("src/include/a.h", "src/deep/er/b.c", "src/deep/c.c", "src/d.c", "setup.py"):
            member = tarfile.TarInfo(f"toy-2.0/{name}")
            member.size = len(name)
            t.addfile(member, io.BytesIO(name.encode()))
    distributions: dict[str, object] = {}
    for name, version, kind, file in (
        ("toy-wheel", "1.0", "any", wheel),
        ("toy", "2.0", "sdist", sdist),
    ):
        (index / name).mkdir(parents=True)
        page = f'<a href="../../files/{file.name}#sha256=0">{file.name}</a>'
        (index / name / "index.html").write_text(page)
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        entry = {"filename": file.name, "sha256": digest}
        distributions[name] = {"version": version, "files": {kind: entry}}
    return distributions


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    root = tmp_path_factory.mktemp("rules")
    archive = make_archive(root / "archive")
    made = Workspace(root, archive)
    toys = (
        make_deb(
            "libtoy",
            {
                "usr/include/toy.h": "header",
                "usr/lib/libtoy.so.1": "library",
                "usr/lib/libtoy.so": "->/usr/lib/libtoy.so.1",
                "usr/lib/libtoy.la": "unwanted",
                "usr/lib/dangling.so": "->/usr/lib/nowhere",
                "usr/share/doc/libtoy/copyright": "text",
            },
            archive,
        ),
        make_deb("toy", {"usr/bin/toy": "program", "lib": "->/usr/lib"}, archive),
    )
    groups = {"bazel": lock.Group("forky", locked()), "toy": lock.Group("sid", toys)}
    made.lock.write_text(lock.dump(groups))
    with (made.lock.parent / "packages.toml").open("a") as packages:
        packages.write('[group.toy]\nsuite = "sid"\npackages = ["libtoy", "toy"]\n')
    made.pypi_lock.write_text(json.dumps({"distributions": make_index(made.index)}))
    yield made
    made.bazel("shutdown")
    shutil.rmtree(root, ignore_errors=True)


@pytest.fixture(autouse=True)
def locks_as_they_were(workspace: Workspace) -> Iterator[None]:
    before = {f: f.read_text() for f in (workspace.lock, workspace.pypi_lock)}
    yield
    for file, text in before.items():
        file.write_text(text)


def check_trees(workspace: Workspace) -> None:
    for name in ("tree", "part", "wheel", "sdist"):
        got = workspace.fetch(name)
        assert got.returncode == 0, got.log
    assert workspace.files("part") == {"include/toy.h", "lib/libtoy.so", "lib/libtoy.so.1"}
    assert (workspace.tree("part") / "lib/libtoy.so").read_text() == "library"
    assert workspace.files("wheel") == {"toy/__init__.py"}
    assert workspace.files("sdist") == {"include/a.h", "deep/er/b.c"}
    tree = workspace.tree("tree")
    link = (tree / "usr/lib/libtoy.so").readlink()
    assert link == pathlib.Path("../../usr/lib/libtoy.so.1")
    assert (tree / "lib").readlink() == pathlib.Path("usr/lib")
    assert (tree / "usr/lib/libtoy.so").read_text() == "library"
    assert not (tree / "usr/lib/dangling.so").is_symlink()
    assert (tree / "usr/share/doc/libtoy/copyright").exists()


def test_trees_and_their_identity(workspace: Workspace) -> None:
    check_trees(workspace)
    tree = workspace.tree("tree")
    entries = json.loads((tree / "debian_lock.json").read_text())
    assert [e["name"] for e in entries] == ["libtoy", "toy"]
    lines = "".join(f"{e['name']} {e['sha256']}\n" for e in entries)
    digest = hashlib.sha256(lines.encode()).hexdigest()
    assert (tree / "lock_digest.bzl").read_text() == f'LOCK_DIGEST = "{digest}"\n'
    sdist = json.loads(workspace.pypi_lock.read_text())["distributions"]["toy"]["files"]["sdist"]
    digest_file = workspace.tree("sdist") / "lock_digest.bzl"
    assert digest_file.read_text() == f'LOCK_DIGEST = "{sdist["sha256"]}"\n'


def test_next_mirror(workspace: Workspace) -> None:
    both = f"http://127.0.0.1:9/debian {workspace.archive}"
    got = workspace.refetch("tree", f"--repo_env=AITER_ATTN_DEBIAN_MIRROR={both}")
    assert got.returncode == 0, got.log


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("no_group", ["no group", "toys", "there are bazel, toy", "--relock debian"]),
        ("no_package", ["no package 'x'", "it has libtoy, toy"]),
        ("no_dist", ["no distribution 'toys'", "toy, toy-wheel", "--relock pypi"]),
        ("no_kind", ["no file of kind 'any'", "there are ['sdist']", "--relock pypi"]),
    ],
)
def test_what_the_lock_does_not_have(workspace: Workspace, name: str, parts: list[str]) -> None:
    got = workspace.fetch(name)
    assert got.returncode != 0
    for part in parts:
        assert part in got.log


def damage(file: pathlib.Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def toy(workspace: Workspace) -> lock.Package:
    return lock.parse(workspace.lock.read_text(), "lock.json")["toy"].packages[0]


def test_wrong_digest_of_a_package(workspace: Workspace) -> None:
    damage(workspace.lock, toy(workspace).sha256, "0" * 64)
    got = workspace.fetch("tree")
    assert got.returncode != 0
    assert "libtoy 1" in got.log
    # The archive here has no index, so it cannot be told whether the lock is wrong or stale.
    assert "no archive serves the index of suite sid" in got.log


def test_vanished_package_where_strict(workspace: Workspace) -> None:
    damage(workspace.lock, "libtoy_1_", "libtoy_0_")
    got = workspace.fetch("tree", "--repo_env=AITER_ATTN_STRICT=1")
    assert got.returncode != 0
    for part in ("libtoy 1", "--relock debian", "AITER_ATTN_STRICT"):
        assert part in got.log


def test_unreachable_archive(workspace: Workspace) -> None:
    got = workspace.refetch("tree", "--repo_env=AITER_ATTN_DEBIAN_MIRROR=http://127.0.0.1:9/d")
    assert got.returncode != 0
    for part in ("http://127.0.0.1:9/d", "libtoy 1", "AITER_ATTN_DEBIAN_MIRROR"):
        assert part in got.log


def test_wrong_digest_of_a_wheel(workspace: Workspace) -> None:
    locked_text = json.loads(workspace.pypi_lock.read_text())
    digest = locked_text["distributions"]["toy-wheel"]["files"]["any"]["sha256"]
    damage(workspace.pypi_lock, digest, "0" * 64)
    got = workspace.fetch("wheel")
    assert got.returncode != 0
    for part in ("toy_wheel-1.0-py3-none-any.whl", "0" * 64, digest, "--relock pypi"):
        assert part in got.log


def test_corrupted_digest_of_a_wheel(workspace: Workspace) -> None:
    damage(workspace.pypi_lock, '"sha256": "', '"sha256": "x')
    got = workspace.fetch("wheel")
    assert got.returncode != 0
    assert "it must match [0-9a-f]{64}" in got.log


def test_file_that_the_index_does_not_list(workspace: Workspace) -> None:
    damage(workspace.pypi_lock, "toy_wheel-1.0-", "toy_wheel-1.1-")
    got = workspace.fetch("wheel")
    assert got.returncode != 0
    assert "does not list the locked file toy_wheel-1.1-py3-none-any.whl" in got.log


def test_unreachable_index(workspace: Workspace) -> None:
    got = workspace.refetch("wheel", "--repo_env=AITER_ATTN_PYPI_INDEX=http://127.0.0.1:9/simple")
    assert got.returncode != 0
    for part in ("http://127.0.0.1:9/simple/toy-wheel/", "AITER_ATTN_PYPI_INDEX"):
        assert part in got.log


def test_tests_are_incompatible_where_a_dispensable_wheel_is_not_to_be_had(
    workspace: Workspace,
) -> None:
    got = workspace.refetch("added", "--nobuild")
    assert got.returncode == 0, got.log
    assert workspace.files("added") == {"site-packages/toy/__init__.py", "sitecustomize.py"}
    damage(workspace.pypi_lock, "toy_wheel-1.0-", "toy_wheel-1.0+cpu-")
    got = workspace.fetch("added", "--nobuild")
    assert got.returncode != 0 and "@platforms//:incompatible" in got.log
    for part in (
        "does not list the locked file toy_wheel-1.0+cpu-py3-none-any.whl",
        "tests with @files are SKIPPED",
        "find-links or extra-index-url",
        "fetch --force --repo=@files",
    ):
        assert part in got.log


NOWHERE = {
    "AITER_ATTN_DEBIAN_MIRROR": "http://127.0.0.1:9/debian",
    "AITER_ATTN_PYPI_INDEX": "http://127.0.0.1:9/simple",
}


def test_the_store_serves_without_a_network(workspace: Workspace) -> None:
    got = workspace.refetch("wheel")
    assert got.returncode == 0, got.log
    workspace.change_locks()
    got = workspace.bazel("build", "@wheel//:files", **NOWHERE)
    assert got.returncode == 0, got.log
    assert workspace.files("wheel") == {"toy/__init__.py"}


def test_a_vendored_folder_serves_without_a_network(
    workspace: Workspace, tmp_path: pathlib.Path
) -> None:
    command = [sys.executable, workspace.root / "bazelw", "--vendor", "vendored"]
    environ = workspace.environ(AITER_ATTN_PYPI_INDEX=f"file://{workspace.index}")
    got = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True)
    assert got.returncode == 0, got.stderr
    assert f"AITER_ATTN_MIRROR={tmp_path}/vendored" in got.stderr
    for name in ("tree", "wheel", "sdist"):
        mirror = {"AITER_ATTN_MIRROR": f"{tmp_path}/vendored"}
        fetched = workspace.refetch(name, **NOWHERE, **mirror)
        assert fetched.returncode == 0, fetched.log


def test_workspace_mode_gives_the_same_trees(workspace: Workspace) -> None:
    mode = "common --noenable_bzlmod --enable_workspace\n"
    (workspace.root / ".bazelrc").write_text(mode)
    shutil.rmtree(workspace.output / "external", ignore_errors=True)
    try:
        check_trees(workspace)
        got = workspace.bazel("build", "//toolchains/debian")
        assert got.returncode == 0, got.log
    finally:
        (workspace.root / ".bazelrc").unlink()
