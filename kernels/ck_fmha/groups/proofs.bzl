# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Of which members it is proven that their groups change nothing: the locks, by instance."""

load("@archs//:archs.bzl", "ARCHS")
load("@kernel_lists//:groups.bzl", "GROUPS")

_LOCKS = "groups/lock.json, or a lock of kernels/variants"

def _by_instance():
    """(arch, "package:instance") -> [key, sha256]."""
    index = {}
    for arch, groups in GROUPS.items():
        if arch not in ARCHS:
            fail("%s: %s is no arch of kernels/archs; known: %s" %
                 (_LOCKS, arch, ", ".join(ARCHS)))
        for group, members in groups.items():
            for member, proven in members.items():
                if (arch, member) in index:
                    fail("%s: %s of %s is there twice, in %s, too" %
                         (_LOCKS, member, arch, group))
                if len(proven) not in (2, 3) or [h for h in proven[:2] if len(h) != 64]:
                    fail(("%s: %s of %s: %s is not a key and a sha256, " +
                          "64 digits each, and, where its group differs, why") %
                         (_LOCKS, member, arch, proven))

                # Where the group gives another object, that has a key of its own.
                index[arch, member] = proven if len(proven) == 2 else []
    return index

_INDEX = _by_instance()

def proof_of(package, instance, arch):
    """The proof that an instance's group gives the object that its own compile gives.

    Args:
      package: of the pool.
      instance: its name.
      arch: one of kernels/archs.
    Returns:
      Its key and sha256; [] if there is none.
    """
    return _INDEX.get((arch, "%s:%s" % (package, instance)), [])
