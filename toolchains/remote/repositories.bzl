# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The repository of the web server that tests of remote caches run: @nginx."""

load("//toolchains/debian:debian.bzl", "debian_packages")

def remote_repositories():
    """Declares @nginx: the program, its loader and its libraries."""
    debian_packages(
        name = "nginx",
        build_file_content = """exports_files(["usr/sbin/nginx"])

filegroup(
    name = "nginx",
    srcs = glob(["usr/**"]),
    visibility = ["//visibility:public"],
)
""",
        group = "nginx",
        keep = [
            "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
            "usr/lib/x86_64-linux-gnu/lib*.so*",
            "usr/sbin/nginx",
        ],
    )
