# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""What only linting needs beside the locked Python distributions."""

load("//toolchains/npm:npm.bzl", "npm_file")

def lint_repositories():
    """Declares @buildifier."""
    npm_file(
        name = "buildifier",
        file = "buildifier-linux_amd64",
        output = "buildifier",
        package = "@bazel/buildifier",
    )
