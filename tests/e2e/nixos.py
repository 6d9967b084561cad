# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A root such as NixOS has, with a real Nix and its store, a stand-in for nixpkgs, a checkout."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from tests.e2e import clone, other_system

_FLAKES = "experimental-features = nix-command flakes\n"
# Nix's sandbox and users need privileges that no user of this root has. Its build hook is started
# by the program's own name, which is that of a dynamic loader here.
_SETTINGS = "sandbox = false\nsubstituters =\nbuild-users-group =\nbuild-hook =\n"
_OUTPUT = "/home/neo/.cache/bazel"


class NixOS:
    """The machine, made below `base`. It lasts from command to command."""

    STUB = ("--override-input", "nixpkgs", "path:/run/nixpkgs", "--no-write-lock-file")

    def __init__(self, base: Path) -> None:
        self.base = base
        self.checkout = clone.Clone(base, "there")
        self.stub = base / "nixpkgs"
        shutil.copytree(clone.workspace() / "tests/e2e/nixpkgs", self.stub)
        for command in (["init", "-q"], ["add", "-A"]):
            subprocess.run(["git", *command], cwd=self.checkout.root, check=True)
        env = " ".join(other_system.command("env", "/run/system"))
        other_system.script(base / "env", f'exec {env} "$@"')
        other_system.etc(base / "etc", "/home/neo", "neo")
        # The Python packages that nixpkgs would have.
        self.site_packages = base / "site-packages"
        self.site_packages.mkdir()
        for folder in ("store", "var/nix/db", "var/nix/gcroots", "var/nix/profiles"):
            (base / "nix" / folder).mkdir(parents=True)
        cache = clone.shared_disk_cache()
        cache.mkdir(parents=True, exist_ok=True)
        system = other_system.tree()
        self._mounts = [
            *("--ro-bind", str(system / "usr/bin/bash-static"), "/bin/sh"),
            *("--ro-bind", str(base / "env"), "/usr/bin/env"),
            *("--ro-bind", str(base / "etc"), "/etc"),
            *("--ro-bind", str(system), "/run/system", "--ro-bind", str(self.stub), "/run/nixpkgs"),
            *("--ro-bind", str(other_system.locked_files()), "/run/locked"),
            *("--ro-bind", str(self.site_packages), "/run/site-packages"),
            *("--bind", str(base / "nix"), "/nix"),
            *("--bind", str(self.checkout.home), "/home/neo"),
            *("--bind", str(self.checkout.root), "/home/neo/checkout"),
            *("--bind", str(cache), "/run/disk-cache"),
            *("--chdir", "/home/neo/checkout"),
        ]

    def nix(
        self, *args: str, expect: int = 0, config: str = _FLAKES
    ) -> subprocess.CompletedProcess:
        """Runs nix; its exit status must be `expect`. The output is captured."""
        environment = {
            "AITER_ATTN_MIRROR": "/run/locked",
            "AITER_ATTN_STRICT": "1",
            "HOME": "/home/neo",
            "NIX_CONFIG": config + _SETTINGS,
            "PATH": "/run/no-programs",
        }
        result = subprocess.run(
            [
                *other_system.root(self._mounts, environment),
                *other_system.command("nix", "/run/system"),
                *args,
            ],
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={},
        )
        assert result.returncode == expect, f"nix {' '.join(args)}:\n{result.stdout[-8000:]}"
        return result

    def develop(self, *command: str) -> subprocess.CompletedProcess:
        """Runs a command in the flake's shell."""
        return self.nix("develop", *self.STUB, "-c", *command)

    def derivations(self, package: str) -> dict[str, Any]:
        """Returns all that a package is made of, as Nix describes it."""
        said = self.nix("derivation", "show", "--recursive", *self.STUB, f".#{package}").stdout
        return json.loads(said[said.index("{\n") :])

    def bazel(self, command: str, *arguments: str) -> subprocess.CompletedProcess:
        """Runs ./bazelw in the shell."""
        settings = ("--disk_cache=/run/disk-cache", "--symlink_prefix=/home/neo/built-")
        start = ("./bazelw", f"--output_user_root={_OUTPUT}", command, *settings)
        return self.develop(*start, *arguments)

    def build(self, *flags: str) -> tuple[clone.Spawns, Path]:
        """Builds the wheel in the shell. Returns what Bazel ran, and the wheel."""
        log = "--execution_log_json_file=/home/neo/execution.json"
        self.bazel("build", log, *flags, "//python:attn_wheel")
        output = self.checkout.home / ".cache/bazel"
        (wheel,) = output.glob("*/execroot/_main/bazel-out/k8-opt/bin/python/*.whl")
        return clone.Spawns(self.checkout.home / "execution.json"), wheel

    def close(self) -> None:
        subprocess.run(["chmod", "-R", "u+w", str(self.base)], check=False)
        shutil.rmtree(self.base, ignore_errors=True)
