# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Writes libraries as a prebuilt of TransformerEngine's set-up: KEY.tar.gz with a folder KEY, and
its sha256 beside it. The same files give the same bytes."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from absl import app, flags

_OUT = flags.DEFINE_string("out", None, "the .tar.gz to write; .sha256 comes behind", required=True)


def archive(top: str, files: Mapping[str, bytes]) -> bytes:
    """The files, name -> bytes, in the folder `top`."""
    out = io.BytesIO()
    # Neither the time nor the name of a file enters.
    with (
        gzip.GzipFile(filename="", fileobj=out, mode="wb", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for name in sorted(files):
            entry = tarfile.TarInfo(f"{top}/{name}")
            entry.mode = 0o755 if name.endswith(".so") else 0o644
            entry.size = len(files[name])
            tar.addfile(entry, io.BytesIO(files[name]))
    return out.getvalue()


def main(arguments: Sequence[str]) -> None:
    out = Path(_OUT.value)
    files = {Path(file).name: Path(file).read_bytes() for file in arguments[1:]}
    made = archive(out.name.removesuffix(".tar.gz"), files)
    out.write_bytes(made)
    digest = hashlib.sha256(made).hexdigest()
    out.with_name(f"{out.name}.sha256").write_text(f"{digest}\n", encoding="ascii")


if __name__ == "__main__":
    app.run(main)
