# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The Python ABI that is built for."""

load("@bazel_skylib//rules:common_settings.bzl", "BuildSettingInfo")
load("@host_python//:abi.bzl", "HOST_ABI")
load("//toolchains/versions:abis.bzl", "ABIS", "DEFAULT_ABI")

def _abi_flag_impl(ctx):
    value = ctx.build_setting_value
    if value != "auto" and value not in ABIS:
        fail(("--//toolchains/python:abi=%s: no such ABI; there is auto (the host's, if it is " +
              "one of these, else %s), %s. A Python and its headers come from a Debian suite, " +
              "and these have no other; an ABI is an entry of toolchains/versions/abis.bzl") % (
            value,
            DEFAULT_ABI,
            ", ".join(["%s (of Debian %s)" % entry for entry in ABIS.items()]),
        ))
    return [BuildSettingInfo(value = value)]

abi_flag = rule(
    implementation = _abi_flag_impl,
    build_setting = config.string(flag = True),
    doc = "An ABI of versions/abis.bzl, or \"auto\".",
)

def _resolved_abi_impl(ctx):
    abi = ctx.attr.flag[BuildSettingInfo].value
    if abi == "auto":
        abi = HOST_ABI if HOST_ABI in ABIS else DEFAULT_ABI
    return [config_common.FeatureFlagInfo(value = abi)]

resolved_abi = rule(
    implementation = _resolved_abi_impl,
    doc = "The value of `flag`, with \"auto\" resolved, for config_setting.flag_values.",
    attrs = {"flag": attr.label(mandatory = True, providers = [BuildSettingInfo])},
)
