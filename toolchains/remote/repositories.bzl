# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The repositories of the servers that tests of remote caches and execution run."""

load("//toolchains/debian:debian.bzl", "debian_packages")

# Group of the Debian lock: files of its tree that are kept, beside the loader and the libraries.
_PROGRAMS = {
    "buildbox": [
        "usr/bin/buildbox-casd",
        "usr/bin/buildbox-run-hosttools",
        "usr/bin/buildbox-worker",
    ],
    "justbuild": ["usr/bin/justbuild"],
    "nginx": ["usr/sbin/nginx"],
    "postgresql": [
        "usr/lib/postgresql/17/bin/initdb",
        "usr/lib/postgresql/17/bin/postgres",
        "usr/lib/postgresql/17/lib/*",
        "usr/share/postgresql/17/*",
    ],
}

def remote_repositories():
    """Declares @buildbox, @justbuild, @nginx, @postgresql: programs, their loader and libraries."""
    for name, files in _PROGRAMS.items():
        debian_packages(
            name = name,
            build_file_content = """exports_files(glob(["usr/**"]))

filegroup(
    name = "{}",
    srcs = glob(["usr/**"]),
    visibility = ["//visibility:public"],
)
""".format(name),
            group = name,
            keep = [
                "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
                "usr/lib/x86_64-linux-gnu/lib*.so*",
            ] + files,
        )
