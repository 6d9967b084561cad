# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""hipRTC for the wheel."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

__all__ = ["HIPRTC", "load_compiler", "load_libraries"]

HIPRTC = Path(os.environ["HIPRTC"]).absolute()
# The libraries that hipRTC and its compiler load, each after those that it needs: the loader of the
# tests' own Python knows no folder but its own.
_NEEDED = (
    "libz.so.1", "libzstd.so.1", "libffi.so.8", "libmd.so.0", "libbsd.so.0", "libtinfo.so.6",
    "libedit.so.2", "libstdc++.so.6", "libz3.so.4", "libxml2.so.16", "libnuma.so.1",
    "libLLVM.so.21.1", "libamd_comgr.so.3",
)  # fmt: skip


def load_libraries() -> None:
    """Loads the libraries that hipRTC needs."""
    for library in _NEEDED:
        ctypes.CDLL(str(HIPRTC.with_name(library)))


def load_compiler(cache: Path) -> None:
    """Has kernels compiled by the hipRTC that HIPRTC names, and kept in the folder `cache`."""
    load_libraries()
    os.environ["AITER_ATTN_HIPRTC_LIBRARY"] = str(HIPRTC)
    os.environ["AITER_ATTN_CACHE_DIR"] = str(cache)
    os.environ["AMD_COMGR_CACHE"] = "0"  # a folder of the user's
