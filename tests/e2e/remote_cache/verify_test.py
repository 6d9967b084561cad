# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Whoever may write to a cache may write anything. verify_cache finds it."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import absl
import pytest

from tests.e2e import clone
from tests.e2e.remote_cache.bad_input_test import TARGET
from tests.e2e.remote_cache.conftest import WHEEL, Reference, Stranger
from toolchains.remote import servers

# Nothing reads it in the build, which would stumble over a forgery of most others.
VICTIM = "Wheel"


@pytest.fixture(scope="module")
def program(stranger: Stranger) -> Path:
    """The program and its library, where the stranger can read them."""
    folder = stranger.root.parent / "program"
    shutil.copytree(clone.workspace() / "toolchains", folder / "toolchains")
    (absl_folder,) = absl.__path__
    shutil.copytree(absl_folder, folder / "absl")
    return folder


def verify(
    stranger: Stranger, program: Path, url: str, *arguments: str, target: str = WHEEL
) -> subprocess.CompletedProcess[str]:
    flags = [f"--bazel_flag={flag}" for flag in stranger.flags]
    command = [
        *stranger.wrapper,
        f"PYTHONPATH={program}",
        f"BUILD_WORKSPACE_DIRECTORY={stranger.root}",
        f"HOME={stranger.home}",
        *("python3", "-B", str(program / "toolchains/remote/verify_cache.py")),
        *(f"--remote_cache={url}", f"--output_user_root={stranger.output_root}"),
        *flags,
        *arguments,
        target,
    ]
    environment = clone.stranger_environment()
    environment.pop("PYTHONSAFEPATH")
    return subprocess.run(command, capture_output=True, text=True, env=environment)


@pytest.fixture
def poisoned(nginx: servers.Nginx, reference: Reference) -> Iterator[str]:
    """Has the server answer for one action with another file than the action makes.

    The file has the right length, and its name is its hash: all is in order but what it says.
    Yields the action.
    """
    spawn = next(s for s in reference.actions.all if s.mnemonic == VICTIM)
    ((_, digest),) = spawn.outputs
    data = bytearray((nginx.data / "cas" / digest).read_bytes())
    data[-2] ^= 1
    forged = hashlib.sha256(data).hexdigest()
    (nginx.data / "cas" / forged).write_bytes(data)
    entry = nginx.data / "ac" / spawn.action
    kept = entry.read_bytes()
    assert digest.encode() in kept
    entry.write_bytes(kept.replace(digest.encode(), forged.encode()))
    yield spawn.action
    entry.write_bytes(kept)
    (nginx.data / "cas" / forged).unlink()


def test_an_honest_cache(
    stranger: Stranger, reference: Reference, nginx: servers.Nginx, program: Path
) -> None:
    got = verify(stranger, program, nginx.url, "--sample=4", "--mnemonic=CodeObjectDescribe")
    assert got.returncode == 0, got.stdout + got.stderr
    assert "4 made again, 0 differences" in got.stdout
    total = len(reference.actions.all)
    assert f"{total} of {total} results are from the cache" in got.stdout


def test_a_poisoned_result_is_found(
    stranger: Stranger, nginx: servers.Nginx, program: Path, poisoned: str
) -> None:
    got = verify(stranger, program, nginx.url, f"--mnemonic={VICTIM}")
    assert got.returncode == 1, got.stdout + got.stderr
    (line,) = (line for line in got.stdout.splitlines() if "DIFFERENT" in line)
    for part in (VICTIM, poisoned, ".whl"):
        assert part in line


def test_bad_input(stranger: Stranger, nginx: servers.Nginx, program: Path) -> None:
    got = verify(stranger, program, nginx.url, "--mnemonic=Compile")
    assert got.returncode == 1
    assert "--mnemonic=Compile: no result is of that kind; there are CodeObject" in got.stderr
    got = verify(stranger, program, "http://ci:secret@127.0.0.1:9", target=TARGET)
    assert got.returncode == 1
    assert "no result of these targets: there is nothing to verify" in got.stderr
    assert "secret" not in got.stdout + got.stderr
