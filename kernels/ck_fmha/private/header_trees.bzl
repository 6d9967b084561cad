# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The targets of @ck_headers."""

load("//kernels:defs.bzl", "header_tree")

# buildifier: disable=unnamed-macro
def header_trees(headers):
    """The package: SECTION.REPOSITORY, the headers that a section's kernels read.

    Args:
      headers: section -> repository of upstream's headers -> the files of it that are read.
    """
    for section, repositories in headers.items():
        for repository, files in repositories.items():
            header_tree(
                name = "%s.%s" % (section, repository),
                hdrs = native.glob([section + "/**/*.hpp"]) +
                       ["@%s//:%s" % (repository, file) for file in files],
                behind = "@%s//:folders" % repository,
                includes = [section],
                visibility = ["//visibility:public"],
            )
