# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A prebuilt of TransformerEngine's: the names of its files, and their bytes."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from pathlib import Path

from aiter.compat import write_prebuilt

_KEY = "rocm-7_aiter-7a24cd87525834fa9aeaa021e6ee80ab7de028f9"


def test_the_libraries_are_in_the_folder_of_the_key() -> None:
    archive, digest = sorted(map(Path, os.environ["PREBUILT"].split()))
    assert archive.name == f"{_KEY}.tar.gz"
    assert digest.name == f"{archive.name}.sha256"
    assert digest.read_text().strip() == hashlib.sha256(archive.read_bytes()).hexdigest()
    libraries = {path.name: path for path in map(Path, os.environ["LIBRARIES"].split())}
    assert set(libraries) == {"libmha.a", "libmha_bwd.so", "libmha_fwd.so"}
    with tarfile.open(archive) as files:
        assert files.getnames() == [f"{_KEY}/{name}" for name in sorted(libraries)]
        for name, library in libraries.items():
            member = files.extractfile(f"{_KEY}/{name}")
            assert member and member.read() == library.read_bytes()


def test_neither_times_nor_owners_enter() -> None:
    made = write_prebuilt.archive("key", {"b.so": b"b", "a": b"a"})
    assert made == write_prebuilt.archive("key", {"a": b"a", "b.so": b"b"})
    with tarfile.open(fileobj=io.BytesIO(made)) as files:
        assert [(f.name, f.mode, f.mtime, f.uid) for f in files] == [
            ("key/a", 0o644, 0, 0),
            ("key/b.so", 0o755, 0, 0),
        ]
