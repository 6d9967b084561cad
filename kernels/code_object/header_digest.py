# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The digest of a header tree: of what its files are called in the tree and what they hold."""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Mapping
from pathlib import Path


def header_tree_digest(files: Mapping[str, bytes]) -> str:
    """sha256 over the files by their logical names, as 64 hex digits; their order is no matter."""
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(f"{hashlib.sha256(files[name]).hexdigest()} {name}\n".encode())
    return digest.hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, fromfile_prefix_chars="@")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("files", nargs="*", help="LOGICAL_NAME=PATH")
    options = parser.parse_args()
    files = {}
    for entry in options.files:
        name, _, path = entry.partition("=")
        files[name] = Path(path).read_bytes()
    options.out.write_text(header_tree_digest(files) + "\n", "ascii")


if __name__ == "__main__":
    main()
