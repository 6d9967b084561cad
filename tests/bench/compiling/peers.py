# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Peers' way to compile an instance: for host and device at once, as hipcc does.

QoLA and TransformerEngine build attention by AITER's own function, so that its flags are the flags
of all three: one object file per instance, by ninja and hipcc.
"""

from __future__ import annotations

import dataclasses
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.bench.compiling.plan import CODE_OBJECT
from tests.e2e.action_graph import Action

# Flags that make a compile of ours one for the device alone.
_DEVICE_ALONE = ("--cuda-device-only", "--no-gpu-bundle-output")

# AITER's flags for attention, ROCm 7, without paths and without -D of its own code.
AITER = (
    "-O3",
    "-std=c++20",
    "-fPIC",
    "-fno-gpu-rdc",
    "-mcmodel=large",
    "-fno-unique-section-names",
    "-ffunction-sections",
    "-fdata-sections",
    "-fvisibility=hidden",
    "-fvisibility-inlines-hidden",
    "-D__HIP_PLATFORM_AMD__=1",
    "-D__HIP_PLATFORM_HCC__=1",
    "-DUSE_PROF_API=1",
    "-DCK_TILE_FMHA_FWD_FAST_EXP2=1",
    "-DCK_TILE_FLOAT_TO_BFLOAT16_DEFAULT=3",
    "-fgpu-flush-denormals-to-zero",
    "-Wno-unknown-warning-option",
    "-Wno-undefined-func-template",
)
# Those that AITER itself leaves out where its compiler does not take them. It also has
# -amdgpu-function-calls=false: AMD's clang takes no longer with it, but LLVM's ten times as long
# together with -amdgpu-early-inline-all. It is left out here, which is to the peers' advantage.
AITER_OPTIONAL = (
    ("-mllvm", "--amdgpu-kernarg-preload-count=32"),
    ("-mllvm", "--lsr-drop-solution=1"),
    ("-fno-offload-uniform-block",),
    ("-mllvm", "-enable-post-misched=0"),
    ("-mllvm", "-amdgpu-early-inline-all=true"),
    ("-mllvm", "-amdgpu-coerce-illegal-types=1"),
)

# Programs of the compiler's tree that hipcc's way runs: the bundler asks for llvm-objcopy.
_PROGRAMS = ("clang++", "lld", "llvm-objcopy")

# The call in the entry of a source of ours, and in that of upstream.
_CALL = "    Kernel{}(kargs);\n"
_CALL_OF_UPSTREAM = f"#if defined(__HIP_DEVICE_COMPILE__)\n{_CALL}#endif\n"

_BUNDLE = b"__CLANG_OFFLOAD_BUNDLE__"


def without_options_of_ours(arguments: Sequence[str]) -> list[str]:
    """Without the options for LLVM, which are one project's choice for its machine code."""
    kept: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if argument == "-mllvm":
            next(rest)
        else:
            kept.append(argument)
    return kept


def for_host_and_device(source: str) -> str:
    """A source of ours with an entry like upstream's: its body is compiled for the device alone.

    The host's pass would instantiate the body of ours, too. That takes time, and fails where it
    asks for what a device alone has, as forward's does. Raises ValueError for another source.
    """
    if source.count(_CALL) != 1:
        raise ValueError(f"a kernel's source has {_CALL.strip()!r} once; this has not")
    return source.replace(_CALL, _CALL_OF_UPSTREAM)


def probe(plain: Action, flag: Sequence[str], path: str) -> list[str]:
    """A command that fails if the compiler in `path` does not take a flag, as AITER asks it."""
    start = (f"{path}/clang++", *plain.arguments[1 : plain.arguments.index("-c")])
    base = [a for a in without_options_of_ours(start) if a not in _DEVICE_ALONE]
    return [*base, *flag, "-E", "-P", "/dev/null", "-o", "/dev/null"]


