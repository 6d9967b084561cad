# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The kernels that are built in: found by name or key, and written to files."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any, TypedDict

import aiter_attn
from aiter_attn import _C
from aiter_attn._cli import files

__all__ = ["Named", "extract", "find_kernel", "known_instances", "manifest", "norm_kernels"]


class Named(TypedDict):
    """A kernel that is built in, of attention's or of the norms'."""

    name: str
    arch: str
    key: str
    kind: str
    code_object_size: int


def manifest() -> dict[str, Any]:
    """The manifest of the package's build."""
    text = Path(__file__).parents[1].joinpath("manifest.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def known_instances() -> list[dict[str, Any]]:
    """Those of the manifest, and those that a slim wheel knows beside them, with their keys."""
    document = manifest()
    beside = {each["name"]: {**each, "code_objects": {}} for each in document.get("on_demand", [])}
    for kernel in aiter_attn.kernels() if beside else []:
        if each := beside.get(kernel["name"]):
            each["code_objects"][kernel["arch"]] = {"key": kernel["key"]}
    return [*document["instances"], *beside.values()]


def norm_kernels() -> list[Named]:
    """The norms' kernels that are built in."""
    return [
        {
            "name": norm["name"],
            "arch": arch,
            "key": known["key"],
            "kind": norm["operation"],
            "code_object_size": known["size"],
        }
        for norm in manifest()["norms"]
        for arch, known in norm["code_objects"].items()
    ]


def find_kernel(wanted: str, arch: str | None) -> Named:
    """The kernel of a key, of a key's beginning, or of an instance name (and arch).

    Raises LookupError that lists the names that there are.
    """
    kernels: list[Named] = [*aiter_attn.kernels(), *norm_kernels()]
    found = [k for k in kernels if k["name"] == wanted]
    if not found and len(wanted) >= 8:
        found = [k for k in kernels if k["key"].startswith(wanted.lower())]
    if arch is not None:
        archs = sorted({k["arch"] for k in found or kernels})
        found = [k for k in found if k["arch"] == arch]
        if arch not in archs:
            raise LookupError(f"--arch {arch}: allowed: {', '.join(archs) or 'none is built in'}")
    if not found:
        raise LookupError(
            f"{wanted}: no such key or instance name; `aiter-attn info --kernels` lists the "
            f"{len(kernels)} there are"
        )
    if len({k["key"] for k in found}) > 1:
        choices = ", ".join(f"{k['arch']} {k['key'][:16]}" for k in found)
        raise LookupError(f"{wanted}: several code objects ({choices}); add --arch or more digits")
    return found[0]


def extract(arguments: argparse.Namespace) -> int:
    kernel = find_kernel(arguments.key, arguments.arch)
    data = _C.code_object(kernel["key"])
    if arguments.output == "-":
        if arguments.json:
            raise ValueError("--json: not beside --output -, which takes standard output")
        sys.stdout.buffer.write(data)
        return 0
    suffix = "hsaco" if kernel["arch"].startswith("gfx") else "cubin"
    output = Path(arguments.output or f"{kernel['name']}.{kernel['arch']}.{suffix}")
    files.write_whole(output, data)
    if arguments.json:
        told = {"name": kernel["name"], "arch": kernel["arch"], "key": kernel["key"]}
        print(json.dumps({"file": str(output), "size": len(data), **told}, indent=2))
    else:
        print(f"{output}: {len(data)} bytes, {kernel['arch']}, key {kernel['key']}")
    return 0
