# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The Python ABI that is built for."""

load("@bazel_skylib//rules:common_settings.bzl", "BuildSettingInfo")
load("@host_python//:abi.bzl", "HOST_ABI")
load("//toolchains/python:abis.bzl", "ABIS", "DEFAULT_ABI")

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
