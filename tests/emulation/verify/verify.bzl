# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""Verification of code objects in the emulator, one cached action each."""

load("//kernels:defs.bzl", "CodeObjectsInfo")
load("//tests/emulator/gfxemu:defs.bzl", "EMULATED_ARCHS")
load("//toolchains/python:defs.bzl", "run_py_tool")

VerificationInfo = provider(
    doc = "Code objects and the findings of their verification.",
    fields = {
        "metadata": "list of File: JSON, see kernels/code_object/describe.py",
        "results": "list of File: JSON, see verification.py",
    },
)

def _resources(_os, _inputs):
    return {"cpu": 1, "memory": 900}

def _verification_impl(ctx):
    code_objects = depset(
        transitive = [dep[CodeObjectsInfo].code_objects for dep in ctx.attr.deps],
    ).to_list()
    results = []
    not_executed = sorted({
        info.arch: True
        for info in code_objects
        if info.arch not in EMULATED_ARCHS
    })
    if not_executed:
        fail(("%s: kernels for %s are built and not executed: the emulator knows %s. " +
              "Verify with --//kernels:archs=%s, or run them on a GPU") % (
            ctx.label,
            ", ".join(not_executed),
            ", ".join(EMULATED_ARCHS),
            ",".join(EMULATED_ARCHS),
        ))
    for info in code_objects:
        name = "%s.%s" % (info.instance, info.arch)
        result = ctx.actions.declare_file("%s/%s.json" % (ctx.label.name, name))
        arguments = ctx.actions.args()
        arguments.add("--code_object", info.code_object)
        arguments.add("--instance", info.instance)
        arguments.add("--arch", info.arch)
        arguments.add("--out", result)
        run_py_tool(
            ctx,
            tool = ctx.attr._tool,
            arguments = [arguments],
            inputs = [info.code_object, ctx.file.arguments],
            outputs = [result],
            tools = [ctx.attr._llvm_mc[DefaultInfo].files_to_run],
            env = {
                "EMULATION_LAUNCHES": ctx.file.arguments.path,
                "GFXEMU_LLVM_MC": ctx.executable._llvm_mc.path,
                # Matrices are small, and other actions run beside this one.
                "OPENBLAS_NUM_THREADS": "1",
            },
            mnemonic = "VerifyCodeObject",
            progress_message = "Executing %s for %s" % (info.instance, info.arch),
            resource_set = _resources,
        )
        results.append(result)
    metadata = [info.metadata for info in code_objects]
    return [
        DefaultInfo(files = depset(results)),
        VerificationInfo(metadata = metadata, results = results),
    ]

verification = rule(
    implementation = _verification_impl,
    doc = """Executes code objects and writes down the findings, a JSON file each.

It succeeds with any finding: a test over the files has the verdict.""",
    attrs = {
        "arguments": attr.label(
            allow_single_file = [".so"],
            mandatory = True,
            doc = "of kernel_arguments",
        ),
        "deps": attr.label_list(
            mandatory = True,
            providers = [CodeObjectsInfo],
        ),
        "_llvm_mc": attr.label(cfg = "exec", default = "@llvm//:llvm-mc", executable = True),
        "_tool": attr.label(
            cfg = "exec",
            default = "//tests/emulation/verify:verify_code_object",
        ),
    },
)

def _verification_report_impl(ctx):
    info = ctx.attr.verification[VerificationInfo]
    page = ctx.actions.declare_file(ctx.label.name + ".html")
    document = ctx.actions.declare_file(ctx.label.name + ".json")
    arguments = ctx.actions.args()
    arguments.add("--page", page)
    arguments.add("--document", document)
    drawn_from = ctx.files.drawn_from
    arguments.add_all(drawn_from, before_each = "--drawn_from")
    files = ctx.actions.args()
    files.add_all(info.metadata, format_each = "--metadata=%s")
    files.add_all(info.results, format_each = "--results=%s")
    files.use_param_file("--flagfile=%s")
    files.set_param_file_format("multiline")
    run_py_tool(
        ctx,
        tool = ctx.attr._tool,
        arguments = [arguments, files],
        inputs = info.metadata + info.results + drawn_from,
        outputs = [page, document],
        env = ctx.attr.env,
        mnemonic = "VerificationReport",
        progress_message = "Writing the report %{label}",
    )
    return [DefaultInfo(files = depset([page, document]))]

verification_report = rule(
    implementation = _verification_report_impl,
    doc = "A verification as one page and one JSON document.",
    attrs = {
        "drawn_from": attr.label(
            allow_single_file = [".json"],
            doc = "the kernels that those of the verification are drawn from, where they are: " +
                  "kind -> trait -> JSON of a value -> their number",
        ),
        "env": attr.string_dict(mandatory = True, doc = "of the program that writes it"),
        "verification": attr.label(mandatory = True, providers = [VerificationInfo]),
        "_tool": attr.label(cfg = "exec", default = "//tests/emulation/verify:write_report"),
    },
)
