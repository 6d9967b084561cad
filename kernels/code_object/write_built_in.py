# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Writes which kernels a library has built in, as JSON; ahead_of_time.bzl runs this."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from absl import app, flags

_OUT = flags.DEFINE_string("out", None, "a list of kernels, by name", required=True)
_METADATA = flags.DEFINE_multi_string("metadata", [], "the description of each code object")
_OPERATIONS = flags.DEFINE_multi_string("operation", [], "KERNEL=OPERATION")


def built_in(
    records: Iterable[Mapping[str, Any]], operations: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Each kernel by its name, with its operation and its code objects by arch.

    Raises KeyError for a kernel without an operation.
    """
    per_kernel: dict[str, dict[str, Any]] = {}
    for record in records:
        known = {field: value for field, value in record.items() if field != "instance"}
        per_kernel.setdefault(record["instance"], {})[known.pop("arch")] = known
    return [
        {
            "name": name,
            "operation": operations[name],
            "code_objects": dict(sorted(per_kernel[name].items())),
        }
        for name in sorted(per_kernel)
    ]


def main(_arguments: Sequence[str]) -> None:
    records = [json.loads(Path(path).read_text("ascii")) for path in _METADATA.value]
    operations = dict(pair.split("=") for pair in _OPERATIONS.value)
    listed = json.dumps(built_in(records, operations), indent=1)
    Path(_OUT.value).write_text(listed + "\n", "ascii")


if __name__ == "__main__":
    app.run(main)
