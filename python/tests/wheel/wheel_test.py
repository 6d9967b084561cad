# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The wheel that //python:attn_wheel builds."""

from __future__ import annotations

import base64
import csv
import ctypes
import email
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import aiter_attn
import pytest
from aiter_attn import _C

from python.private import elf
from python.tests.wheel import goldens

WHEEL = Path(os.environ["WHEEL"])
NAME = re.compile(
    r"(?P<distribution>\w+)-(?P<version>[\d.]+)(\+(?P<local>[a-z0-9.]+))?"
    r"-(?P<python>cp3\d+)-(?P=python)-manylinux_2_(?P<glibc>\d+)_x86_64\.whl"
)


@pytest.fixture(scope="module")
def wheel() -> zipfile.ZipFile:
    return zipfile.ZipFile(WHEEL)


def information(wheel: zipfile.ZipFile, name: str) -> str:
    version = WHEEL.name.split("-")[1]
    return wheel.read(f"aiter_attn-{version}.dist-info/{name}").decode()


JAX_HANDLERS = "aiter_attn/jax/libattn_jax.so"


def extension(wheel: zipfile.ZipFile) -> tuple[str, bytes]:
    (name,) = [n for n in wheel.namelist() if n.startswith("aiter_attn/_C.") and n.endswith(".so")]
    return name, wheel.read(name)


def readelf(option: str, path: Path) -> str:
    return subprocess.run(
        [os.environ["READELF"], option, path], capture_output=True, text=True, check=True
    ).stdout


def test_its_name_says_what_it_is() -> None:
    match = NAME.fullmatch(WHEEL.name)
    assert match
    assert match["distribution"] == "aiter_attn"
    assert match["version"] == aiter_attn.__version__
    assert match["python"] == f"cp{sys.version_info.major}{sys.version_info.minor}"


def test_one_version_everywhere(wheel: zipfile.ZipFile) -> None:
    module = Path("MODULE.bazel").read_text(encoding="utf-8")
    declared = re.search(r'^module\(\s*name = "aiter_attn",\s*version = "(.+)"', module, re.M)
    assert declared
    assert declared[1] == _C.version() == aiter_attn.__version__ == os.environ["VERSION"]
    version = email.message_from_string(information(wheel, "METADATA"))["Version"]
    assert version == WHEEL.name.split("-")[1]
    assert version.partition("+")[0] == declared[1]


def test_its_local_version_says_which_kernels_it_has(wheel: zipfile.ZipFile) -> None:
    match = NAME.fullmatch(WHEEL.name)
    assert match
    manifest = json.loads(wheel.read("aiter_attn/manifest.json"))
    kernels = [manifest["variant_set"].replace("_", "."), *manifest["archs"]]
    assert match["local"] == (None if kernels == ["core", "gfx942"] else ".".join(kernels))


def test_its_command_and_its_entry_points(wheel: zipfile.ZipFile) -> None:
    assert information(wheel, "entry_points.txt") == (
        "[console_scripts]\naiter-attn = aiter_attn._cli.main:program\n\n"
        "[sglang.srt.plugins]\naiter_attn = aiter_attn.sglang:register\n\n"
        "[vllm.general_plugins]\naiter_attn = aiter_attn.vllm:plugin\n"
    )


def test_record_lists_every_file_with_its_digest(wheel: zipfile.ZipFile) -> None:
    rows = list(csv.reader(io.StringIO(information(wheel, "RECORD"))))
    assert [row[0] for row in rows] == wheel.namelist()
    *files, record = rows
    assert record[0].endswith(".dist-info/RECORD")
    assert record[1:] == ["", ""]
    for name, digest, size in files:
        data = wheel.read(name)
        encoded = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        assert digest == f"sha256={encoded}"
        assert int(size) == len(data)


