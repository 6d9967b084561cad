# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The patches of upstream's sources, and the build setting that says whether they are applied."""

load("@bazel_skylib//rules:common_settings.bzl", "BuildSettingInfo")

# In the order in which they are applied.
PATCHES = [
    Label("//kernels/ck_fmha:patches/%s.patch" % name)
    for name in [
        "01-bwd-barrier-before-last-ds",
        "02-bwd-barrier-before-bias",
        "03-fwd-async-barrier-before-first-v",
        "04-fwd-async-wait-for-k-at-barriers",
        "05-fwd-v-tile-divided-among-waves",
        "06-splitkv-combine-barrier-before-weights",
        "07-fwd-dropout-barrier-before-random-numbers",
        "08-fwd-async-k-zeros-behind-head",
        "09-fwd-tile-of-infinite-scores",
        "10-bwd-no-queries",
        "11-bf16-rounding-early-clobber",
    ]
]

_CHOICES = {
    "default": "upstream's sources with the patches of kernels/ck_fmha/patches",
    "none": "upstream's sources as they are",
}

def _patches_flag_impl(ctx):
    value = ctx.build_setting_value
    if value not in _CHOICES:
        fail("--%s=%s: unknown choice; known: %s" % (
            str(ctx.label).removeprefix("@@").removeprefix("@"),
            value,
            ", ".join(["%s (%s)" % choice for choice in sorted(_CHOICES.items())]),
        ))
    return [BuildSettingInfo(value = value)]

patches_flag = rule(
    implementation = _patches_flag_impl,
    build_setting = config.string(flag = True),
    doc = "Which patches upstream's kernels are compiled with: default or none.",
)
