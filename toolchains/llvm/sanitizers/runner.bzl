# Copyright 2026 The aiter-attn Authors.  SPDX-License-Identifier: Apache-2.0
"""The target that --run_under names, by which a test of a sanitized build finds all that it
needs."""

_SCRIPT = """#!/bin/sh
# Runs a test: "$@". Its working directory is the runfiles of the main repository.
symbolizer=external_symbolizer_path=$PWD/{symbolizer}
# An allocation that fails is an error that a program may handle, as without a sanitizer.
export ASAN_OPTIONS="$symbolizer:allocator_may_return_null=1:strict_string_checks=1"
# Children of processes with threads start threads of their own: the library's promise.
export TSAN_OPTIONS="$symbolizer:allocator_may_return_null=1:die_after_fork=0"
export UBSAN_OPTIONS="$symbolizer:print_stacktrace=1"
exec "$@"
"""

def _sanitizer_runner_impl(ctx):
    script = ctx.actions.declare_file(ctx.label.name + ".sh")
    ctx.actions.write(
        script,
        _SCRIPT.format(
            symbolizer = ctx.file.symbolizer.short_path,
        ),
        is_executable = True,
    )
    return [DefaultInfo(
        executable = script,
        runfiles = ctx.runfiles(
            ctx.files.symbolizer_files +
            [ctx.file.symbolizer],
        ),
    )]

sanitizer_runner = rule(
    implementation = _sanitizer_runner_impl,
    doc = "Runs a test with the options of the sanitizers: names in reports, failing allocations.",
    attrs = {
        "symbolizer": attr.label(allow_single_file = True, mandatory = True),
        "symbolizer_files": attr.label(doc = "the libraries of the symbolizer", mandatory = True),
    },
    executable = True,
)
