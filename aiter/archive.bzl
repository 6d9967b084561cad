# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""attn_archive: the library as one static archive that can be linked beside any other."""

load("@rules_cc//cc:find_cc_toolchain.bzl", "find_cc_toolchain", "use_cc_toolchain")
load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load(":namespace.bzl", "NamespaceInfo")
load(":version_script.bzl", "SymbolsInfo")

def _symbols(ctx):
    namespace = ctx.attr._namespace[NamespaceInfo].name
    if ctx.attr.symbols:
        return ctx.attr.symbols[SymbolsInfo].names
    return [namespace + "_attn_*"]

def _attn_archive_impl(ctx):
    cc_toolchain = find_cc_toolchain(ctx)
    linking = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps])
    objects = []
    for linker_input in linking.linking_context.linker_inputs.to_list():
        for library in linker_input.libraries:
            archive = library.pic_static_library or library.static_library
            objects.extend(library.pic_objects or [archive])

    everything = ctx.actions.declare_file(ctx.label.name + ".all.o")
    arguments = ctx.actions.args()
    arguments.use_param_file("@%s")

    # Templates come in groups, of which a linker keeps one by name: here each becomes the
    # archive's own.
    arguments.add_all(["-r", "--force-group-allocation", "--whole-archive", "-o", everything])
    arguments.add_all(objects)
    ctx.actions.run(
        executable = cc_toolchain.ld_executable,
        arguments = [arguments],
        inputs = depset(objects, transitive = [cc_toolchain.all_files]),
        outputs = [everything],
        mnemonic = "AttnArchiveLink",
        progress_message = "Linking the object of %{label}",
    )

    # An archive's member has a name, the same for every namespace.
    member = ctx.actions.declare_file(ctx.label.name + ".dir/aiter_attn.o")
    ctx.actions.run(
        executable = cc_toolchain.objcopy_executable,
        arguments = ["--wildcard"] + [
            "--keep-global-symbol=" + symbol
            for symbol in _symbols(ctx)
        ] + [
            everything.path,
            member.path,
        ],
        inputs = depset([everything], transitive = [cc_toolchain.all_files]),
        outputs = [member],
        mnemonic = "AttnArchiveLocalise",
        progress_message = "Hiding the inside of %{label}",
    )
    archive = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.run(
        executable = cc_toolchain.ar_executable,
        arguments = ["rcsD", archive.path, member.path],
        inputs = depset([member], transitive = [cc_toolchain.all_files]),
        outputs = [archive],
        mnemonic = "AttnArchive",
        progress_message = "Archiving %{label}",
    )
    return [DefaultInfo(files = depset([archive]))]

attn_archive = rule(
    implementation = _attn_archive_impl,
    doc = """Libraries and all that they depend on as one archive of one object.

Its only global symbols are NAMESPACE_attn_*, or those of `symbols`. It leaves the C++ and the C
library to the linker.""",
    attrs = {
        "deps": attr.label_list(mandatory = True, providers = [CcInfo]),
        "symbols": attr.label(
            doc = "the functions that it is for, in the place of the C ABI's",
            providers = [SymbolsInfo],
        ),
        "_namespace": attr.label(default = "//aiter:namespace", providers = [NamespaceInfo]),
    },
    fragments = ["cpp"],
    toolchains = use_cc_toolchain(),
)
