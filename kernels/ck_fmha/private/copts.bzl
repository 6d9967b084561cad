# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The flags that Composable Kernel's fused attention is compiled with."""

CK_COPTS = [
    # exp2 in place of exp, as in upstream's build.
    "-DCK_TILE_FMHA_FWD_FAST_EXP2=1",
    # fp32 -> bf16: round to nearest even, with upstream's assembly.
    "-DCK_TILE_FLOAT_TO_BFLOAT16_DEFAULT=3",
    "-Wno-unknown-warning-option",
    # Upstream's deduction guides.
    "-Wno-deprecated-attributes",
]

CK_DEVICE_COPTS = [
    "-fgpu-flush-denormals-to-zero",
]

# Flags that make a compile cheaper and change no code object.
CK_SHORTCUTS = [
    # Alias analysis over all of a module's globals: a kernel has one, its LDS.
    "-mllvm",
    "-enable-global-analyses=0",
]

CK_HOST_COPTS = [
    "-include",
    "kernels/ck_fmha/launch/before_upstream.h",
]
