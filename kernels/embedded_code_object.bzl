# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""embedded_code_object: a code object as read-only data of a C++ library."""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain", "use_cpp_toolchain")
load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load("//kernels:providers.bzl", "CodeObjectInfo", "CodeObjectsInfo")

# The packed bytes are found by --embed-dir: beside the source (with quotes) clang would name them
# by an absolute path in the list of what was read, which is not true in another output base.
_SOURCE = """// Generated. Do not edit.
#pragma clang diagnostic ignored "-Wc23-extensions"
extern "C" {{
extern const unsigned char {symbol}[] __attribute__((visibility("hidden")));
alignas(16) const unsigned char {symbol}[] = {{
#embed <{packed}>
}};
}}
"""

def _embedded_code_object_impl(ctx):
    info = ctx.attr.code_object[CodeObjectInfo]
    cc_toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = cc_toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    source = ctx.actions.declare_file(info.packed.basename + ".cc", sibling = info.packed)
    ctx.actions.write(
        source,
        _SOURCE.format(packed = info.packed.basename, symbol = info.data_symbol),
    )
    _, outputs = cc_common.compile(
        actions = ctx.actions,
        additional_inputs = [info.packed],
        cc_toolchain = cc_toolchain,
        feature_configuration = features,
        name = ctx.label.name,
        srcs = [source],
        user_compile_flags = ["--embed-dir=" + info.packed.dirname],
    )
    linking_context, _ = cc_common.create_linking_context_from_compilation_outputs(
        actions = ctx.actions,
        cc_toolchain = cc_toolchain,
        compilation_outputs = outputs,
        disallow_dynamic_library = True,
        feature_configuration = features,
        name = ctx.label.name,
    )
    return [
        DefaultInfo(files = depset(outputs.objects + outputs.pic_objects)),
        CcInfo(linking_context = linking_context),
        CodeObjectsInfo(code_objects = depset([info])),
    ]

embedded_code_object = rule(
    implementation = _embedded_code_object_impl,
    doc = """A C++ library that holds a packed code object, under CodeObjectInfo.data_symbol,
hidden from other libraries.""",
    attrs = {
        "code_object": attr.label(mandatory = True, providers = [CodeObjectInfo]),
    },
    fragments = ["cpp"],
    provides = [CcInfo, CodeObjectsInfo],
    toolchains = use_cpp_toolchain(),
)

def _code_object_group_impl(ctx):
    code_objects = depset(
        transitive = [dep[CodeObjectsInfo].code_objects for dep in ctx.attr.deps],
    )
    infos = code_objects.to_list()
    return [
        DefaultInfo(files = depset([info.code_object for info in infos])),
        OutputGroupInfo(metadata = [info.metadata for info in infos]),
        cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps]),
        CodeObjectsInfo(code_objects = code_objects),
    ]

code_object_group = rule(
    implementation = _code_object_group_impl,
    doc = """Embedded code objects as one: their files, and the library that holds them all.

Output group metadata: what is known of them, a JSON file each.""",
    attrs = {
        "deps": attr.label_list(providers = [CcInfo, CodeObjectsInfo]),
    },
    provides = [CcInfo, CodeObjectsInfo],
)
