# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Labels by the architectures of --//kernels:archs."""

def chosen_archs(archs, pattern):
    """The labels of the chosen architectures: pattern % arch, for each.

    Args:
      archs: the known architectures.
      pattern: a label with one %s.
    Returns:
      A sum of select()s.
    """
    labels = []
    for arch in archs:
        labels += select({
            Label("//kernels:%s.selected" % arch): [pattern % arch],
            "//conditions:default": [],
        })
    return labels
