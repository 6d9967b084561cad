# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Repositories made of locked Debian packages that belong to no single toolchain."""

load(":debian.bzl", "debian_archives", "debian_packages")

# Repository -> package of the lock's group bazel, and the folder that is the repository.
_RULE_SETS = {
    "bazel_skylib": ("bazel-skylib", "usr/share/bazel/tools/skylib"),
    "platforms": ("bazel-platforms", "usr/share/bazel/tools/platforms"),
    "rules_cc": ("bazel-rules-cc", "usr/share/bazel/rules/cc"),
    "rules_license": ("bazel-rules-license", "usr/share/bazel/rules/license"),
    "rules_python": ("bazel-rules-python", "usr/share/bazel/rules/python"),
}

def rule_set_repositories():
    """Declares what MODULE.bazel and its dependencies name, for WORKSPACE mode.

    The same files as those of the offline module registry, and the same with bazelisk: no
    other source of them is needed.
    """
    for name, (package, folder) in _RULE_SETS.items():
        debian_packages(
            name = name,
            group = "bazel",
            packages = [package],
            strip_prefix = folder,
        )

def bazel_debs_repositories():
    """Declares @bazel_debs, the packages that bazelw sets Bazel up from, for its tests."""
    debian_archives(name = "bazel_debs", group = "bazel")

def googletest_repositories():
    """Declares @googletest, for C++ tests."""
    debian_packages(
        name = "googletest",
        build_file = Label("//toolchains/debian:googletest.BUILD.bazel"),
        group = "googletest",
        strip_prefix = "usr/src/googletest",
        keep = ["*/include/*", "*/src/*"],
    )

def other_system_repositories():
    """Declares @other_system, the tree of another Debian release, for tests."""
    debian_packages(
        name = "other_system",
        # Its files are found beside this one: too many to be a test's data one by one.
        build_file_content = "exports_files([\"BUILD.bazel\"])\n",
        group = "other_system",
        exclude = [
            "usr/lib/x86_64-linux-gnu/gconv/*",
            "usr/share/doc/*",
            "usr/share/man/*",
        ],
    )
