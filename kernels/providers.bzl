# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Those who bring kernels to a build, and which sets do without some of them."""

PROVIDERS = {
    "asm": "AITER's assembly: aiter_asm/",
    "ck": "Composable Kernel, by the variant set: ck_fmha/",
}

# Variant sets of quick work, and whose kernels they have unless others are asked for: AITER's come
# in a wheel of 40 MB.
QUICK_SETS = ["smoke"]
QUICK_PROVIDERS = ["ck"]
