# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The slim wheel: with a wheel of kernels beside it, with the same pack elsewhere, and alone."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiter_attn
import pytest
from aiter_attn import _C

from tests.emulation.wheel import wheel_contents
from tests.emulation.wheel.problems import CAUSAL, Problem, Shape, forward_and_backward
from tests.emulator.hip.hip import Hip

WHEEL = Path(os.environ["WHEEL"])
KERNELS_WHEELS = [Path(path) for path in os.environ["KERNELS_WHEELS"].split()]

# A forward pass on a device, whose runtime has no emulator: it ends when its kernel is loaded.
CALL = """
import sys, aiter_attn, numpy
from tests.support.python.dlpack_exporter import KDL_ROCM, Exporter
def array(*shape, dtype="float16"):
    return Exporter(numpy.zeros(shape, dtype), device=(KDL_ROCM, 0))
shape = (1, 8, 1, 64)
try:
    print(aiter_attn.explain(shape, shape, shape, causal=True, dtype="float16", arch="gfx942"))
    aiter_attn.mha_fwd(array(*shape), array(*shape), array(*shape), out=array(*shape),
                       lse=array(1, 1, 8, dtype="float32"), causal=True)
except (aiter_attn.AttnError, ValueError) as error:
    sys.exit(f"{type(error).__name__}: {error}")
"""
LOADED = "DriverError: hipModuleLoadData failed"


def names(wheel: Path) -> list[str]:
    return zipfile.ZipFile(wheel).namelist()


def distribution(wheel: Path) -> str:
    (metadata,) = (name for name in names(wheel) if name.endswith(".dist-info/METADATA"))
    text = zipfile.ZipFile(wheel).read(metadata).decode()
    (name,) = re.findall(r"^Name: (.+)$", text, re.M)
    return str(name)


