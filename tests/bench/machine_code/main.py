# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Prints what the machine code of this build's kernels needs and does, and compares two builds.

README.md beside this file has the command lines.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from absl import app, flags

from tests.bench.machine_code.golden import golden, golden_name
from tests.bench.machine_code.measured import Measured, comparison, table

_AGAINST = flags.DEFINE_string("against", None, "what --save wrote of another build: compare")
_GOLDEN = flags.DEFINE_bool("golden", False, "write the resources of these kernels into the tree")
_SAVE = flags.DEFINE_string("save", None, "write the figures into this file, a JSON line each")
_FIGURES = flags.DEFINE_string("figures", None, "a list of what measure.py wrote", required=True)


def _parse(lines: Iterable[str], origin: str) -> dict[str, dict[str, Measured]]:
    """arch -> instance -> figures. Raises ValueError that names where they are from."""
    found: dict[str, dict[str, Measured]] = {}
    for line in lines:
        try:
            one = Measured.parse(line)
        except ValueError as error:
            raise ValueError(f"{origin}: {error}") from error
        found.setdefault(one.arch, {})[one.instance] = one
    return dict(sorted(found.items()))


def _read_lines(path: Path) -> list[str]:
    return path.read_text("ascii").splitlines()


def _from_where_it_was_called(path: str) -> Path:
    return Path(os.environ.get("BUILD_WORKING_DIRECTORY", "."), path)


def _run() -> None:
    lines = [Path(name).read_text("ascii").strip() for name in _read_lines(Path(_FIGURES.value))]
    measured = _parse(lines, "this build")
    if _SAVE.value:
        _from_where_it_was_called(_SAVE.value).write_text("".join(f"{x}\n" for x in lines), "ascii")
    if _GOLDEN.value:
        folder = Path(os.environ["BUILD_WORKSPACE_DIRECTORY"], "tests/bench/machine_code")
        for arch, ones in measured.items():
            (folder / golden_name(arch)).write_text(golden(ones.values()), "ascii")
    if not _AGAINST.value:
        for arch, ones in measured.items():
            print(f"{arch}\n\n{table(ones.values())}")
        return
    file = _from_where_it_was_called(_AGAINST.value)
    before = _parse(_read_lines(file), str(file))
    if before.keys() != measured.keys():
        raise ValueError(
            f"{file} is of {', '.join(before) or 'nothing'}, this build of {', '.join(measured)}: "
            "build both with the same --//kernels:archs"
        )
    for arch, ones in measured.items():
        print(f"{arch}\n\n{comparison(before[arch], ones)}")


def main(arguments: Sequence[str]) -> int:
    if arguments[1:]:
        raise app.UsageError(f"unknown argument {arguments[1]!r}")
    try:
        _run()
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    app.run(main)
