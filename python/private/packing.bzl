# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The part that all rules of wheels share: their documents, and the action that packs them."""

load("//toolchains/python:defs.bzl", "PyToolInfo", "run_py_tool")

PACKING_ATTRS = {
    "licence": attr.label(mandatory = True, allow_single_file = True),
    "other_expressions": attr.string_list(
        doc = "SPDX expressions that hold beside that of `project`",
    ),
    "other_licences": attr.label_keyed_string_dict(
        allow_files = True,
        doc = "a file, the licence of something that parts are from -> its name",
    ),
    "project": attr.label(
        mandatory = True,
        allow_single_file = [".toml"],
        doc = "TOML with a [project] table, that of a pyproject.toml",
    ),
    "readme": attr.label(mandatory = True, allow_single_file = [".md"]),
    "sbom": attr.label(
        mandatory = True,
        allow_single_file = [".cdx.json"],
        doc = "the software bill of materials, by its name",
    ),
    "version": attr.string(mandatory = True),
    "_make_wheel": attr.label(
        cfg = "exec",
        default = "//python/private:make_wheel",
        providers = [PyToolInfo],
    ),
}

def pack_wheel(ctx, wheel, python_tag, files, version = None, more = [], more_inputs = []):
    """Declares the action that writes a wheel.

    Args:
      ctx: of a rule with PACKING_ATTRS.
      wheel: the file, by its true name.
      python_tag: cp311, py3.
      files: place in the wheel -> file.
      version: of the wheel; None: that of the rule.
      more: arguments of make_wheel.py beyond those.
      more_inputs: list of File, which these name.
    """
    arguments = ctx.actions.args()
    arguments.use_param_file("--flagfile=%s", use_always = True)
    arguments.set_param_file_format("multiline")
    arguments.add(wheel, format = "--output=%s")
    arguments.add(ctx.file.project, format = "--project=%s")
    arguments.add(version or ctx.attr.version, format = "--version=%s")
    arguments.add(python_tag, format = "--python_tag=%s")
    arguments.add(ctx.file.readme, format = "--readme=%s")
    arguments.add(ctx.file.licence, format = "--licence=%s")
    arguments.add_all([
        "--other_licence=%s=%s" % (of, file.files.to_list()[0].path)
        for file, of in ctx.attr.other_licences.items()
    ])
    arguments.add_all(ctx.attr.other_expressions, format_each = "--other_expression=%s")
    arguments.add(ctx.file.sbom, format = "--sbom=%s")
    arguments.add_all(["--file=%s=%s" % (place, file.path) for place, file in files.items()])
    arguments.add_all(more)
    run_py_tool(
        ctx,
        tool = ctx.attr._make_wheel,
        arguments = [arguments],
        inputs = files.values() + ctx.files.other_licences + more_inputs + [
            ctx.file.licence,
            ctx.file.project,
            ctx.file.readme,
            ctx.file.sbom,
        ],
        outputs = [wheel],
        mnemonic = "Wheel",
        progress_message = "Packing %{output}",
    )
