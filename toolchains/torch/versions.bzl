# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The PyTorch that tests run with: one that a Debian suite has, and a newest one.

The first is in toolchains/debian/packages.toml, the other in toolchains/pypi/requirements.toml.
"""

# The end of a test's name -> its torch and the Python that this is locked for; "" is in the
# default suite, the others are long tests.
TORCHES = {
    "": struct(abi = "cp313", library = "@torch"),
    "_newest": struct(abi = "cp311", library = "@torch_newest"),
}
