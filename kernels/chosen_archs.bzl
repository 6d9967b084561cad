# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Labels by the architectures of --//kernels:archs."""

def chosen_archs(archs, patterns):
    """The labels of the chosen architectures: pattern % arch, for each.

    Args:
      archs: the known architectures.
      patterns: labels with one %s.
    Returns:
      A sum of select()s.
    """
    labels = []
    for arch in archs:
        labels += select({
            Label("//kernels:%s.selected" % arch): [pattern % arch for pattern in patterns],
            "//conditions:default": [],
        })
    return labels
