# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""code_object: one kernel instance, compiled for the device only and for one arch.

Two actions, each with just the inputs it needs, so that a change recompiles only the objects that
it touches:

    compile   source, headers, toolchain  -> NAME.hsaco
    describe  NAME.hsaco, source, recipe  -> NAME.json, NAME.spec

A code object is the result of compiling its source alone, or of its module of a compile_group. The
latter has a key of its own, which names the group, but where it is proven that both are the same:
`describe` then holds its digest against the known one, whenever something depends on the code
object.
"""

load("@bazel_skylib//rules:common_settings.bzl", "BuildSettingInfo")
load(
    "//kernels/private:logical_path.bzl",
    "logical_path",
    "logical_prefix_maps",
    "prefix_maps",
)
load("//kernels/private:proofs.bzl", "PROOFS_ATTRS", "check_proofs")
load(
    "//kernels/private:providers.bzl",
    "CodeObjectInfo",
    "CodeObjectRecipeInfo",
    "CodeObjectsInfo",
    "CompileGroupInfo",
    "HeaderTreeInfo",
)
load("//toolchains/python:defs.bzl", "run_py_tool")
load("//toolchains/remote:pools.bzl", "LARGE_MEMORY")
load("//toolchains/rocm:hip.bzl", "HIP_TOOLCHAIN_TYPE", "family_of", "hip_toolchain")

_DEVICE_FLAGS = [
    "-x",
    "hip",
    "-std=c++17",
    "-O3",
    "-fPIC",
    "--cuda-device-only",
    "--no-gpu-bundle-output",
]

# Options that clang's driver gives for HIP and not for the plain target, as far as they are in no
# module.
_BACKEND_FLAGS = [
    "--target=amdgcn-amd-amdhsa",
    "-O3",
    "-fPIC",
    "-ffp-contract=fast-honor-pragmas",
    "-nogpulib",
    # The toolchain's flags for headers.
    "-Wno-unused-command-line-argument",
    # The module is optimised.
    "-Xclang",
    "-disable-llvm-passes",
]

# Of --//kernels:code_object_version. The compiler's own version has no flag in keys.
_VERSION_FLAGS = {
    "5": ["-mcode-object-version=5"],
    "default": [],
}

def _code_object_recipe_impl(ctx):
    hip = hip_toolchain(ctx)
    headers = ctx.attr.headers[HeaderTreeInfo]
    repository = ctx.label.workspace_root
    version = _VERSION_FLAGS[ctx.attr._code_object_version[BuildSettingInfo].value]
    flags = hip.flags + _DEVICE_FLAGS + version + ["-I" + include for include in headers.includes]
    roots = [headers.root, repository]
    compile_arguments = ctx.actions.args()
    compile_arguments.add_all(flags + prefix_maps(roots) + ctx.attr.copts)
    backend_arguments = ctx.actions.args()
    backend_arguments.add_all(hip.flags + _BACKEND_FLAGS + version)

    recipe = ctx.actions.declare_file(ctx.label.name + ".recipe")
    arguments = ctx.actions.args()
    arguments.add("--headers", headers.digest)
    arguments.add("--toolchain", hip.identity)
    arguments.add("--out", recipe)
    arguments.add("--")
    arguments.add_all([logical_path(flag) for flag in flags])
    arguments.add_all(logical_prefix_maps(roots))
    arguments.add_all([logical_path(flag) for flag in ctx.attr.copts])
    run_py_tool(
        ctx,
        tool = ctx.attr._recipe,
        arguments = [arguments],
        inputs = [headers.digest],
        outputs = [recipe],
        mnemonic = "CodeObjectRecipe",
        progress_message = "Writing the recipe %{label}",
    )
    return [
        DefaultInfo(files = depset([recipe])),
        CodeObjectRecipeInfo(
            arguments = compile_arguments,
            backend_arguments = backend_arguments,
            compiler = hip.compiler,
            families = hip.families,
            header_tree = headers,
            inputs = depset(transitive = [hip.files, headers.headers]),
            recipe = recipe,
            repository = repository,
        ),
    ]

code_object_recipe = rule(
    implementation = _code_object_recipe_impl,
    doc = "The compile of the code objects of a repository's sources.",
    attrs = {
        "copts": attr.string_list(doc = "flags beyond the toolchain's; they enter the keys"),
        "headers": attr.label(
            mandatory = True,
            providers = [HeaderTreeInfo],
            doc = "the header_tree to compile against",
        ),
        "_code_object_version": attr.label(default = "//kernels:code_object_version"),
        "_recipe": attr.label(cfg = "exec", default = "//kernels/code_object:recipe"),
    },
    toolchains = [HIP_TOOLCHAIN_TYPE],
)

def compile_resources(_os, _inputs):
    """The resources of a compile of upstream's larger kernels; memory in MB."""
    return {"cpu": 1, "memory": 1200}

