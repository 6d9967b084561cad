# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The repository rules that turn upstream's generator and a variant set file into instances."""

load("@python//:trees.bzl", "TOOLS_INTERPRETER")

_GENERATOR = Label("//kernels/ck_fmha:generate.py")

# Every input of the generator is watched; nothing else is.
_SOURCES = [
    _GENERATOR,
    Label("//kernels/archs:archs.py"),
    Label("//kernels/ck_fmha:headers.toml"),
    Label("//kernels/ck_fmha/groups:compile_cost.toml"),
    Label("//kernels/ck_fmha/groups:cost.py"),
    Label("//kernels/ck_fmha/groups:groups.py"),
    Label("//kernels/launch_table:traits.py"),
    Label("//kernels/launch_table:traits.toml"),
    Label("//kernels/qola:manifest.py"),
    Label("//kernels/qola:receipts.py"),
    Label("//kernels/qola:tables.py"),
    Label("//kernels/variants:values.py"),
] + [
    Label("//kernels/ck_fmha:ckgen/%s.py" % module)
    for module in [
        "__init__",
        "archs",
        "directions",
        "emission",
        "headers",
        "pool",
        "schema",
        "selection",
    ]
]

def generate(rctx, arguments, program = _GENERATOR):
    """Runs a program of this repository's on a hermetic Python; it writes into the repository.

    Args:
      rctx: the repository rule's context.
      arguments: of the program; --out is added.
      program: label of the program.
    """
    for source in _SOURCES:
        rctx.watch(source)
    root = rctx.path(Label("//:MODULE.bazel")).dirname
    command = [rctx.path(TOOLS_INTERPRETER), "-B", rctx.path(program)]
    result = rctx.execute(
        command + arguments + ["--out", rctx.path(".")],
        # PYTHON* variables of whoever builds are not the generator's.
        environment = {
            "PYTHONHOME": "",
            "PYTHONPATH": str(root),
            "PYTHONSAFEPATH": "1",
        },
    )
    if result.return_code:
        fail("\n" + result.stderr.strip())

def _pool_repository_impl(rctx):
    rctx.report_progress("reading upstream's kernel instances")
    folder = rctx.path(rctx.attr.ck_generator).dirname
    rctx.watch_tree(folder.get_child("codegen"))
    rctx.watch(rctx.attr.archs)
    generate(rctx, ["pool", "--fmha-dir", folder, "--archs", rctx.path(rctx.attr.archs)])
    rctx.template(
        "BUILD.bazel",
        rctx.attr.build_file,
        executable = False,
    )

pool_repository = repository_rule(
    implementation = _pool_repository_impl,
    doc = "Every instance that upstream's generator knows: see ckgen/emission.py.",
    attrs = {
        "archs": attr.label(mandatory = True, doc = "archs.json of @archs"),
        "build_file": attr.label(
            default = "//kernels/ck_fmha:ck_fmha.BUILD.bazel",
            allow_single_file = True,
        ),
        "ck_generator": attr.label(mandatory = True, doc = "generate.py of upstream's 01_fmha"),
    },
)

_SET_BUILD = """# Generated. Do not edit.
load("@aiter_attn//kernels/ck_fmha/private:packages.bzl", "variant_set_package")
load(":instances.bzl", "INSTANCES", "LAUNCH_SOURCES", "LEFT_OUT")

variant_set_package("%s", INSTANCES, LEFT_OUT, LAUNCH_SOURCES%s)
"""

def write_set_build(rctx, name, testonly = False):
    """Writes the BUILD file of a variant set's repository.

    Args:
      rctx: the repository rule's context.
      name: of the variant set, for messages.
      testonly: whether the set is for tests alone.
    """
    text = _SET_BUILD % (name, ", testonly = True" if testonly else "")
    rctx.file("BUILD.bazel", text, executable = False)

def _variant_set_repository_impl(rctx):
    rctx.report_progress("selecting kernel instances")
    file = rctx.path(rctx.attr.file or rctx.attr.path)
    if not file.exists:
        fail("variant set %s: there is no file %s" % (rctx.attr.set_name, file))
    rctx.watch(file)
    arguments = ["variant-set", "--pool", rctx.path(rctx.attr.pool), "--file", file]
    if rctx.attr.outside:
        arguments.append("--outside")
    generate(rctx, arguments)
    write_set_build(rctx, rctx.attr.set_name)

variant_set_repository = repository_rule(
    implementation = _variant_set_repository_impl,
    doc = "The instances of one variant set: labels into the pool, rows and launch code.",
    attrs = {
        "file": attr.label(doc = "the variant set file"),
        "outside": attr.bool(doc = "whether the file may be a manifest of QoLA's, too"),
        "path": attr.string(doc = "the absolute path of the file, in the place of its label"),
        "pool": attr.label(mandatory = True, doc = "pool.json of the pool's repository"),
        "set_name": attr.string(mandatory = True, doc = "of the variant set"),
    },
)
