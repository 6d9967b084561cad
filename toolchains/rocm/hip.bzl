# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The HIP toolchain: all that a rule needs to compile for AMD GPUs.

    load("//toolchains/rocm:hip.bzl", "HIP_TOOLCHAIN_TYPE", "hip_toolchain")

    hip = hip_toolchain(ctx)
    ctx.actions.run(
        executable = hip.compiler,
        arguments = hip.flags + ["-x", "hip", "--cuda-device-only", ...],
        inputs = depset([source], transitive = [hip.files]),
        ...
    )

A compile for an arch whose family has an entry in `families` takes the entry's flags and files, too
(family_of). They are apart, so that no action for another arch has them among its inputs.

Another compiler, AMD's own clang for one, is another `hip_toolchain_definition` behind another
toolchain() of the same type. Nothing else changes: its `identity` keeps its objects apart.
"""

HIP_TOOLCHAIN_TYPE = Label("//toolchains/rocm:toolchain_type")

HipToolchainInfo = provider(
    doc = "A compiler for HIP, with headers and device libraries.",
    fields = {
        "compiler": "File: the clang++ to execute",
        "families": "start of the names of archs -> struct(files, flags): what a compile for " +
                    "these has in addition, behind the others; a depset of File, a list of str",
        "files": "depset of File: all that device and host compiles need beside the sources",
        "flags": "list of str: flags for any HIP compile, paths from the execution root. The " +
                 "language (-x hip), the pass and the arch are the caller's",
        "identity": "str: 64 hex digits that stand for compiler, headers and device libraries",
    },
)

def hip_toolchain(ctx):
    """Returns the HipToolchainInfo of a rule with `toolchains = [HIP_TOOLCHAIN_TYPE]`.

    Args:
      ctx: the rule's context.
    """
    return ctx.toolchains[HIP_TOOLCHAIN_TYPE].hip

def family_of(families, arch):
    """The flags and files of a compile for one arch, beyond those of every compile.

    Args:
      families: of a HipToolchainInfo.
      arch: for instance gfx1201.
    Returns:
      A struct(files, flags).
    """
    for start, family in families.items():
        if arch.startswith(start):
            return family
    return struct(files = depset(), flags = [])

def _hip_toolchain_definition_impl(ctx):
    identity = ctx.attr.identity
    if len(identity) != 64 or identity.strip("0123456789abcdef"):
        fail("%s: identity is %r, not 64 hexadecimal digits: derive it from the lock entries" %
             (ctx.label, identity))
    return [platform_common.ToolchainInfo(
        hip = HipToolchainInfo(
            compiler = ctx.file.compiler,
            families = {
                start: struct(
                    files = files[DefaultInfo].files,
                    flags = ctx.attr.family_flags.get(start, []),
                )
                for files, start in ctx.attr.family_files.items()
            },
            files = depset(ctx.files.files),
            flags = ctx.attr.flags,
            identity = identity,
        ),
    )]

hip_toolchain_definition = rule(
    implementation = _hip_toolchain_definition_impl,
    doc = "A HIP toolchain, to be registered by a toolchain() of type HIP_TOOLCHAIN_TYPE.",
    attrs = {
        "compiler": attr.label(mandatory = True, allow_single_file = True),
        "family_files": attr.label_keyed_string_dict(
            allow_files = True,
            doc = "further files -> the start of the names of the archs that need them",
        ),
        "family_flags": attr.string_list_dict(
            doc = "start of the names of archs -> further flags; each has an entry of family_files",
        ),
        "files": attr.label_list(
            mandatory = True,
            allow_files = True,
            doc = "compiler, linker, headers and device libraries: no more than that",
        ),
        "flags": attr.string_list(mandatory = True),
        "identity": attr.string(mandatory = True),
    },
)
