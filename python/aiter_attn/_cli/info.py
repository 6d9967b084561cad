# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""`aiter-attn info`: whether it works here; versions, drivers, kernels."""

from __future__ import annotations

import argparse
import collections
import fnmatch
import json
import platform
import re
import textwrap
from collections.abc import Iterator, Sequence
from importlib import metadata
from typing import Any

import aiter_attn
from aiter_attn import _C
from aiter_attn._cli import kernels as built_in
from aiter_attn._cli import store

__all__ = ["facts", "gpu_verdict", "info", "info_lines", "versions_line"]

_WIDTH = 100
_PROVIDERS = {"ck": "Composable Kernel", "asm": "AITER's assembly", "own": "this project"}


def drivers() -> list[dict[str, Any]]:
    """Name, whether usable here, and its description or the reason."""
    found = []
    kinds = (("CPU", _C.DEVICE_CPU), ("CUDA", _C.DEVICE_CUDA), ("ROCm", _C.DEVICE_ROCM))
    for name, kind in kinds:
        try:
            found.append({"name": name, "usable": True, "text": _C.driver_info(kind)})
        except aiter_attn.AttnError as error:
            found.append({"name": name, "usable": False, "text": str(error)})
    return found


def frameworks() -> dict[str, str | None]:
    """The installed version of each; None: not installed."""
    found: dict[str, str | None] = {}
    for name in ("torch", "jax"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    return found


def gpu_verdict(driver: dict[str, Any], archs: Sequence[str]) -> tuple[bool, str]:
    """Whether attention works on an AMD GPU here, and why, in a line: of a driver of drivers()."""
    if not driver["usable"]:
        return False, driver["text"].partition(" (")[0]
    found = sorted(set(re.findall(r"gfx[0-9a-f]+", driver["text"])))
    served = [arch for arch in found if arch in archs]
    if served:
        return True, f"kernels for {', '.join(served)} are built in"
    return False, f"{', '.join(found) or 'no GPU'}; built for {', '.join(archs) or 'no arch'}"


def facts() -> dict[str, Any]:
    """The facts that `info` tells."""
    kernels = aiter_attn.kernels()
    places = {key: store.find(key) for key in {kernel["key"] for kernel in kernels}}
    built = built_in.manifest()
    archs = sorted({kernel["arch"] for kernel in kernels})
    found = drivers()
    rocm = next(d for d in found if d["name"] == "ROCm")
    works, why = gpu_verdict(rocm, archs)
    here = {kernel["arch"] for kernel in kernels if places[kernel["key"]].provider}
    if works and not gpu_verdict(rocm, sorted(here))[0]:
        works, why = False, "its kernels are in no pack here; aiter-attn doctor has the next step"
    return {
        "version": _C.version(),
        "abi_version": _C.abi_version(),
        "python": platform.python_version(),
        "frameworks": frameworks(),
        "gpu": {"works": works, "text": why},
        "variant_set": built["variant_set"],
        "toolchain": built["toolchain"],
        "not_locked": built["not_locked"],
        "machine_headers": built.get("machine_headers"),
        "archs": archs,
        "not_executed": built["not_executed"],
        "norms": built["norms"],
        "drivers": found,
        "providers": store.providers(places),
        "kernels": [
            {**kernel, "found_in": place.provider, "found_key": place.key}
            for kernel in kernels
            for place in [places[kernel["key"]]]
        ],
    }


def versions_line(told: dict[str, Any]) -> str:
    """A line of the versions among facts()."""
    others = ", ".join(
        f"{name} {version or 'not installed'}" for name, version in told["frameworks"].items()
    )
    return (
        f"aiter-attn {told['version']} (C ABI {told['abi_version']}), Python {told['python']}, "
        f"{others}"
    )


def _wrap_name(name: str, width: int) -> Iterator[str]:
    """A CK instance name (over 100 letters, words joined by _) in lines of at most width."""
    line = ""
    for i, word in enumerate(name.split("_")):
        word = word if i == 0 else "_" + word
        if line and len(line) + len(word) > width:
            yield line
            line = ""
        line += word
    yield line


def _size(count: int) -> str:
    return f"{count / 2**20:.1f} MiB" if count >= 2**20 else f"{count / 2**10:.1f} KiB"


def info_lines(pattern: str | None = None) -> Iterator[str]:
    """Lines for people; kernels whose name, kind, arch or key fits the pattern, one by one."""
    told = facts()
    kernels = told["kernels"]
    yield versions_line(told)
    state = "works here" if told["gpu"]["works"] else "does not work here"
    yield f"AMD GPU    {state}: {told['gpu']['text']}"[:_WIDTH]
    yield "CPU        works here: the reference"
    yield f"variants   {told['variant_set']}"
    yield f"archs      {', '.join(told['archs']) or 'none: built without kernels'}"
    if not_executed := ", ".join(told["not_executed"]):
        yield f"           {not_executed}: built and not executed, docs/emulation.md#gfx12"
    yield f"toolchain  {told['toolchain']}"
    for package in told["not_locked"]:
        yield f"not locked {package}: built with it in the place of a package that was gone"
    if headers := told["machine_headers"]:
        yield (
            f"not locked headers of Python {headers['version']}: those of the machine that built it"
        )
        yield f"           (sha256 {headers['sha256']})"
    for driver in told["drivers"]:
        state = "ready" if driver["usable"] else "absent"
        yield from textwrap.wrap(
            f"driver     {driver['name']} {state}: {driver['text']}",
            _WIDTH,
            subsequent_indent=" " * 11,
        )
    embedded = sum(kernel["embedded_size"] for kernel in kernels)
    unpacked = sum(kernel["code_object_size"] for kernel in kernels)
    yield (
        f"kernels    {len(kernels)} code objects, {_size(embedded)} embedded, "
        f"{_size(unpacked)} unpacked"
    )
    for provider, count in sorted(collections.Counter(k["provider"] for k in kernels).items()):
        yield f"           {count} of {provider}: {_PROVIDERS.get(provider, 'another')}"
    missing = sum(kernel["found_in"] is None for kernel in kernels)
    for line in store.lines(told["providers"], missing):
        yield from textwrap.wrap(f"           from {line}", _WIDTH, subsequent_indent=" " * 13)
    norms = [(arch, norm) for norm in told["norms"] for arch in norm["code_objects"]]
    archs = ", ".join(sorted({arch for arch, _ in norms}))
    yield f"norms      {len(norms)} code objects built in{archs and f': {archs}'}"
    if pattern is None:
        return
    known: list[built_in.Named] = [*kernels, *built_in.norm_kernels()]
    shown = [
        kernel
        for kernel in known
        if any(
            fnmatch.fnmatch(text, pattern)
            for text in (kernel["name"], kernel["kind"], kernel["arch"], kernel["key"])
        )
    ]
    if not shown:
        kinds = ", ".join(sorted({kernel["kind"] for kernel in known}))
        raise LookupError(
            f"--kernels {pattern}: none; allowed: a pattern of a name, key, arch or kind ({kinds})"
        )
    origins = {kernel["key"]: kernel["found_in"] for kernel in kernels}
    providers = {kernel["kind"]: kernel["provider"] for kernel in kernels}  # norms are our own
    for kind in sorted({kernel["kind"] for kernel in shown}):
        yield ""
        yield f"{kind}, of {providers.get(kind, 'own')}"
        for kernel in shown:
            if kernel["kind"] != kind:
                continue
            size = _size(kernel["code_object_size"])
            start = f"  {kernel['arch']:<7} {kernel['key'][:16]} {size:>10}  "
            first, *rest = _wrap_name(kernel["name"], _WIDTH - len(start))
            yield start + first
            for line in rest:
                yield " " * len(start) + line
            if kernel["key"] in origins and origins[kernel["key"]] != "the library":
                yield from _wrap_origin(kernel["key"])


def _wrap_origin(key: str) -> Iterator[str]:
    """Where a code object is that is not built in, and why the providers before do not have it."""
    place = store.find(key)
    other = ", its plain compile, key " if place.is_plain else ", by the key "
    taken = f"{other}{place.key}" if place.key not in (key, None) else ""
    origin = f"          from {place.provider or 'nowhere'}{taken}"
    yield from textwrap.wrap(origin, _WIDTH, subsequent_indent=" " * 14)
    for line in place.others:
        yield from textwrap.wrap(f"            not from {line}", _WIDTH, subsequent_indent=" " * 14)


def info(arguments: argparse.Namespace) -> int:
    if arguments.json:
        print(json.dumps(facts(), indent=2))
    else:
        for line in info_lines(arguments.kernels):
            print(line)
    return 0
