# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""`aiter-attn doctor`: what is wrong on this machine, and the next step."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from aiter_attn._cli import info, variables
from aiter_attn._cli.machine import KFD, Machine

__all__ = ["Finding", "doctor", "examine", "lines"]

OK, NOTE, WRONG = "ok", "note", "wrong"
_WIDTH = 100
# The code objects are of version 6, which older runtimes refuse when they are loaded.
_OLDEST_ROCM = (6, 2)
_LIBRARY = re.compile(r"^HIP \((.+?)\): ")
_WITH_DEVICES = "start the container with --device=/dev/kfd --device=/dev/dri"


@dataclasses.dataclass(frozen=True)
class Finding:
    """A fact about one part of a machine. `next` is the step that mends it, where it is wrong."""

    part: str
    state: str
    text: str
    next: str = ""


def examine(machine: Machine, told: dict[str, Any]) -> list[Finding]:
    """The findings about a machine, in the order in which they are best mended.

    told    the facts of `info`: of this build, and of the drivers as they answer here
    """
    archs: Sequence[str] = told["archs"]
    rocm = next(d for d in told["drivers"] if d["name"] == "ROCm")
    device = [*_gpu(machine, archs), *_nodes(machine)]
    if rocm["usable"]:
        # Where HIP finds a GPU the rest is no hindrance: another GPU's, or a runtime without any.
        device = [dataclasses.replace(f, state=NOTE) if f.state == WRONG else f for f in device]
    return [
        _package(told),
        *device,
        *_runtime(machine, rocm, all(finding.state == OK for finding in device)),
        *_kernels(rocm, archs),
        *_packs(told),
        *_machine_cache(machine),
        _cache(machine),
        *_variables(machine),
    ]


def _package(told: dict[str, Any]) -> Finding:
    archs = ", ".join(told["archs"])
    text = f"variant set {told['variant_set']}, kernels for {archs or 'no arch'}"
    if told["not_locked"]:
        text += f"; not locked: {', '.join(told['not_locked'])}"
    if archs:
        return Finding("package", OK, text)
    return Finding("package", WRONG, text, "build with --//kernels:archs=ARCH")


def _gpu(machine: Machine, archs: Sequence[str]) -> Iterator[Finding]:
    found = machine.archs_of_kernel()
    if found:
        yield Finding("gpu", OK, f"the amdgpu driver serves {', '.join(found)}")
    elif on_bus := machine.gpus_on_bus():
        yield Finding(
            "gpu",
            WRONG,
            f"{on_bus} of AMD's on the PCI bus, and no amdgpu driver in the kernel serves one",
            "on the host: modprobe amdgpu, or install amdgpu-dkms of ROCm",
        )
    else:
        yield Finding(
            "gpu",
            WRONG,
            "no AMD GPU in this machine",
            f"use one with {' or '.join(archs) or 'an AMD GPU'}; host arrays are computed on the "
            "CPU without it",
        )


def _nodes(machine: Machine) -> Iterator[Finding]:
    if not machine.archs_of_kernel():
        return
    nodes = machine.nodes()
    missing = [] if KFD in nodes else [KFD]
    if not any(node != KFD for node in nodes):
        missing.append("/dev/dri/renderD*")
    if missing:
        inside = " in this container" if machine.is_container() else ""
        yield Finding(
            "devices",
            WRONG,
            f"{' and '.join(missing)}: not there{inside}, though the kernel has the GPU",
            _WITH_DEVICES if inside else "udevadm trigger; or modprobe -r amdgpu, then load it",
        )
    denied = [node for node in nodes if not machine.may_write(node)]
    for node in denied:
        group = machine.group_of(node)
        yield Finding(
            "devices",
            WRONG,
            f"{node}: user {machine.user()} may not open it ({machine.owner(node)})",
            f"start the container with --group-add {group}"
            if machine.is_container()
            else f"sudo usermod -aG {group} {machine.user()}, then log in again",
        )
    if not missing and not denied:
        yield Finding("devices", OK, f"{', '.join(nodes)}: may be opened")


def _runtime(machine: Machine, rocm: dict[str, Any], has_device: bool) -> Iterator[Finding]:
    if not rocm["usable"]:
        # The library's own words have the next step after the last semicolon; or a question, which
        # the findings about the device answer.
        text, _, step = rocm["text"].rpartition("; ")
        if not text or step.endswith("?"):
            text = text or step
            step = "unset the variables that hide GPUs" if has_device else "mend the lines above"
        yield Finding("runtime", WRONG, text, step)
        return
    yield Finding("runtime", OK, rocm["text"])
    library = _LIBRARY.match(rocm["text"])
    version = machine.runtime_version(library[1]) if library else None
    if version and version < _OLDEST_ROCM:
        yield Finding(
            "runtime",
            WRONG,
            f"HIP {version[0]}.{version[1]} refuses these kernels: they are code objects of "
            "version 6",
            f"install ROCm {_OLDEST_ROCM[0]}.{_OLDEST_ROCM[1]} or newer",
        )


def _kernels(rocm: dict[str, Any], archs: Sequence[str]) -> Iterator[Finding]:
    if not rocm["usable"]:
        return
    works, text = info.gpu_verdict(rocm, archs)
    if works:
        yield Finding("kernels", OK, text)
        return
    found = ",".join(sorted(set(re.findall(r"gfx[0-9a-f]+", rocm["text"]))))
    yield Finding(
        "kernels",
        WRONG,
        text,
        f"install a wheel for {found}, or build one with --//kernels:archs={found}",
    )


