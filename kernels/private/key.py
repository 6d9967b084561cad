# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The content key of a code object: a name for everything that can change its bytes.

Two code objects have the same key if and only if they were compiled by the same toolchain, with the
same flags, for the same architecture, from the same source against the same headers. The key does
not depend on where any of these lie.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

# Raised when the meaning of an ingredient changes, so that no old key can name a new object.
KEY_FORMAT = 1


def code_object_key(
    *, source: bytes, headers: str, toolchain: str, arch: str, flags: Sequence[str]
) -> str:
    """The key, as 64 hex digits.

    source     the bytes of the instance's source
    headers    digest of the header tree that the source is compiled against
    toolchain  identity of the compiler, its own headers and the device libraries
    flags      every flag of the compile, in order, with paths in their logical form
    """
    ingredients = {
        "arch": arch,
        "flags": list(flags),
        "format": KEY_FORMAT,
        "headers": headers,
        "source": hashlib.sha256(source).hexdigest(),
        "toolchain": toolchain,
    }
    canonical = json.dumps(ingredients, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--headers", type=Path, required=True, help="the header tree's digest file")
    parser.add_argument("--toolchain", required=True)
    parser.add_argument("--arch", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("flags", nargs="*", help="after --")
    options = parser.parse_args()
    key = code_object_key(
        source=options.source.read_bytes(),
        headers=options.headers.read_text("ascii").strip(),
        toolchain=options.toolchain,
        arch=options.arch,
        flags=options.flags,
    )
    options.out.write_text(key + "\n", "ascii")


if __name__ == "__main__":
    main()
