# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""no_instances: a target that stands where there is nothing to build, and says why."""

def _no_instances_impl(ctx):
    fail(ctx.attr.message)

no_instances = rule(
    implementation = _no_instances_impl,
    doc = "Fails with a message when it is asked for.",
    attrs = {"message": attr.string(mandatory = True)},
)
