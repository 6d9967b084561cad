# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The files of a release: Bazel's outputs, checked against each other, under their names."""

from __future__ import annotations

import dataclasses
import email.parser
import hashlib
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from python.release.errors import ReleaseError

_MANIFEST = "aiter_attn/manifest.json"
_PACK_SUFFIX = ".attnpack"
CODE_OBJECT = "code_object"
_DIGEST = "te_prebuilt_digest"


@dataclasses.dataclass(frozen=True)
class File:
    """A file that is published under the sha256 of its bytes.

    kind: "wheel", "kernel_pack", "archive", ...; those of artefacts.bzl
    about: further facts: a wheel's ABI, a pack's code objects
    beside: the sha256 of a file in whose folder it lies, where it has none of its own
    """

    kind: str
    name: str
    contents: Path | bytes
    sha256: str
    size: int
    about: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    beside: str = ""

    @property
    def path(self) -> str:
        """Where it lies in a release folder or on a server: a code object where libraries ask for
        it (aiter/runtime/remote/remote.h)."""
        if self.kind == CODE_OBJECT:
            return f"cas/{self.sha256}"
        return f"files/{self.beside or self.sha256}/{self.name}"


@dataclasses.dataclass(frozen=True)
class Artefacts:
    """Files that were built of one checkout with one choice of settings."""

    version: str
    settings: Mapping[str, Any]
    manifest: Mapping[str, Any]
    files: tuple[File, ...]


def file(kind: str, name: str, contents: Path | bytes, **about: Any) -> File:
    """Reads the files to be published."""
    if isinstance(contents, bytes):
        return File(
            kind, name, contents, hashlib.sha256(contents).hexdigest(), len(contents), about
        )
    with contents.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return File(kind, name, contents, digest, contents.stat().st_size, about)


def read(path: Path, root: Path) -> Artefacts:
    """Reads the list that artefacts.bzl writes. Its files are below root.

    Raises ReleaseError where a file is missing, or where the files are not of one build.
    """
    listed = json.loads(path.read_text(encoding="utf-8"))
    missing = [entry for entry in listed["files"] if not (root / entry["file"]).is_file()]
    if missing:
        raise ReleaseError(
            f"the {missing[0]['kind']} {missing[0]['file']} is missing; build it with "
            "./bazelw build //:release"
        )
    for kind in ("wheel", "slim_wheel"):
        abis = [entry["abi"] for entry in listed["files"] if entry["kind"] == kind]
        if sorted(abis) != sorted(listed["abis"]):
            raise ReleaseError(
                f"there are files of the kind {kind} for {', '.join(abis) or 'no ABI'}; a release "
                f"has one for each of {', '.join(listed['abis'])}"
            )
    (manifest,) = (
        json.loads((root / entry["file"]).read_text(encoding="utf-8"))
        for entry in listed["files"]
        if entry["kind"] == "manifest"
    )
    _check_locked("manifest.json", manifest)
    files = tuple(
        _read_one(entry, root, manifest)
        for entry in listed["files"]
        if entry["kind"] not in (CODE_OBJECT, _DIGEST)
    )
    files += _digests(listed["files"], root, files)
    files += code_objects(listed["files"], root, manifest)
    settings = {
        "archs": manifest["archs"],
        "variant_set": manifest["variant_set"],
        **listed["settings"],
    }
    return Artefacts(listed["version"], settings, manifest, files)


def _read_one(entry: Mapping[str, str], root: Path, manifest: Mapping[str, Any]) -> File:
    path = root / entry["file"]
    if entry["kind"] in ("wheel", "slim_wheel"):
        _check_wheel(path, manifest)
        needs = _requires_python(path)
        return file(entry["kind"], path.name, path, abi=entry["abi"], requires_python=needs)
    if entry["kind"] == "kernels_wheel":
        _check_kernels_wheel(path, manifest)
        return file(entry["kind"], path.name, path, requires_python=_requires_python(path))
    if entry["kind"] == "pure_wheel":
        return file(entry["kind"], entry["name"], path, requires_python=_requires_python(path))
    if entry["kind"] == "kernel_pack":
        _check_pack(path, manifest)
        return file("kernel_pack", entry["name"], path, code_objects=_keys(manifest))
    return file(entry["kind"], entry["name"], path)


