# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Builds by bazelw and a real Bazel, recorded: their actions are named as those of kernels are."""

from __future__ import annotations

import json
import pathlib
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from toolchains.bazel import events, profile, recording
from toolchains.bazel.tests.checkout import ON_DEBIAN, Checkout, make_archive

pytestmark = ON_DEBIAN

_RULES = """
def _kernel(ctx):
    out = ctx.actions.declare_file(ctx.label.name + ".hsaco")
    ctx.actions.run_shell(
        outputs = [out],
        command = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; %s; echo %s > %s" % (
            ctx.attr.also, ctx.label.name, out.path),
        mnemonic = "HipCodeObject",
    )
    return [DefaultInfo(files = depset([out]))]

kernel = rule(implementation = _kernel, attrs = {"also": attr.string(default = "true")})
"""
_BUILD = """
load(":rules.bzl", "kernel")
[kernel(name = "k%d" % number) for number in range(3)]
kernel(name = "another")
kernel(name = "broken", also = "exit 3")
kernel(name = "endless", also = "sleep 600")
"""
_CPU = r"\d+ s of CPU"


class Workspace:
    """A workspace, the bazelw that builds it, and a folder for all that Bazel keeps."""

    def __init__(self, root: pathlib.Path, checkout: Checkout) -> None:
        self.root = root / "workspace"
        self.root.mkdir()
        (self.root / "MODULE.bazel").write_text("module(name = 'w')")
        (self.root / "rules.bzl").write_text(_RULES)
        (self.root / "BUILD.bazel").write_text(_BUILD)
        self._kept = root / "bazel"
        self._checkout = checkout
        self.records = pathlib.Path(
            recording.folder_of(str(self.root), {"BAZELW_CACHE": str(checkout.cache)})
        )

    def start(self, *arguments: str, **environ: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [
                sys.executable,
                self._checkout.root / "bazelw",
                "--nohome_rc",
                f"--output_user_root={self._kept}",
                "--max_idle_secs=60",
                *arguments,
            ],
            cwd=self.root,
            env=self._checkout.environ(**{"CI": "", **environ}),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, **environ: str) -> tuple[int, list[str]]:
        """Returns the exit code, and the lines that bazelw itself said."""
        process = self.start(*arguments, **environ)
        _, said = process.communicate(timeout=600)
        return process.returncode, [x for x in said.splitlines() if x.startswith("bazelw: ")]

    def build(self, *targets: str, **environ: str) -> tuple[int, list[str]]:
        return self.run("build", f"--disk_cache={self._kept}/cache", *targets, **environ)

    def history(self) -> list[tuple[int, int, str]]:
        lines = recording.history(str(self.records))
        return [(line["compiled"], line["cached"], line["exit"]) for line in lines]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    root = tmp_path_factory.mktemp("recorded")
    archive = tmp_path_factory.mktemp("archive")
    checkout = Checkout(root, make_archive(archive))
    assert checkout.works()
    workspace = Workspace(root, checkout)
    yield workspace
    workspace.run("shutdown")


ALL = [f"//:k{number}" for number in range(3)]


def test_compiled_cached_and_up_to_date(workspace: Workspace) -> None:
    code, said = workspace.build(*ALL)
    assert code == 0
    assert re.fullmatch(rf"bazelw: 3 kernels: 3 compiled in {_CPU}", said[0]), said
    seconds = json.loads((workspace.records.parent / "seconds.json").read_text())
    assert sorted(seconds) == ["k0.hsaco", "k1.hsaco", "k2.hsaco"]
    assert all(0 < value < 60 for value in seconds.values())
    workspace.run("clean")
    code, said = workspace.build(*ALL)
    assert code == 0
    assert re.fullmatch(rf"bazelw: 3 kernels: 3 from the disk cache, {_CPU} saved", said[0]), said
    # A build that executes nothing is none to look at.
    assert workspace.build(*ALL) == (0, [])
    assert workspace.history()[-2:] == [(3, 0, "SUCCESS"), (0, 3, "SUCCESS")]
    last = workspace.records / "last"
    assert {file.name for file in last.iterdir()} == {*recording.FILES.values(), recording.PLAN}
    assert len(events.read(str(last / "events.json")).compiles) == 3
    outputs = {
        action.output.rpartition("/")[2]
        for action in profile.read(str(last / "profile.gz")).actions
    }
    assert set(seconds) <= outputs
    # The checkout is as it was.
    names = {file.name for file in workspace.root.iterdir() if not file.is_symlink()}
    assert names == {"MODULE.bazel", "rules.bzl", "BUILD.bazel"}


def test_a_build_that_fails_is_recorded_and_fails(workspace: Workspace) -> None:
    code, said = workspace.build("--keep_going", "//:broken", "//:another")
    assert code == 1
    assert re.fullmatch(rf"bazelw: 1 kernel: 1 compiled in {_CPU}", said[0]), said
    assert workspace.history()[-1] == (1, 0, "BUILD_FAILURE")


def test_options_that_bazel_refuses(workspace: Workspace) -> None:
    before = workspace.history()
    assert workspace.build("--no_such_option", "//:k0") == (2, [])
    assert workspace.history() == before
    assert not list(workspace.records.glob("running-*"))


@pytest.mark.parametrize("environ", [{"CI": "true"}, {"BAZELW_PROGRESS": "never"}])
def test_quiet_where_it_should_be(workspace: Workspace, environ: dict[str, str]) -> None:
    before = workspace.history()
    workspace.run("clean")
    assert workspace.build(*ALL, **environ) == (0, [])
    assert workspace.history() == before


def test_an_interrupted_build_ends_as_bazel_does(workspace: Workspace) -> None:
    process = workspace.start("build", "//:endless")
    assert process.stderr is not None
    for line in process.stderr:
        if "HipCodeObject endless.hsaco; " in line:
            break
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    assert process.returncode == 8
    # It has no result to look at.
    assert not list(workspace.records.glob("running-*"))