def test_it_tells_neither_when_nor_where_it_was_built(wheel: zipfile.ZipFile) -> None:
    assert {entry.date_time for entry in wheel.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    modes = {entry.filename: entry.external_attr >> 16 & 0o777 for entry in wheel.infolist()}
    programs = {name for name, mode in modes.items() if mode == 0o755}
    assert programs == {extension(wheel)[0], JAX_HANDLERS}
    assert set(modes.values()) == {0o755, 0o644}
    for name in programs:
        assert not re.search(rb"/bazel-out/|/execroot/|/sandbox/|/(home|root)/", wheel.read(name))


def test_the_wheel_file(wheel: zipfile.ZipFile) -> None:
    fields = email.message_from_string(information(wheel, "WHEEL"))
    assert fields["Wheel-Version"] == "1.0"
    assert fields["Root-Is-Purelib"] == "false"
    assert fields["Tag"] == "-".join(WHEEL.stem.split("-")[2:])


def test_the_package_is_whole(wheel: zipfile.ZipFile) -> None:
    installed = Path(aiter_attn.__file__).parent
    names = {name for name in wheel.namelist() if name.startswith("aiter_attn/")}
    needed = ["__init__.py", "__main__.py", "py.typed", "_C.pyi", "manifest.json"]
    adapters = ["numpy", "torch", "cupy", "jax", "generic", "__init__"]
    needed += [f"_core/adapters/{name}.py" for name in adapters]
    needed += ["torch/__init__.py"]
    assert {f"aiter_attn/{name}" for name in needed} <= names
    for name in names:
        assert wheel.read(name) == (installed.parent / name).read_bytes()
    description = email.message_from_string(information(wheel, "METADATA")).get_payload()
    assert description == Path("README.md").read_text(encoding="utf-8")
    assert information(wheel, "licenses/LICENSE") == Path("LICENSE").read_text(encoding="utf-8")


# Words of the licence of each.
PARTS = {
    "amd-aiter": "MIT License",
    "composable-kernel": "Copyright (c) 2018-2025, Advanced Micro Devices, Inc.",
    "dlpack": "Apache",
    "hip": "Permission is hereby granted, free of charge",
    "monocypher": "Loup Vaillant",
    "pybind11": "Wenzel Jakob",
    "rocm-device-libs": "University of Illinois/NCSA",
    "zstd": "Meta Platforms",
}


def test_licences_are_those_of_its_parts(wheel: zipfile.ZipFile) -> None:
    manifest = json.loads(wheel.read("aiter_attn/manifest.json"))
    has_asm = any(i["provider"] == "asm" and i["code_objects"] for i in manifest["instances"])
    wanted = ["LICENSE", *(f"{part}/LICENSE" for part in PARTS if part != "amd-aiter" or has_asm)]
    fields = email.message_from_string(information(wheel, "METADATA"))
    assert fields.get_all("License-File") == wanted
    inside = [name.partition("/licenses/")[2] for name in wheel.namelist() if "/licenses/" in name]
    assert sorted(inside) == sorted(wanted)
    for part, words in PARTS.items():
        if f"{part}/LICENSE" in wanted:
            assert words in information(wheel, f"licenses/{part}/LICENSE")
    bom = json.loads(information(wheel, "sboms/aiter-attn.cdx.json"))
    assert any(c["name"] == "amd-aiter" for c in bom["components"])


def test_the_manifest_is_of_the_kernels_inside(wheel: zipfile.ZipFile) -> None:
    manifest = json.loads(wheel.read("aiter_attn/manifest.json"))
    listed = {
        (instance["name"], arch, code_object["key"], code_object["size"])
        for instance in manifest["instances"]
        for arch, code_object in instance["code_objects"].items()
    }
    inside = {(k["name"], k["arch"], k["key"], k["code_object_size"]) for k in aiter_attn.kernels()}
    assert listed == inside
    for instance in manifest["instances"]:
        for code_object in instance["code_objects"].values():
            kernel = code_object["kernel"]
            assert kernel["vgpr_count"] > 0
            for spills in (kernel["sgpr_spill_count"], kernel["vgpr_spill_count"]):
                # The metadata of objects that come as such does not tell.
                assert (spills is None) if instance["provider"] == "asm" else spills >= 0
            assert {"agpr_count", "lds_size", "scratch_size", "sgpr_count"} <= kernel.keys()
            assert 1 <= code_object["waves_per_simd"] <= 8
    assert re.fullmatch("[0-9a-f]{64}", manifest["toolchain"])
    assert manifest["variant_set"]


def test_the_manifest_has_the_norms_that_are_built_in(wheel: zipfile.ZipFile) -> None:
    manifest = json.loads(wheel.read("aiter_attn/manifest.json"))
    (extension,) = (n for n in wheel.namelist() if re.fullmatch(r"aiter_attn/_C\..*so", n))
    library = wheel.read(extension)
    for norm in manifest["norms"]:
        assert norm["operation"] in norm["name"]
        # A pack names its code objects by their keys.
        assert all(bytes.fromhex(c["key"]) in library for c in norm["code_objects"].values())


def test_the_sbom_is_of_this_wheel(wheel: zipfile.ZipFile) -> None:
    bom = json.loads(information(wheel, "sboms/aiter-attn.cdx.json"))
    assert bom["metadata"]["component"]["purl"] == f"pkg:pypi/aiter-attn@{aiter_attn.__version__}"
    assert "timestamp" not in bom["metadata"]
    components = {c["name"]: c for c in bom["components"]}
    inside = {name for name, c in components.items() if c["scope"] == "required"}
    assert {"amd-aiter", "zstandard", "pybind11", "libdlpack-dev"} <= inside
    assert f"libpython3.{sys.version_info.minor}-dev" in inside
    locked = json.loads(Path("toolchains/debian/lock.json").read_text(encoding="utf-8"))
    packages = {p["sha256"] for group in locked["groups"].values() for p in group["packages"]}
    debian = [c for c in bom["components"] if c["purl"].startswith("pkg:deb/")]
    changed = [c["name"] for c in debian if c["hashes"][0]["content"] not in packages]
    # A package that is not the locked one stands in the manifest, too.
    manifest = json.loads(wheel.read("aiter_attn/manifest.json"))
    assert sorted({p.split()[0] for p in manifest["not_locked"]}) == sorted(set(changed))


def test_metadata() -> None:
    path = goldens.FOLDER / "METADATA.golden"
    assert goldens.goldens(WHEEL)[path.name] == path.read_text(encoding="utf-8"), (
        f"{path} differs; if that is meant: ./bazelw run //python/tests/wheel:update_goldens"
    )


def test_the_extension_exports_its_init_function_only(wheel: zipfile.ZipFile) -> None:
    assert elf.read(extension(wheel)[1]).exported == ("PyInit__C",)


def test_threads_take_no_memory_for_their_variables_of_the_extension(
    wheel: zipfile.ZipFile, tmp_path: Path
) -> None:
    path = tmp_path / "extension.so"
    path.write_bytes(extension(wheel)[1])
    assert re.search(r"\(FLAGS\).*STATIC_TLS", readelf("--dynamic", path))


def test_the_extension_finds_the_functions_of_the_c_abi() -> None:
    headers = [Path(f"aiter/{name}.h").read_text(encoding="utf-8") for name in ("attn", "norm")]
    declared = set(re.findall(r"ATTN_SYMBOL\((\w+)\)$", "".join(headers), re.M))
    find = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p)(_C.FIND_FUNCTION)
    assert "fwd" in declared
    assert [name for name in sorted(declared) if not find(name.encode())] == []
    assert not find(b"no_function")


