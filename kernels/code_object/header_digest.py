# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Writes the listing of a header tree, of its files' names in it and the digests of their
contents, and the digest of that."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from absl import app, flags

from kernels.code_object.spec import header_tree_digest, header_tree_listing

_OUT = flags.DEFINE_string("out", None, "the digest's file", required=True)
_LISTING = flags.DEFINE_string("listing", None, "the listing's file", required=True)
_FILES = flags.DEFINE_multi_string("file", [], "LOGICAL_NAME=PATH")


def main(_arguments: Sequence[str]) -> None:
    files = {}
    for entry in _FILES.value:
        name, _, path = entry.partition("=")
        files[name] = Path(path).read_bytes()
    Path(_LISTING.value).write_bytes(header_tree_listing(files))
    Path(_OUT.value).write_text(header_tree_digest(files) + "\n", "ascii")


if __name__ == "__main__":
    app.run(main)
