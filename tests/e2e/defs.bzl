# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Attributes of tests that make whole builds in fresh clones."""

# In place (the clone is made of the work tree), one at a time.
WHOLE_BUILD_TAGS = [
    "exclusive",
    "external",
    "local",
]

# The configuration of the machine's apt and pip.
WHOLE_BUILD_ENVIRONMENT = [
    "AITER_ATTN_DEBIAN_MIRROR",
    "AITER_ATTN_MIRROR",
    "AITER_ATTN_NPM_REGISTRY",
    "AITER_ATTN_PYPI_INDEX",
    "HOME",
    "PATH",
    "PIP_CERT",
    "PIP_CONFIG_FILE",
    "PIP_INDEX_URL",
    "http_proxy",
    "https_proxy",
    "no_proxy",
]
