# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""hip_host_library: the host code of HIP sources, which needs no HIP runtime to link.

For upstream's host code, which makes kernel arguments and grids but is written in HIP.
"""

load("@rules_cc//cc:find_cc_toolchain.bzl", "find_cc_toolchain", "use_cc_toolchain")
load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load("//kernels/private:logical_path.bzl", "apparent_repository", "prefix_maps")
load("//kernels/private:providers.bzl", "HeaderTreeInfo")
load("//toolchains/rocm:hip.bzl", "HIP_TOOLCHAIN_TYPE", "hip_toolchain")

_HOST_FLAGS = [
    "-x",
    "hip",
    "-std=c++17",
    "-O2",
    "-fPIC",
    "-DNDEBUG",
    "-fvisibility=hidden",
    "-ffunction-sections",
    "-fdata-sections",
    "--cuda-host-only",
]

def _hip_host_library_impl(ctx):
    hip = hip_toolchain(ctx)
    headers = ctx.attr.headers[HeaderTreeInfo]
    cc_toolchain = find_cc_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = cc_toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    own = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps])
    context = own.compilation_context
    includes = (
        context.includes.to_list() + context.quote_includes.to_list() +
        context.system_includes.to_list() + headers.includes
    )
    unit = "%s_%s" % (
        apparent_repository(ctx.label.workspace_name),
        ctx.label.name.replace(".", "_"),
    )
    defines = ["-D" + define for define in context.defines.to_list()]
    objects = []
    for source in ctx.files.srcs:
        stem = source.basename.rpartition(".")[0]
        object = ctx.actions.declare_file("_objs/%s/%s.pic.o" % (ctx.label.name, stem))
        flags = (
            hip.flags + _HOST_FLAGS + defines +
            # The default is one global symbol for all objects: two could not be linked together.
            ["-cuid=%s_%s" % (unit, stem)] +
            ["-I" + include for include in includes] +
            prefix_maps([headers.root, source.owner.workspace_root]) +
            ctx.attr.copts
        )
        ctx.actions.run(
            executable = hip.compiler,
            arguments = flags + ["-c", source.path, "-o", object.path],
            inputs = depset(
                [source],
                transitive = [hip.files, headers.headers, context.headers],
            ),
            outputs = [object],
            mnemonic = "HipHost",
            progress_message = "Compiling %{label} for the host",
        )
        objects.append(object)
    linking_context, _ = cc_common.create_linking_context_from_compilation_outputs(
        actions = ctx.actions,
        cc_toolchain = cc_toolchain,
        compilation_outputs = cc_common.create_compilation_outputs(
            objects = depset(objects),
            pic_objects = depset(objects),
        ),
        disallow_dynamic_library = True,
        feature_configuration = features,
        linking_contexts = [own.linking_context],
        name = ctx.label.name,
    )
    return [
        DefaultInfo(files = depset(objects)),
        CcInfo(linking_context = linking_context),
    ]

hip_host_library = rule(
    implementation = _hip_host_library_impl,
    doc = "A C++ library of HIP sources, compiled for the host only.",
    attrs = {
        "copts": attr.string_list(doc = "flags beyond the toolchain's"),
        "deps": attr.label_list(providers = [CcInfo], doc = "headers of this project's own"),
        "headers": attr.label(mandatory = True, providers = [HeaderTreeInfo]),
        "srcs": attr.label_list(allow_files = [".cpp", ".cc"], mandatory = True),
    },
    fragments = ["cpp"],
    provides = [CcInfo],
    toolchains = [HIP_TOOLCHAIN_TYPE] + use_cc_toolchain(),
)