def _digests(
    entries: Sequence[Mapping[str, str]], root: Path, files: Sequence[File]
) -> tuple[File, ...]:
    """The digests of files, each in the folder of its file: who fetches one has one URL for both.

    Raises ReleaseError where one is not that of its file.
    """
    found = []
    for entry in entries:
        if entry["kind"] == _DIGEST:
            digest = file(_DIGEST, entry["name"], root / entry["file"])
            its = (root / entry["file"]).read_text(encoding="ascii").strip()
            of = entry["name"].removesuffix(".sha256")
            if its not in (f.sha256 for f in files if f.name == of):
                raise ReleaseError(
                    f"{entry['name']} is {its!r}, which is not the sha256 of {of}: they are of two "
                    "builds; build all with one command, ./bazelw build //:release"
                )
            found.append(dataclasses.replace(digest, beside=its))
    return tuple(found)


def _keys(manifest: Mapping[str, Any], lists: Sequence[str] = ("instances",)) -> list[str]:
    return sorted(
        {
            code_object["key"]
            for kernels in lists
            for kernel in manifest[kernels]
            for code_object in kernel["code_objects"].values()
        }
    )


def code_objects(
    entries: Sequence[Mapping[str, str]], root: Path, manifest: Mapping[str, Any]
) -> tuple[File, ...]:
    """The objects of the manifest, those with the same bytes once. Their digest is their name.

    Raises ReleaseError where they are of another build.
    """
    keys: dict[str, set[str]] = {}
    for kernel in manifest["instances"]:
        for made in kernel["code_objects"].values():
            keys.setdefault(made["sha256"], set()).add(made["key"])
    found: dict[str, Path] = {}
    for entry in entries:
        if entry["kind"] == CODE_OBJECT:
            path = root / entry["file"]
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            if digest not in keys:
                raise _mixed(path.name)
            found[digest] = path
    if missing := sorted(keys.keys() - found.keys()):
        raise ReleaseError(
            f"no code object has the sha256 {missing[0]}, which manifest.json names: they are of "
            "two builds; build all with one command, ./bazelw build //:release"
        )
    return tuple(
        file(CODE_OBJECT, digest, found[digest], keys=sorted(keys[digest]))
        for digest in sorted(found)
    )


def _mixed(name: str) -> ReleaseError:
    return ReleaseError(
        f"{name} has other code objects than manifest.json names: they are of two builds; build "
        "all with one command, ./bazelw build //:release"
    )


def _no_wheel(path: Path, error: Exception) -> ReleaseError:
    return ReleaseError(f"{path.name} is no wheel of this project: {error}")


def _check_pack(path: Path, manifest: Mapping[str, Any]) -> None:
    # A pack of any format names its code objects by their keys.
    pack = path.read_bytes()
    if any(bytes.fromhex(key) not in pack for key in _keys(manifest)):
        raise _mixed(path.name)


def _check_kernels_wheel(path: Path, manifest: Mapping[str, Any]) -> None:
    """All code objects of the manifest for one arch are in the wheel's pack, or none is."""
    try:
        with zipfile.ZipFile(path) as wheel:
            packs = [wheel.read(name) for name in wheel.namelist() if name.endswith(_PACK_SUFFIX)]
    except zipfile.BadZipFile as error:
        raise _no_wheel(path, error) from error
    if len(packs) != 1:
        raise ReleaseError(f"{path.name} has {len(packs)} packs of kernels; it has one")
    for arch in manifest["archs"]:
        keys = {
            kernel["code_objects"][arch]["key"]
            for kernel in manifest["instances"]
            if arch in kernel["code_objects"]
        }
        if keys and all(bytes.fromhex(key) in packs[0] for key in keys):
            return
    raise _mixed(path.name)


def _requires_python(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as wheel:
            (name,) = (n for n in wheel.namelist() if n.endswith(".dist-info/METADATA"))
            text = wheel.read(name).decode()
    except (zipfile.BadZipFile, ValueError) as error:
        raise _no_wheel(path, error) from error
    return str(email.parser.HeaderParser().parsestr(text)["Requires-Python"])


def _check_locked(where: str, manifest: Mapping[str, Any]) -> None:
    if manifest["not_locked"]:
        raise ReleaseError(
            f"{where}: built with what is not locked: {', '.join(manifest['not_locked'])}. Run "
            "./bazelw --relock, commit, and release that"
        )


def _check_wheel(path: Path, manifest: Mapping[str, Any]) -> None:
    try:
        with zipfile.ZipFile(path) as wheel:
            inside = json.loads(wheel.read(_MANIFEST))
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        raise _no_wheel(path, error) from error
    _check_locked(path.name, inside)
    built_in = ("instances", "norms")
    if _keys(inside, built_in) != _keys(manifest, built_in):
        raise _mixed(path.name)
