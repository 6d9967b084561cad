# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The repositories of the servers that tests of remote caches and execution run."""

load("//toolchains/debian:debian.bzl", "debian_packages")

def remote_repositories():
    """Declares @nginx and @justbuild: a program, its loader and its libraries each."""
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
    debian_packages(
        name = "justbuild",
        build_file_content = """exports_files(["usr/bin/justbuild"])

filegroup(
    name = "justbuild",
    srcs = glob(["usr/**"]),
    visibility = ["//visibility:public"],
)
""",
        group = "justbuild",
        keep = [
            "usr/bin/justbuild",
            "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
            "usr/lib/x86_64-linux-gnu/lib*.so*",
        ],
    )
