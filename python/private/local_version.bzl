# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Versions of wheels: an index tells those of other kernels apart by a local version (PEP 440)."""

load("//kernels:defaults.bzl", "DEFAULT_ARCHS", "DEFAULT_VARIANTS")
load("//kernels:defs.bzl", "ArchsInfo", "VariantSetInfo")

KERNELS_ATTRS = {
    "_archs": attr.label(default = "//kernels:archs", providers = [ArchsInfo]),
    "_variants": attr.label(default = "//kernels:variants", providers = [VariantSetInfo]),
}

def local_version(version, variants, archs):
    """VERSION+SET.ARCH...; with the default kernels VERSION alone.

    Args:
      version: of the project.
      variants: the variant set's name.
      archs: list of str.
    Returns:
      A version as it is in a wheel's name.
    """
    if variants == DEFAULT_VARIANTS and archs == [DEFAULT_ARCHS]:
        return version
    return "%s+%s" % (version, ".".join([variants.replace("_", ".")] + archs))

def wheel_version(ctx):
    """The version of a wheel with this build's kernels: of a rule with KERNELS_ATTRS."""
    return local_version(
        ctx.attr.version,
        ctx.attr._variants[VariantSetInfo].name,
        ctx.attr._archs[ArchsInfo].archs,
    )
