# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""`aiter-attn prebuild` of a slim wheel with a compile kit and a server that lacks some kernels."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import aiter_attn

from tests.emulation.wheel.file_server import served
from tests.emulation.wheel.kit_cache import ARCH, CACHE, cached, manifest

SITE = Path(aiter_attn.__file__).parents[1]
WANTED = [kernel for kernel in aiter_attn.kernels() if kernel["kind"] == "sum_heads"]
KIT = f"the compile kit '{SITE}/aiter_attn_compile_kit'"


def process(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Python, with the wheel and a given environment."""
    path = os.pathsep.join([str(SITE), *sys.path])
    return subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def fill(root: Path, keys: list[str]) -> None:
    """Puts kernels of the build's packs into the folder of a server."""
    (wheel,) = os.environ["PACK_WHEELS"].split()
    zipfile.ZipFile(wheel).extractall(root / "packs")
    folder = root / "cas"
    folder.mkdir()
    script = "import sys; from aiter_attn import _C; "
    script += "open(sys.argv[2], 'wb').write(_C.code_object(sys.argv[1]))"
    packs = str(root / "packs/aiter_attn_kernels")
    for key in keys:
        place = str(folder / manifest()[key])
        settings = {"AITER_ATTN_PACK_PATH": packs, "AITER_ATTN_ON_DEMAND": "off"}
        done = process("-c", script, key, place, **settings)
        assert done.returncode == 0, done.stderr


def test_what_the_server_lacks_is_compiled_and_counted_so(tmp_path: Path) -> None:
    count = len(WANTED)
    assert count >= 2
    lacked, given = WANTED[0], [kernel["key"] for kernel in WANTED[1:]]
    fill(tmp_path, given)
    file = tmp_path / "list"
    file.write_text("".join(f"{ARCH} {kernel['name']}\n" for kernel in WANTED))
    with served(tmp_path, tls=False) as url:
        server = f"the store '{url}'"
        done = process(
            "-m", "aiter_attn", "prebuild", "build", str(file), "--jobs", "1", AITER_ATTN_STORE=url
        )
    said = done.stdout
    assert done.returncode == 0, said + done.stderr
    # A compile is told once it takes a second.
    assert all(
        line.startswith(f"aiter-attn: compiling {lacked['name']} for {ARCH}, ")
        for line in done.stderr.splitlines()
    )
    lines = said.splitlines()
    assert lines[0] == (
        f"{count} kernels: 0 are there, {count} to be fetched from {server}, 0 cannot be had"
    )
    assert re.fullmatch(
        rf"1 of {count} not there after 0\.\d s, about [\d.]+ s left: {ARCH} {lacked['name']}",
        lines[1],
    )
    assert lines[count + 1] == (
        f"1 of {count} could not be fetched; {count} kernels: {count - 1} are there, "
        f"1 to be compiled by {KIT}, 0 cannot be had"
    )
    # The fetches are no part of its time.
    assert re.fullmatch(
        rf"1 of 1 done after [\d.]+ s, about 0\.0 s left: {ARCH} {lacked['name']}", lines[count + 2]
    )
    assert lines[count + 3] == (
        f"{count} kernels: {count - 1} fetched from {server}, 1 compiled by {KIT}, 0 missing"
    )
    assert cached() == {kernel["key"]: manifest()[kernel["key"]] for kernel in WANTED}
    assert not list((CACHE / "compiling").iterdir())
