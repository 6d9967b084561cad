# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""What only linting needs beside the locked Python distributions."""

load(":npm.bzl", "npm_file")

def lint_repositories():
    """Declares @buildifier."""
    npm_file(
        name = "buildifier",
        file = "buildifier-linux_amd64",
        output = "buildifier",
        package = "@bazel/buildifier",
        sha256 = "b96ea9b13003036c801f52bee6f9b0314738f8432e5cb9d814c89f59292604ee",
        version = "8.2.1",
    )
