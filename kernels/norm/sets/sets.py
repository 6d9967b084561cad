# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The sets of norm kernels: NAME.toml, for --//kernels/norm/ahead_of_time:set=NAME.

    ./bazelw run //aiter/norm:sets

writes the list of each set, NAME.json: the kernels that the library chooses for the set's shapes.
README.md of kernels/norm has the schema.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tomllib
from absl import app, flags

from kernels.variants.values import VariantSetError, admitted_values, require_known

_PRINT_KERNELS = flags.DEFINE_string("print_kernels", None, "//aiter/norm:print_kernels")

FOLDER = Path("kernels/norm/sets")
_DTYPES = ("fp32", "fp16", "bf16")
_Keys = dict[str, Sequence[str | bool]]
_NORM: _Keys = {"dtype": _DTYPES, "add": (False, True), "zero_centred": (False, True)}
_OUTPUT: _Keys = {"output": ("same", "fp8_e4m3", "fp8_e5m2")}
# Operation -> its keys, each with the values that there are.
_OPERATIONS: dict[str, _Keys] = {
    "layer_backward": _NORM,
    "layer_forward": _NORM | _OUTPUT,
    "rms_backward": _NORM,
    "rms_forward": _NORM | _OUTPUT,
    "softmax_backward": {"dtype": _DTYPES, "mask": ("none", "causal")},
    "softmax_forward": {"dtype": _DTYPES, "mask": ("none", "explicit", "causal")},
}
# Of an operation that has not the key.
_WITHOUT: _Keys = {
    "output": ("same",),
    "add": (False,),
    "zero_centred": (False,),
    "mask": ("none",),
}
_WIDEST = 1 << 18  # columns: beyond them the table of configurations has no row


def _hidden(raw: object, where: str) -> tuple[int, ...]:
    sizes = raw if isinstance(raw, list) else [raw]
    for size in sizes:
        if type(size) is not int or not 1 <= size <= _WIDEST:
            raise VariantSetError(
                f"{where}: hidden = {size!r}: want numbers of columns, each from 1 to {_WIDEST}."
            )
    if not sizes:
        raise VariantSetError(f"{where}: hidden must name the numbers of columns, as [4096, 8192].")
    return tuple(dict.fromkeys(sizes))


def _shapes_of(table: dict[str, object], where: str) -> list[str]:
    operations = [
        str(operation)
        for operation in admitted_values(
            table.get("operation", list(_OPERATIONS)), "operation", list(_OPERATIONS), where
        )
    ]
    known: dict[str, list[str | bool]] = {}
    for operation in operations:
        for key, values in _OPERATIONS[operation].items():
            known[key] = list(dict.fromkeys([*known.get(key, []), *values]))
    for key in table:
        require_known(key, [*known, "hidden", "operation"], "key", where)
    admitted = {
        key: admitted_values(table.get(key, values), key, values, where)
        for key, values in known.items()
    }
    hidden = _hidden(table.get("hidden", []), where)
    lines = []
    for operation in operations:
        keys = _OPERATIONS[operation]
        options = [
            [value for value in admitted[key] if value in keys[key]]
            if key in keys
            else _WITHOUT[key]
            for key in ("dtype", "output", "add", "zero_centred", "mask")
        ]
        for dtype, output, add, zero_centred, mask in itertools.product(*options):
            y = dtype if output == "same" else output
            lines += [
                f"{operation} {dtype} {y} {size} {add:d} {zero_centred:d} {mask}" for size in hidden
            ]
    return lines


def shapes(text: str, name: str) -> list[str]:
    """The shapes of a set, as print_kernels reads them, each once.

    Raises VariantSetError, which names the file, the table and the wrong word.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise VariantSetError(f"{name}: no TOML: {error}") from error
    for key in document:
        require_known(key, ["norms"], "key", name)
    tables = document.get("norms", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise VariantSetError(f"{name}: norms must be tables: [[norms]].")
    lines: dict[str, None] = {}
    for number, table in enumerate(tables, 1):
        lines.update(dict.fromkeys(_shapes_of(table, f"{name}: [[norms]] number {number}")))
    return list(lines)


def kernels_of(path: Path, print_kernels: Path) -> str:
    """The list of a set, as JSON. Raises VariantSetError."""
    lines = shapes(path.read_text("utf-8"), path.name)
    printed = subprocess.run(
        [print_kernels], check=True, input="\n".join(lines), capture_output=True, text=True
    ).stdout
    kernels = {name: _shared_once(kernel) for name, kernel in json.loads(printed).items()}
    rows = [f"{json.dumps(name)}: {json.dumps(kernel)}" for name, kernel in kernels.items()]
    return "{\n" + ",\n".join(rows) + "\n}\n"


def _shared_once(kernel: dict[str, Any]) -> dict[str, Any]:
    """A kernel of a list, with the flags that all archs have apart from those by archs."""
    by_archs = {archs: flags.split() for archs, flags in kernel["flags"].items()}
    first = next(iter(by_archs.values()))
    shared = [flag for flag in first if all(flag in flags for flags in by_archs.values())]
    return kernel | {
        "shared": " ".join(shared),
        "flags": {
            archs: " ".join(flag for flag in flags if flag not in shared)
            for archs, flags in by_archs.items()
        },
    }


def main(arguments: Sequence[str]) -> int:
    if arguments[1:]:
        raise app.UsageError(f"unknown argument {arguments[1]!r}; this takes none")
    folder = Path(os.environ["BUILD_WORKSPACE_DIRECTORY"]) / FOLDER
    try:
        lists = {
            path.with_suffix(".json"): kernels_of(path, Path(_PRINT_KERNELS.value).absolute())
            for path in sorted(folder.glob("*.toml"))
        }
    except VariantSetError as error:
        print(error, file=sys.stderr)
        return 1
    for path, text in lists.items():
        path.write_text(text, "utf-8")
        print(path)
    return 0


if __name__ == "__main__":
    app.run(main)
