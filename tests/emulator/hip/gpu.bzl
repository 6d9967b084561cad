# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Tests that run on the machine's own HIP runtime and GPUs, in place of the emulated one."""

GPU_ENV = [
    "AITER_ATTN_HIP_LIBRARY",
    "HIP_VISIBLE_DEVICES",
    "LD_LIBRARY_PATH",
    "ROCR_VISIBLE_DEVICES",
]

# Outside of the sandbox, one at a time, and anew every time.
GPU_TAGS = [
    "exclusive",
    "external",
    "gpu",
    "local",
]
