# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The build settings of this folder, and a rule for those that choose among few values."""

load("@bazel_skylib//rules:common_settings.bzl", "BuildSettingInfo")
load("//kernels/private:comma_list.bzl", "parse_comma_list")

ArchsInfo = provider(doc = "The chosen archs.", fields = {"archs": "sorted list of str"})
ProvidersInfo = provider(
    doc = "The chosen providers of kernels.",
    fields = {"providers": "sorted list of str"},
)
VariantSetInfo = provider(doc = "The chosen variant set.", fields = {"name": "str"})

def _chosen(ctx, known, what):
    names, message = parse_comma_list(
        ctx.build_setting_value,
        known,
        "--" + str(ctx.label).removeprefix("@@").removeprefix("@"),
        what,
    )
    if message:
        fail(message)
    return names

def _archs_flag_impl(ctx):
    return [ArchsInfo(archs = _chosen(ctx, ctx.attr.known, "arch"))]

archs_flag = rule(
    implementation = _archs_flag_impl,
    build_setting = config.string(flag = True),
    doc = "A comma-separated list of archs: gfx942 or gfx942,gfx950.",
    attrs = {"known": attr.string_list(mandatory = True)},
)

def _arch_choice_impl(ctx):
    chosen = ctx.attr.arch in ctx.attr.archs[ArchsInfo].archs
    return [config_common.FeatureFlagInfo(value = "selected" if chosen else "left_out")]

arch_choice = rule(
    implementation = _arch_choice_impl,
    doc = "\"selected\" where arch is among the chosen ones, else \"left_out\".",
    attrs = {
        "arch": attr.string(mandatory = True),
        "archs": attr.label(mandatory = True, providers = [ArchsInfo]),
    },
)

def _providers_flag_impl(ctx):
    if ctx.build_setting_value == "default":
        quick = ctx.attr.variants[VariantSetInfo].name in ctx.attr.quick_sets
        providers = ctx.attr.quick if quick else ctx.attr.known.keys()
    else:
        providers = _chosen(ctx, ctx.attr.known.keys(), "provider")
    return [ProvidersInfo(providers = sorted(providers))]

providers_flag = rule(
    implementation = _providers_flag_impl,
    build_setting = config.string(flag = True),
    doc = """A comma-separated list of providers of kernels, ck or ck,asm, or `default`: all that
are known, but for a variant set of quick work.""",
    attrs = {
        "known": attr.string_dict(mandatory = True, doc = "provider -> who it is"),
        "quick": attr.string_list(mandatory = True, doc = "the default's providers for quick_sets"),
        "quick_sets": attr.string_list(mandatory = True),
        "variants": attr.label(
            mandatory = True,
            providers = [VariantSetInfo],
            doc = "the chosen variant set",
        ),
    },
)

def _provider_choice_impl(ctx):
    chosen = ctx.attr.provider in ctx.attr.providers[ProvidersInfo].providers
    return [config_common.FeatureFlagInfo(value = "selected" if chosen else "left_out")]

provider_choice = rule(
    implementation = _provider_choice_impl,
    doc = "\"selected\" where provider is among the chosen ones, else \"left_out\".",
    attrs = {
        "provider": attr.string(mandatory = True),
        "providers": attr.label(mandatory = True, providers = [ProvidersInfo]),
    },
)

def _variants_flag_impl(ctx):
    name = ctx.build_setting_value
    if name not in ctx.attr.known:
        fail("--%s=%s: unknown variant set; known: %s. " % (
            str(ctx.label).removeprefix("@@").removeprefix("@"),
            name,
            ", ".join(ctx.attr.known),
        ) + "A new one is a file kernels/variants/%s.toml" % name)
    return [VariantSetInfo(name = name)]

variants_flag = rule(
    implementation = _variants_flag_impl,
    build_setting = config.string(flag = True),
    doc = "The name of a variant set: a file of kernels/variants, without .toml.",
    attrs = {"known": attr.string_list(mandatory = True)},
)

def _choice_flag_impl(ctx):
    value = ctx.build_setting_value
    if value not in ctx.attr.choices:
        fail("--%s=%s: unknown choice; known: %s" % (
            str(ctx.label).removeprefix("@@").removeprefix("@"),
            value,
            ", ".join(["%s (%s)" % choice for choice in sorted(ctx.attr.choices.items())]),
        ))
    return [BuildSettingInfo(value = value)]

choice_flag = rule(
    implementation = _choice_flag_impl,
    build_setting = config.string(flag = True),
    doc = "One of several values.",
    attrs = {"choices": attr.string_dict(mandatory = True, doc = "value -> what it means")},
)
