# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The patches of upstream's sources."""

def _patches(names):
    return [Label("//kernels/ck_fmha:patches/%s.patch" % name) for name in names]

# Each list in the order in which it is applied: those that mend defects, ...
PATCHES = _patches([
    "03-fwd-async-barrier-before-first-v",
    "04-fwd-async-wait-for-k-at-barriers",
    "08-fwd-async-k-zeros-behind-head",
    "09-fwd-tile-of-infinite-scores",
    "10-bwd-no-queries",
    "11-bf16-rounding-early-clobber",
    "12-batch-prefill-as-qr-async",
    "13-batch-prefill-pages-of-a-window",
    "14-bwd-sum-of-no-tile",
    "15-fwd-v3-two-tiles",
    "16-fwd-v3-row-of-infinite-scores",
    "17-fwd-v3-least-score",
    "18-fwd-async-q-landed",
])

# ... those that give kernels the registers that they need, by their sources, ...
REGISTERS_PATCHES = _patches([
    "registers/19-fwd-fp8-d64-two-waves",
])

# ... and then those that make compiling cheaper and change no code object.
COMPILE_TIME_PATCHES = _patches([
    "compile_time/20-sequence-metafunctions",
    "compile_time/21-space-filling-curve",
    "compile_time/22-tensor-adaptor-look-ups",
    "compile_time/23-static-tile-distribution",
])
