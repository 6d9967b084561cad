# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Processes that write known outputs, and the time that they have taken."""

from __future__ import annotations

import subprocess
import sys

from toolchains.bazel.running import has_children, seconds_by_output

# A process that starts two: one that ends, and one that is busy and waits then.
_OUTER = """
import subprocess, sys
subprocess.run([sys.executable, "-c", sys.argv[1]])
waits = sys.argv[1] + "print('ready', flush=True); input()"
subprocess.run([sys.executable, "-c", waits, *sys.argv[2:]])
"""
_BUSY = """
import time
until = time.process_time() + 0.3
while time.process_time() < until:
    pass
"""


def _started(*arguments: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", _OUTER, _BUSY, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def test_a_command_counts_with_all_that_it_started() -> None:
    output = "bazel-out/k8-opt/bin/a/running_test.hsaco"
    group = "bazel-out/k8-opt/bin/a/running_test.bc"
    commands = [_started("-o", output), _started(f"--out={group}"), _started("-o", "other")]
    found = seconds_by_output({output, group, "not/running.hsaco"})
    assert found.keys() == {output, group}
    assert has_children(commands[0].pid)
    # The ended process, the busy one, and the start of three Pythons.
    assert all(0.6 <= seconds < 10 for seconds in found.values()), found
    for command in commands:
        command.communicate("\n")
    assert seconds_by_output({output, group}) == {}
    assert not has_children(commands[0].pid)
