# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Labels by the archs of --//kernels:archs."""

load("@archs//:archs.bzl", "ARCHS")

def chosen_archs(patterns):
    """The labels of the chosen archs: pattern % arch, for each.

    Args:
      patterns: labels with one %s.
    Returns:
      A sum of select()s.
    """
    labels = []
    for arch in ARCHS:
        labels += select({
            Label("//kernels:%s.selected" % arch): [pattern % arch for pattern in patterns],
            "//conditions:default": [],
        })
    return labels
