# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The Python ABI that is built for."""

load("@bazel_skylib//rules:common_settings.bzl", "BuildSettingInfo")
load("@host_python//:abi.bzl", "HOST_ABI", "HOST_TROUBLE", "HOST_VERSION", "STRICT")
load("//toolchains/versions:abis.bzl", "ABIS")

_FLAG = "--//toolchains/python:abi"

# The name of what is built with the machine's headers, among the values of resolved_abi.
HOST = "host"

# ABI tag of the machine's Python, for wheels and extensions that are built with its headers.
HOST_TAG = HOST_ABI

_LOCKED = ", ".join(["%s (of Debian %s)" % entry for entry in ABIS.items()])

def _abi_flag_impl(ctx):
    value = ctx.build_setting_value
    if value not in ["auto", HOST] and value not in ABIS:
        fail(("%s=%s: no such ABI; there is %s, whose headers come from a Debian suite; host, " +
              "the machine's python3 (%s) by its own headers, or those in " +
              "AITER_ATTN_PYTHON_HEADERS; auto, the machine's python3 by locked headers if it is " +
              "one of these, else as host") % (_FLAG, value, _LOCKED, HOST_VERSION or "none"))
    return [BuildSettingInfo(value = value)]

abi_flag = rule(
    implementation = _abi_flag_impl,
    build_setting = config.string(flag = True),
    doc = "An ABI of versions/abis.bzl, \"auto\" or \"host\".",
)

def _resolve(asked):
    if asked == "auto" and HOST_ABI in ABIS:
        return HOST_ABI
    if asked in ABIS:
        return asked
    if HOST_TROUBLE:
        fail("%s=%s: %s. Or choose a locked ABI: %s" % (_FLAG, asked, HOST_TROUBLE, _LOCKED))
    if asked == "auto" and STRICT:
        fail(("%s=auto: the machine's Python is %s, whose headers are not locked, and with " +
              "AITER_ATTN_STRICT=1 they are taken by name alone: %s=host. Locked are %s") %
             (_FLAG, HOST_VERSION, _FLAG, _LOCKED))
    return HOST

def _resolved_abi_impl(ctx):
    abi = _resolve(ctx.attr.flag[BuildSettingInfo].value)
    return [config_common.FeatureFlagInfo(value = abi)]

resolved_abi = rule(
    implementation = _resolved_abi_impl,
    doc = "The value of `flag`, with \"auto\" resolved, for config_setting.flag_values.",
    attrs = {"flag": attr.label(mandatory = True, providers = [BuildSettingInfo])},
)

def _no_tests_impl(_ctx):
    fail(("%s: tests run on locked Pythons alone, and headers of the machine's are chosen; " +
          "choose %s") % (_FLAG, _LOCKED))

no_tests = rule(
    implementation = _no_tests_impl,
    doc = "In the place of an interpreter where there is none: says so.",
)
