# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Builds the project in a fresh clone, as a user elsewhere would, and reads Bazel's logs.

A Clone shares nothing with the checkout under test but the folders that it is given: it has its own
folder, HOME and Bazel output root. The disk cache may be shared, so that nothing compiles twice
where that is not what is tested.
"""

from __future__ import annotations

import collections
import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from toolchains.remote import execution_log


def workspace() -> Path:
    """The checkout under test: these files are run in place, through links into it."""
    return Path(__file__).resolve().parents[2]


def home() -> Path:
    """The real home of whoever runs the tests, where `--config=cache` keeps its disk cache."""
    return Path(os.path.expanduser("~"))


def shared_disk_cache() -> Path:
    return home() / ".cache/aiter-attn/bazel-disk-cache"


def stranger_environment() -> dict[str, str]:
    """The environment less a Bazel test's variables, plus some that must make no difference."""
    ours = ("JAVA_RUNFILES", "PYTHON", "RUNFILES_", "TEST_", "TESTBRIDGE_", "XML_OUTPUT_FILE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    hostile = {"PYTHONSAFEPATH": "1", "USER": "someone-else", "CC": "/no/such/cc", "LANG": "xx_YY"}
    return {**kept, **hostile}


class Clone:
    """A copy of the files that git tracks or would track, with its own HOME and output root."""

    def __init__(
        self,
        base: Path,
        name: str,
        disk_cache: Path | None = None,
        wrapper: Sequence[str] = (),
    ) -> None:
        """`wrapper` is a command that ./bazelw and its arguments are appended to."""
        self.root = base / name / "checkout"
        self.home = base / name / "home"
        self.output_root = base / name / "output"
        self.disk_cache = disk_cache
        self.wrapper = wrapper
        self.home.mkdir(parents=True)
        self.root.mkdir()
        files = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=workspace(),
            check=True,
            capture_output=True,
        ).stdout
        existing = [f for f in files.split(b"\0") if f and (workspace() / f.decode()).exists()]
        subprocess.run(
            ["cp", "--parents", "-P", "-t", str(self.root), *(f.decode() for f in existing)],
            cwd=workspace(),
            check=True,
        )

    def command(self, *args: str) -> list[str]:
        """./bazelw's, to be run in `root`."""
        has_cache = self.disk_cache and args[0] != "shutdown"
        return [
            *self.wrapper,
            "./bazelw",
            f"--output_user_root={self.output_root}",
            "--max_idle_secs=60",
            args[0],
            *([f"--disk_cache={self.disk_cache}"] if has_cache else []),
            *args[1:],
        ]

    def environment(self, **env: str) -> dict[str, str]:
        """./bazelw's."""
        return {**stranger_environment(), "HOME": str(self.home), **env}

    def bazel(
        self, *args: str, expect: int | None = 0, stderr: int = subprocess.STDOUT, **env: str
    ) -> subprocess.CompletedProcess:
        """Runs ./bazelw; its exit status must be `expect` (None: any). The output is captured."""
        command = self.command(*args)
        result = subprocess.run(
            command,
            cwd=self.root,
            env=self.environment(**env),
            text=True,
            stdout=subprocess.PIPE,
            stderr=stderr,
        )
        if expect is not None and result.returncode != expect:
            raise AssertionError(
                f"{' '.join(command)}: exit status {result.returncode}, expected {expect}\n"
                + (result.stdout + (result.stderr or ""))[-8000:]
            )
        return result

    def build(self, *args: str) -> Spawns:
        """Builds and returns which spawns ran and which came from a cache, and the output."""
        log = self.root.parent / "execution.json"
        built = self.bazel("build", f"--execution_log_json_file={log}", *args)
        return Spawns(log, built.stdout)

    def cpu_seconds(self) -> float:
        """Processor time of the Bazel server since its start, with all programs that it ran."""
        pid = self.bazel("info", "server_pid").stdout.split()[-1]
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    def wheel(self, version: str = "*") -> Path:
        """That of a version: each that was built has a file of its own."""
        (wheel,) = (self.root / "bazel-bin/python").glob(f"aiter_attn-{version}-cp*.whl")
        return wheel

    def close(self) -> None:
        """Stops Bazel and removes its output root, of several GB. The checkout stays."""
        self.bazel("shutdown", expect=None)
        # Bazel makes its trees read-only.
        subprocess.run(["chmod", "-R", "u+w", str(self.output_root)], check=False)
        shutil.rmtree(self.output_root, ignore_errors=True)


# Results of compilers and linkers: a cache exists for them.
COMPILED = frozenset(
    {"CppCompile", "CppLink", "HipCodeObject", "HipCompileGroup", "HipHost"},
)


class Spawns:
    """The spawns of one build by mnemonic, split into executed here and answered by a cache."""

    def __init__(self, log: Path, output: str = "") -> None:
        self.output = output
        self.all = execution_log.read(log)
        self.executed = collections.Counter(s.mnemonic for s in self.all if not s.cached)
        self.cached = collections.Counter(s.mnemonic for s in self.all if s.cached)


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
