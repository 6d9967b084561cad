# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The Python ABIs that there are wheels for. After a change here: ./bazelw --relock

An ABI is one entry: its interpreter, its headers, the locked distributions that tests use, its
toolchain and the values of --//toolchains/python:abi follow from it.
"""

# ABI -> the Debian suite that has its interpreter and headers.
ABIS = {
    "cp311": "bookworm",
    "cp313": "trixie",
    "cp314": "forky",
}

# The ABI of a build that asks for none, on any host. With this one README's
# commands work on Debian 12, the oldest system that bazelw sets up Bazel on.
DEFAULT_ABI = "cp311"

# The ABI of programs of actions, for every ABI that is built for.
TOOLS_ABI = "cp313"
