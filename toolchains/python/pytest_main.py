# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Runs pytest as a Bazel test: report, sharding and filter are Bazel's (see pytest_test)."""

from __future__ import annotations

import os
import pathlib
import shutil
import sys

import pytest


class Shard:
    """Keeps every n-th of the collected tests, as TEST_TOTAL_SHARDS and TEST_SHARD_INDEX ask."""

    def __init__(self, index: int, total: int) -> None:
        self.index = index
        self.total = total

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        mine = [item for i, item in enumerate(items) if i % self.total == self.index]
        others = [item for i, item in enumerate(items) if i % self.total != self.index]
        config.hook.pytest_deselected(items=others)
        items[:] = mine


def main(arguments: list[str]) -> int:
    environ = os.environ
    options = [
        # No configuration but this: the file that pytest would look for depends on the sandbox.
        f"--config-file={os.devnull}",
        f"--rootdir={os.getcwd()}",
        "--import-mode=importlib",
        "--strict-markers",
        "-p",
        "no:cacheprovider",
        "-ra",
    ]
    if "XML_OUTPUT_FILE" in environ:
        options.append("--junitxml=" + environ["XML_OUTPUT_FILE"])
    folder = None
    if "TEST_TMPDIR" in environ:
        folder = os.path.join(environ["TEST_TMPDIR"], "pytest")
        options.append("--basetemp=" + folder)
    chosen = environ.get("TESTBRIDGE_TEST_ONLY", "")
    if chosen:
        options += ["-k", chosen]
    plugins: list[object] = []
    total = int(environ.get("TEST_TOTAL_SHARDS", "1"))
    if total > 1:
        # This file tells Bazel that the shards are honoured.
        if "TEST_SHARD_STATUS_FILE" in environ:
            pathlib.Path(environ["TEST_SHARD_STATUS_FILE"]).touch()
        plugins.append(Shard(int(environ["TEST_SHARD_INDEX"]), total))
    status = pytest.main([*options, *arguments], plugins=plugins)
    if folder and status == pytest.ExitCode.OK:
        # Bazel keeps them until the test's next run: whole builds, of many tests, fill a disk.
        shutil.rmtree(folder, ignore_errors=True)
    if status == pytest.ExitCode.NO_TESTS_COLLECTED:
        if chosen or total > 1:
            return 0
        print(
            f"no test was collected from {' '.join(arguments)}: a test function's name starts "
            "with test_, a class's with Test",
            file=sys.stderr,
        )
    return int(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
