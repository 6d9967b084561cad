# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A writer of a cache may write anything. verify_cache finds it."""

from __future__ import annotations

import contextlib
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
from toolchains.remote import execution_log, servers

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


@contextlib.contextmanager
def poison(nginx: servers.Nginx, spawn: execution_log.Spawn) -> Iterator[None]:
    """Has the server answer for an action with another first file than the action makes.

    The file has the right length, and its name is its hash: all is in order but what it says.
    """
    _, digest = spawn.outputs[0]
    data = bytearray((nginx.data / "cas" / digest).read_bytes())
    data[-2] ^= 1
    forged = hashlib.sha256(data).hexdigest()
    (nginx.data / "cas" / forged).write_bytes(data)
    entry = nginx.data / "ac" / spawn.action
    kept = entry.read_bytes()
    assert digest.encode() in kept
    entry.write_bytes(kept.replace(digest.encode(), forged.encode()))
    try:
        yield
    finally:
        entry.write_bytes(kept)
        (nginx.data / "cas" / forged).unlink()


def different(output: str) -> list[str]:
    return [line for line in output.splitlines() if "DIFFERENT" in line]


def test_an_honest_cache(
    stranger: Stranger, reference: Reference, nginx: servers.Nginx, program: Path
) -> None:
    got = verify(stranger, program, nginx.url, "--sample=4", "--mnemonic=CodeObjectDescribe")
    assert got.returncode == 0, got.stdout + got.stderr
    assert "4 made again, 0 differences" in got.stdout
    total = len(reference.actions.all)
    assert f"{total} of {total} results are from the cache" in got.stdout


def test_a_poisoned_result_is_found(
    stranger: Stranger, reference: Reference, nginx: servers.Nginx, program: Path
) -> None:
    victim = next(s for s in reference.actions.all if s.mnemonic == VICTIM)
    with poison(nginx, victim):
        got = verify(stranger, program, nginx.url, f"--mnemonic={VICTIM}")
    assert got.returncode == 1, got.stdout + got.stderr
    (line,) = different(got.stdout)
    for part in (VICTIM, victim.action, ".whl"):
        assert part in line


def test_poisoned_results_that_break_the_build_are_all_found(
    stranger: Stranger, reference: Reference, nginx: servers.Nginx, program: Path
) -> None:
    """A reader of a forged description stops at it: the program must not."""
    kind = "CodeObjectDescribe"
    victims = [s for s in reference.actions.all if s.mnemonic == kind][:2]
    with poison(nginx, victims[0]), poison(nginx, victims[1]):
        got = verify(stranger, program, nginx.url, f"--mnemonic={kind}", "--sample=100")
    assert got.returncode == 1, got.stdout + got.stderr
    assert "with what the cache has, bazel build failed" in got.stdout
    lines = different(got.stdout)
    assert len(lines) == 2, got.stdout
    for victim in victims:
        assert any(victim.action in line for line in lines)


def test_bad_input(stranger: Stranger, nginx: servers.Nginx, program: Path) -> None:
    got = verify(stranger, program, nginx.url, "--mnemonic=Compile")
    assert got.returncode == 1
    said, _, kinds = got.stderr.partition("there are ")
    assert "--mnemonic=Compile: no result is of that kind" in said
    assert {"CodeObjectDescribe", "HipCodeObject", VICTIM} <= set(kinds.strip().split(", "))
    got = verify(stranger, program, "http://ci:secret@127.0.0.1:9", target=TARGET)
    assert got.returncode == 1
    assert "no result of these targets: there is nothing to verify" in got.stderr
    assert "secret" not in got.stdout + got.stderr
