# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""A tool of @llvm as an executable target."""

# `bazel run`, a tool of an action and a file in a test's runfiles find the tree in different
# places: beside the script, or in its own runfiles.
_SCRIPT = """#!/bin/sh
here=${{0%/*}}
for root in "$here" "$0.runfiles/{repository}" "${{RUNFILES_DIR:-$here}}/{repository}"; do
    if [ -x "$root/{wrapper}" ]; then
        exec "$root/{wrapper}" "$@"
    fi
done
echo "$0: cannot find {wrapper} of repository {repository}; run it with its runfiles" >&2
exit 1
"""

def _llvm_tool_impl(ctx):
    script = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.write(
        script,
        _SCRIPT.format(
            repository = ctx.label.workspace_name,
            wrapper = ctx.attr.wrapper.label.name,
        ),
        is_executable = True,
    )
    files = ctx.files.files + [ctx.file.wrapper]
    return [DefaultInfo(executable = script, runfiles = ctx.runfiles(files = files))]

llvm_tool = rule(
    implementation = _llvm_tool_impl,
    doc = """A wrapper of @llvm with all it needs, for `bazel run`, tests and genrules.

Toolchains name the wrapper file and its filegroup instead.""",
    attrs = {
        "files": attr.label_list(mandatory = True, allow_files = True),
        "wrapper": attr.label(mandatory = True, allow_single_file = True),
    },
    executable = True,
)