@pytest.fixture(scope="module")
def slim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site-packages with the slim wheel alone."""
    site = tmp_path_factory.mktemp("slim")
    zipfile.ZipFile(WHEEL).extractall(site)
    return site


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    """The pack of gfx942, in a folder of its own."""
    (wheel,) = (wheel for wheel in KERNELS_WHEELS if "_gfx942_" in wheel.name)
    (name,) = (name for name in names(wheel) if name.endswith(".attnpack"))
    zipfile.ZipFile(wheel).extract(name, tmp_path)
    return tmp_path / name


def run(site: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    installed = str(Path(aiter_attn.__file__).parents[1])
    path = os.pathsep.join([str(site), *(p for p in sys.path if p != installed)])
    return subprocess.run(
        [sys.executable, *command],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def call(site: Path, **environment: str) -> tuple[str, str]:
    """The explanation, and the error: LOADED where the kernel was found and believed."""
    done = run(site, "-c", CALL, **environment)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout, done.stderr


@pytest.mark.parametrize("arch", wheel_contents.ARCHS)
def test_with_the_kernels_installed_the_numbers_are_right(hip: Hip, arch: str) -> None:
    forward_and_backward(
        Problem(hip, Shape(((77, 130),), heads=(2, 1), window=CAUSAL), "float16", 64,
                hip.device_of(arch))
    )  # fmt: skip
    for kernel in aiter_attn.kernels():
        assert kernel["embedded_size"] == 0
        provider, text = _C.find_code_object(kernel["key"])
        assert provider is not None
        assert f"aiter-attn-kernels-{kernel['arch']}-" in provider
        assert text.startswith("the library: does not have it\n")


def test_it_is_small_and_has_the_same_files(slim: Path) -> None:
    packed = sum(wheel.stat().st_size for wheel in KERNELS_WHEELS)
    assert WHEEL.stat().st_size < 10 << 20
    assert packed > 0
    assert any(name.startswith("aiter_attn/_C.") for name in names(WHEEL))
    for wheel in KERNELS_WHEELS:
        assert wheel.name.endswith("-py3-none-any.whl")
        folders = {name.split("/")[0] for name in names(wheel)}
        assert folders == {"aiter_attn_kernels", wheel.name.rsplit("-", 3)[0] + ".dist-info"}
        assert "/" not in names(wheel)[0].removeprefix("aiter_attn_kernels/")


def test_alone_it_names_the_kernel_and_its_pack(slim: Path) -> None:
    (wheel,) = (wheel for wheel in KERNELS_WHEELS if "_gfx942_" in wheel.name)
    explanation, error = call(slim)
    assert "  bytes from nowhere: install its pack" in explanation
    assert re.match(r"UnsupportedError: no code object with key '[0-9a-f]{64}'", error)
    assert f"install its pack, {distribution(wheel)}=={aiter_attn.__version__}, or name" in error
    # The kit makes members of compile groups, too.
    hint = f"compiled here, install aiter-attn-compile-kit=={aiter_attn.__version__}"
    assert hint in error
    told = json.loads(run(slim, "-m", "aiter_attn", "info", "--json").stdout)
    assert {kernel["found_in"] for kernel in told["kernels"]} == {None}
    lines = run(slim, "-m", "aiter_attn", "info").stdout
    assert re.search(rf"from nowhere: {len(told['kernels'])} code objects", lines)


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_pack_that_is_named_serves(slim: Path, pack: Path, what: str) -> None:
    place = str(pack if what == "file" else pack.parent)
    explanation, error = call(slim, AITER_ATTN_PACK_PATH=f"/nowhere:{place}")
    assert error.startswith(LOADED)
    told = f"  bytes from pack '{pack}'\n    not from the library: does not have it"
    assert told in explanation
    told = run(slim, "-m", "aiter_attn", "info", AITER_ATTN_PACK_PATH=f"/nowhere:{place}").stdout
    assert "from pack '/nowhere': cannot be found: No such file or directory" in told


def _bad_packs(data: bytearray) -> Iterator[tuple[str, bytes, str]]:
    """Bad packs: their name, their bytes, and a part of the message."""
    yield "cut off", bytes(data[:-1]), "bytes of a pack instead of"
    old = data.copy()
    old[8:13] = b"0.0.9"
    yield "old", bytes(old), f"made with aiter-attn 0.0.9, but this is {aiter_attn.__version__}"
    index = data.copy()
    index[152 + 41] ^= 1
    yield "index", bytes(index), "has a damaged index"
    frames = data.copy()
    count = int.from_bytes(data[160:168], "little")
    for at in range(152 + 40 + 88 * count, len(data)):
        frames[at] ^= 0x20
    yield "frames", bytes(frames), "CorruptError"
    yield "another format", bytes(data[:7] + b"9" + data[8:]), "is of format '9'"
    yield "no pack", b"\x7fELF" + bytes(200), "is no file of a pack"


def test_bad_packs_are_refused_and_told(slim: Path, pack: Path, tmp_path: Path) -> None:
    data = bytearray(pack.read_bytes())
    bad = tmp_path / "bad.attnpack"
    for name, content, message in _bad_packs(data):
        bad.write_bytes(content)
        assert message in call(slim, AITER_ATTN_PACK_PATH=str(bad))[1], name
        # A good one behind it serves all the same.
        assert call(slim, AITER_ATTN_PACK_PATH=f"{bad}:{pack}")[1].startswith(LOADED), name


def test_a_path_that_is_relative_is_refused(slim: Path) -> None:
    error = call(slim, AITER_ATTN_PACK_PATH="packs")[1]
    assert "AITER_ATTN_PACK_PATH has 'packs', but must have absolute paths" in error


def test_the_pack_is_the_one_that_the_library_would_have(slim: Path, pack: Path) -> None:
    """Each object has the digest of the manifest, which the launch table has, too."""
    manifest: dict[str, Any] = json.loads((slim / "aiter_attn/manifest.json").read_text())
    data = pack.read_bytes()
    count = int.from_bytes(data[160:168], "little")
    entries = [data[192 + 88 * i :][:88] for i in range(count)]
    packed = {entry[:32].hex(): entry[32:64].hex() for entry in entries}
    listed = {
        made["key"]: made["sha256"]
        for instance in manifest["instances"]
        for arch, made in instance["code_objects"].items()
        if arch == "gfx942"
    }
    assert packed == listed
