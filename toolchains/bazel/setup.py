# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Finds the pinned Bazel in the user's cache, or has it put there, once."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping

from toolchains.bazel import layout, truststore
from toolchains.debian import lock
from toolchains.locks.environment import cache_folder, is_strict

GROUP = "bazel"


def _done(final: str) -> str | None:
    """Returns the digest of the packages a finished set-up was made of, None if unfinished."""
    try:
        with open(f"{final}/{layout.DONE}", encoding="utf-8") as f:
            return f.read().strip()
    except OSError:
        return None  # not there, or out of reach: the set-up says which


def debian_bazel(version: str, here: str, environ: Mapping[str, str]) -> list[str]:
    """Returns the command of the pinned Bazel, set up first where it is not yet.

    `here` is the folder of offline.toml. At most one set-up happens at a time per cache
    folder; others wait for it. A set-up becomes visible by one rename and counts when its
    marker is written, so that one interrupted at any point is simply done again.
    """
    group = lock.get_group(lock.read(lock.LOCK), GROUP, str(lock.LOCK))
    with open(f"{here}/offline.toml", encoding="utf-8") as f:
        offline_text = f.read()
    digest = layout.contents_digest(group.packages)
    key = hashlib.sha256(f"{layout.FORMAT}\n{digest}\n{offline_text}".encode()).hexdigest()[:16]
    cache = cache_folder(environ)
    final = os.path.join(cache, f"bazel-{version}-{key}")
    strict = is_strict(environ)

    def ready() -> bool:
        used = _done(final)
        return used == digest or (used is not None and not strict)

    if not ready():
        from toolchains.bazel import install, registry  # slow to import

        install.check_host()
        install.check_version(group.packages, version, str(lock.LOCK))
        offline = registry.parse_offline(offline_text, "toolchains/bazel/offline.toml")
        with install.exclusive(cache):
            if not ready():
                install.set_up(GROUP, group, offline, environ, final, version)
    truststore.refresh(final)
    return [f"{final}/{layout.CLIENT}", "--nosystem_rc", f"--bazelrc={final}/{layout.RC}"]
