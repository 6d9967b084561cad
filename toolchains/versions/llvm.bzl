# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The versions of compilers, by which Debian's packages, and folders in them, are named.

packages.toml names them as {llvm} and so on: the lock and this file cannot differ. After a change
here: ./bazelw --relock debian
"""

# clang, lld and LLVM's tools; and the version in their libraries' names.
LLVM = "22"
LLVM_LIBRARY = "22.1"

# The LLVM that ROCm's device libraries are bitcode of. A newer clang reads it.
DEVICE_LIBRARIES = "21"

# The GCC whose libstdc++ and libgcc host code is compiled and linked against.
GCC = "12"
