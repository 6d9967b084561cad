# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The flake, under the real Nix, in a root such as NixOS has: /bin/sh, /usr/bin/env and /nix.

nixpkgs itself is too large to lock: //tests/e2e/nixpkgs stands in for it. toolchains/nix/README.md
says what that leaves untested.
"""

from __future__ import annotations

import json
import os
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import clone, differences
from tests.e2e.nixos import NixOS


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NixOS]:
    made = NixOS(tmp_path_factory.mktemp("nix"))
    yield made
    made.close()


def test_every_output_is_what_nix_expects(machine: NixOS) -> None:
    said = machine.nix("flake", "check", *machine.STUB, "--no-build").stdout
    for output in ("packages", "apps", "checks", "devShells", "formatter"):
        assert f"checking flake output '{output}'" in said
    shown = json.loads(
        machine.nix("flake", "show", *machine.STUB, "--json").stdout.splitlines()[-1]
    )
    assert set(shown["packages"]["x86_64-linux"]) == {"core", "default", "selftest", "smoke"}
    assert set(shown["apps"]["x86_64-linux"]) == {"default", "selftest"}


def test_what_is_fetched_is_what_the_locks_name(machine: NixOS) -> None:
    """The flake has no digest of its own: a lock that changes changes what Nix fetches."""
    old = machine.derivations("smoke")
    lock = machine.checkout.root / "toolchains/debian/lock.json"
    text = lock.read_text()
    (dlpack,) = json.loads(text)["groups"]["dlpack"]["packages"]
    try:
        lock.write_text(text.replace(dlpack["sha256"], "5" * 64))
        new = machine.derivations("smoke")
    finally:
        lock.write_text(text)
    hashes = [
        {d["outputs"]["out"].get("hash") for d in all_of_it.values()} for all_of_it in (old, new)
    ]
    assert hashes[0] - hashes[1] == {dlpack["sha256"]}
    assert hashes[1] - hashes[0] == {"5" * 64}


def test_a_shell_opens_quickly_and_has_what_readme_asks_for(machine: NixOS) -> None:
    said = machine.develop(
        "sh",
        "-c",
        "set -e; python3 -c 'import sys; assert sys.version_info >= (3, 10)'; python3 -m pip -V;"
        "git --version; dpkg-deb --version; command -v cc gcc clang ld || echo no compiler;"
        "ls /bin /usr/bin",
    ).stdout
    seconds = []
    for _ in range(3):  # the quickest: other programs of this machine are no part of it
        start = time.monotonic()
        machine.develop("true")
        seconds.append(time.monotonic() - start)
    print(f"nix develop -c true: {min(seconds):.1f} s")
    assert min(seconds) < 20, seconds
    assert "no compiler" in said
    assert said.split()[-4:] == ["/bin:", "sh", "/usr/bin:", "env"]


def test_the_shell_builds_the_same_wheel_and_shares_the_cache(machine: NixOS) -> None:
    """Nothing of the shell is in an action's key: a result from outside is not built again."""
    reference = Path(os.environ["REFERENCE_WHEEL"]).resolve()
    manifest = json.loads(zipfile.ZipFile(reference).read("aiter_attn/manifest.json"))
    spawns, wheel = machine.build(f"--//kernels:variants={manifest['variant_set']}")
    compiled = clone.COMPILED | {"CodeObjectDescribe", "CppArchive"}
    assert not compiled & set(spawns.executed), spawns.executed
    # But for objects that come compiled; an arch may lack an instance.
    made_here = [i for i in manifest["instances"] if i["provider"] != "asm"]
    objects = sum(len(i["code_objects"]) for i in made_here)
    assert objects and spawns.cached["HipCodeObject"] == objects
    found = differences.of_wheels(reference, wheel)
    assert not found, "\n".join(found)


def test_tests_run_where_there_is_no_bash_in_bin(machine: NixOS) -> None:
    """One of Python, one of C++."""
    targets = ("//tests/e2e:differences_test", "//kernels/code_object/tests:embedded_pack_test")
    said = machine.bazel("test", *targets).stdout
    assert "2 tests pass" in said


def test_without_flakes_nix_names_the_setting(machine: NixOS) -> None:
    refused = machine.nix("develop", expect=1, config="").stdout
    assert "experimental" in refused
    assert "--extra-experimental-features nix-command" in refused
    # The commands of toolchains/nix/README.md.
    features = ("--extra-experimental-features", "nix-command flakes")
    machine.nix(*features, "develop", *machine.STUB, "-c", "true", config="")


def test_another_python_is_refused_by_name(machine: NixOS) -> None:
    stub = machine.stub / "default.nix"
    text = stub.read_text()
    try:
        stub.write_text(text.replace('pythonVersion = "3.13"', 'pythonVersion = "3.12"'))
        said = machine.nix("build", *machine.STUB, ".#smoke", "--dry-run", expect=1).stdout
    finally:
        stub.write_text(text)
    assert "no wheel for Python 312" in said
    assert "python311 python313 python314" in said
