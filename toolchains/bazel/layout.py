# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The layout of a Bazel that was set up; paths are relative to its folder."""

from __future__ import annotations

from collections.abc import Iterable

from toolchains.debian import lock
from toolchains.locks.identity import identity

# Raise it when the layout or a patch below changes: a bundle of another number is not used.
FORMAT = 1

LIB = "usr/lib/x86_64-linux-gnu"
INSTALL_BASE = "usr/share/bazel"
CLIENT = "usr/bin/bazel"
RC = "offline.bazelrc"
# Holds the digest of the packages that the bundle was made of; written last.
DONE = "complete"


def contents_digest(packages: Iterable[lock.Package]) -> str:
    return identity({p.name: p.sha256 for p in packages})
