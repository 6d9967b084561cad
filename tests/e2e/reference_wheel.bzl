# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The wheel of a given variant set, ABI, archs and providers, under any flags of the build."""

_ARCHS = "//kernels:archs"
_VARIANTS = "//kernels:variants"
_PROVIDERS = "//kernels:providers"
_ABI = "//toolchains/python:abi"
_ON_DEMAND = "//kernels:on_demand"

def _settings_transition_impl(settings, attr):
    return {
        _ABI: attr.abi,
        _ARCHS: attr.archs or settings[_ARCHS],
        _ON_DEMAND: attr.on_demand or settings[_ON_DEMAND],
        _PROVIDERS: attr.providers or settings[_PROVIDERS],
        _VARIANTS: attr.variants,
    }

_settings_transition = transition(
    implementation = _settings_transition_impl,
    inputs = [
        _ARCHS,
        _ON_DEMAND,
        _PROVIDERS,
    ],
    outputs = [
        _ABI,
        _ARCHS,
        _ON_DEMAND,
        _PROVIDERS,
        _VARIANTS,
    ],
)

def _reference_wheel_impl(ctx):
    (wheel,) = ctx.attr.wheel
    return [DefaultInfo(files = wheel[DefaultInfo].files)]

reference_wheel = rule(
    implementation = _reference_wheel_impl,
    doc = "A wheel to compare others with. Its objects lie in another folder of bazel-out.",
    attrs = {
        "abi": attr.string(mandatory = True, doc = "a value of the build setting"),
        "archs": attr.string(doc = "a value of the build setting; empty: it stays"),
        "on_demand": attr.string(doc = "a value of the build setting; empty: it stays"),
        "providers": attr.string(doc = "a value of the build setting; empty: it stays"),
        "variants": attr.string(mandatory = True, doc = "a value of the build setting"),
        "wheel": attr.label(cfg = _settings_transition, mandatory = True),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
)