def source_arguments(recipe, arch):
    """The flags of a compile of a source for an arch, but those of the arch's family.

    Args:
      recipe: a CodeObjectRecipeInfo.
      arch: one of kernels/archs.
    Returns:
      A list of str and Args.
    """
    return [recipe.arguments, "--offload-arch=" + arch]

def module_arguments(recipe, arch):
    """The same of a compile of its optimised IR.

    Args:
      recipe: a CodeObjectRecipeInfo.
      arch: one of kernels/archs.
    Returns:
      A list of str and Args.
    """
    return [recipe.backend_arguments, "-mcpu=" + arch]

def _code_object_impl(ctx):
    name = ctx.label.name
    instance = ctx.attr.instance or name
    arch = ctx.attr.arch
    recipe = ctx.attr.recipe[CodeObjectRecipeInfo]
    family = family_of(recipe.families, arch)
    copts = family.flags + ctx.attr.copts
    source = ctx.file.src
    if source.is_source and source.owner.workspace_root != recipe.repository:
        fail("src is of %s, the recipe for sources of %s" %
             (source.owner.workspace_root or "the main repository", recipe.repository or "it"))

    code_object = ctx.actions.declare_file(name + ".hsaco")
    members = []
    modules = []
    if ctx.attr.group:
        group = ctx.attr.group[CompileGroupInfo]
        if group.arch != arch or instance not in group.modules:
            fail("%s has no %s for %s" % (ctx.attr.group.label, instance, arch))
        compiled = group.modules[instance]
        members = group.sources
        modules = group.modules.values()
        flags = module_arguments(recipe, arch)
        language = ["-x", "ir"]
    else:
        compiled = source
        flags = source_arguments(recipe, arch)
        language = ["-c"]
    inputs = depset(transitive = [recipe.inputs, family.files])
    ctx.actions.run(
        executable = recipe.compiler,
        arguments = flags + copts + language + [compiled.path, "-o", code_object.path],
        inputs = depset([compiled], transitive = [inputs]),
        outputs = [code_object],
        mnemonic = "HipCodeObject",
        exec_group = None if ctx.attr.group else LARGE_MEMORY,
        resource_set = None if ctx.attr.group else compile_resources,
        progress_message = "Compiling %{label}",
    )

    metadata = ctx.actions.declare_file(name + ".json")
    spec = ctx.actions.declare_file(name + ".spec")
    arguments = ctx.actions.args()
    arguments.add("--code_object", code_object)
    arguments.add("--source", source)
    arguments.add("--recipe", recipe.recipe)
    arguments.add("--instance", instance)
    arguments.add("--arch", arch)
    if bool(ctx.attr.block_size) == bool(ctx.attr.kernels):
        fail("give block_size of a lone kernel, or kernels")
    if ctx.attr.kernels:
        arguments.add_all(
            ["%s=%s" % kernel for kernel in ctx.attr.kernels.items()],
            before_each = "--kernel",
        )
    else:
        arguments.add("--block_size", ctx.attr.block_size)
    arguments.add_all(copts, format_each = "--flag=%s")
    arguments.add_all(members, before_each = "--member")
    if ctx.attr.proven:
        arguments.add_joined("--proven", ctx.attr.proven, join_with = ",")
    arguments.add("--out", metadata)
    run_py_tool(
        ctx,
        tool = ctx.attr._describe,
        arguments = [arguments],
        inputs = [code_object, source, recipe.recipe] + members,
        outputs = [metadata, spec],
        mnemonic = "CodeObjectDescribe",
        progress_message = "Describing %{label}",
    )

    is_checked = ctx.attr.proven and not ctx.attr._specs_alone[BuildSettingInfo].value
    info = CodeObjectInfo(
        arch = arch,
        chosen = struct(
            flags = tuple(family.flags),
            key = ctx.attr.chosen_for,
            source = source,
        ) if ctx.attr.chosen_for else None,
        code_object = code_object,
        compiled = tuple([code_object] + modules[:1]),
        instance = instance,
        kit = struct(
            flags = tuple(copts),
            header_tree = recipe.header_tree,
            inputs = depset([recipe.compiler], transitive = [inputs]),
            proven = tuple(ctx.attr.proven),
            source = source,
        ),
        metadata = metadata,
        # A kernel that is compiled alone has the key of that, proven or not.
        proof = struct(
            flags = tuple(copts),
            key = ctx.attr.proven[0],
            source = source,
        ) if ctx.attr.group and ctx.attr.proven else None,
        recipe = recipe.recipe,
        spec = spec,
    )
    return [
        DefaultInfo(files = depset([code_object])),
        OutputGroupInfo(
            _validation = depset([metadata] if is_checked else []),
            metadata = [metadata],
            spec = [spec],
        ),
        info,
        CodeObjectsInfo(code_objects = depset([info])),
    ]

