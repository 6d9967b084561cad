# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""One digest that stands for several locked things."""

load("//toolchains/debian/private:sha256.bzl", "sha256_hex")

def lock_identity(digests):
    """Returns a sha256, 64 hex digits, over names and digests; their order does not matter.

    Args:
      digests: dict of name -> sha256 of a locked file, or of something made of such.

    Returns:
      The digest.
    """
    return sha256_hex("".join(["%s %s\n" % item for item in sorted(digests.items())]))
