# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Packs a wheel; wheel.bzl runs this. Fails with one line where the wheel would not be true."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import tomllib

from python.private import elf, wheel_format


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(fromfile_prefix_chars="@")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--project", type=Path, required=True, help="TOML with a [project] table")
    parser.add_argument("--version", required=True)
    parser.add_argument("--python-tag", required=True, help="cp311")
    parser.add_argument("--glibc", required=True, help="2.34")
    parser.add_argument("--readme", type=Path, required=True)
    parser.add_argument("--licence", type=Path, required=True)
    parser.add_argument("--sbom", type=Path, required=True, help="goes to sboms/ (PEP 770)")
    parser.add_argument("files", nargs="+", metavar="NAME=PATH", help="name in the wheel, file")
    return parser


def make(arguments: argparse.Namespace) -> bytes:
    """The wheel's bytes. Raises WheelError, ElfError."""
    files = {}
    for pair in arguments.files:
        name, _, path = pair.partition("=")
        files[name] = Path(path).read_bytes()
    objects = {name: data for name, data in files.items() if name.endswith(".so")}
    project = tomllib.loads(arguments.project.read_text(encoding="utf-8"))["project"]
    platform = wheel_format.platform_tag(arguments.glibc, objects)
    tag = f"{arguments.python_tag}-{arguments.python_tag}-{platform}"
    information = wheel_format.dist_info(project["name"], arguments.version)
    readme = arguments.readme.read_text(encoding="utf-8")
    metadata = wheel_format.metadata(project, arguments.version, readme, "LICENSE")
    files |= {
        f"{information}/METADATA": metadata.encode(),
        f"{information}/WHEEL": wheel_format.wheel_file(tag).encode(),
        f"{information}/licenses/LICENSE": arguments.licence.read_bytes(),
        f"{information}/sboms/{arguments.sbom.name}": arguments.sbom.read_bytes(),
    }
    return wheel_format.archive(files, information)


def main(argv: Sequence[str] | None = None) -> int:
    arguments = _parser().parse_args(argv)
    try:
        arguments.output.write_bytes(make(arguments))
    except (wheel_format.WheelError, elf.ElfError) as error:
        print(f"{arguments.output.name}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