def test_extras_that_messages_name_are_there(wheel: zipfile.ZipFile) -> None:
    extras = email.message_from_string(information(wheel, "METADATA")).get_all("Provides-Extra")
    sources = [wheel.read(n).decode() for n in wheel.namelist() if n.endswith(".py")]
    named = {extra for text in sources for extra in re.findall(r"aiter-attn\[(\w+)\]", text)}
    assert "torch" in named <= set(extras or [])


def test_the_handlers_of_jax_export_themselves_only(wheel: zipfile.ZipFile) -> None:
    passes = ["bwd", "dropout_mask", "fwd", "kvcache_fwd"]
    passes += [f"{norm}_{way}" for norm in ("norm", "softmax") for way in ("bwd", "fwd")]
    handlers = [f"attn_jax_{name}_{platform}" for name in passes for platform in ("cpu", "rocm")]
    assert elf.read(wheel.read(JAX_HANDLERS)).exported == tuple(
        sorted([*handlers, "attn_jax_bind"])
    )


def test_the_extension_needs_what_its_tag_says(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    path = tmp_path / "extension.so"
    path.write_bytes(extension(wheel)[1])
    # By another program than the one that chose the tag.
    needed = set(re.findall(r"NEEDED.*\[(.+)\]", readelf("--dynamic", path)))
    # The last two have functions for a glibc before 2.34 (//toolchains/llvm/older_glibc).
    allowed = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "libdl.so.2", "libpthread.so.0"}
    assert needed <= allowed
    text = readelf("--version-info", path)
    versions = {tuple(map(int, v.split("."))) for v in re.findall(r"Name: GLIBC_([\d.]+)", text)}
    match = NAME.fullmatch(WHEEL.name)
    assert match
    assert max(versions) == (2, int(match["glibc"]))
    found = elf.read(path.read_bytes())
    assert set(found.needed) == needed
    assert {version for _, version in found.versions} == {
        f"GLIBC_{'.'.join(map(str, version))}" for version in versions
    }


def test_it_works_unpacked(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    wheel.extractall(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "aiter_attn", "info"],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"aiter-attn {aiter_attn.__version__} ")