code_object = rule(
    implementation = _code_object_impl,
    doc = "A code object and its description; output groups metadata and spec.",
    exec_groups = {LARGE_MEMORY: exec_group()},
    attrs = {
        "arch": attr.string(mandatory = True, doc = "one of kernels/archs"),
        "block_size": attr.int(doc = "work-items per workgroup of a lone kernel, to be checked"),
        "chosen_for": attr.string(
            doc = "key of the source's own compile without copts, which these were chosen for",
        ),
        "copts": attr.string_list(
            doc = "flags of code generation beyond the recipe's; they enter the key",
        ),
        "group": attr.label(
            providers = [CompileGroupInfo],
            doc = "the compile_group to take it from; by default it is compiled by itself",
        ),
        "instance": attr.string(
            doc = "the instance's name, which is a lone kernel's symbol; the target's by default",
        ),
        "kernels": attr.string_dict(
            doc = "of an object with several kernels: symbol -> work-items per workgroup",
        ),
        "proven": attr.string_list(
            doc = "key and sha256 of the object that the source's own compile gives",
        ),
        "recipe": attr.label(mandatory = True, providers = [CodeObjectRecipeInfo]),
        "src": attr.label(allow_single_file = [".cpp"], mandatory = True),
        "_describe": attr.label(cfg = "exec", default = "//kernels/code_object:describe"),
        "_specs_alone": attr.label(default = "//kernels:specs_alone"),
    },
)

def _specs_alone_impl(_settings, _attr):
    return {"//kernels:specs_alone": True}

# For who reads how kernels are made, and not their objects: a build checks nothing of these, which
# would compile them.
specs_alone = transition(
    implementation = _specs_alone_impl,
    inputs = [],
    outputs = ["//kernels:specs_alone"],
)

# Of a rule of which kernels_of_kit() tells the kernels.
KIT_ATTRS = {
    "code_objects": attr.label(
        cfg = specs_alone,
        mandatory = True,
        providers = [CodeObjectsInfo],
    ),
    "_allowlist_function_transition": attr.label(
        default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
    ),
}

def kernels_of_kit(ctx):
    """Returns the CodeObjectInfos of those code objects that a compile kit can make.

    Args:
      ctx: of a rule that has KIT_ATTRS.
    """
    infos = ctx.attr.code_objects[0][CodeObjectsInfo].code_objects.to_list()
    return [info for info in infos if info.kit]

def _of_any_library_impl(_settings, _attr):
    return {
        "//aiter:namespace": "aiter",
        "//kernels:on_demand": "none",
    }

# Code objects are the same for every namespace, and whatever else the library knows: one in another
# namespace than the build's has those that are compiled already.
_of_any_library = transition(
    implementation = _of_any_library_impl,
    inputs = [],
    outputs = [
        "//aiter:namespace",
        "//kernels:on_demand",
    ],
)

def _code_object_group_impl(ctx):
    code_objects = depset(
        transitive = [dep[CodeObjectsInfo].code_objects for dep in ctx.attr.deps],
    )
    infos = code_objects.to_list()
    proofs = check_proofs(ctx, infos) if ctx.attr.check_proofs else []
    return [
        DefaultInfo(files = depset([info.code_object for info in infos])),
        OutputGroupInfo(
            metadata = [info.metadata for info in infos],
            spec = [info.spec for info in infos],
            proofs = proofs,
            _validation = proofs,
        ),
        CodeObjectsInfo(code_objects = code_objects),
    ]

code_object_group = rule(
    implementation = _code_object_group_impl,
    doc = """Code objects as one: their files.

Output groups metadata and spec: their descriptions and specs, a file each; proofs: the check of
what is proven of them, which compiles nothing.""",
    attrs = {
        "check_proofs": attr.bool(
            doc = "whether a build of it says how many proofs are of other compiles; for a group " +
                  "of one arch",
        ),
        "deps": attr.label_list(
            cfg = _of_any_library,
            providers = [CodeObjectsInfo],
            doc = "code_object and code_object_group targets",
        ),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    } | PROOFS_ATTRS,
    provides = [CodeObjectsInfo],
)
