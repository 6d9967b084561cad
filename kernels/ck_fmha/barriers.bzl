# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The build setting that says with which barriers CK's attention kernels are compiled."""

BARRIERS = {
    "upstream": "CK's headers as they are",
    "added": "the same with barriers.patch: without the races of docs/races.md",
}

def _barriers_flag_impl(ctx):
    value = ctx.build_setting_value
    if value not in BARRIERS:
        fail("--%s=%s: unknown choice; known: %s" % (
            str(ctx.label).removeprefix("@@").removeprefix("@"),
            value,
            ", ".join(["%s (%s)" % choice for choice in sorted(BARRIERS.items())]),
        ))
    return []

barriers_flag = rule(
    implementation = _barriers_flag_impl,
    build_setting = config.string(flag = True),
    doc = "upstream: CK's headers as they are. added: with the barriers of barriers.patch.",
)
