# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Packs a wheel; wheel.bzl runs this. Fails with one line where the wheel would not be true."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import tomllib
from absl import app, flags

from python.private import elf, wheel_format

_OUTPUT = flags.DEFINE_string("output", None, "the wheel", required=True)
_PROJECT = flags.DEFINE_string("project", None, "TOML with a [project] table", required=True)
_VERSION = flags.DEFINE_string("version", None, "of the distribution", required=True)
_PYTHON_TAG = flags.DEFINE_string("python_tag", None, "cp311", required=True)
_GLIBC = flags.DEFINE_string("glibc", None, "2.34; without: for any platform")
_PLATFORM = flags.DEFINE_string(
    "platform", None, "its tag; for programs, which bring all that they need: nothing is checked"
)
_DISTRIBUTION = flags.DEFINE_string("distribution", None, "its name; by default the project's")
_README = flags.DEFINE_string("readme", None, "the description", required=True)
_LICENCE = flags.DEFINE_string("licence", None, "the licence's text", required=True)
_OTHER_LICENCES = flags.DEFINE_multi_string(
    "other_licence", [], "NAME=PATH: a licence's text, of something that parts are from"
)
_OTHER_EXPRESSIONS = flags.DEFINE_multi_string(
    "other_expression", [], "an SPDX expression that holds beside the project's"
)
_SBOM = flags.DEFINE_string("sbom", None, "goes to sboms/ (PEP 770)", required=True)
_FILES = flags.DEFINE_multi_string("file", None, "NAME_IN_THE_WHEEL=PATH", required=True)


def make() -> bytes:
    """The wheel's bytes. Raises WheelError, ElfError."""
    files = {}
    for pair in _FILES.value:
        name, _, path = pair.partition("=")
        files[name] = Path(path).read_bytes()
    objects = {name: data for name, data in files.items() if name.endswith(".so")}
    project = tomllib.loads(Path(_PROJECT.value).read_text(encoding="utf-8"))["project"]
    if _DISTRIBUTION.value:
        project["name"] = _DISTRIBUTION.value
    project["license"] = " AND ".join([project["license"], *_OTHER_EXPRESSIONS.value])
    if _GLIBC.value:
        platform = wheel_format.platform_tag(_GLIBC.value, objects)
        tag = f"{_PYTHON_TAG.value}-{_PYTHON_TAG.value}-{platform}"
    elif _PLATFORM.value:
        tag = f"{_PYTHON_TAG.value}-none-{_PLATFORM.value}"
    elif objects:
        raise wheel_format.WheelError(f"{min(objects)} is not for any platform: give --glibc")
    else:
        tag = f"{_PYTHON_TAG.value}-none-any"
    information = wheel_format.dist_info(project["name"], _VERSION.value)
    readme = Path(_README.value).read_text(encoding="utf-8")
    licences = {"LICENSE": Path(_LICENCE.value).read_bytes()}
    for pair in sorted(_OTHER_LICENCES.value):
        name, _, path = pair.partition("=")
        licences[f"{name}/LICENSE"] = Path(path).read_bytes()
    metadata = wheel_format.metadata(project, _VERSION.value, readme, list(licences))
    files |= {
        f"{information}/METADATA": metadata.encode(),
        f"{information}/WHEEL": wheel_format.wheel_file(tag).encode(),
        **{f"{information}/licenses/{name}": text for name, text in licences.items()},
        f"{information}/sboms/{Path(_SBOM.value).name}": Path(_SBOM.value).read_bytes(),
    }
    if points := wheel_format.entry_points(project):
        files[f"{information}/entry_points.txt"] = points.encode()
    return wheel_format.archive(files, information)


def main(_arguments: Sequence[str]) -> int:
    output = Path(_OUTPUT.value)
    try:
        output.write_bytes(make())
    except (wheel_format.WheelError, elf.ElfError) as error:
        print(f"{output.name}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    app.run(main)