def _packs(told: dict[str, Any]) -> Iterator[Finding]:
    """Packs that are refused, and kernels that no provider has."""
    for provider in told["providers"]:
        if provider["refused"]:
            text, _, step = provider["refused"].rpartition("; ")
            step = step if text else "mend AITER_ATTN_PACK_PATH, or remove the file"
            yield Finding(
                "packs", WRONG, f"{provider['name']}: {text or provider['refused']}", step
            )
    missing = sorted({kernel["arch"] for kernel in told["kernels"] if not kernel["found_in"]})
    if missing:
        named = [f"aiter-attn-kernels-{arch}-{told['variant_set']}" for arch in missing]
        yield Finding(
            "packs",
            WRONG,
            f"kernels for {', '.join(missing)} are not in the library, and in no pack",
            f"pip install {' '.join(named)}, of version {told['version']}; or name their packs in "
            "AITER_ATTN_PACK_PATH",
        )


def _cache(machine: Machine) -> Finding:
    named = _cache_folder(machine)
    if named is None:
        return Finding(
            "cache",
            WRONG,
            "HOME is not set: norm kernels are compiled in each process",
            "set AITER_ATTN_CACHE_DIR to a folder, by an absolute path",
        )
    variable, folder = named
    if not folder.startswith("/"):
        return Finding(
            "cache",
            WRONG,
            f"{variable} is {folder!r}, which is no absolute path",
            "set it to an absolute path, or unset it",
        )
    folder += "/code-objects"
    there = folder
    while not machine.at(there).exists():
        there = os.path.dirname(there)
    if not machine.at(there).is_dir() or not machine.may_write(there):
        return Finding(
            "cache",
            WRONG,
            f"{there}: user {machine.user()} may not write to it ({machine.owner(there)}): norm "
            "kernels are compiled in each process",
            "set AITER_ATTN_CACHE_DIR to a folder of this user's",
        )
    if not machine.is_private(there):
        return Finding(
            "cache",
            WRONG,
            f"{there}: others may write to it ({machine.owner(there)}): norm kernels are compiled "
            "in each process",
            f"chmod go-w {there}, or set AITER_ATTN_CACHE_DIR to a folder of this user's",
        )
    if there != folder:
        return Finding("cache", OK, f"{folder}: is made at the first use")
    sizes = [file.stat().st_size for file in machine.at(folder).glob("*.object")]
    return Finding("cache", OK, f"{folder}: {len(sizes)} kernels, {sum(sizes) / 2**20:.1f} MiB")


def _machine_cache(machine: Machine) -> Iterator[Finding]:
    """The cache that is read alone, where one is named."""
    folder = machine.environ.get("AITER_ATTN_MACHINE_CACHE")
    if not folder:
        return
    what = None
    if not folder.startswith("/"):
        what = "is no absolute path"
    elif not machine.at(folder + "/code-objects").is_dir():
        what = "has no folder code-objects"
    if what:
        text = f"AITER_ATTN_MACHINE_CACHE is {folder!r}, which {what}"
        step = "set it to a folder that was an AITER_ATTN_CACHE_DIR, or unset it"
        yield Finding("cache", WRONG, text, step)
        return
    objects = list(machine.at(folder + "/code-objects").glob("*.object"))
    yield Finding("cache", OK, f"{folder}, of the machine: {len(objects)} kernels")


def _cache_folder(machine: Machine) -> tuple[str, str] | None:
    """The variable that says where, and the folder that the library takes, less its last part
    (aiter/runtime/store/cache.h)."""
    environ = machine.environ
    ways = (("AITER_ATTN_CACHE_DIR", ""), ("CK_JIT_CACHE_DIR", "/aiter-attn"))
    for name, inside in ways:
        if folder := environ.get(name):
            return name, folder + inside if folder.startswith("/") else folder
    if (shared := environ.get("XDG_CACHE_HOME", "")).startswith("/"):
        return "XDG_CACHE_HOME", shared + "/aiter-attn"
    return ("HOME", environ["HOME"] + "/.cache/aiter-attn") if environ.get("HOME") else None


def _variables(machine: Machine) -> Iterator[Finding]:
    for variable in variables.in_environment(machine.environ):
        whose = f" ({variable.of})" if variable.of else ""
        text = f"{variable.name}={variable.value}{whose}: {variable.here}"
        if variable.of:
            yield Finding("variable", NOTE, text)
        else:
            yield Finding("variable", WRONG, text, f"unset {variable.name}")


def lines(findings: Sequence[Finding], told: dict[str, Any]) -> Iterator[str]:
    """The findings for people."""
    yield info.versions_line(told)
    indent = " " * 16
    for finding in findings:
        start = f"{finding.state:<6}{finding.part:<10}"
        yield from textwrap.wrap(start + finding.text, _WIDTH, subsequent_indent=indent)
        if finding.next:
            yield from textwrap.wrap(
                f"{indent}next: {finding.next}", _WIDTH, subsequent_indent=indent + " " * 6
            )
    wrong = sum(finding.state == WRONG for finding in findings)
    yield ""
    yield (
        f"{wrong} wrong; the first is the one to mend first"
        if wrong
        else "nothing is wrong: attention works on the GPU here"
    )


def doctor(arguments: argparse.Namespace) -> int:
    """The exit status: 0 where nothing is wrong, so that attention works on a GPU here; else 1."""
    told = info.facts()
    findings = examine(Machine(), told)
    works = all(finding.state != WRONG for finding in findings)
    if arguments.json:
        versions = {name: told[name] for name in ("version", "abi_version", "python", "frameworks")}
        listed = [dataclasses.asdict(finding) for finding in findings]
        print(json.dumps({**versions, "works": works, "findings": listed}, indent=2))
    else:
        for line in lines(findings, told):
            print(line)
    return 0 if works else 1
