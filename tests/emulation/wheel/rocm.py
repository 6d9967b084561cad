# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A tree that is laid out as /opt/rocm, of the locked clang, HIP's headers and device libraries,
and named as users name theirs. Its clang brings its own C and C++ headers."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

__all__ = ["ROCM"]

# A compile kit has all of it.
_KIT = Path(os.environ["TEST_SRCDIR"], os.environ["KIT"])
ROCM = Path(tempfile.mkdtemp(prefix="rocm-", dir=os.environ.get("TEST_TMPDIR")))


def _only(pattern: str) -> Path:
    (found,) = (_KIT / "external").glob(pattern)
    return found


def _write(path: Path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


_write(
    ROCM / "bin/amdclang++",
    f"""#!/bin/sh
exec '{_KIT}/external/llvm/bin/clang++' -no-canonical-prefixes --no-default-config \\
    --target=x86_64-linux-gnu -resource-dir='{_only("llvm/usr/lib/llvm-*/lib/clang/*")}' \\
    --gcc-install-dir='{_only("sysroot/usr/lib/gcc/x86_64-linux-gnu/*")}' \\
    --sysroot='{_KIT}/external/sysroot' -D__AMDGCN_WAVEFRONT_SIZE=64 "$@"
""",
    0o755,
)
_write(ROCM / "share/hip/version", _only("rocm/usr/share/hip/version").read_text())
_write(ROCM / ".info/version", "6.4.3\n")
(ROCM / "include").mkdir()
(ROCM / "include/hip").symlink_to(_only("rocm/usr/include/hip"))
(ROCM / "amdgcn").mkdir()
(ROCM / "amdgcn/bitcode").symlink_to(_only("rocm/usr/lib/llvm-*/lib/clang/*/amdgcn/bitcode"))
os.environ["ROCM_PATH"] = str(ROCM)
