# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Where the compiler finds things, and flags that keep the names of folders out of outputs.

The folder of an external repository is named by the dependency mode and by the module
extension that made it (external/sysroot, external/_main~llvm~sysroot). Such a name reaches
outputs through __FILE__, assert() and debug information unless it is mapped away.
"""

load("@python//:trees.bzl", PYTHONS = "TREES")
load("//toolchains/llvm/private:tools.bzl", "RESOURCES_FOLDER")
load("//toolchains/versions:llvm.bzl", "GCC")

# Repositories whose files are compiled or included.
_REPOSITORIES = {
    "ck_fmha": Label("@ck_fmha//:BUILD.bazel"),
    "composable_kernel": Label("@composable_kernel//:BUILD.bazel"),
    "dlpack": Label("@dlpack//:BUILD.bazel"),
    "googletest": Label("@googletest//:BUILD.bazel"),
    "llvm": Label("@llvm//:BUILD.bazel"),
    "pybind11": Label("@pybind11//:BUILD.bazel"),
    "rocm": Label("@rocm//:BUILD.bazel"),
    "sysroot": Label("@sysroot//:BUILD.bazel"),
    "zstd": Label("@zstd//:BUILD.bazel"),
} | PYTHONS

def prefix_maps(repositories = sorted(_REPOSITORIES)):
    """Returns flags that give a repository's files the same names in both dependency modes.

    Args:
      repositories: names of repositories. One that this workspace does not declare is left out.

    Returns:
      A list of flags.
    """
    flags = []
    for name in repositories:
        label = _REPOSITORIES[name]
        if "[unknown repo" not in str(label):
            flags.append("-ffile-prefix-map=%s=external/%s" % (label.workspace_root, name))
    return flags

# This project's own files are named from its root, also where another module is the main one.
_OWN_ROOT = Label("//:BUILD.bazel").workspace_root
OWN_PREFIX_MAPS = ["-ffile-prefix-map=%s/=" % _OWN_ROOT] if _OWN_ROOT else []

# Debug information calls the folder of a compile ".", wherever that is.
COMPILATION_FOLDER = "-ffile-compilation-dir=."

# The linker by its path: clang prefers one in PATH whose name starts with the target's.
LINKER = "%s/bin/ld.lld" % _REPOSITORIES["llvm"].workspace_root

SYSROOT = _REPOSITORIES["sysroot"].workspace_root
RESOURCES = "%s/%s" % (_REPOSITORIES["llvm"].workspace_root, RESOURCES_FOLDER)

# Where clang finds everything: said in full, so that it looks nowhere else.
DRIVER_FLAGS = [
    # The program that clang takes itself for, and starts again, is the wrapper.
    "-no-canonical-prefixes",
    "--no-default-config",
    "--target=x86_64-linux-gnu",
    "-resource-dir=" + RESOURCES,
    "--gcc-install-dir=%s/usr/lib/gcc/x86_64-linux-gnu/%s" % (SYSROOT, GCC),
]
