# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Writes the library for other build systems as one tar archive: NAMESPACE_attn-VERSION/ with
include/, lib/ and share/. The same files give the same bytes."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from absl import app, flags

_OUT = flags.DEFINE_string("out", None, "the .tar to write", required=True)
_NAMESPACE = flags.DEFINE_string("namespace", None, "prefix of the symbols", required=True)
_VERSION = flags.DEFINE_string("package_version", None, "of the package", required=True)
_ABI_VERSION = flags.DEFINE_integer("abi_version", None, "of the C ABI", required=True)
_FILES = flags.DEFINE_multi_string("file", [], "PATH=FILE: goes to PATH as it is")
_TEMPLATES = flags.DEFINE_multi_string("template", [], "PATH=FILE: with its @NAMES@ replaced")


def archive(top: str, files: Mapping[str, bytes], links: Mapping[str, str]) -> bytes:
    """A tar archive of files (path -> bytes) and links (path -> target) in the folder `top`."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path in sorted({*files, *links}):
            entry = tarfile.TarInfo(f"{top}/{path}")
            entry.mode = 0o755 if ".so" in Path(path).name else 0o644
            if path in links:
                entry.type, entry.linkname = tarfile.SYMTYPE, links[path]
                tar.addfile(entry)
            else:
                entry.size = len(files[path])
                tar.addfile(entry, io.BytesIO(files[path]))
    return out.getvalue()


def manifest(names: Mapping[str, str], files: Mapping[str, bytes]) -> bytes:
    """share/NAMESPACE_attn/manifest.json: versions, and the sha256 of each file."""
    data = {
        "name": f"{names['NAMESPACE']}_attn",
        "version": names["VERSION"],
        "abi_version": int(names["ABI_VERSION"]),
        "namespace": names["NAMESPACE"],
        "files": {path: hashlib.sha256(data).hexdigest() for path, data in sorted(files.items())},
    }
    return (json.dumps(data, indent=2) + "\n").encode()


def main(arguments: Sequence[str]) -> None:
    if len(arguments) > 1:
        raise app.UsageError(f"{arguments[1]!r} is no flag")
    names = {
        "ABI_VERSION": str(_ABI_VERSION.value),
        "NAMESPACE": _NAMESPACE.value,
        "VERSION": _VERSION.value,
    }
    library = f"lib{_NAMESPACE.value}_attn.so"
    names["LIBRARY"] = f"{library}.{_ABI_VERSION.value}"
    files: dict[str, bytes] = {}
    for value in _FILES.value:
        path, _, file = value.partition("=")
        files[path] = Path(file).read_bytes()
    for value in _TEMPLATES.value:
        path, _, file = value.partition("=")
        text = Path(file).read_text(encoding="utf-8")
        for name, of_build in names.items():
            text = text.replace(f"@{name}@", of_build)
        files[path] = text.encode()
    files[f"share/{_NAMESPACE.value}_attn/manifest.json"] = manifest(names, files)
    top = f"{_NAMESPACE.value}_attn-{_VERSION.value}"
    links = {f"lib/{library}": names["LIBRARY"]}
    Path(_OUT.value).write_bytes(archive(top, files, links))


if __name__ == "__main__":
    app.run(main)