def write_programs(folder: Path, tree: Path, bundler: Path) -> None:
    """Writes the programs of a peer's compile: the same ones, with the C library's allocator.

    tree     that of our compiler, whose own wrapper loads another allocator
    bundler  clang-offload-bundler, which is of another tree and runs with the same libraries
    """
    (programs,) = tree.glob("usr/lib/llvm-*/bin")
    libraries = tree / "usr/lib/x86_64-linux-gnu"
    folder.mkdir()
    for program in (*(programs / name for name in _PROGRAMS), bundler):
        wrapper = folder / program.name
        wrapper.write_text(
            f'#!/bin/sh\nexec "{libraries}/ld-linux-x86-64.so.2" --inhibit-cache '
            f'--library-path "{libraries}" --argv0 "$0" "{program}" "$@"\n'
        )
        wrapper.chmod(0o755)


def compile_of(plain: Action, flags: Sequence[str] | None, path: str) -> Action:
    """A peer's compile of the source of `plain`, by the programs of the folder `path`.

    With `flags` in place of ours, or with ours if there are none.
    """
    at = plain.arguments.index("-c")
    start, end = plain.arguments[:at], plain.arguments[at:]
    if flags is not None:
        start = (*without_options_of_ours(start), *flags)
    (output,) = plain.outputs
    made = output.removesuffix(CODE_OBJECT) + ".o"
    return dataclasses.replace(
        plain,
        arguments=(
            f"{path}/clang++",
            *(a for a in start[1:] if a not in _DEVICE_ALONE),
            *(made if a == output else a for a in end),
        ),
        environment={**plain.environment, "PATH": path},
        outputs=(made,),
    )


class Peers:
    """Their compiles of the sources of a build's plain compiles. flags: theirs, as far as the
    compiler takes them; None: ours."""

    def __init__(
        self, external: Path, some: Action, programs: Path, bundler: Path, flags: str
    ) -> None:
        """programs: where their programs and sources are written; some: any plain compile; flags:
        `aiter` or `ours`."""
        self._folder = external.parent  # where relative paths of actions lead somewhere
        self._path = str(programs)
        write_programs(programs, self._folder / Path(some.arguments[0]).parent.parent, bundler)
        self._sources = programs / "sources"
        self._sources.mkdir()
        self.flags = None if flags == "ours" else self._accepted(some)

    def compile_of(self, plain: Action) -> Action:
        """Writes the source that it compiles. Raises ValueError for one that is no kernel's."""
        at = plain.arguments.index("-c") + 1
        source = self._folder / plain.arguments[at]
        copy = self._sources / source.name
        copy.write_text(for_host_and_device(source.read_text("utf-8")), "utf-8")
        arguments = (*plain.arguments[:at], str(copy), *plain.arguments[at + 1 :])
        return compile_of(dataclasses.replace(plain, arguments=arguments), self.flags, self._path)

    def _accepted(self, some: Action) -> list[str]:
        def accepts(flag: Sequence[str]) -> bool:
            command = probe(some, flag, self._path)
            environment = {"PATH": self._path}
            return not subprocess.run(
                command, cwd=self._folder, env=environment, capture_output=True
            ).returncode

        if not accepts(()):
            raise ValueError("the compiler does not take an empty HIP file for host and device")
        taken = [flag for flag in AITER_OPTIONAL if accepts(flag)]
        for flag in AITER_OPTIONAL:
            if flag not in taken:
                print(f"AITER's {' '.join(flag)} is left out: the compiler does not take it")
        return [*AITER, *(part for flag in taken for part in flag)]


def device_code(host_object: bytes, arch: str) -> bytes:
    """The code object in the output of a peer's compile. Raises ValueError if there is none."""
    start = host_object.find(_BUNDLE)
    if start < 0:
        raise ValueError("no offload bundle in the object file: is it of a HIP source?")
    (count,) = struct.unpack_from("<Q", host_object, start + len(_BUNDLE))
    at = start + len(_BUNDLE) + 8
    names = []
    for _ in range(count):
        offset, size, length = struct.unpack_from("<QQQ", host_object, at)
        name = host_object[at + 24 : at + 24 + length].decode()
        if name.endswith("-" + arch):
            return host_object[start + offset : start + offset + size]
        names.append(name)
        at += 24 + length
    raise ValueError(f"no code for {arch} in the offload bundle: it has {', '.join(names)}")
