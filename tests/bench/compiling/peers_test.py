# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A plain compile in a peer's way, and a peer's object file beside a code object."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest

from tests.bench.compiling import peers
from tests.e2e.action_graph import Action

PLAIN = Action(
    mnemonic="HipCodeObject",
    arguments=(
        *("llvm/bin/clang++", "--sysroot=sysroot", "-x", "hip", "-std=c++17", "-O3"),
        *("--cuda-device-only", "--no-gpu-bundle-output", "-mllvm", "-disable-machine-licm"),
        *("-Ick/include", "--offload-arch=gfx942", "-c", "a.cpp", "-o", "bazel-out/a.hsaco"),
    ),
    environment={"LC_ALL": "C"},
    inputs=frozenset(["a.cpp"]),
    outputs=("bazel-out/a.hsaco",),
    parameter_files={},
)


def test_with_flags_of_its_own_a_peer_has_none_of_our_options_for_llvm():
    action = peers.compile_of(PLAIN, ["-std=c++20", "-mllvm", "-x=1"], "/programs")
    assert action.arguments == (
        *("/programs/clang++", "--sysroot=sysroot", "-x", "hip", "-std=c++17", "-O3"),
        *("-Ick/include", "--offload-arch=gfx942", "-std=c++20", "-mllvm", "-x=1"),
        *("-c", "a.cpp", "-o", "bazel-out/a.o"),
    )
    assert action.outputs == ("bazel-out/a.o",)
    assert action.environment == {"LC_ALL": "C", "PATH": "/programs"}


def test_with_our_flags_only_the_pass_is_another():
    arguments = peers.compile_of(PLAIN, None, "/programs").arguments
    assert set(PLAIN.arguments) - set(arguments) == {
        "--cuda-device-only",
        "--no-gpu-bundle-output",
        "bazel-out/a.hsaco",
        "llvm/bin/clang++",
    }
    assert set(arguments) - set(PLAIN.arguments) == {"bazel-out/a.o", "/programs/clang++"}


def test_the_body_of_a_kernel_is_compiled_for_the_device_alone() -> None:
    source = "void\nfmha(Kernel::Kargs kargs)\n{\n    Kernel{}(kargs);\n}\n"
    lines = peers.for_host_and_device(source).splitlines()
    assert lines[3:6] == ["#if defined(__HIP_DEVICE_COMPILE__)", "    Kernel{}(kargs);", "#endif"]
    assert lines[:3] + lines[6:] == ["void", "fmha(Kernel::Kargs kargs)", "{", "}"]
    with pytest.raises(ValueError, match="this has not"):
        peers.for_host_and_device("int main() {}\n")


def test_a_flag_is_tried_for_host_and_device_on_no_source_of_ours():
    command = peers.probe(PLAIN, ["-mllvm", "-new=1"], "/programs")
    assert command[0] == "/programs/clang++"
    assert command[-7:] == ["-mllvm", "-new=1", "-E", "-P", "/dev/null", "-o", "/dev/null"]
    assert not {"a.cpp", "--cuda-device-only", "-disable-machine-licm"} & set(command)


def test_the_programs_run_with_the_libraries_of_the_compilers_tree(tmp_path: Path):
    tree, folder = tmp_path / "llvm", tmp_path / "programs"
    (tree / "usr/lib/llvm-22/bin").mkdir(parents=True)
    (tree / "usr/lib/x86_64-linux-gnu").mkdir()
    loader = tree / "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"
    loader.write_text('#!/bin/sh\necho "$@"\n')
    loader.chmod(0o755)
    peers.write_programs(folder, tree, tmp_path / "tools/clang-offload-bundler")
    said = {
        program.name: subprocess.check_output([program, "-x"], text=True)
        for program in folder.iterdir()
    }
    assert said.keys() == {"clang++", "lld", "llvm-objcopy", "clang-offload-bundler"}
    options = f"--inhibit-cache --library-path {loader.parent} --argv0"
    clang = f"{tree}/usr/lib/llvm-22/bin/clang++"
    assert said["clang++"] == f"{options} {folder}/clang++ {clang} -x\n"
    bundler = f"{tmp_path}/tools/clang-offload-bundler"
    assert said["clang-offload-bundler"].split()[-2:] == [bundler, "-x"]


def bundle(codes: dict[str, bytes]) -> bytes:
    """As clang-offload-bundler lays it out, in the middle of an object file."""
    head, body = b"", b""
    names = [name.encode() for name in codes]
    start = 24 + 8 + sum(24 + len(name) for name in names)
    for name, code in zip(names, codes.values(), strict=True):
        head += struct.pack("<QQQ", start + len(body), len(code), len(name)) + name
        body += code
    return b"ELF..." + peers._BUNDLE + struct.pack("<Q", len(codes)) + head + body + b"...end"


def test_the_code_object_of_an_arch_is_found_in_an_object_file():
    made = bundle(
        {
            "host-x86_64-unknown-linux-gnu": b"",
            "hipv4-amdgcn-amd-amdhsa--gfx950": b"other",
            "hipv4-amdgcn-amd-amdhsa--gfx942": b"wanted",
        }
    )
    assert peers.device_code(made, "gfx942") == b"wanted"


def test_an_object_file_without_the_code_says_what_it_has():
    with pytest.raises(ValueError, match=r"no code for gfx942 .* it has host-x86, hipv4--gfx950"):
        peers.device_code(bundle({"host-x86": b"", "hipv4--gfx950": b"x"}), "gfx942")
    with pytest.raises(ValueError, match="no offload bundle"):
        peers.device_code(b"ELF", "gfx942")
