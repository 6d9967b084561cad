# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Has Bazel measure code objects."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

ASPECT = "//kernels/resources:figures.bzl%code_object_figures"
_GROUP = "figures"

# A package for one build, beside those of the checkout; kernels show themselves to packages here,
# and kernels of tests to targets for tests.
_PACKAGE = "kernels/chosen"
_RULE = """
load("{file}", "{aspect}")

def _chosen_impl(ctx):
    files = [dep[OutputGroupInfo].{group} for dep in ctx.attr.deps]
    return DefaultInfo(files = depset(transitive = files))

chosen = rule(
    implementation = _chosen_impl,
    attrs = {{"deps": attr.label_list(aspects = [{aspect}])}},
)
"""
_TARGET = """
load(":chosen.bzl", "chosen")

chosen(name = "chosen", testonly = True, deps = {labels})
"""


class BuildError(Exception):
    """Bazel failed, and has said why; or its output is not to be found."""


def measured_files(root: Path, labels: Sequence[str], options: Sequence[str]) -> list[Path]:
    """The files of figures of code objects, which Bazel makes. Raises BuildError.

    Args:
      root: the checkout.
      labels: code objects, and groups of them.
      options: of the build.
    """
    return files_of_aspect(root, labels, options, ASPECT, _GROUP)


def files_of_aspect(
    root: Path, labels: Sequence[str], options: Sequence[str], aspect: str, group: str
) -> list[Path]:
    """The files that an aspect, FILE%NAME, has of labels in an output group. Raises BuildError.

    One target has all labels: the time that Bazel takes for those that a command names grows with
    the square of their number.
    """
    with tempfile.TemporaryDirectory() as folder:
        package, events = Path(folder, _PACKAGE), Path(folder, "events")
        package.mkdir(parents=True)
        file, _, name = aspect.partition("%")
        rule = _RULE.format(file=file, aspect=name, group=group)
        (package / "chosen.bzl").write_text(rule, "ascii")
        each = json.dumps(list(dict.fromkeys(labels)))
        (package / "BUILD.bazel").write_text(_TARGET.format(labels=each), "ascii")
        command = [
            "./bazelw",
            "build",
            *options,
            f"--package_path=%workspace%:{folder}",
            f"--build_event_json_file={events}",
            f"//{_PACKAGE}",
        ]
        done = subprocess.run(command, cwd=root, stdout=sys.stderr)
        if done.returncode:
            raise BuildError(f"{' '.join(command[:2])} failed: exit status {done.returncode}")
        return _files(events.read_text("utf-8").splitlines())


def _files(events: Iterable[str]) -> list[Path]:
    """The files that a build's events name. Raises BuildError for one that is not here."""
    found: dict[Path, None] = {}
    for line in events:
        for file in json.loads(line).get("namedSetOfFiles", {}).get("files", []):
            uri = urlsplit(file["uri"])
            if uri.scheme != "file":
                raise BuildError(
                    f"{file['name']} is at {uri.scheme}: and not here; build with "
                    "--bazel_flag=--remote_download_outputs=toplevel"
                )
            found[Path(unquote(uri.path))] = None
    return list(found)
