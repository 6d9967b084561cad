# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Compiler flags that keep the names of folders out of outputs.

The folder of an external repository is named by the dependency mode and by the module
extension that made it (external/sysroot, external/_main~llvm~sysroot). Such a name reaches
outputs through __FILE__, assert() and debug information unless it is mapped away.
"""

# Repositories whose files are compiled or included.
_REPOSITORIES = {
    "ck_fmha": Label("@ck_fmha//:BUILD.bazel"),
    "composable_kernel": Label("@composable_kernel//:BUILD.bazel"),
    "dlpack": Label("@dlpack//:BUILD.bazel"),
    "llvm": Label("@llvm//:BUILD.bazel"),
    "pybind11": Label("@pybind11//:BUILD.bazel"),
    "python_3_11": Label("@python_3_11//:BUILD.bazel"),
    "python_3_13": Label("@python_3_13//:BUILD.bazel"),
    "rocm": Label("@rocm//:BUILD.bazel"),
    "sysroot": Label("@sysroot//:BUILD.bazel"),
    "zstd": Label("@zstd//:BUILD.bazel"),
}

def _maps():
    flags = []
    for name, label in _REPOSITORIES.items():
        # A repository that this workspace does not declare has a label, but no folder.
        if "[unknown repo" in str(label) or label.workspace_root == "external/" + name:
            continue
        flags.append("-ffile-prefix-map=%s=external/%s" % (label.workspace_root, name))
    return flags

# For clang, C++ and HIP: the same names of files in both dependency modes and in any folder.
PREFIX_MAPS = ["-ffile-compilation-dir=."] + _maps()
