# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""cubin: a kernel source compiled by NVRTC for one arch, in the library's way.

The compiler is the locked NVRTC, and the program that asks it is the library's own code: so a
kernel has the same spec, key and bytes as where a process compiles it with that NVRTC.
"""

load("//kernels/private:providers.bzl", "CodeObjectInfo", "CodeObjectsInfo", "HeaderTreeInfo")

CubinRecipeInfo = provider(
    doc = "The part that the compiles of many cubins share.",
    fields = {
        "copts": "list of str",
        "headers": "depset of File",
        "recipe": "File: the same for keys, see code_object/spec.py",
    },
)

_ATTRS = {
    "_compile_source": attr.label(
        cfg = "exec",
        default = "//aiter/runtime/rtc:compile_source",
        executable = True,
    ),
    "_libraries": attr.label(cfg = "exec", default = "@llvm//:program_libraries"),
    "_loader": attr.label(
        allow_single_file = True,
        cfg = "exec",
        default = "@llvm//:program_loader",
    ),
    "_no_driver": attr.label(
        allow_single_file = True,
        cfg = "exec",
        default = "//kernels/private:libcuda.so.1",
    ),
    "_nvrtc": attr.label(allow_single_file = True, cfg = "exec", default = "@nvrtc//:file"),
    "_nvrtc_library": attr.label(cfg = "exec", default = "@nvrtc//:library"),
}

def _header(file):
    return "%s=%s" % (file.basename, file.path)

def _run(ctx, words, headers, flags, **kwargs):
    """Runs compile_source with a loader and libraries that are not the host's."""
    arguments = ctx.actions.args()
    arguments.add("--inhibit-cache")
    arguments.add("--library-path", "%s:%s" % (
        ctx.file._no_driver.dirname,
        ctx.file._loader.dirname,
    ))
    arguments.add(ctx.executable._compile_source)
    arguments.add_all(words)
    arguments.add_all(headers, before_each = "--header", map_each = _header)
    arguments.add("--")
    arguments.add_all(flags)
    ctx.actions.run(
        executable = ctx.file._loader,
        arguments = [arguments],
        tools = [
            ctx.executable._compile_source,
            ctx.attr._libraries[DefaultInfo].files,
            ctx.attr._nvrtc_library[DefaultInfo].files,
            ctx.file._no_driver,
        ],
        env = {
            "AITER_ATTN_NVRTC_LIBRARY": ctx.file._nvrtc.path,
            # NVRTC's own cache is a folder of the user's.
            "CUDA_CACHE_DISABLE": "1",
        },
        **kwargs
    )

def _cubin_recipe_impl(ctx):
    headers = ctx.attr.headers[HeaderTreeInfo].headers
    recipe = ctx.actions.declare_file(ctx.label.name + ".recipe")
    _run(
        ctx,
        ["recipe", recipe.path, "sm_90"],
        headers,
        ctx.attr.copts,
        inputs = headers,
        outputs = [recipe],
        mnemonic = "CubinRecipe",
        progress_message = "Writing the recipe %{label}",
    )
    return [
        DefaultInfo(files = depset([recipe])),
        CubinRecipeInfo(copts = ctx.attr.copts, headers = headers, recipe = recipe),
    ]

cubin_recipe = rule(
    implementation = _cubin_recipe_impl,
    doc = "NVRTC's compile of the kernel sources of a folder.",
    attrs = {
        "copts": attr.string_list(doc = "NVRTC's options; they enter the keys"),
        "headers": attr.label(
            mandatory = True,
            providers = [HeaderTreeInfo],
            doc = "the header_tree to compile against; headers are included by their base names",
        ),
    } | _ATTRS,
)

def _cubin_impl(ctx):
    name = ctx.label.name
    recipe = ctx.attr.recipe[CubinRecipeInfo]
    cubin, metadata, spec = [
        ctx.actions.declare_file("%s.%s" % (name, extension))
        for extension in ["cubin", "json", "spec"]
    ]
    instance = ctx.attr.instance or name
    source = ctx.file.src
    _run(
        ctx,
        [
            "object",
            cubin.path.removesuffix(".cubin"),
            ctx.attr.arch,
            instance,
            "%s=%s" % (source.basename, source.path),
        ],
        recipe.headers,
        recipe.copts + ctx.attr.copts,
        inputs = depset([source], transitive = [recipe.headers]),
        outputs = [cubin, metadata, spec],
        mnemonic = "Cubin",
        progress_message = "Compiling %{label}",
    )
    info = CodeObjectInfo(
        arch = ctx.attr.arch,
        chosen = None,
        code_object = cubin,
        compiled = (cubin,),
        instance = instance,
        kit = None,
        metadata = metadata,
        proof = None,
        recipe = recipe.recipe,
        spec = spec,
    )
    return [
        DefaultInfo(files = depset([cubin])),
        OutputGroupInfo(metadata = [metadata], spec = [spec]),
        info,
        CodeObjectsInfo(code_objects = depset([info])),
    ]

cubin = rule(
    implementation = _cubin_impl,
    doc = "A kernel source as machine code of an NVIDIA GPU; output groups metadata and spec.",
    attrs = {
        "arch": attr.string(mandatory = True, doc = "sm_90"),
        "copts": attr.string_list(doc = "NVRTC's options beyond the recipe's"),
        "instance": attr.string(doc = "the kernel's name; the target's by default"),
        "recipe": attr.label(mandatory = True, providers = [CubinRecipeInfo]),
        "src": attr.label(allow_single_file = [".cpp"], mandatory = True),
    } | _ATTRS,
)
