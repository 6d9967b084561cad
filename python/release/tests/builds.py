# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Small artefacts with the shapes of real ones, and checkouts to release them from."""

from __future__ import annotations

import hashlib
import json
import subprocess
import zipfile
from pathlib import Path
from typing import Any

from python.release.checkout import Commit
from python.release.documents import Release
from python.release.make import make
from toolchains.sbom import contents
from toolchains.sbom.materials import Material

ABIS = ("cp311", "cp313", "cp314")
COMMIT = Commit("c0ffee" + "0" * 34, 1_700_000_000)
MATERIALS = (
    Material("debian", "clang-22", "1:22.1.8-1", "a" * 64),
    Material("debian", "rocm-device-libs-21", "7.0-1", "b" * 64),
    Material("npm", "@bazel/buildifier", "8.2.1", "c" * 64),
    Material("pypi", "flash-attn", "2.8.3", "d" * 64),
)
CONTENTS = contents.Contents(
    {
        "in_wheel": {"debian": {"rocm-*": "NCSA"}, "pypi": {"flash-attn": "MIT"}},
        "tools": {"debian": {"clang-*": "Apache-2.0 WITH LLVM-exception"}},
    }
)


def keys(seed: str) -> list[str]:
    return [hashlib.sha256(f"{seed}{number}".encode()).hexdigest() for number in range(2)]


def code_object(key: str) -> bytes:
    return b"\x7fELF" + key.encode()


def _listed(seed: str, arch: str) -> list[dict[str, Any]]:
    return [
        {
            "name": f"kernel{number}",
            "code_objects": {
                arch: {"key": key, "sha256": hashlib.sha256(code_object(key)).hexdigest()}
            },
        }
        for number, key in enumerate(keys(seed))
    ]


def manifest(seed: str = "kernels", norms: str = "norms", not_locked: tuple[str, ...] = ()) -> str:
    return json.dumps(
        {
            "archs": ["gfx942"],
            "instances": _listed(seed, "gfx942"),
            "norms": _listed(norms, "sm_90"),
            "not_locked": list(not_locked),
            "variant_set": "smoke",
        }
    )


def wheel_name(abi: str) -> str:
    return f"aiter_attn-0.1.0-{abi}-{abi}-manylinux_2_17_x86_64.whl"


def _write_wheel(path: Path, distribution: str, tag: str, files: dict[str, str | bytes]) -> None:
    info = f"{path.name.split('-')[0]}-0.1.0.dist-info"
    metadata = f"Name: {distribution}\nVersion: 0.1.0\nRequires-Python: >=3.10\n"
    path.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(path, "w") as wheel:
        for name, data in {
            **files,
            f"{info}/METADATA": "Metadata-Version: 2.1\n" + metadata,
            f"{info}/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {tag}\n",
            f"{info}/RECORD": f"{info}/RECORD,,\n",
        }.items():
            wheel.writestr(zipfile.ZipInfo(name), data)


def write_wheel(path: Path, text: str) -> None:
    files: dict[str, str | bytes] = {
        "aiter_attn/manifest.json": text,
        "aiter_attn/name": f"slim/{path.name}" if path.parent.name == "slim" else path.name,
    }
    _write_wheel(path, "aiter-attn", path.stem.split("-", 2)[2], files)


def pack(seed: str = "kernels") -> bytes:
    return b"PACK" + b"".join(map(bytes.fromhex, keys(seed)))


KERNELS_WHEEL = "aiter_attn_kernels_gfx942_smoke-0.1.0-py3-none-any.whl"


def write_kernels_wheel(path: Path, contents: bytes) -> None:
    name = "aiter-attn-kernels-gfx942-smoke"
    _write_wheel(path, name, "py3-none-any", {f"aiter_attn_kernels/{name}.attnpack": contents})


PREBUILT = f"rocm-7_aiter-{'7' * 40}.tar.gz"

PURE_WHEEL = "jax_aiter-0.1.0-py3-none-any.whl"


def build(root: Path, library: bytes = b"ELF", spaces: int = 0) -> Path:
    """Writes a build below root, with `spaces` in its wheels. Returns artefacts.bzl's list."""
    root.mkdir(parents=True, exist_ok=True)
    files = []
    for abi in ABIS:
        write_wheel(root / wheel_name(abi), manifest() + " " * spaces)
        files.append({"abi": abi, "file": wheel_name(abi), "kind": "wheel"})
        write_wheel(root / "slim" / wheel_name(abi), manifest())
        files.append({"abi": abi, "file": f"slim/{wheel_name(abi)}", "kind": "slim_wheel"})
    write_kernels_wheel(root / KERNELS_WHEEL, pack())
    files.append({"file": KERNELS_WHEEL, "kind": "kernels_wheel"})
    _write_wheel(root / PURE_WHEEL, "jax-aiter", "py3-none-any", {"jax_aiter/__init__.py": b""})
    files.append({"file": PURE_WHEEL, "kind": "pure_wheel", "name": PURE_WHEEL})
    (root / "manifest.json").write_text(manifest())
    (root / "embedded_pack.pack").write_bytes(pack())
    (root / "libaiter_attn.a").write_bytes(library)
    (root / PREBUILT).write_bytes(library)
    (root / f"{PREBUILT}.sha256").write_text(hashlib.sha256(library).hexdigest() + "\n")
    files += [
        {"file": PREBUILT, "kind": "te_prebuilt", "name": PREBUILT},
        {
            "file": f"{PREBUILT}.sha256",
            "kind": "te_prebuilt_digest",
            "name": f"{PREBUILT}.sha256",
        },
        {"file": "manifest.json", "kind": "manifest", "name": "manifest.json"},
        {"file": "embedded_pack.pack", "kind": "kernel_pack", "name": "kernels.pack"},
        {"file": "libaiter_attn.a", "kind": "archive", "name": "libaiter_attn.a"},
    ]
    for key in keys("kernels"):
        (root / f"{key}.hsaco").write_bytes(code_object(key))
        files.append({"file": f"{key}.hsaco", "kind": "code_object"})
    listed = root / "artefacts.json"
    settings = {"namespace": "aiter", "on_demand": "none", "patches": "default"}
    listed.write_text(
        json.dumps({"abis": ABIS, "files": files, "settings": settings, "version": "0.1.0"})
    )
    return listed


def release(
    root: Path,
    commit: Commit = COMMIT,
    library: bytes = b"ELF",
    builder: str = "urn:x:builder",
    spaces: int = 0,
) -> Release:
    """A release of a build below root."""
    return make(build(root, library, spaces), root, commit, MATERIALS, CONTENTS, builder)


def git(root: Path, *arguments: str) -> str:
    """Runs git with nothing of this user's configuration."""
    environ = {
        "GIT_AUTHOR_DATE": "2026-01-02T03:04:05Z",
        "GIT_COMMITTER_DATE": "2026-01-02T03:04:05Z",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_SYSTEM": "/dev/null",
        "PATH": "/usr/local/bin:/usr/bin:/bin",
    }
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "tag.gpgSign=false"]
    return subprocess.run(
        ["git", *identity, *arguments],
        cwd=root,
        env=environ,
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def commit(root: Path, message: str, **files: str) -> str:
    """Commits files; returns the commit."""
    if not (root / ".git").exists():
        root.mkdir(parents=True, exist_ok=True)
        git(root, "init", "-q", "-b", "main")
    for name, text in files.items():
        (root / name).write_text(text)
    git(root, "add", "-A")
    git(root, "commit", "-q", "--allow-empty", "-m", message)
    return git(root, "rev-parse", "HEAD").strip()
