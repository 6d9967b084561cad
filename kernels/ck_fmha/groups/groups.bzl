# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The instances that are compiled together: groups/lock.json, looked up by instance."""

load("@archs//:archs.bzl", "ARCHS")
load("@kernel_lists//:groups.bzl", "GROUPS")

def _by_instance():
    """(arch, "package:instance") -> (group, [key, sha256])."""
    index = {}
    for arch, groups in GROUPS.items():
        if arch not in ARCHS:
            fail("groups/lock.json: %s is no arch of kernels/archs; known: %s" %
                 (arch, ", ".join(ARCHS)))
        for group, members in groups.items():
            if len(members) < 2:
                fail("groups/lock.json: %s of %s has %d members, a group has two at least" %
                     (group, arch, len(members)))
            for member, proven in members.items():
                if (arch, member) in index:
                    fail("groups/lock.json: %s is in two groups of %s: %s and %s" %
                         (member, arch, index[arch, member][0], group))
                if len(proven) != 2 or [h for h in proven if len(h) != 64]:
                    fail(("groups/lock.json: %s of %s: %s is not a key and a sha256, " +
                          "64 digits each") % (member, arch, proven))
                index[arch, member] = (group, proven)
    return index

_INDEX = _by_instance()

def group_of(package, instance, arch):
    """The group that an instance was proven in.

    Args:
      package: of the pool.
      instance: its name.
      arch: one of kernels/archs.
    Returns:
      The label of its compile_group, and its key and sha256; (None, []) if it is in no group.
    """
    group, proven = _INDEX.get((arch, "%s:%s" % (package, instance)), (None, []))
    return ("@ck_fmha//groups:%s.%s" % (group, arch) if group else None, proven)
