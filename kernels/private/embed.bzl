# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Files as read-only data of C++ libraries."""

load("@rules_cc//cc:find_cc_toolchain.bzl", "find_cc_toolchain")
load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")

def embedding_library(ctx, *, source, data, deps):
    """Compiles a C++ source that embeds files.

    Args:
      ctx: the rule's context; it needs the fragment "cpp" and use_cc_toolchain().
      source: File: the source. It names `data` by their paths, see embed.h.
      data: list of File: those that it embeds.
      deps: list of CcInfo: those that the source includes and refers to.
    Returns:
      The CcInfo of the library.
    """
    cc_toolchain = find_cc_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = cc_toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    own = cc_common.merge_cc_infos(
        cc_infos = deps + [dep[CcInfo] for dep in ctx.attr._embed],
    )
    _, outputs = cc_common.compile(
        actions = ctx.actions,
        additional_inputs = data,
        cc_toolchain = cc_toolchain,
        compilation_contexts = [own.compilation_context],
        feature_configuration = features,
        name = ctx.label.name,
        srcs = [source],
        user_compile_flags = ["-fvisibility=hidden"],
    )
    linking_context, _ = cc_common.create_linking_context_from_compilation_outputs(
        actions = ctx.actions,
        cc_toolchain = cc_toolchain,
        compilation_outputs = outputs,
        disallow_dynamic_library = True,
        feature_configuration = features,
        linking_contexts = [own.linking_context],
        name = ctx.label.name,
    )
    return CcInfo(
        compilation_context = own.compilation_context,
        linking_context = linking_context,
    )

EMBED_ATTRS = {
    "_embed": attr.label_list(default = ["//kernels/private:embed_h"], providers = [CcInfo]),
}
